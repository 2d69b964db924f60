//! How a command ends and what it prints: one error line and an exit code, and text that a reader
//! may stop reading at any time.

use std::error::Error;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tempfile::NamedTempFile;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub enum Failure {
    /// What was given to it is wrong: exit code 2.
    Input(String),
    /// It is not its input's fault: exit code 1.
    Failed(String),
    /// Nobody reads its output any more: no fault at all.
    Unread,
}

impl Failure {
    /// What was given is wrong.
    pub fn input(problem: impl fmt::Display) -> Self {
        Failure::Input(problem.to_string())
    }

    /// Something else went wrong.
    pub fn failed(problem: impl fmt::Display) -> Self {
        Failure::Failed(problem.to_string())
    }

    /// Says so on standard error, and answers the exit code.
    pub fn report(&self) -> ExitCode {
        let (problem, code) = match self {
            Failure::Input(problem) => (problem, 2),
            Failure::Failed(problem) => (problem, 1),
            Failure::Unread => return ExitCode::SUCCESS,
        };
        let line = problem.split_whitespace().collect::<Vec<_>>().join(" ");
        // Where standard error is closed there is nobody to tell.
        let _ = writeln!(io::stderr(), "error: {line}");
        ExitCode::from(code)
    }
}

impl From<Box<dyn Error>> for Failure {
    /// Of a command that only reads what it was given and writes what was asked for.
    fn from(error: Box<dyn Error>) -> Self {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        match kind {
            Some(io::ErrorKind::BrokenPipe) => Failure::Unread,
            _ => Failure::input(error),
        }
    }
}

/// Prints `text`.
///
/// # Errors
/// [`Failure::Unread`] if the reader has gone (`headtime drives | head -1`).
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::Unread),
        Err(error) => Err(Failure::failed(format!("standard output: {error}"))),
    }
}

/// Writes a file, and the folder in which it lies.
///
/// # Errors
/// If the file system refuses.
pub fn write_file(path: &Path, contents: &str) -> Result<(), Failure> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, contents))
        .map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
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
    pub fn begin(path: &Path) -> Result<Self, Failure> {
        let to = Target::of(path)
            .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
        Ok(NewFile {
            path: path.to_owned(),
            to,
        })
    }

    /// Writes all of the file.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn write(mut self, contents: &str) -> Result<(), Failure> {
        match self.write_all(contents.as_bytes()) {
            Ok(()) => self.finish(),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn finish(self) -> Result<(), Failure> {
        let NewFile { path, to } = self;
        match to {
            Target::Itself(_) => Ok(()),
            Target::Beside(file) => file
                .persist(&path)
                .map(drop)
                .map_err(|error| Failure::failed(format!("{}: {}", path.display(), error.error))),
        }
    }

    /// That it could not be written.
    pub fn failed(&self, error: &io::Error) -> Failure {
        Failure::failed(format!("{}: {error}", self.path.display()))
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

/// Reads a file that the user named.
///
/// # Errors
/// If it cannot be read, is too long for what is written by hand, or is not text.
pub fn read_file(path: &Path) -> Result<String, Failure> {
    let problem = |what: &str| Failure::input(format!("{}{what}", path.display()));
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(LONGEST_TEXT + 1).read_to_end(&mut bytes))
        .map_err(|error| problem(&format!(": {error}")))?;
    if bytes.len() as u64 > LONGEST_TEXT {
        let most = LONGEST_TEXT >> 20;
        return Err(problem(&format!(": more than {most} MiB: expected less")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|&&byte| byte == b'\n').count();
        problem(&format!(":{line}: a byte that is not UTF-8: expected text"))
    })
}

/// The longest drive profile or load that is read. A choice: twenty times the longest profile that
/// we ship.
const LONGEST_TEXT: u64 = 16 << 20;

/// A complaint about a name that is in no table, with the most similar one or all.
pub fn unknown(what: &str, name: &str, known: &[&str]) -> Failure {
    let near = known
        .iter()
        .map(|candidate| {
            (
                strsim::normalized_damerau_levenshtein(name, candidate),
                candidate,
            )
        })
        .filter(|(likeness, _)| *likeness >= SIMILAR)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let suggestion = match near {
        Some((_, near)) => format!("; did you mean \"{near}\"?"),
        None => String::new(),
    };
    let all = known.join(", ");
    Failure::input(format!(
        "no {what} is called \"{name}\": expected one of {all}{suggestion}"
    ))
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

/// How alike two names are that may be the same one mistyped. A choice: one wrong letter in two.
const SIMILAR: f64 = 0.5;

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

    #[test]
    fn a_similar_name_is_suggested() {
        let Failure::Input(problem) = unknown("policy", "c-lok", &["fcfs", "c-look"]) else {
            panic!("a wrong name is wrong input");
        };
        assert_eq!(
            problem,
            "no policy is called \"c-lok\": expected one of fcfs, c-look; did you mean \"c-look\"?"
        );
        let Failure::Input(problem) = unknown("policy", "zzz", &["fcfs"]) else {
            panic!("a wrong name is wrong input");
        };
        assert!(!problem.contains("mean"));
    }
}
