//! How a command ends and what it prints: one error line and an exit code, and text that a reader
//! may stop reading at any time.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

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
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::write(path, contents))
        .map_err(|error| Failure::failed(format!("{}: {error}", path.display())))
}

/// Reads a file that the user named.
///
/// # Errors
/// If it cannot be read or is not text.
pub fn read_file(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::input(format!("{}: {error}", path.display())))
}

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
