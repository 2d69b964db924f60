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

/// The answer to `tasks`.
const TASKS: &str = concat!(
    r#"{"version":1,"ok":[{"drive":"d","tasks":[{"id":3,"state":"suspended","asked_bytes":8192,"done_bytes":4096,"#,
    r#""free_bytes":2048,"idle_bytes":1024,"paid_bytes":1024,"failed_bytes":512,"pieces_needed":2,"pieces_done":1,"#,
    r#""eta_s":2.5,"outcome":null,"problem":"exit status: 1"}]}]}"#
);

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
                    line if line.contains("\"ask\":\"scan\"") => match line.contains("\"gone\"") {
                        true => r#"{"version":1,"error":"no volume gone"}"#,
                        false => r#"{"version":1,"ok":{"task":3}}"#,
                    },
                    line if line.contains("\"ask\":\"tasks\"") => TASKS,
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

/// Compiles a C program and runs it beside the service.
fn run_c(fake: &Fake, text: &str) -> String {
    let source = fake.folder.path().join("program.c");
    let program = fake.folder.path().join("program");
    std::fs::write(&source, text).expect("a source");
    run(Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(ours("include"))
        .arg(&source)
        .arg(library())
        .arg("-o")
        .arg(&program));
    run(Command::new(&program)
        .arg(fake.socket())
        .env("LD_LIBRARY_PATH", library().parent().expect("a folder")))
}

/// Runs a Python program beside the service.
fn run_python(fake: &Fake, text: &str) -> String {
    run(Command::new("python3")
        .arg("-c")
        .arg(text)
        .arg(fake.socket())
        .env("PYTHONPATH", ours("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("HEADTIME_LIBRARY", library()))
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
    let printed = run_c(&fake, C);
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
    let printed = run_python(&fake, PYTHON);
    assert_eq!(printed, PRINTED);
    assert_asked(&fake.asked());
}

/// What both programs ask for tasks, in this order.
fn assert_asked_for_tasks(asked: &[String]) {
    let expected: [&[&str]; 8] = [
        &["\"ask\":\"scan\"", "\"gone\""],
        &[
            "\"ask\":\"scan\"",
            "\"volume\":\"db\"",
            "\"pieces\":[[4096,8192],[0,512]]",
            "\"any\":1",
            "\"deadline_s\":60",
            "\"pace_bytes_s\":5000000",
            "\"priority\":2",
            "{\"command\":[\"./copy\",\"/backup\"]}",
        ],
        &["\"ask\":\"scan\"", "\"sink\":{\"buffer\":\"/dev/shm/b\"}"],
        &["\"ask\":\"tasks\""],
        &["\"ask\":\"tasks\""],
        &["\"ask\":\"steer\"", "\"task\":3", "\"suspend\""],
        &["\"ask\":\"steer\"", "{\"promote\":{\"priority\":1}}"],
        &["\"ask\":\"steer\"", "\"hasten\""],
    ];
    assert_eq!(asked.len(), expected.len(), "{asked:#?}");
    for (line, parts) in asked.iter().zip(expected) {
        for part in parts {
            assert!(line.contains(part), "{line}: {part}");
        }
    }
    for unwanted in ["any", "deadline_s", "command"] {
        assert!(!asked[0].contains(unwanted), "{}", asked[0]);
    }
}

/// What both print of tasks.
const PRINTED_OF_TASKS: &str = "refused: no volume gone\n\
    refused: priority -1: expected 0, the highest, to 255\n\
    refused: a command and a file: expected one of them\n\
    task 3: 2 8192 4096 2048 1024 1024 512 2 1 2.5 exit status: 1\n";

const C_TASKS: &str = r#"
#include <stdio.h>
#include "headtime.h"

int main(int count, char **words) {
    char text[200];
    headtime_text problem = { text, sizeof text };
    headtime_client *client = headtime_connect(words[count - 1], problem);
    if (!client) return 1;
    struct headtime_range pieces[] = { { 4096, 8192 }, { 0, 512 } };
    struct headtime_order order = { .volume = "gone", .pieces = pieces, .count = 2 };
    if (headtime_begin_task(client, &order, problem)) return 2;
    printf("refused: %s\n", text);
    const char *command[] = { "./copy", "/backup", NULL };
    order.volume = "db";
    order.any = 1;
    order.deadline_seconds = 60;
    order.pace = 5000000;
    order.command = command;
    order.priority = -1;
    if (headtime_begin_task(client, &order, problem)) return 3;
    printf("refused: %s\n", text);
    order.priority = 2;
    order.into = "/dev/shm/b";
    if (headtime_begin_task(client, &order, problem)) return 14;
    printf("refused: %s\n", text);
    order.into = NULL;
    uint64_t number = headtime_begin_task(client, &order, problem);
    order.into = "/dev/shm/b";
    order.command = NULL;
    if (headtime_begin_task(client, &order, problem) != number) return 15;
    struct headtime_task task;
    if (headtime_task(client, 9, &task, problem) != 0) return 4;
    if (headtime_task(client, number, &task, problem) != 1) return 5;
    printf("task %d: %d", (int)number, task.state);
    uint64_t counts[] = { task.asked, task.done, task.free, task.idle, task.paid, task.failed,
                          task.pieces_needed, task.pieces_done };
    for (int i = 0; i < 8; i++) printf(" %d", (int)counts[i]);
    printf(" %.1f %s\n", task.seconds_left, text);
    if (headtime_steer_task(client, number, HEADTIME_SUSPEND, 0, problem)) return 6;
    if (headtime_steer_task(client, number, HEADTIME_PROMOTE, 1, problem)) return 7;
    if (headtime_steer_task(client, number, HEADTIME_PROMOTE, 256, problem) != -1) return 8;
    if (headtime_steer_task(client, number, HEADTIME_HASTEN, 0, problem)) return 9;
    if (headtime_steer_task(client, number, 6, 0, problem) != -1) return 10;
    if (headtime_begin_task(NULL, &order, problem)) return 11;
    if (headtime_begin_task(client, NULL, problem)) return 12;
    if (headtime_task(NULL, number, &task, problem) != -1) return 13;
    headtime_disconnect(client);
    return 0;
}
"#;

#[test]
fn c_programs_begin_and_steer_tasks() {
    if !has("cc") {
        return;
    }
    let fake = Fake::start();
    let printed = run_c(&fake, C_TASKS);
    assert_eq!(printed, PRINTED_OF_TASKS);
    assert_asked_for_tasks(&fake.asked());
}

const PYTHON_TASKS: &str = r#"
import sys
from headtime_streams import Client, Refused, STATES

with Client(sys.argv[1]) as client:
    pieces = [(4096, 8192), (0, 512)]
    wanted = dict(any=1, deadline=60, pace=5_000_000, command=["./copy", "/backup"])
    for ask in [
        lambda: client.begin_task("gone", pieces),
        lambda: client.begin_task("db", pieces, priority=-1, **wanted),
        lambda: client.begin_task("db", pieces, into="/dev/shm/b", **wanted),
    ]:
        try:
            ask()
            sys.exit(1)
        except Refused as why:
            print("refused:", why)
    number = client.begin_task("db", pieces, priority=2, **wanted)
    assert client.begin_task("db", pieces, into="/dev/shm/b") == number
    assert client.task(9) is None
    task = client.task(number)
    state = {word: number for number, word in STATES.items()}[task.state]
    print(f"task {number}: {state}", *task[1:])
    client.steer_task(number, "suspend")
    client.steer_task(number, "promote", 1)
    try:
        client.steer_task(number, "promote", 256)
        sys.exit(2)
    except Refused:
        pass
    client.steer_task(number, "hasten")
"#;

#[test]
fn python_programs_begin_and_steer_tasks() {
    if !has("python3") {
        return;
    }
    let fake = Fake::start();
    let printed = run_python(&fake, PYTHON_TASKS);
    assert_eq!(printed, PRINTED_OF_TASKS);
    assert_asked_for_tasks(&fake.asked());
}
