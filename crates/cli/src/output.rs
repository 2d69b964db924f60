//! How a command ends and what it prints: one error line and an exit code, and text that a reader
//! may stop reading at any time.

use std::error::Error;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lab::Failure;
use serde::Serialize;
use tempfile::NamedTempFile;

/// How a command ends that does not succeed.
#[derive(Debug)]
pub enum Exit {
    /// It has failed: exit code 2 for wrong input, otherwise 1.
    Failure(Failure),
    /// The reader of its output has gone: exit code 0.
    Unread,
}

impl Exit {
    /// What was given is wrong.
    pub fn input(problem: impl fmt::Display) -> Self {
        Exit::Failure(Failure::input(problem))
    }

    /// Something else went wrong.
    pub fn failed(problem: impl fmt::Display) -> Self {
        Exit::Failure(Failure::failed(problem))
    }

    /// Says so on standard error, and answers the exit code.
    pub fn report(&self) -> ExitCode {
        let (problem, code) = match self {
            Exit::Failure(Failure::Input(problem)) => (problem, 2),
            Exit::Failure(Failure::Failed(problem)) => (problem, 1),
            Exit::Unread => return ExitCode::SUCCESS,
        };
        let line = problem.split_whitespace().collect::<Vec<_>>().join(" ");
        // Where standard error is closed there is nobody to tell.
        let _ = writeln!(io::stderr(), "error: {line}");
        ExitCode::from(code)
    }
}

impl From<Failure> for Exit {
    fn from(failure: Failure) -> Self {
        Exit::Failure(failure)
    }
}

impl From<Box<dyn Error>> for Exit {
    /// Of a command that only reads what it was given and writes what was asked for.
    fn from(error: Box<dyn Error>) -> Self {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        match kind {
            Some(io::ErrorKind::BrokenPipe) => Exit::Unread,
            _ => Exit::input(error),
        }
    }
}

/// Prints `text`.
///
/// # Errors
/// [`Exit::Unread`] if the reader has gone (`headtime drives | head -1`).
pub fn print(text: &str) -> Result<(), Exit> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Exit::Unread),
        Err(error) => Err(Exit::failed(format!("standard output: {error}"))),
    }
}

/// A result as JSON, with a newline.
///
/// # Errors
/// If it has no JSON.
pub fn json(result: &impl Serialize) -> Result<String, Exit> {
    let text = serde_json::to_string_pretty(result).map_err(Exit::failed)?;
    Ok(text + "\n")
}

/// Writes a file, and the folder in which it lies.
///
/// # Errors
/// If the file system refuses.
pub fn write_file(path: &Path, contents: &str) -> Result<(), Exit> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, contents))
        .map_err(|error| Exit::failed(format!("{}: {error}", path.display())))
}

/// A file for results, begun before they are there, so that a name that cannot be written to is
/// found first. It has its name only when it is whole; dropped before, it leaves nothing.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    to: Target,
}

#[derive(Debug)]
enum Target {
    /// Beside a file that is there or is to be.
    Beside(NamedTempFile),
    /// What has a name and is no file, such as a pipe: there is nothing to keep whole.
    Itself(File),
}

impl NewFile {
    /// Begins a file, and makes the folder in which it will lie.
    ///
    /// # Errors
    /// If there cannot be one of that name.
    pub fn begin(path: &Path) -> Result<Self, Exit> {
        let to = Target::of(path)
            .map_err(|error| Exit::input(format!("{}: {error}", path.display())))?;
        Ok(NewFile {
            path: path.to_owned(),
            to,
        })
    }

    /// Writes all of the file.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn write(mut self, contents: &str) -> Result<(), Exit> {
        match self.write_all(contents.as_bytes()) {
            Ok(()) => self.finish(),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn finish(self) -> Result<(), Exit> {
        let NewFile { path, to } = self;
        match to {
            Target::Itself(_) => Ok(()),
            Target::Beside(file) => file
                .persist(&path)
                .map(drop)
                .map_err(|error| Exit::failed(format!("{}: {}", path.display(), error.error))),
        }
    }

    /// That it could not be written.
    pub fn failed(&self, error: &io::Error) -> Exit {
        Exit::failed(format!("{}: {error}", self.path.display()))
    }
}

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            return OpenOptions::new()
                .write(true)
                .open(path)
                .map(Target::Itself);
        }
        let folder = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        fs::create_dir_all(folder)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".headtime-").suffix(".partial");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            // As for any new file; the user's mask takes away what it takes away.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        builder.tempfile_in(folder).map(Target::Beside)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            Target::Beside(file) => file.write(bytes),
            Target::Itself(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            Target::Beside(file) => file.flush(),
            Target::Itself(file) => file.flush(),
        }
    }
}

/// What is to be known of a trace whose last line is good and has no newline.
pub const UNENDED: &str = "the last line of the trace has no newline: was it cut?";

/// A count with its thousands apart: 1,234,567.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        for (count, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(count), text);
        }
    }
}
