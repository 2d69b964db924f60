//! Other users of the machine: they have streams within their quotas, see their own, and end no service.
//!
//! | user | in the group | quota |
//! |---|---|---|
//! | `VIEWER` | yes | one stream |
//! | `BARRED` | yes | none |
//! | `STRANGER` | no | |
//!
//! Only root can be several users. Without root the tests say that they are skipped; with `CI=true` that is an error.

use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::thread;

use assert_cmd::cargo::cargo_bin;
use headtime_client::{Client, Error, FilePiece, Places, Stream, Terms};
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use serde_json::Value;

use crate::scanned::{Service, config};

const GROUP: u32 = 61_000;
const VIEWER: u32 = 61_001;
const BARRED: u32 = 61_002;
const STRANGER: u32 = 61_003;

#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
fn is_root() -> bool {
    let me = std::fs::metadata("/proc/self").expect("this process");
    let is_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(me.uid() == 0 || !is_ci, "CI needs root");
    if me.uid() != 0 {
        eprintln!("skipped: only root can be several users");
    }
    me.uid() == 0
}

/// A service whose sockets a group may open.
fn service(control: &str) -> Service {
    let promises = "[drive.streams]\nlatency_ms = 0.2\nlongest_round_s = 0.05\n\
                    [[drive.streams.rule]]\nuser = 61001\nstreams = 1\n\
                    [[drive.streams.rule]]\nuser = 61002\nstreams = 0\n";
    let config = config(promises)
        .replace("unix = \"nbd.sock\"", "unix = \"nbd.sock\"\ngroup = 61000")
        .replace(
            "socket = \"control.sock\"",
            &format!("socket = \"control.sock\"\n{control}"),
        );
    let service = Service::start_with(&[], &config);
    let all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(service.path(""), all).expect("a mode");
    // The folder of the build may be closed to others.
    // And no file is open for writing here while another test begins a program: it could not run.
    let copied = Command::new("cp")
        .arg(cargo_bin("headtime"))
        .arg(service.path("headtime"))
        .status();
    assert!(copied.expect("cp runs").success());
    service
}

/// What a user does, on a thread of its own: to the kernel each thread has a user.
fn as_user<T: Send>(user: u32, group: u32, act: impl FnOnce() -> T + Send) -> T {
    let turned = move || -> rustix::io::Result<()> {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        set_thread_groups(&[])?;
        set_thread_res_gid(group, group, group)?;
        set_thread_res_uid(user, user, user)
    };
    thread::scope(|scope| {
        let acting = scope.spawn(|| {
            turned().expect("root may");
            act()
        });
        acting.join().expect("it acts")
    })
}

/// Our program as a user.
fn run(service: &Service, (user, group): (u32, u32), words: &[&str]) -> (bool, String) {
    let output = Command::new(service.path("headtime"))
        .current_dir("/")
        .uid(user)
        .gid(group)
        .args(words)
        .arg("--socket")
        .arg(service.path("control.sock"))
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), text + &problem)
}

fn streams(service: &Service, user: u32) -> usize {
    let (is_good, text) = run(service, (user, GROUP), &["streams", "--json"]);
    assert!(is_good, "{text}");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    all.as_array().expect("a list").len()
}

fn attach(service: &Service, user: u32) -> Result<(Client, Stream), Error> {
    let length = 1 << 20;
    let places = Places {
        length,
        pieces: vec![FilePiece(0, 0, length)],
    };
    as_user(user, GROUP, || {
        let client = Client::connect(&service.path("control.sock"))?;
        let terms = Terms::play(1_000_000, 64 << 10);
        let stream = client.attach_places("small", places, &terms)?;
        Ok((client, stream))
    })
}

#[test]
fn users_of_the_group_have_streams_within_their_quotas_and_see_their_own() {
    if !is_root() {
        return;
    }
    let service = service("group = 61000");
    for socket in ["control.sock", "nbd.sock"] {
        let found = std::fs::metadata(service.path(socket)).expect("a socket");
        assert_eq!(
            (found.mode() & 0o777, found.gid()),
            (0o660, GROUP),
            "{socket}"
        );
    }
    let (_client, stream) = attach(&service, VIEWER).expect("granted");
    for user in [VIEWER, BARRED] {
        let Err(refused) = attach(&service, user) else {
            panic!("granted beyond the quota");
        };
        assert!(matches!(refused, Error::Refused(_)), "{refused}");
    }
    assert_eq!(
        [0, VIEWER, BARRED].map(|user| streams(&service, user)),
        [1, 1, 0]
    );
    stream.close().expect("it was there");
    service.end();
}

#[test]
fn users_of_the_group_end_nothing_and_see_nothing_of_others() {
    if !is_root() {
        return;
    }
    let service = service("group = 61000");
    let commands: [&[&str]; 6] = [
        &["ctl", "stop"],
        &["ctl", "drain"],
        &["ctl", "status"],
        &["ctl", "tasks"],
        &["ctl", "reload"],
        &["scan", "small"],
    ];
    for words in commands {
        let (is_good, text) = run(&service, (VIEWER, GROUP), words);
        assert!(!is_good, "{words:?}: {text}");
        assert!(text.contains("another user may not ask this"), "{text}");
    }
    let status = service.json(&["ctl", "--json", "status"]);
    assert_eq!(status["state"], "serving");
    service.end();
}

#[test]
fn users_of_the_group_may_do_more_where_the_configuration_says_so() {
    if !is_root() {
        return;
    }
    let with = service("group = 61000\nmembers = \"status\"");
    let _held = attach(&with, VIEWER).expect("granted");
    assert_eq!(streams(&with, BARRED), 1, "all of them");
    let barred = (BARRED, GROUP);
    assert!(run(&with, barred, &["ctl", "status"]).0);
    assert!(!run(&with, barred, &["ctl", "stop"]).0);
    with.end();

    let all = service("group = 61000\nmembers = \"all\"");
    let (is_good, text) = run(&all, barred, &["scan", "small"]);
    assert!(is_good, "{text}");
    let evil = [
        "ctl",
        "task",
        "start",
        "small",
        "--blocks",
        "0",
        "--state",
        "/tmp/state",
    ];
    let (is_good, text) = run(&all, barred, &evil);
    assert!(
        !is_good && text.contains("another user may not ask this"),
        "{text}"
    );
    let (is_good, text) = run(&all, barred, &["ctl", "drain"]);
    assert!(is_good, "{text}");
    all.has_ended();
}

#[test]
fn users_outside_of_the_group_reach_no_socket() {
    if !is_root() {
        return;
    }
    let service = service("group = 61000\nmembers = \"all\"");
    let (is_good, text) = run(&service, (STRANGER, STRANGER), &["ctl", "status"]);
    assert!(!is_good && text.contains("Permission denied"), "{text}");
    for socket in ["control.sock", "nbd.sock"] {
        let path = service.path(socket);
        let refused = as_user(STRANGER, STRANGER, || UnixStream::connect(&path)).err();
        let refused = refused.expect("the mode").kind();
        assert_eq!(refused, io::ErrorKind::PermissionDenied, "{socket}");
        as_user(VIEWER, GROUP, || UnixStream::connect(&path)).expect("a member");
    }
    service.end();
}
