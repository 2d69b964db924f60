//! Progress where standard error is no terminal: lines at an interval, none of them on standard output.

use std::process::Output;

use assert_cmd::Command;

use crate::scene::shared;

/// A simulation that takes at least some milliseconds, with lines at this interval in seconds.
fn simulated(interval: &str) -> (Output, String) {
    run(
        "simulate --drive hp-c2247a --workload oltp --requests 20000 --policy fcfs --json",
        interval,
    )
}

/// A command with lines at this interval in seconds.
fn run(words: &str, interval: &str) -> (Output, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("headtime"));
    command.env("HEADTIME_PROGRESS_S", interval);
    ended(command.args(words.split_whitespace()))
}

/// What a command that succeeds says.
fn ended(command: &mut Command) -> (Output, String) {
    let output = command.output().expect("it ran");
    let said = String::from_utf8(output.stderr.clone()).expect("text");
    assert!(output.status.success(), "{said}");
    (output, said)
}

#[test]
fn a_log_gets_lines_of_progress_and_the_result_stays_what_it_is() {
    let (often, said) = simulated("0.001");
    let lines: Vec<&str> = said.lines().collect();
    assert!(!lines.is_empty());
    for line in &lines {
        let is_progress = line.starts_with("progress: fcfs: ") && line.contains(" %, ");
        assert!(is_progress && line.contains(" so far"), "{line}");
    }
    let (never, said) = simulated("0");
    assert_eq!(said, "");
    assert!(often.stdout == never.stdout, "lines change no result");
}

#[test]
fn an_interval_that_is_none_is_told_and_the_usual_one_taken() {
    for interval in ["x", "-1", "1e9", "nan"] {
        let (_, said) = simulated(interval);
        let expected = format!("warning: HEADTIME_PROGRESS_S={interval}: expected seconds from 0");
        assert!(said.starts_with(&expected), "{said}");
    }
}

/// A command's lines begin like this, and say how long it has been at work.
fn assert_line(words: &str, begin: &str, said: &str) {
    let has_line = said
        .lines()
        .any(|line| line.starts_with(begin) && line.contains(" so far"));
    assert!(has_line, "{words}: {begin} is not in\n{said}");
}

#[test]
fn benches_have_lines_too() {
    for (words, begin) in [
        (
            "bench simulate --requests 10000 --json",
            "progress: bench simulate: ",
        ),
        (
            "bench sets --unprofiled --size-mib 4 --pieces 1 --seeds 1 --json",
            "progress: bench sets: 4 MiB in 1 pieces, seed 1: ",
        ),
    ] {
        assert_line(words, begin, &run(words, "0.001").1);
    }
}

#[test]
fn a_validation_has_lines_too() {
    let Some(folder) = shared("lines of a validation") else {
        return;
    };
    let words = "validate --drive hp-c2247a";
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("headtime"));
    command
        .env("HEADTIME_PROGRESS_S", "0.001")
        .env("HEADTIME_SHARED", folder)
        .args(words.split_whitespace());
    let (_, said) = ended(&mut command);
    assert_line(words, "progress: validate: hp-c2247a: ", &said);
}
