//! `headtime top --once` and `headtime ctl status --watch` over a fake service.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::known::known_service;
use assert_cmd::cargo::cargo_bin;
use server::status::Status;

#[test]
fn one_picture_is_text_of_the_size_that_is_asked_for() {
    let (_folder, socket, _plane) = known_service();
    let top = |words: &[&str]| {
        let output = Command::new(cargo_bin("headtime"))
            .args(["top", "--socket"])
            .arg(&socket)
            .args(words)
            .output()
            .expect("it runs");
        (output.status.code(), output.stdout, output.stderr)
    };
    let (code, said, problem) = top(&["--once", "--size", "100x30"]);
    let said = String::from_utf8(said).expect("text");
    assert_eq!(code, Some(0), "{}", String::from_utf8_lossy(&problem));
    assert_eq!(said.lines().count(), 30);
    for part in [
        "headtime 0.1.0, serving for ",
        "wrong: drive disk: commands have failed: 5 reads",
        "disk        following",
        "1.37 of 2",
        "> 3    scan db",
        "  4    scan <b>log</b>",
        "127.0.0.1:50123",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // Standard output of a test is no terminal.
    let (code, said, problem) = top(&[]);
    let problem = String::from_utf8(problem).expect("text");
    assert_eq!((code, said.len()), (Some(2), 0), "{problem}");
    assert!(problem.contains("expected one, or --once"), "{problem}");
    let (code, _, problem) = top(&["--size", "80x24"]);
    assert_eq!(code, Some(2), "{}", String::from_utf8_lossy(&problem));
}

#[test]
fn a_watched_status_is_printed_until_nobody_reads_it() {
    let (_folder, socket, _plane) = known_service();
    let mut child = Command::new(cargo_bin("headtime"))
        .args(["ctl", "--json", "--socket"])
        .arg(&socket)
        .args(["status", "--watch=0.1"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    for line in lines.take(2) {
        let status: Status = serde_json::from_str(&line.expect("a line")).expect("a status");
        assert_eq!(status, crate::fake::status());
    }
    // The pipe is closed now: the next print ends it well.
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_watch_ends_with_its_service() {
    let (folder, socket, plane) = known_service();
    drop((plane, folder));
    let output = Command::new(cargo_bin("headtime"))
        .args(["ctl", "--socket"])
        .arg(&socket)
        .args(["status", "--watch"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let seconds = Command::new(cargo_bin("headtime"))
        .args(["ctl", "status", "--watch=0"])
        .output()
        .expect("it runs");
    assert_eq!(seconds.status.code(), Some(2));
}
