//! Output and exit codes: one line for an error, text on standard output, files that appear whole.

mod drawing;
mod table;
pub mod width;

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar};
use lab::Failure;
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::verbosity::is_quiet;
pub use drawing::{DrawingFile, write_beside};
pub use table::NewTable;

/// Prints a sentence beside a progress bar, on standard error, unless the command is quiet.
pub fn remark(bar: &ProgressBar, path: &str, sentence: &str) {
    let line = without_controls(sentence).into_owned();
    bar.suspend(|| note(&format!("{path}: {line}\n")));
}

/// Prints text on standard error that is neither a result nor a warning, unless the command is quiet.
pub fn note(text: &str) {
    if !is_quiet() {
        // A closed standard error has no reader.
        drop(io::stderr().lock().write_all(text.as_bytes()));
    }
}

/// Prints a warning on standard error.
pub fn warn(sentence: &str) {
    let line = without_controls(sentence);
    // A closed standard error has no reader.
    drop(writeln!(io::stderr(), "warning: {line}"));
}

/// The unsuccessful end of a command.
#[derive(Debug)]
pub enum Exit {
    /// The command failed: exit code 2 for wrong input, otherwise 1.
    Failure(Failure),
    /// The command ended as it should, with an answer that is no success: an exit code of its own.
    Verdict {
        /// The exit code.
        code: u8,
        /// The answer.
        answer: String,
    },
    /// The reader closed the output: exit code 0.
    Unread,
}

impl Exit {
    /// An error of the input.
    pub fn input(problem: impl fmt::Display) -> Self {
        Exit::Failure(Failure::input(problem))
    }

    /// Any other error.
    pub fn failed(problem: impl fmt::Display) -> Self {
        Exit::Failure(Failure::failed(problem))
    }

    /// An answer with an exit code of its own.
    pub fn verdict(code: u8, answer: String) -> Self {
        Exit::Verdict { code, answer }
    }

    /// What went wrong, in words.
    pub fn problem(&self) -> &str {
        match self {
            Exit::Failure(Failure::Input(problem) | Failure::Failed(problem)) => problem,
            Exit::Verdict { answer, .. } => answer,
            Exit::Unread => "nobody reads the output",
        }
    }

    /// Prints the error on standard error, and returns the exit code.
    pub fn report(&self) -> ExitCode {
        let (problem, code) = match self {
            Exit::Failure(Failure::Input(problem)) => (problem, 2),
            Exit::Failure(Failure::Failed(problem)) => (problem, 1),
            Exit::Verdict { code, answer } => (answer, *code),
            Exit::Unread => return ExitCode::SUCCESS,
        };
        let line = problem.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = without_controls(&line);
        // A closed standard error has no reader.
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
    /// Converts an error of a command that only reads its input and writes its output.
    fn from(error: Box<dyn Error>) -> Self {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        match kind {
            Some(io::ErrorKind::BrokenPipe) => Exit::Unread,
            _ => Exit::input(error),
        }
    }
}

/// Prints the text of an answer from a service. Control characters other than line ends are escaped as in
/// JSON, so that names of files and clients cannot steer the terminal.
///
/// # Errors
/// As for [`print()`].
pub fn print_answer(text: &str) -> Result<(), Exit> {
    print(&without_controls(text))
}

/// Prints the text of an answer from a service as [`print_answer`], in lines that fit the terminal.
///
/// # Errors
/// As for [`print()`].
pub fn print_fitted(text: &str) -> Result<(), Exit> {
    print_answer(&width::wrapped(text, width::of_terminal()))
}

/// The text with control characters other than line ends escaped: `\u001b`.
fn without_controls(text: &str) -> Cow<'_, str> {
    let is_unsafe = |c: char| c.is_control() && c != '\n';
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match is_unsafe(c) {
            true => safe += &format!("\\u{:04x}", u32::from(c)),
            false => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// Prints `text`.
///
/// # Errors
/// [`Exit::Unread`] if the reader closed the output (`headtime drives | head -1`).
pub fn print(text: &str) -> Result<(), Exit> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Exit::Unread),
        Err(error) => Err(Exit::failed(format!("standard output: {error}"))),
    }
}

/// Returns a result as JSON, with a newline.
///
/// # Errors
/// If the result cannot be serialised.
pub fn json(result: &impl Serialize) -> Result<String, Exit> {
    let text = serde_json::to_string_pretty(result).map_err(Exit::failed)?;
    Ok(text + "\n")
}

/// Writes a file, and creates its folder.
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

/// A file for results, opened before the measurement, so that a bad name is an error at once. The
/// file appears under its name only when it is whole. A dropped one leaves nothing.
#[derive(Debug)]
pub struct NewFile {
    path: PathBuf,
    to: OutputTarget,
}

#[derive(Debug)]
enum OutputTarget {
    /// A temporary file beside the target.
    Beside(NamedTempFile),
    /// The target itself, if it is no regular file, such as a pipe.
    Itself(File),
}

impl NewFile {
    /// Opens a file, and creates its folder.
    ///
    /// # Errors
    /// If the name cannot be written to.
    pub fn begin(path: &Path) -> Result<Self, Exit> {
        let to = OutputTarget::of(path)
            .map_err(|error| Exit::input(format!("{}: {error}", path.display())))?;
        Ok(NewFile {
            path: path.to_owned(),
            to,
        })
    }

    /// Writes the whole file.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn write(mut self, contents: &str) -> Result<(), Exit> {
        match self.write_all(contents.as_bytes()) {
            Ok(()) => self.finish(),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Moves the file to its name.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn finish(self) -> Result<(), Exit> {
        let NewFile { path, to } = self;
        match to {
            OutputTarget::Itself(_) => Ok(()),
            OutputTarget::Beside(file) => file
                .persist(&path)
                .map(drop)
                .map_err(|error| Exit::failed(format!("{}: {}", path.display(), error.error))),
        }
    }

    /// The error of a file that could not be written.
    pub fn failed(&self, error: &io::Error) -> Exit {
        Exit::failed(format!("{}: {error}", self.path.display()))
    }
}

impl OutputTarget {
    fn of(path: &Path) -> io::Result<Self> {
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            return OpenOptions::new()
                .write(true)
                .open(path)
                .map(OutputTarget::Itself);
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
            // The permissions of any new file, before the user's mask.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        builder.tempfile_in(folder).map(OutputTarget::Beside)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.to {
            OutputTarget::Beside(file) => file.write(bytes),
            OutputTarget::Itself(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            OutputTarget::Beside(file) => file.flush(),
            OutputTarget::Itself(file) => file.flush(),
        }
    }
}

/// The warning about a trace whose last line is complete and has no newline.
pub const UNENDED: &str = "the last line of the trace has no newline: was it cut?";

/// A time that is left, in the largest unit that says enough: 5 days, 33 minutes.
pub fn time_left(seconds: f64) -> String {
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) => HumanDuration(time).to_string(),
        Err(_) => "an unknown time".to_owned(),
    }
}

/// So many bytes in the largest decimal unit that fits: 512 B, 1.3 MB, 184 GB.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut amount = count as f64;
    let mut unit = 0;
    while amount >= 1000.0 && unit + 1 < UNITS.len() {
        amount /= 1000.0;
        unit += 1;
    }
    match unit == 0 || amount >= 100.0 {
        true => format!("{amount:.0} {}", UNITS[unit]),
        false => format!("{amount:.1} {}", UNITS[unit]),
    }
}

/// A time in the unit that fits: 12 us, 31.4 ms, 2.6 s.
pub fn micros(us: f64) -> String {
    match us {
        ..1e3 => format!("{us:.0} us"),
        ..1e5 => format!("{:.1} ms", us / 1e3),
        ..1e6 => format!("{:.0} ms", us / 1e3),
        _ => format!("{:.1} s", us / 1e6),
    }
}

/// A number in at most eight characters, without meaningless digits.
pub fn short(value: f64) -> String {
    match value {
        v if v >= 10_000.0 => grouped(v.round() as u64),
        v if v >= 1_000.0 => format!("{v:.0}"),
        v if v >= 100.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

/// A count with commas between thousands: 1,234,567.
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
    fn control_characters_of_an_answer_do_not_reach_the_terminal() {
        for (text, safe) in [
            ("disk: 3 waiting\n  queue", "disk: 3 waiting\n  queue"),
            ("\u{1b}[2Jgone", "\\u001b[2Jgone"),
            ("c1 \u{9b}31m, bell \u{7}", "c1 \\u009b31m, bell \\u0007"),
            ("tab\tand return\r", "tab\\u0009and return\\u000d"),
        ] {
            assert_eq!(without_controls(text), safe);
        }
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        for (us, text) in [
            (0.0, "0 us"),
            (999.4, "999 us"),
            (31_400.0, "31.4 ms"),
            (228_590.0, "229 ms"),
            (2_600_000.0, "2.6 s"),
        ] {
            assert_eq!(micros(us), text);
        }
    }

    #[test]
    fn bytes_have_the_unit_that_fits() {
        for (count, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (184_700_000_000, "185 GB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }

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
    fn numbers_are_short() {
        for (value, text) in [
            (0.123, "0.12"),
            (123.45, "123.5"),
            (1234.5, "1234"),
            (1_234_567.0, "1,234,567"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
