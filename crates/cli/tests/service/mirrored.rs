//! A mirror in the whole service: killed within a load, begun with one leg, and brought back in sync.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use nbd::Style;
use server::mirror::bitmap::Bitmap;
use server::mirror::storage::LegStorage;
use server::mirror::superblock::LegRecord;
use tempfile::TempDir;

use crate::client::Client;
use crate::hooks::{HOOKS, hooked};
use crate::ledger::Ledger;

const LEG: &str = r#"
[[drive.leg]]
back_end = { kind = "file", path = "IMAGE", size = "100 MiB", direct = false }
"#;

const MIRROR: &str = r#"
[[drive]]
name = "safe"
back_end = { kind = "mirror", degraded = DEGRADED }
LEGS
[[drive.volume]]
name = "all"
[[drive.export]]
name = "all"
volume = "all"
[[nbd]]
unix = "socket"
[control]
socket = "control"
"#;

/// Where data begin on a leg, as the reference says.
const DATA_OFFSET: u64 = 1 << 20;

/// A folder with a configuration and a mirror of these two images.
fn configured(degraded: &str, images: [&str; 2]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    configure(folder.path(), degraded, images);
    let made = headtime(folder.path(), "mirror create c.toml safe --confirm safe");
    assert!(made.status.success(), "{}", said(&made));
    folder
}

fn configure(folder: &Path, degraded: &str, images: [&str; 2]) {
    configure_legs(folder, degraded, LEG, images);
}

fn configure_legs(folder: &Path, degraded: &str, leg: &str, images: [&str; 2]) {
    let legs = images.map(|image| leg.replace("IMAGE", image)).concat();
    let config = MIRROR.replace("DEGRADED", degraded).replace("LEGS", &legs);
    std::fs::write(folder.join("c.toml"), config).expect("a configuration");
}

fn headtime(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_headtime"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .expect("it runs")
}

fn said(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8(all).expect("text")
}

/// A running service. Killed when it is dropped.
struct Service(Child);

impl Service {
    /// Begins one, and waits until it listens.
    fn begin(folder: &Path) -> Service {
        let mut child = Command::new(env!("CARGO_BIN_EXE_headtime"))
            .args(["serve", "c.toml"])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it begins");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        output.read_line(&mut line).expect("it says something");
        assert!(line.starts_with("control socket"), "{line}");
        Service(child)
    }

    /// SIGKILL, as the machine's memory killer would.
    fn kill(mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ran");
    }

    /// Stops it, and waits until it has ended.
    fn stop(mut self, folder: &Path) {
        let stopped = headtime(folder, "ctl --socket control stop");
        assert!(stopped.status.success(), "{}", said(&stopped));
        assert!(self.0.wait().expect("it ran").success());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn connect(folder: &Path) -> Client {
    Client::connect(&folder.join("socket"), Style::Structured)
}

/// Goes on with the load until so many have ended.
fn load(client: &mut Client, ledger: &mut Ledger, ends: u64) {
    for _ in 0..ends {
        while client.under_way() < 8 {
            let (rule, unit) = ledger.next();
            ledger.submit(client, rule, unit);
        }
        let end = client.end().expect("the server answers");
        assert_eq!(end.result, Ok(()));
        ledger.ended(&end);
    }
}

/// A load whose requests have all ended.
fn load_and_drain(folder: &Path, ledger: &mut Ledger, ends: u64) {
    let mut client = connect(folder);
    load(&mut client, ledger, ends);
    while client.under_way() > 0 {
        let end = client.end().expect("the server answers");
        ledger.ended(&end);
    }
}

/// What was answered before the server went counts.
fn take_the_rest(client: &mut Client, ledger: &mut Ledger) {
    while let Some(end) = client.end() {
        match end.result {
            Ok(()) => ledger.ended(&end),
            Err(_) => ledger.failed(&end),
        }
    }
    ledger.nobody_answers();
}

fn status(folder: &Path) -> serde_json::Value {
    status_by(folder, "control")
}

/// The status of the service with this control socket.
fn status_by(folder: &Path, control: &str) -> serde_json::Value {
    let status = headtime(folder, &format!("ctl --socket {control} --json status"));
    serde_json::from_slice(&status.stdout).expect("a status")
}

/// The states of the legs in a status.
fn states(folder: &Path) -> Vec<String> {
    states_in(&status(folder))
}

fn states_in(status: &serde_json::Value) -> Vec<String> {
    let legs = status["drives"][0]["mirror"]["legs"]
        .as_array()
        .expect("legs");
    let state = |leg: &serde_json::Value| leg["state"].as_str().expect("a state").to_owned();
    legs.iter().map(state).collect()
}

/// Waits until both legs are in sync: the copy goes on by itself.
fn wait_for_sync(folder: &Path) {
    wait_for_sync_by(folder, "control");
}

/// The same for the service with this control socket.
pub fn wait_for_sync_by(folder: &Path, control: &str) {
    while states_in(&status_by(folder, control)) != ["in sync"; 2] {
        std::thread::yield_now();
    }
}

/// The first byte of the load's data in which the legs differ.
pub fn difference(folder: &Path, images: [&str; 2], bytes: u64) -> Option<usize> {
    let [one, other] = images.map(|image| {
        let mut data = vec![0; bytes as usize];
        let file = std::fs::File::open(folder.join(image)).expect("an image");
        file.read_exact_at(&mut data, DATA_OFFSET)
            .expect("an image");
        data
    });
    one.iter().zip(&other).position(|(one, other)| one != other)
}

const IMAGES: [&str; 2] = ["one", "two"];

/// `MIRROR_KILLS=n` for more or fewer.
fn kills() -> u64 {
    std::env::var("MIRROR_KILLS").map_or(12, |n| n.parse().expect("a number of kills"))
}

#[test]
fn what_was_flushed_to_a_mirror_survives_kills_and_both_legs_are_equal_after_them() {
    let folder = configured("false", IMAGES);
    let folder = folder.path();
    let mut ledger = Ledger::new(21);
    let mut service = Service::begin(folder);
    for round in 0..kills() {
        let mut client = connect(folder);
        load(&mut client, &mut ledger, 5 + round * 7 % 60);
        service.kill();
        take_the_rest(&mut client, &mut ledger);
        service = Service::begin(folder);
        assert_eq!(ledger.verify(&mut connect(folder)).0, [""; 0], "{round}");
        if round % 3 == 2 {
            wait_for_sync(folder);
            // Reads come from both legs now, and find what they found before.
            assert_eq!(ledger.verify(&mut connect(folder)).0, [""; 0], "{round}");
        }
    }
    wait_for_sync(folder);
    service.stop(folder);
    assert_eq!(difference(folder, IMAGES, ledger.bytes()), None);
    let status = said(&headtime(folder, "mirror status one two"));
    assert_eq!(
        status.matches("may differ   0 bytes").count(),
        2,
        "{status}"
    );
}

#[test]
fn an_operator_hears_of_a_leg_that_is_out_and_of_the_end_of_its_filling() {
    let folder = configured("true", IMAGES);
    let folder = folder.path();
    let config = std::fs::read_to_string(folder.join("c.toml")).expect("it was written");
    std::fs::write(folder.join("c.toml"), config + HOOKS).expect("a configuration");
    let service = Service::begin(folder);
    let synced = "on_done mirror safe: two has all data: the legs are in sync";
    assert_eq!(hooked(folder, 1), [synced]);
    service.stop(folder);
    std::fs::rename(folder.join("one"), folder.join("away")).expect("an image");
    let service = Service::begin(folder);
    let lines = hooked(folder, 2);
    assert_eq!(
        lines[1],
        "on_error mirror safe: one is out: the other leg serves alone"
    );
    service.stop(folder);
    std::fs::rename(folder.join("away"), folder.join("one")).expect("an image");
    let attached = headtime(folder, "mirror attach c.toml safe 0");
    assert!(attached.status.success(), "{}", said(&attached));
    let service = Service::begin(folder);
    let lines = hooked(folder, 3);
    assert_eq!(lines[2], synced.replace("two", "one"));
    service.stop(folder);
}

#[test]
fn a_leg_that_was_away_is_out_until_it_is_attached_and_then_has_what_was_written() {
    let folder = configured("false", IMAGES);
    let folder = folder.path();
    let mut ledger = Ledger::new(22);
    let service = Service::begin(folder);
    load_and_drain(folder, &mut ledger, 40);
    wait_for_sync(folder);
    service.stop(folder);
    let away = |from: &str, to: &str| {
        std::fs::rename(folder.join(from), folder.join(to)).expect("an image");
    };
    away("one", "away");
    let refused = said(&headtime(folder, "serve c.toml"));
    assert!(refused.contains("degraded = true"), "{refused}");
    assert!(!folder.join("one").exists(), "a missing leg is not made");
    configure(folder, "true", IMAGES);
    let service = Service::begin(folder);
    assert_eq!(states(folder), ["out", "in sync"]);
    assert_eq!(ledger.verify(&mut connect(folder)).0, [""; 0]);
    load_and_drain(folder, &mut ledger, 40);
    service.kill();
    away("away", "one");
    configure(folder, "false", IMAGES);
    let service = Service::begin(folder);
    assert_eq!(
        states(folder),
        ["out", "in sync"],
        "it lacks what was written"
    );
    assert_eq!(ledger.verify(&mut connect(folder)).0, [""; 0]);
    service.stop(folder);
    let attached = headtime(folder, "mirror attach c.toml safe 0");
    assert!(attached.status.success(), "{}", said(&attached));
    let service = Service::begin(folder);
    wait_for_sync(folder);
    assert_eq!(ledger.verify(&mut connect(folder)).0, [""; 0]);
    service.stop(folder);
    assert_eq!(difference(folder, IMAGES, ledger.bytes()), None);
}

/// A leg that is an emulated drive with a belief. What is on it comes thirty times as fast as on the drive, so that
/// a rebuild takes a second or two.
const EMULATED_LEG: &str = r#"
[[drive.leg]]
belief = "emulated"
[drive.leg.back_end]
kind = "emulated"
drive = "dec-rz26"
image = "IMAGE"
time_scale = 0.03
"#;

/// A mirror of two emulated drives, which are empty and so have the same data.
fn emulated() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    configure_legs(folder.path(), "true", EMULATED_LEG, IMAGES);
    let made = headtime(folder.path(), "mirror create c.toml safe --confirm safe");
    assert!(made.status.success(), "{}", said(&made));
    for (leg, image) in IMAGES.iter().enumerate() {
        let storage = LegStorage::open(&folder.path().join(image)).expect("a leg");
        let mut superblock = storage.superblock().expect("a superblock").of_leg(leg);
        superblock.states = [LegRecord::InSync; 2];
        superblock.events += 1;
        storage.put_superblock(&superblock).expect("a leg");
        let marks = Bitmap::empty(superblock.regions());
        storage
            .put_marks(&marks, &superblock.mirror)
            .expect("a leg");
    }
    folder
}

#[test]
fn a_leg_is_filled_in_gaps_and_idle_time_across_a_kill_and_the_status_tells_of_it() {
    let folder = emulated();
    let folder = folder.path();
    let mut ledger = Ledger::new(24);
    std::fs::rename(folder.join("two"), folder.join("hidden")).expect("an image");
    let service = Service::begin(folder);
    load_and_drain(folder, &mut ledger, 60);
    service.stop(folder);
    std::fs::rename(folder.join("hidden"), folder.join("two")).expect("an image");
    let attached = headtime(folder, "mirror attach c.toml safe 1");
    assert!(attached.status.success(), "{}", said(&attached));
    let service = Service::begin(folder);
    assert_eq!(states(folder), ["in sync", "being filled"]);
    let mut client = connect(folder);
    load(&mut client, &mut ledger, 20);
    service.kill();
    take_the_rest(&mut client, &mut ledger);
    let service = Service::begin(folder);
    let mut from_gaps = 0;
    while states(folder) != ["in sync"; 2] {
        let rebuild = &status(folder)["drives"][0]["mirror"]["rebuild"];
        from_gaps = from_gaps.max(rebuild["gap_bytes"].as_u64().unwrap_or(0));
        load_and_drain(folder, &mut ledger, 5);
    }
    assert!(from_gaps > 0, "nothing came from gaps or idle time");
    assert_eq!(ledger.verify(&mut connect(folder)).0, [""; 0]);
    service.stop(folder);
    assert_eq!(difference(folder, IMAGES, ledger.bytes()), None);
}

#[test]
fn a_split_brain_and_a_leg_of_another_mirror_are_refused_and_a_replaced_leg_is_filled() {
    let folder = configured("true", IMAGES);
    let folder = folder.path();
    let mut ledger = Ledger::new(23);
    let service = Service::begin(folder);
    wait_for_sync(folder);
    load_and_drain(folder, &mut ledger, 20);
    service.stop(folder);
    for away in IMAGES {
        let hidden = folder.join("hidden");
        std::fs::rename(folder.join(away), &hidden).expect("an image");
        Service::begin(folder).stop(folder);
        std::fs::rename(hidden, folder.join(away)).expect("an image");
    }
    let refused = said(&headtime(folder, "serve c.toml"));
    assert!(refused.contains("split brain"), "{refused}");
    let unconfirmed = headtime(folder, "mirror replace two one --confirm two");
    assert!(!unconfirmed.status.success());
    let replaced = headtime(folder, "mirror replace two one --confirm one");
    assert!(replaced.status.success(), "{}", said(&replaced));
    let service = Service::begin(folder);
    assert_eq!(states(folder)[1], "in sync");
    assert_eq!(ledger.verify(&mut connect(folder)).0, [""; 0]);
    service.stop(folder);
    let other = configured("false", IMAGES);
    std::fs::rename(other.path().join("one"), folder.join("one")).expect("an image");
    let refused = said(&headtime(folder, "serve c.toml"));
    assert!(
        refused.contains("expected both legs of one mirror"),
        "{refused}"
    );
}

#[test]
fn a_leg_of_a_running_service_is_shown_and_not_changed() {
    let folder = configured("false", IMAGES);
    let folder = folder.path();
    std::fs::File::create(folder.join("three"))
        .and_then(|third| third.set_len(1 << 30))
        .expect("a third disk");
    let service = Service::begin(folder);
    wait_for_sync(folder);
    let changes = [
        "mirror erase one --confirm one",
        "mirror replace one three --confirm three",
        "mirror replace three one --confirm one",
        "mirror attach c.toml safe 1",
        "mirror create c.toml safe --confirm safe",
    ];
    let running = changes.map(|arguments| {
        Command::new(env!("CARGO_BIN_EXE_headtime"))
            .args(arguments.split_whitespace())
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs")
    });
    for (command, arguments) in running.into_iter().zip(changes) {
        let refused = command.wait_with_output().expect("it ran");
        let text = said(&refused);
        assert!(!refused.status.success(), "{arguments}: {text}");
        assert!(
            text.contains("another service or command uses it"),
            "{arguments}: {text}"
        );
    }
    let shown = headtime(folder, "mirror status one two");
    assert!(shown.status.success(), "{}", said(&shown));
    service.stop(folder);
    let erased = headtime(folder, "mirror erase one --confirm one");
    assert!(erased.status.success(), "{}", said(&erased));
}
