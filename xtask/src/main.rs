//! The tasks of the repository: it checks itself, and makes its own tables.
//!
//! `cargo xtask` lists them. A new task is a file and a line in [`ALL`].
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line speaks through its output"
)]

mod bless;
mod book;
mod check;
mod counts;
mod import_drives;
mod markdown;
mod mutants;
mod prose;
mod repository;
mod results;
mod source;
mod structure;
mod swarm;
mod tidy;

use std::process::ExitCode;

/// Why a task did not succeed.
enum Failure {
    /// It was called wrongly, or something that it needs is missing: exit code 2.
    Usage(String),
    /// It ran, and what it looked at is not in order: exit code 1.
    Found(String),
}

/// One task.
struct Task {
    /// The word after `cargo xtask`.
    name: &'static str,
    /// One line for the list.
    about: &'static str,
    /// Does it, with the words after the name.
    run: fn(&[String]) -> Result<(), Failure>,
}

/// Every task.
const ALL: &[Task] = &[
    Task {
        name: "check",
        about: "everything that CI runs: tidy, drives, format, licences, lints, docs, fuzz build, tests",
        run: check::run,
    },
    Task {
        name: "tidy",
        about: "the rules of STYLE that a program can check; with a path, only files below it",
        run: tidy::run,
    },
    Task {
        name: "structure",
        about: "lines, largest types, circles, shared names, single-use functions of every crate, or of one",
        run: structure::run,
    },
    Task {
        name: "counts",
        about: "instructions of the hot paths beside golden numbers; --bless writes those",
        run: counts::run,
    },
    Task {
        name: "import-drives",
        about: "make drives/*.toml from the published parameters; --check compares only",
        run: |words| match import_drives::run(words) {
            Ok(report) => {
                println!("{report}");
                Ok(())
            }
            Err(problem) => Err(Failure::Found(problem)),
        },
    },
    Task {
        name: "book",
        about: "rewrite the generated pages of the book from the program's tables",
        run: book::run,
    },
    Task {
        name: "results",
        about: "rewrite the claim tables of the book; --from DIR publishes findings first",
        run: results::run,
    },
    Task {
        name: "prose",
        about: "words a sentence in README, ARCHITECTURE and docs, or in the files named",
        run: prose::run,
    },
    Task {
        name: "swarm",
        about: "whole services in virtual time under faults: --seeds N | --minutes M | --seed S",
        run: swarm::run,
    },
    Task {
        name: "mutants",
        about: "how many small changes of the program the tests notice, by samples; --help",
        run: mutants::run,
    },
    Task {
        name: "bless",
        about: "run the golden tests with HEADTIME_BLESS=1, so that they rewrite their tables",
        run: bless::run,
    },
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let task = words
        .first()
        .and_then(|name| ALL.iter().find(|task| task.name == name));
    let outcome = match task {
        Some(task) => (task.run)(&words[1..]),
        None => Err(Failure::Usage(usage())),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Found(message)) => {
            eprintln!("{message}");
            ExitCode::from(1)
        }
        Err(Failure::Usage(message)) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// The list of tasks.
fn usage() -> String {
    let mut text = String::from("usage: cargo xtask TASK\n\n");
    for task in ALL {
        text.push_str(&format!("  {:<14}{}\n", task.name, task.about));
    }
    text
}
