//! `-q` and `-v`: what stands on standard error, before and after the name of a command.

use std::path::Path;
use std::process::{Command, Stdio};

use assert_cmd::cargo::cargo_bin;

use crate::begun::{SERVES, begin};
use crate::known::known_service;

/// The exit code, standard output and standard error.
fn headtime(folder: &Path, words: &str) -> (Option<i32>, String, String) {
    let output = Command::new(cargo_bin("headtime"))
        .current_dir(folder)
        .env("HEADTIME_PROGRESS_S", "0.001")
        .args(words.split(' '))
        .output()
        .expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// A folder with a trace of two lines, of which one is none.
fn with_a_trace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = "0.000000,0,R,0,4096\n0.500000,0,W,here,1024\n";
    std::fs::write(folder.path().join("bad.csv"), bad).expect("a trace");
    folder
}

#[test]
fn a_quiet_command_has_its_result_and_no_progress() {
    let folder = with_a_trace();
    let simulate = "simulate --drive dec-rz26 --workload oltp --requests 20000";
    let (code, result, progress) = headtime(folder.path(), simulate);
    assert_eq!(code, Some(0), "{progress}");
    assert!(progress.contains("progress: sptf"), "{progress}");
    for words in [format!("-q {simulate}"), format!("{simulate} --quiet")] {
        let quiet = headtime(folder.path(), &words);
        assert_eq!(quiet, (Some(0), result.clone(), String::new()), "{words}");
    }
}

#[test]
fn notes_are_left_out_and_doubts_and_errors_are_not() {
    let folder = with_a_trace();
    let convert = "trace convert --skip-bad bad.csv new.csv";
    let (code, _, said) = headtime(folder.path(), convert);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1 requests in"), "{said}");
    let quiet = headtime(folder.path(), &format!("-q {convert} --force"));
    assert_eq!(
        quiet,
        (
            Some(0),
            String::new(),
            "1 bad line skipped: 1 bad field\n".to_owned()
        )
    );
    let (code, said, problem) = headtime(folder.path(), "-q trace stat none.csv");
    assert_eq!((code, said.as_str()), (Some(2), ""));
    assert!(problem.starts_with("error: none.csv: "), "{problem}");
    let (code, _, problem) = headtime(folder.path(), "-q -v drives");
    assert_eq!(code, Some(2));
    assert!(problem.contains("cannot be used with"), "{problem}");
}

#[test]
fn a_verbose_command_tells_what_it_asks_a_service() {
    let (folder, _socket, _plane) = known_service();
    let (code, plain, said) = headtime(folder.path(), "ctl --socket x.sock tasks");
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let (code, once, said) = headtime(folder.path(), "ctl --socket x.sock tasks -v");
    assert_eq!((code, &once), (Some(0), &plain));
    assert!(
        said.contains("INFO") && said.contains("the command ends"),
        "{said}"
    );
    assert!(!said.contains("DEBUG"), "{said}");
    let (code, twice, said) = headtime(folder.path(), "-vv ctl --socket x.sock tasks");
    assert_eq!((code, &twice), (Some(0), &plain));
    assert!(
        said.contains("DEBUG") && said.contains("ask=Tasks"),
        "{said}"
    );
}

const CONFIG: &str = "[[drive]]\nname = \"m\"\nback_end = { kind = \"memory\", size = \"1 MiB\" }\n\
                      [[drive.volume]]\nname = \"m\"\n[[drive.export]]\nname = \"m\"\nvolume = \"m\"\n\
                      [[nbd]]\nunix = \"m.sock\"\n[control]\nsocket = \"m.control\"\n";

#[test]
fn a_quiet_service_logs_warnings_only() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("m.toml"), CONFIG).expect("a configuration");
    for (words, has_information) in [
        (&["serve", "m.toml"][..], true),
        (&["serve", "-q", "m.toml"], false),
    ] {
        let log = std::fs::File::create(folder.path().join("log")).expect("a log");
        let service = begin(folder.path(), words, Stdio::from(log), SERVES);
        let mut service = service.expect("it serves");
        service.kill().expect("it runs");
        service.wait().expect("it ends");
        let log = std::fs::read_to_string(folder.path().join("log")).expect("a log");
        assert_eq!(
            log.contains("listening"),
            has_information,
            "{words:?}: {log}"
        );
    }
}
