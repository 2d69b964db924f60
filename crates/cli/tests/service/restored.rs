//! `headtime restore`: an image in a live volume, across stops and kills.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::cargo::cargo_bin;
use block::operation::Ask;
use nbd::Style;
use nbd::request::Asked;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::client::Client;
use crate::scanned::{BYTES, Service, config, contents};

/// A restore that takes longer hangs. Nothing is measured by it.
const HANGS: Duration = Duration::from_secs(120);

/// The second volume of the drive has an export for writes in gaps. A command takes so many times as long as on the drive.
fn settings(times: &str) -> String {
    let cold = "[[drive.export]]\nname = \"cold\"\nvolume = \"all\"\nclass = \"background\"\n";
    config(cold).replace("time_scale = 0.01", &format!("time_scale = {times}"))
}

/// More pieces than are in flight at a time.
fn image() -> Vec<u8> {
    contents().repeat(3)
}

/// Whether the drive has the bytes from `at` on.
fn has(folder: &Path, at: usize, bytes: &[u8]) -> bool {
    let there = std::fs::read(folder.join("disk.img")).expect("the drive");
    there[at..at + bytes.len()] == *bytes
}

fn begin(service: &Service) -> Child {
    Command::new(cargo_bin("headtime"))
        .current_dir(service.path(""))
        .args(["restore", "all", "--from", "new.raw", "--socket"])
        .arg(service.path("control.sock"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs")
}

/// Waits until the background class has written something.
fn await_writes(service: &Service) {
    let began = Instant::now();
    loop {
        let status = service.json(&["ctl", "--json", "status"]);
        let mut traffic = status["drives"][0]["traffic"]
            .as_array()
            .into_iter()
            .flatten();
        let written = traffic.find(|one| one["class"] == "background");
        let written = written.map_or(0, |one| one["write"]["bytes_total"].as_u64().unwrap_or(0));
        if written > 0 {
            return;
        }
        assert!(began.elapsed() < HANGS, "nothing is written: {status}");
    }
}

fn said(child: Child) -> (bool, String) {
    let output = child.wait_with_output().expect("its end");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), text)
}

#[test]
fn an_image_is_written_beside_a_client_and_goes_on_after_a_stop() {
    let image = image();
    let service = Service::start_with(&[], &settings("0.2"));
    std::fs::write(service.path("new.raw"), &image).expect("an image");
    let mut client = Client::connect_to(&service.path("nbd.sock"), "small", Style::Structured);
    let child = begin(&service);
    await_writes(&service);
    // Reads of a client meanwhile.
    for place in 0..4 {
        let read = client.ask(Asked::Of(Ask::Read), place * 65_536, 4096, &[]);
        assert_eq!(read.result, Ok(()));
    }
    let pid = Pid::from_raw(child.id() as i32).expect("a process");
    kill_process(pid, Signal::INT).expect("it runs");
    let (is_good, text) = said(child);
    assert!(
        !is_good && text.contains("the same command goes on"),
        "{text}"
    );
    let state = std::fs::read_to_string(service.path("new.raw.restore.json")).expect("a state");
    let state: Value = serde_json::from_str(&state).expect("JSON");
    let ranges = state["left"].as_array().expect("ranges");
    let bytes = |range: &Value| range["end"].as_u64().zip(range["start"].as_u64());
    let left: u64 = ranges
        .iter()
        .filter_map(bytes)
        .map(|(end, start)| end - start)
        .sum();
    assert!(0 < left && left < image.len() as u64, "{state}");
    let report = service.json(&["restore", "all", "--from", "new.raw", "--json"]);
    assert_eq!(report["written_bytes"], left, "{report}");
    assert_eq!(report["class"], "background");
    assert!(!service.path("new.raw.restore.json").exists());
    drop(client);
    let folder = service.end();
    assert!(has(folder.path(), BYTES, &image));
}

#[test]
fn a_restore_goes_on_after_the_service_was_killed() {
    let image = image();
    let service = Service::start_with(&[], &settings("0.2"));
    std::fs::write(service.path("new.raw"), &image).expect("an image");
    let child = begin(&service);
    await_writes(&service);
    let folder = service.kill();
    let (is_good, text) = said(child);
    assert!(
        !is_good && text.contains("the same command goes on"),
        "{text}"
    );
    let service = Service::start_in(folder, &settings("0.01"));
    let report = service.json(&["restore", "all", "--from", "new.raw", "--json"]);
    assert_eq!(report["image_bytes"], image.len() as u64);
    let folder = service.end();
    assert!(has(folder.path(), BYTES, &image));
}

#[test]
fn what_cannot_be_restored_is_refused_with_what_was_expected() {
    let service = Service::start_with(&contents(), &config(""));
    let write = |name: &str, length: usize| {
        std::fs::write(service.path(name), vec![7; length]).expect("an image");
    };
    write("one.raw", 4096);
    write("odd.raw", 4097);
    write("long.raw", BYTES + 4096);
    write("none.raw", 0);
    let from = |name: &'static str, more: &[&'static str]| {
        service.refuses(&[&["restore", "small", "--from", name], more].concat())
    };
    let foreground = ["--foreground"];
    for (problem, expected) in [
        (
            from("one.raw", &[]),
            "class = \"background\", or --foreground",
        ),
        (from("gone.raw", &foreground), "No such file"),
        (
            from("odd.raw", &foreground),
            "multiples of its blocks of 512",
        ),
        (
            from("long.raw", &foreground),
            "expected an end in the volume, which has 16777216 bytes",
        ),
        (
            from("one.raw", &["--foreground", "--at", "16777216"]),
            "expected an end in the volume",
        ),
        (
            from("one.raw", &["--foreground", "--at", "100"]),
            "multiples of its blocks",
        ),
        (from("none.raw", &foreground), "expected an image"),
        (
            service.refuses(&["restore", "large", "--from", "one.raw"]),
            "no export of a volume large: expected one of small",
        ),
    ] {
        assert!(problem.contains(expected), "{problem}");
    }
    std::fs::write(service.path("one.raw.restore.json"), "{}").expect("a state");
    let damaged = from("one.raw", &foreground);
    assert!(damaged.contains("one.raw.restore.json"), "{damaged}");
    std::fs::remove_file(service.path("one.raw.restore.json")).expect("it is there");
    let report = service.json(&[
        "restore",
        "small",
        "--from",
        "one.raw",
        "--foreground",
        "--at",
        "8192",
        "--json",
    ]);
    assert_eq!(
        (&report["written_bytes"], &report["class"]),
        (&4096.into(), &"foreground".into())
    );
    let folder = service.end();
    let mut expected = contents();
    expected[8192..8192 + 4096].fill(7);
    assert!(has(folder.path(), 0, &expected));
}
