//! The shared library from C and from Python, against a service that says what it was told to say.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;

use tempfile::TempDir;

/// A service for one client: it grants stream 7 unless the rate is 0 and nothing else is wanted, tells that it is served, and
/// answers everything else well. At the end it says what it was asked.
struct Fake {
    folder: TempDir,
    thread: JoinHandle<Vec<String>>,
}

impl Fake {
    fn start() -> Fake {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join("socket")).expect("a socket");
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let reader = BufReader::new(stream.try_clone().expect("a socket"));
            let mut asked = Vec::new();
            for line in reader.lines().map_while(Result::ok) {
                let answer = match &line {
                    line if line.contains("\"rate\":0,") && !line.contains("\"priority\"") => {
                        r#"{"version":1,"error":"a rate of 0","refused":{"reason":"a rate of 0"}}"#
                    }
                    line if line.contains("\"ask\":\"attach\"") => concat!(
                        r#"{"version":1,"ok":{"stream":7,"memory":1,"batch":2,"round_us":3}}"#,
                        "\n",
                        r#"{"version":1,"told":{"stream":7,"event":"serving"}}"#,
                        "\n",
                        r#"{"version":1,"told":{"stream":7,"event":{"late":{"us":12}}}}"#
                    ),
                    _ => r#"{"version":1,"ok":true}"#,
                };
                asked.push(line);
                if writeln!(stream, "{answer}").is_err() {
                    break;
                }
            }
            asked
        });
        Fake { folder, thread }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// What it was asked, when the client has gone.
    fn asked(self) -> Vec<String> {
        self.thread.join().expect("no panic")
    }
}

/// What both programs ask for, in this order.
fn assert_asked(asked: &[String]) {
    let expected = [
        ["\"ask\":\"attach\"", "\"rate\":0"],
        ["\"ask\":\"attach\"", "[[0,4096,8192],[8192,65536,4096]]"],
        ["\"ask\":\"position\"", "\"offset\":4096"],
        ["\"ask\":\"close\"", "\"stream\":7"],
        ["\"buffer\":0,", "\"priority\":5,\"rate\":0,"],
        ["\"ask\":\"close\"", "\"stream\":7"],
        ["\"buffer\":4096,", "\"priority\":0,\"rate\":1000000,"],
        ["\"ask\":\"close\"", "\"stream\":7"],
    ];
    assert_eq!(asked.len(), expected.len(), "{asked:#?}");
    for (line, parts) in asked.iter().zip(expected) {
        for part in parts {
            assert!(line.contains(part), "{line}: {part}");
        }
        let is_wanted = parts[1].contains("priority");
        assert_eq!(line.contains("priority"), is_wanted, "{line}");
    }
}

/// The library, which lies beside the tests or in the folder above.
fn library() -> PathBuf {
    let here = std::env::current_exe().expect("a test");
    let folders = here.ancestors().skip(1).take(2);
    let mut found = folders.map(|folder| folder.join("libheadtime.so"));
    found
        .find(|path| path.exists())
        .expect("the shared library")
}

fn ours(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn has(program: &str) -> bool {
    let is_here = Command::new(program).arg("--version").output().is_ok();
    if !is_here {
        let line = format!("skipped, number 1: no {program}\n");
        std::io::stderr()
            .write_all(line.as_bytes())
            .expect("standard error");
    }
    is_here
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}{problem}");
    text
}

/// What both print.
const PRINTED: &str = "refused: a rate of 0\nevent 1 0\nevent 4 12\n\
    refused: priority -1: expected 0, the highest, to 6\n\
    refused: descriptor -1: expected an open file\nclosed\n";

const C: &str = r#"
#include <stdio.h>
#include "headtime.h"

int main(int count, char **words) {
    char text[200];
    headtime_text problem = { text, sizeof text };
    struct headtime_piece pieces[] = { { 0, 4096, 8192 }, { 8192, 65536, 4096 } };
    struct headtime_terms terms = { .name = "c", .buffer = 4096, .export_name = "disk" };
    if (count != 2 || headtime_connect("/nowhere/socket", problem)) return 1;
    headtime_client *client = headtime_connect(words[1], problem);
    if (!client) return 2;
    if (headtime_attach_pieces(client, pieces, 2, 12288, &terms, problem)) return 3;
    printf("refused: %s\n", text);
    terms.rate = 1000000;
    headtime_stream *stream = headtime_attach_pieces(client, pieces, 2, 12288, &terms, problem);
    if (!stream || headtime_position(stream, 4096)) return 4;
    struct headtime_event event;
    for (int left = 2; left; left--) {
        if (!headtime_next_event(stream, 60000, &event, problem)) return 5;
        printf("event %d %llu\n", event.kind, (unsigned long long)event.from);
    }
    terms.mode = 9;
    if (headtime_attach_file(client, 0, &terms, problem)) return 6;
    if (headtime_attach_file(NULL, 0, &terms, problem)) return 7;
    if (headtime_refresh(stream, -1, problem) != -1) return 8;
    headtime_close(stream);
    /* Programs that were compiled before have terms of this length. */
    if (sizeof(void *) == 8 && sizeof terms != 56) return 9;
    terms.mode = 0;
    struct headtime_terms only = { .export_name = "disk" };
    if (headtime_attach_pieces_with_priority(client, pieces, 2, 12288, &only, -1, problem))
        return 10;
    printf("refused: %s\n", text);
    if (headtime_attach_file_with_priority(client, -1, &only, 1, problem)) return 11;
    printf("refused: %s\n", text);
    stream = headtime_attach_pieces_with_priority(client, pieces, 2, 12288, &only, 5, problem);
    if (!stream) return 12;
    headtime_close(stream);
    stream = headtime_attach_pieces_with_priority(client, pieces, 2, 12288, &terms, 0, problem);
    if (!stream) return 13;
    headtime_close(stream);
    headtime_close(NULL);
    headtime_disconnect(client);
    puts("closed");
    return 0;
}
"#;

#[test]
fn c_programs_attach_and_hear_what_happens() {
    if !has("cc") {
        return;
    }
    let fake = Fake::start();
    let source = fake.folder.path().join("program.c");
    let program = fake.folder.path().join("program");
    std::fs::write(&source, C).expect("a source");
    run(Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(ours("include"))
        .arg(&source)
        .arg(library())
        .arg("-o")
        .arg(&program));
    let printed = run(Command::new(&program)
        .arg(fake.socket())
        .env("LD_LIBRARY_PATH", library().parent().expect("a folder")));
    assert_eq!(printed, PRINTED);
    assert_asked(&fake.asked());
}

const PYTHON: &str = r#"
import sys
from headtime_streams import Client, Refused

try:
    Client("/nowhere/socket")
    sys.exit(1)
except Refused:
    pass
with Client(sys.argv[1]) as client:
    pieces = [(0, 4096, 8192), (8192, 65536, 4096)]
    try:
        client.attach_pieces("disk", pieces, 12288, rate=0, buffer=4096)
        sys.exit(2)
    except Refused as why:
        print("refused:", why)
    with client.attach_pieces("disk", pieces, 12288, rate=1000000, buffer=4096) as stream:
        stream.position(4096)
        kinds = {"serving": 1, "late": 4}
        for _ in range(2):
            event = stream.next_event(60)
            print("event", kinds[event.kind], event.start)
        assert stream.next_event() is None
    for ask in [
        lambda: client.attach_pieces("disk", pieces, 12288, 0, 0, priority=-1),
        lambda: client.prefer(-1, 1, export="disk"),
    ]:
        try:
            ask()
            sys.exit(3)
        except Refused as why:
            print("refused:", why)
    client.attach_pieces("disk", pieces, 12288, 0, 0, priority=5).close()
    client.attach_pieces("disk", pieces, 12288, 1000000, 4096, priority=0).close()
print("closed")
"#;

#[test]
fn python_programs_attach_and_hear_what_happens() {
    if !has("python3") {
        return;
    }
    let fake = Fake::start();
    let printed = run(Command::new("python3")
        .arg("-c")
        .arg(PYTHON)
        .arg(fake.socket())
        .env("PYTHONPATH", ours("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("HEADTIME_LIBRARY", library()));
    assert_eq!(printed, PRINTED);
    assert_asked(&fake.asked());
}
