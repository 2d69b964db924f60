//! The rules of STYLE and DESIGN that a program can check. One file per check, one table.
//!
//! A check gets the repository and answers with what is wrong in it, and what to use instead. Each
//! has two kinds of test beside it: what breaks the rule is reported, what keeps it is not.

mod booleans;
mod chapters;
mod circles;
mod direction;
mod fuzz_targets;
mod leftovers;
mod lent;
mod links;
mod manifests;
mod milliseconds;
mod names;
mod origins;
mod promises;
mod reach;
mod results;
mod text;

use std::fmt;

use crate::Failure;
use crate::repository::{self, Repository};

/// One check.
pub struct Check {
    /// The word in front of what it reports.
    pub rule: &'static str,
    /// What it demands.
    pub about: &'static str,
    /// Finds what breaks the rule.
    pub run: fn(&Repository) -> Vec<Violation>,
}

/// One place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which file.
    pub path: String,
    /// Which line, from 1.
    pub line: usize,
    /// What is wrong, and what to use instead.
    pub message: String,
}

/// Every check.
const ALL: &[Check] = &[
    direction::CHECK,
    manifests::CHECK,
    chapters::CHECK,
    names::CHECK,
    circles::CHECK,
    reach::CHECK,
    booleans::CHECK,
    milliseconds::CHECK,
    leftovers::CHECK,
    text::CHECK,
    origins::CHECK,
    promises::CHECK,
    links::CHECK,
    results::CHECK,
    fuzz_targets::CHECK,
    lent::CHECK,
];

/// `cargo xtask tidy [PATH]`: all checks; with a path, only what they say about files below it.
///
/// # Errors
/// If a rule is broken, or the repository cannot be read.
pub fn run(words: &[String]) -> Result<(), Failure> {
    let below = match words {
        [] => "",
        [path] if !path.starts_with('-') => path.as_str(),
        _ => return Err(Failure::Usage(usage())),
    };
    let repository = Repository::read(&repository::root()).map_err(Failure::Usage)?;
    if repository.shared.is_none() {
        println!("skipped: comparing tracked files with lent ones (no shared data)");
    }
    let mut broken = 0;
    for check in ALL {
        for violation in (check.run)(&repository) {
            if violation.path.starts_with(below) {
                println!("{}", violation.under(check.rule));
                broken += 1;
            }
        }
    }
    match broken {
        0 => {
            println!(
                "tidy: {} files, {} rules, nothing to report",
                repository.files.len(),
                ALL.len()
            );
            Ok(())
        }
        1 => Err(Failure::Found("tidy: 1 rule broken".to_string())),
        _ => Err(Failure::Found(format!("tidy: {broken} rules broken"))),
    }
}

/// How to call it, and what it checks.
fn usage() -> String {
    let mut text = String::from("usage: cargo xtask tidy [PATH]\n\n");
    for check in ALL {
        text.push_str(&format!("  {:<14}{}\n", check.rule, check.about));
    }
    text
}

impl Violation {
    /// At a line of a file.
    pub fn at(path: &str, line: usize, message: impl fmt::Display) -> Self {
        Violation {
            path: path.to_string(),
            line,
            message: message.to_string(),
        }
    }

    /// As a compiler prints it.
    fn under(&self, rule: &str) -> String {
        format!("{}:{}: {rule}: {}", self.path, self.line, self.message)
    }
}

/// The number, from 1, of the line in which the byte at `offset` lies.
pub fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset.min(text.len())]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::SourceFile;

    /// What the check says about a repository of these files: `path:line`, and its words.
    pub fn reported(check: &Check, files: &[(&str, &str)]) -> Vec<(String, String)> {
        let files = files.iter().map(|(path, text)| SourceFile {
            path: (*path).to_string(),
            bytes: text.as_bytes().to_vec(),
        });
        let repository = Repository::of(files.collect(), None);
        (check.run)(&repository)
            .into_iter()
            .map(|found| (format!("{}:{}", found.path, found.line), found.message))
            .collect()
    }

    /// The places alone.
    pub fn places(check: &Check, files: &[(&str, &str)]) -> Vec<String> {
        reported(check, files)
            .into_iter()
            .map(|(place, _)| place)
            .collect()
    }

    #[test]
    fn every_rule_has_its_own_word() {
        for (index, check) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.rule != check.rule));
        }
    }

    #[test]
    fn a_violation_reads_like_a_compiler_error() {
        let violation = Violation::at("crates/block/src/time.rs", 7, "a clock (use `now`)");
        assert_eq!(
            violation.under("reach"),
            "crates/block/src/time.rs:7: reach: a clock (use `now`)"
        );
    }

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!(line_of("a\nb\n", 0), 1);
        assert_eq!(line_of("a\nb\n", 2), 2);
    }
}
