//! A drive of `headtime serve` whose run is written down: with a foreground load and a live scan it
//! replays to the same decisions.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use assert_cmd::cargo::cargo_bin;
use block::Owner;
use engine::Input;
use nbd::Style;
use serde_json::Value;
use server::capture::{CaptureReader, Event, Tasks, Tracking};

use crate::begun::{SERVES, begin};
use crate::client::Client;
use crate::ledger::Ledger;
use crate::two_writers::has_fuse;

fn config(back_end: &str, policy: &str) -> String {
    format!(
        r#"
[[drive]]
name = "d"
{policy}
capture = "run"
back_end = {back_end}
[[drive.volume]]
name = "v"
[[drive.export]]
name = "v"
volume = "v"
[[nbd]]
unix = "nbd.sock"
[control]
socket = "control.sock"
"#
    )
}

fn headtime(folder: &Path, words: &[&str]) -> Output {
    let mut program = Command::new(cargo_bin("headtime"));
    program.args(words).current_dir(folder);
    program.output().expect("it runs")
}

/// A service that ends, and whose files are unmounted, also when a test fails.
struct Serving<'a> {
    child: Child,
    folder: &'a Path,
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let mounted = self.folder.join("volumes");
        let _ = Command::new("umount").arg("--lazy").arg(mounted).output();
    }
}

/// Serves as `config` says, does `work` with it, and drains it: what `headtime replay` says then.
fn recorded(folder: &Path, config: &str, work: impl FnOnce()) -> (Option<i32>, String) {
    std::fs::write(folder.join("c.toml"), config).expect("a configuration");
    let child = begin(folder, &["serve", "c.toml"], Stdio::null(), SERVES);
    let mut serving = Serving {
        child: child.expect("it serves"),
        folder,
    };
    work();
    let drained = headtime(folder, &["ctl", "--socket", "control.sock", "drain"]);
    assert!(drained.status.success());
    assert!(serving.child.wait().expect("its end").success());
    replay(folder, &[])
}

fn replay(folder: &Path, more: &[&str]) -> (Option<i32>, String) {
    let output = headtime(folder, &[&["replay", "run"], more].concat());
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).expect("text");
    (output.status.code(), said)
}

fn load(folder: &Path, ends: u64) {
    let mut client = Client::connect(&folder.join("nbd.sock"), Style::Structured);
    let mut ledger = Ledger::new(31);
    for _ in 0..ends {
        while client.under_way() < 8 {
            let (rule, unit) = ledger.next();
            ledger.submit(&mut client, rule, unit);
        }
        let end = client.end().expect("the service answers");
        assert_eq!(end.result, Ok(()));
        ledger.ended(&end);
    }
}

/// The bytes that the scan has read.
fn scanned(folder: &Path) -> u64 {
    let tasks = headtime(
        folder,
        &["ctl", "--socket", "control.sock", "--json", "tasks"],
    );
    let drives: Value = serde_json::from_slice(&tasks.stdout).expect("JSON");
    drives[0]["tasks"][0]["done_bytes"].as_u64().expect("bytes")
}

#[test]
fn a_served_run_replays_to_the_same_decisions_with_its_load_and_its_scan() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let back_end = "{ kind = \"emulated\", drive = \"dec-rz26\", image = \"disk.img\", \
                    time_scale = 0.01, look_ahead = false, write_cache = false }";
    let config = config(
        back_end,
        "policy = \"sptf-sw60\"\nimpact_percent = 3\nbackground_grace_ms = 25",
    );
    let (code, said) = recorded(folder, &config, || {
        let scan = ["scan", "--socket", "control.sock", "--detach", "v"];
        let scan = headtime(folder, &scan);
        assert!(scan.status.success(), "{scan:?}");
        load(folder, 400);
        // On a busy machine the belief is not confirmed, and only idle time is left for the scan.
        while scanned(folder) < 1 << 20 {}
    });
    assert!(said.ends_with("all as captured\n"), "{said}");
    assert_eq!(code, Some(0));
    let mut words = said.split_whitespace().rev();
    let mut number = |unit: &str| -> u64 {
        words.find(|word| *word == unit);
        words.next().and_then(|word| word.parse().ok()).expect(unit)
    };
    let (ends, commands) = (number("ends"), number("commands"));
    assert!(
        commands > ends + 20,
        "the scan has commands of its own: {said}"
    );
    let file = std::fs::File::open(folder.join("run")).expect("a capture");
    let setting = CaptureReader::open(file)
        .expect("a capture")
        .setting()
        .clone();
    let Tasks::By(rules) = setting.tasks else {
        panic!("{setting:?}");
    };
    let learned = scheduler::freeblock::Caution::Learned { impact_ppm: 30_000 };
    assert_eq!((rules.caution, setting.tracking), (learned, Tracking::On));
    let grace = setting.limits.grace.expect("a grace period");
    assert_eq!(grace.period, block::Duration::from_millis(25));
}

/// At the drive's own speed requests wait on any machine, so that policies have something to decide.
#[test]
fn another_policy_replays_to_other_decisions() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let back_end = "{ kind = \"emulated\", drive = \"dec-rz26\", image = \"disk.img\", \
                    look_ahead = false, write_cache = false }";
    let config = config(back_end, "policy = \"sptf-sw60\"");
    let (code, said) = recorded(folder, &config, || load(folder, 100));
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = replay(folder, &["--policy", "c-look"]);
    assert!(said.starts_with("error: run: event "), "{said}");
    assert_eq!(code, Some(1));
}

/// A drive of which nothing is known replays, too.
#[test]
fn a_served_run_of_memory_replays_to_the_same_decisions() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let config = config("{ kind = \"memory\", size = \"128 MiB\" }", "");
    let (code, said) = recorded(folder, &config, || load(folder, 300));
    assert!(said.ends_with("all as captured\n"), "{said}");
    assert_eq!(code, Some(0));
}

/// Reads a block of the volume's FUSE file past the page cache, in a process of its own: its id.
fn read_once(folder: &Path, block: u64) -> u32 {
    let mut dd = Command::new("dd");
    dd.args(["if=volumes/v", "of=/dev/null", "bs=4096", "count=1"])
        .args(["iflag=direct", &format!("skip={block}")])
        .current_dir(folder)
        .stderr(Stdio::null());
    let mut child = dd.spawn().expect("dd runs");
    let process = child.id();
    assert!(child.wait().expect("its end").success());
    process
}

/// Owners of a run: each process that reads a FUSE file, and each NBD connection.
#[test]
fn processes_and_connections_are_owners() {
    if !has_fuse() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::create_dir(folder.join("volumes")).expect("a folder");
    let config =
        config("{ kind = \"memory\", size = \"128 MiB\" }", "") + "[fuse]\nmount = \"volumes\"\n";
    let mut expected = BTreeSet::new();
    let (code, said) = recorded(folder, &config, || {
        expected.extend([7, 11].map(|block| Owner::process(read_once(folder, block))));
        load(folder, 20);
    });
    assert!(said.ends_with("all as captured\n"), "{said}");
    assert_eq!(code, Some(0));
    let file = std::fs::File::open(folder.join("run")).expect("a capture");
    let mut reader = CaptureReader::open(file).expect("a capture");
    let mut found = BTreeSet::new();
    while let Some((_, event)) = reader.next_event().expect("a whole capture") {
        if let Event::Input(_, Input::Submit(request), _) = event {
            found.insert(request.owner);
        }
    }
    assert_eq!(expected.len(), 2, "two processes");
    assert!(expected.is_subset(&found), "{expected:?} of {found:?}");
    let others: Vec<&Owner> = found.difference(&expected).collect();
    assert_eq!(others.len(), 1, "one connection: {others:?}");
    assert!(others[0].is_known());
}
