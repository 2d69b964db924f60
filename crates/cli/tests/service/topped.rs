//! `headtime top` in a terminal, `headtime top --once` and `headtime ctl status --watch` over a fake service.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use crate::fake::{self, Fake};
use crate::known::{known_service, served};
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
fn keys_that_are_pressed_in_a_terminal_reach_the_service() {
    let fake = Fake::new(fake::status());
    let (_folder, socket, _plane) = served(&fake);
    let top = format!(
        "stty cols 100 rows 30; {} top --socket {}",
        cargo_bin("headtime").display(),
        socket.display()
    );
    let mut child = Command::new("script")
        .args(["-qec", &top, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script of bsdutils");
    let mut keyboard = child.stdin.take().expect("it is piped");
    let mut screen = child.stdout.take().expect("it is piped");
    let mut picture = Vec::new();
    let has =
        |picture: &[u8], word: &str| picture.windows(word.len()).any(|at| at == word.as_bytes());
    // A key means nothing before there is something to choose.
    while !has(&picture, "scan db") {
        let mut part = [0; 4096];
        let read = screen.read(&mut part).expect("it is drawn");
        assert!(read > 0, "{}", String::from_utf8_lossy(&picture));
        picture.extend_from_slice(&part[..read]);
    }
    // The selected task is suspended, the next one is resumed; the budget becomes 0.5 %. Each is done before the next key.
    keyboard.write_all(b"sjsb0.5\rq").expect("it reads");
    screen.read_to_end(&mut picture).expect("it is drawn");
    let ended = child.wait().expect("it ends");
    let picture = String::from_utf8_lossy(&picture);
    // Its slowest requests are asked for with each picture.
    let mut orders = fake.told();
    orders.retain(|ask| !ask.starts_with("why"));
    let expected = ["steer 3 Suspend", "steer 4 Resume", "impact disk 5000"];
    assert_eq!(orders, expected, "{picture}");
    assert!(ended.success(), "{picture}");
    // The picture was on the other screen of the terminal, which was left.
    assert!(
        picture.contains("\u{1b}[?1049h") && picture.contains("\u{1b}[?1049l"),
        "{picture}"
    );
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
        assert_eq!(status, fake::status());
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
