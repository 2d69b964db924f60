//! `cargo xtask bless`: rewrites the golden tables from what the program does now.
//!
//! A golden test compares with a table in the repository. It has `golden` in its name, and with
//! `HEADTIME_BLESS=1` in the environment it writes the table instead of comparing. The commit that
//! carries a changed table says why it changed.

use std::process::Command;

use crate::Failure;
use crate::repository;

/// `cargo xtask bless [NAME]`: the golden tests, or those of them with `NAME` in theirs.
///
/// # Errors
/// If a test fails for another reason than its table.
pub fn run(words: &[String]) -> Result<(), Failure> {
    let name = match words {
        [] => "golden",
        [name] if name.contains("golden") => name.as_str(),
        _ => {
            let message = "usage: cargo xtask bless [NAME], where NAME contains `golden`";
            return Err(Failure::Usage(message.to_string()));
        }
    };
    let status = Command::new(repository::cargo())
        .args(["test", "--workspace", "--locked", name])
        .env("HEADTIME_BLESS", "1")
        .current_dir(repository::root())
        .status()
        .map_err(|error| Failure::Usage(format!("cargo test: {error}")))?;
    if !status.success() {
        return Err(Failure::Found("bless: a golden test failed".to_string()));
    }
    println!("bless: done; `git diff` shows which tables changed, the commit message says why");
    Ok(())
}
