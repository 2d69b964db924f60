//! Our program in the background, from the moment on when it says that it is ready.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use assert_cmd::cargo::cargo_bin;

/// What `headtime serve` says when clients may come.
pub const SERVES: &str = "control socket";

/// Begins `headtime` with these words in a folder; what it complains of goes to `problems`.
///
/// # Errors
/// It ended, or said all it had to, without a line that has `ready` in it.
pub fn begin(
    folder: &Path,
    words: &[&str],
    problems: impl Into<Stdio>,
    ready: &str,
) -> Result<Child, Child> {
    let mut program = Command::new(cargo_bin("headtime"));
    begin_program(
        program.args(words).current_dir(folder).stderr(problems),
        ready,
    )
}

/// Begins a program, and waits for a line of its standard output that has `ready` in it.
///
/// # Errors
/// It ended, or said all it had to, without such a line.
pub fn begin_program(program: &mut Command, ready: &str) -> Result<Child, Child> {
    let mut child = program.stdout(Stdio::piped()).spawn().expect("it runs");
    let said = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut lines = said.lines().map_while(Result::ok);
    match lines.any(|line| line.contains(ready)) {
        true => Ok(child),
        false => Err(child),
    }
}
