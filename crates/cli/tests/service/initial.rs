//! `headtime serve --init`: what it writes is checked, served and read through.

use std::path::Path;
use std::process::{Command, Output};

use assert_cmd::cargo::cargo_bin;
use block::operation::Ask;
use nbd::Style;
use nbd::request::Asked;

use crate::begun::{SERVES, begin};

/// Bytes of the image. A choice: some requests.
const BYTES: usize = 1 << 20;

fn headtime(folder: &Path, words: &[&str]) -> Output {
    Command::new(cargo_bin("headtime"))
        .current_dir(folder)
        .env("XDG_RUNTIME_DIR", folder)
        .args(words)
        .output()
        .expect("it runs")
}

fn text(output: &Output) -> (Option<i32>, String, String) {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said, problem)
}

/// A folder with an image of known bytes.
fn with_image() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes: Vec<u8> = (0..BYTES).map(|at| (at / 512 % 251) as u8).collect();
    std::fs::write(folder.path().join("disk.img"), bytes).expect("an image");
    folder
}

#[test]
fn what_is_written_passes_the_check_and_serves_what_was_there() {
    let folder = with_image();
    let words = ["serve", "--init", "disk.img", "--out", "c.toml"];
    let (code, said, problem) = text(&headtime(folder.path(), &words));
    assert_eq!(code, Some(0), "{problem}");
    assert!(
        said.contains("next: headtime serve --check c.toml"),
        "{said}"
    );
    let (code, said, problem) = text(&headtime(folder.path(), &["serve", "--check", "c.toml"]));
    assert_eq!(code, Some(0), "{said}{problem}");
    assert!(said.contains("disk.img, 1048576 bytes"), "{said}");

    // The sockets go into the test's folder.
    let config = std::fs::read_to_string(folder.path().join("c.toml")).expect("a configuration");
    let config = config.replace("{runtime}/", "");
    std::fs::write(folder.path().join("c.toml"), config).expect("a configuration");
    let log = std::fs::File::create(folder.path().join("log")).expect("a log");
    let mut child = begin(folder.path(), &["serve", "c.toml"], log, SERVES).expect("it serves");
    let mut client =
        crate::client::Client::connect(&folder.path().join("nbd.sock"), Style::Structured);
    let end = client.ask(Asked::Of(Ask::Read), 4096, 4096, &[]);
    assert_eq!(end.result, Ok(()));
    assert_eq!(end.bytes[..3], [8, 8, 8], "the ninth sector of 512 bytes");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

#[test]
fn without_a_file_it_goes_to_standard_output_and_nothing_is_made() {
    let folder = with_image();
    let (code, said, problem) = text(&headtime(folder.path(), &["serve", "--init", "disk.img"]));
    assert_eq!((code, problem.as_str()), (Some(0), ""));
    assert!(said.starts_with("# Serves /"), "{said}");
    assert!(said.contains("kind = \"file\""), "{said}");
    let files = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(files, 1, "the image");
}

#[test]
fn nothing_is_overwritten_and_what_cannot_be_served_is_refused() {
    let folder = with_image();
    std::fs::write(folder.path().join("mine.toml"), "mine").expect("a file");
    std::fs::write(folder.path().join("odd.img"), [1; 5000]).expect("a file");
    for (words, expected) in [
        (
            &["serve", "--init", "disk.img", "--out", "mine.toml"][..],
            "mine.toml: it is there already: expected a new name",
        ),
        (&["serve", "--init", "none.img"], "none.img: No such file"),
        (&["serve", "--init", "/dev/null"], "expected a block device"),
        (
            &["serve", "--init", "odd.img"],
            "5000 bytes: expected a multiple of 4096",
        ),
        (&["serve", "--init", "nbd:/x://"], "expected \"nbd://HOST"),
        (&["serve", "--out", "c.toml"], "--init"),
        (&["serve", "--init", "disk.img", "--check"], "--check"),
    ] {
        let (code, said, problem) = text(&headtime(folder.path(), words));
        assert_eq!((code, said.as_str()), (Some(2), ""), "{words:?}: {problem}");
        assert!(problem.contains(expected), "{expected}: {problem}");
    }
    let mine = std::fs::read_to_string(folder.path().join("mine.toml"));
    assert_eq!(mine.expect("a file"), "mine");
}
