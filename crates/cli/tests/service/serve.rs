//! The service as a whole: what it serves, tells and reads in free time.

use crate::scanned::{BYTES, Service, assembled, config, contents};
use std::path::Path;
use std::process::{Command, Stdio};

use assert_cmd::cargo::cargo_bin;
use block::operation::Ask;
use nbd::Style;
use nbd::request::Asked;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{OpenTreeFlags, open_tree};

use crate::two_writers::has_fuse;

#[test]
fn a_scan_hands_over_every_block_once_and_its_checksum_tells_them_apart() {
    let bytes = contents();
    let service = Service::start(&bytes, "");
    let copy = service.path("copy");
    let script = format!("cat > {}", copy.display());
    let told = service.json(&["scan", "--json", "small", "--command", "sh", "-c", &script]);
    assert_eq!(told["state"], "finished");
    assert_eq!(told["outcome"], "the program ended with exit status: 0");
    assert!(assembled(&copy) == bytes, "what was read is what is there");
    let first = service.json(&["scan", "--json", "small"]);
    assert_eq!(first["done_bytes"], BYTES);
    let again = service.json(&["scan", "--json", "small"]);
    assert_eq!(first["outcome"], again["outcome"]);
    service.end();

    let mut other = bytes;
    other[BYTES / 2] ^= 1;
    let service = Service::start(&other, "");
    let changed = service.json(&["scan", "--json", "small"]);
    assert_ne!(first["outcome"], changed["outcome"], "one bit");
    service.end();
}

#[test]
fn a_service_comes_to_rest_while_it_is_scanned() {
    let service = Service::start(&[], "");
    // A gigabyte: it takes seconds even a hundred times as fast as the drive was.
    let words = [
        "scan",
        "--detach",
        "all",
        "--command",
        "sh",
        "-c",
        "cat >/dev/null",
    ];
    let (is_good, text) = service.run(&words);
    assert!(is_good, "{text}");
    let status = service.json(&["ctl", "--json", "tasks"]);
    assert_eq!(status[0]["tasks"][0]["state"], "active", "{status}");
    service.end();
}

#[test]
fn what_cannot_be_scanned_or_served_is_refused_with_what_was_expected() {
    let service = Service::start(&[], "");
    let (is_good, text) = service.run(&["scan", "large"]);
    assert!(!is_good);
    assert!(
        text.contains("no volume large: expected one of small, all"),
        "{text}"
    );
    let (is_good, text) = service.run(&["ctl", "suspend", "7"]);
    assert!(!is_good);
    assert!(text.contains("no task 7 is under way"), "{text}");
    service.end();
}

#[test]
fn a_configuration_without_an_end_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    for path in [pipe.as_path(), Path::new("/dev/zero"), folder.path()] {
        let output = Command::new(cargo_bin("headtime"))
            .arg("serve")
            .arg(path)
            .output()
            .expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(
            text.contains("expected a configuration in a regular file"),
            "{text}"
        );
    }
}

#[test]
fn a_memory_drive_is_no_larger_than_the_memory_of_the_machine() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = "[[drive]]\nname = \"d\"\nback_end = { kind = \"memory\", size = \"1 TiB\" }\n\
                  [[drive.volume]]\nname = \"v\"\n[[drive.export]]\nname = \"v\"\nvolume = \"v\"\n\
                  [[nbd]]\nunix = \"nbd.sock\"\n[control]\nsocket = \"control.sock\"\n";
    std::fs::write(folder.path().join("c.toml"), config).expect("a configuration");
    let output = Command::new(cargo_bin("headtime"))
        .args(["serve", "c.toml"])
        .current_dir(folder.path())
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("the memory of this machine"), "{text}");
}

#[test]
fn a_mount_folder_that_the_service_made_goes_with_it() {
    if !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: no /dev/fuse");
        return;
    }
    let service = Service::start(&[], "[fuse]\nmount = \"made/volumes\"\n");
    assert!(service.path("made/volumes/small").exists(), "it is mounted");
    let folder = service.end();
    assert!(!folder.path().join("made").exists(), "the service made it");
    std::fs::create_dir(folder.path().join("made")).expect("a folder");
    let again = config("[fuse]\nmount = \"made/volumes\"\n");
    let folder = Service::start_in(folder, &again).end();
    assert!(folder.path().join("made").exists(), "it was there before");
    assert!(!folder.path().join("made/volumes").exists());
}

/// A container that began while the files were there has a copy of the mount. A descriptor holds one here: a namespace would
/// have copies of the mounts of all other tests, too.
#[test]
fn a_copy_of_the_mount_does_not_hold_up_the_end() {
    if !has_fuse() {
        eprintln!("skipped: no /dev/fuse");
        return;
    }
    let service = Service::start(&[], "[fuse]\nmount = \"volumes\"\n");
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let copy = open_tree(CWD, service.path("volumes"), flags).expect("a copy of the mount");
    let log = service.path("log");
    let folder = service.end();
    let said = std::fs::read_to_string(log).expect("a log");
    assert!(
        said.contains("copied into other mount namespaces"),
        "{said}"
    );
    let volumes = folder.path().join("volumes");
    assert!(
        !volumes.exists(),
        "it is unmounted, and the service made it"
    );
    let lost = openat(&copy, "small", OFlags::RDONLY, Mode::empty());
    assert!(lost.is_err(), "nobody serves the files there");
}

#[test]
fn a_scan_that_is_interrupted_says_what_it_has_read() {
    let service = Service::start(&[], "");
    let scan = Command::new(cargo_bin("headtime"))
        .args(["scan", "all", "--pace", "1", "--socket", "control.sock"])
        .current_dir(service.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    let has_begun =
        |tasks: &serde_json::Value| tasks[0]["tasks"][0]["done_bytes"].as_u64() > Some(0);
    while !has_begun(&service.json(&["ctl", "--json", "tasks"])) {}
    let interrupt = Command::new("kill")
        .arg("-INT")
        .arg(scan.id().to_string())
        .status();
    assert!(interrupt.expect("kill").success());
    let ended = scan.wait_with_output().expect("it ran");
    let [said, problem] =
        [ended.stdout, ended.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert_eq!(ended.status.code(), Some(130), "{problem}");
    assert!(
        said.contains("of 1,033,261,056 bytes read") && said.contains("up to there: checksum"),
        "{said}"
    );
    assert!(
        problem.contains("interrupted at ") && problem.contains("--state FILE"),
        "{problem}"
    );
    let tasks = service.json(&["ctl", "--json", "tasks"]);
    assert_eq!(tasks[0]["tasks"][0]["state"], "aborted", "{tasks}");
    assert!(service.log().contains("a scan was stopped before its end"));
    service.end();
}

#[test]
fn a_reload_shows_new_exports_and_says_what_needs_a_restart() {
    let service = Service::start(&[], "");
    let export = "[[drive.export]]\nname = \"idle\"\nvolume = \"small\"\nclass = \"background\"\n";
    std::fs::write(service.path("c.toml"), config(export)).expect("a configuration");
    let changes = service.json(&["ctl", "--json", "reload"]);
    assert_eq!(
        changes["applied"].as_array().map(Vec::len),
        Some(1),
        "{changes}"
    );
    assert_eq!(changes["after_restart"].as_array().map(Vec::len), Some(0));
    let slower = config(export).replace("time_scale = 0.01", "time_scale = 0.02");
    std::fs::write(service.path("c.toml"), slower).expect("a configuration");
    let changes = service.json(&["ctl", "--json", "reload"]);
    assert_eq!(
        changes["after_restart"].as_array().map(Vec::len),
        Some(1),
        "{changes}"
    );
    std::fs::write(service.path("c.toml"), "nonsense").expect("a configuration");
    let (is_good, text) = service.run(&["ctl", "reload"]);
    assert!(!is_good, "{text}");
    let status = service.json(&["ctl", "--json", "status"]);
    assert_eq!(status["reloads_total"], 2);
    assert_eq!(status["drives"][0]["back_end"], "emulated");
    service.end();
}

#[test]
fn the_impact_that_is_allowed_is_changed_live() {
    let service = Service::start(&[], "");
    let budget = || service.json(&["ctl", "--json", "status"])["drives"][0]["impact"].clone();
    assert_eq!(budget()["budget_percent"], 2.0);
    let (is_good, text) = service.run(&["ctl", "impact", "rz26", "0.5"]);
    assert!(is_good, "{text}");
    assert_eq!(budget()["budget_percent"], 0.5);
    let more = config("").replace("name = \"rz26\"", "name = \"rz26\"\nimpact_percent = 7");
    std::fs::write(service.path("c.toml"), more).expect("a configuration");
    let changes = service.json(&["ctl", "--json", "reload"]);
    assert_eq!(
        changes["applied"][0],
        "background tasks on drive rz26 may lengthen the foreground by 7 %"
    );
    assert_eq!(changes["after_restart"].as_array().map(Vec::len), Some(0));
    assert_eq!(budget()["budget_percent"], 7.0);
    for (drive, percent, problem) in [
        ("disk", "1", "no drive disk: expected one of rz26"),
        ("rz26", "101", "an impact of 101 %: expected 0 to 100"),
        ("rz26", "nan", "an impact of NaN %: expected 0 to 100"),
    ] {
        let text = service.refuses(&["ctl", "impact", drive, percent]);
        assert!(text.contains(problem), "{text}");
    }
    service.end();
}

#[test]
fn preemption_is_switched_on_by_a_restart() {
    let service = Service::start(&[], "");
    let with = config("[drive.preemption]\nchunk = \"whole\"");
    std::fs::write(service.path("c.toml"), &with).expect("a configuration");
    let changes = service.json(&["ctl", "--json", "reload"]);
    let later = "[[drive]] differs from what is in force";
    assert_eq!(changes["after_restart"][0], later);
    assert_eq!(changes["applied"].as_array().map(Vec::len), Some(0));
    let service = Service::start_in(service.end(), &with);
    let mut client = crate::client::Client::connect(&service.path("nbd.sock"), Style::Structured);
    let end = client.ask(Asked::Of(Ask::Read), 0, 1 << 20, &[]);
    assert_eq!(end.result, Ok(()));
    service.end();
}

#[test]
fn who_is_connected_is_told_with_what_they_did() {
    let service = Service::start(&[], "");
    let mut client = crate::client::Client::connect(&service.path("nbd.sock"), Style::Structured);
    for block in 0..3 {
        let end = client.ask(Asked::Of(Ask::Read), block * 4096, 4096, &[]);
        assert_eq!(end.result, Ok(()));
    }
    let status = service.json(&["ctl", "--json", "status"]);
    let here = &status["connections"][0];
    let this = format!("process {}", std::process::id());
    assert_eq!(here["peer"], this.as_str(), "{here}");
    assert_eq!(here["tls"], false);
    assert_eq!(here["requests_total"], 3);
    assert_eq!(here["bytes_total"], 3 * 4096);
    assert!(here["connected_s"].as_f64() > Some(0.0), "{here}");
    let first = here["id"].as_u64().expect("a number");
    client.send(&[0; 64]);
    assert!(client.is_closed_by_server(), "that was no request");
    let _again = crate::client::Client::connect(&service.path("nbd.sock"), Style::Structured);
    let status = service.json(&["ctl", "--json", "status"]);
    let here = status["connections"].as_array().expect("a list");
    assert!(here.iter().all(|one| one["id"].as_u64() > Some(first)));
    assert_eq!(status["connections_total"], 2, "{status}");
    assert_eq!(status["connections_refused_total"], 1, "{status}");
    service.end();
}

/// Only an address that other machines reach is warned of.
#[test]
fn an_image_that_other_machines_reach_is_warned_of_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    for (address, is_warned) in [("0.0.0.0:0", true), ("127.0.0.1:0", false)] {
        let problems = folder.path().join(address);
        let file = std::fs::File::create(&problems).expect("a file");
        let words = ["emulate", "--drive", "hp-c2247a", "--image", "image"];
        let more = ["--insecure", "--tcp", address];
        let words = [&words[..], &more].concat();
        let child = crate::begun::begin(folder.path(), &words, file, "nbd://");
        let mut child = child.expect("it serves");
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        let said = std::fs::read_to_string(&problems).expect("text");
        assert_eq!(
            said.contains("warning: other machines"),
            is_warned,
            "{said}"
        );
    }
}

#[test]
fn a_check_says_what_a_start_would_do_and_does_nothing() {
    let check = |folder: &Path, more: &[&str]| {
        let output = Command::new(cargo_bin("headtime"))
            .current_dir(folder)
            .args(["serve", "--check", "c.toml"])
            .args(more)
            .output();
        let output = output.expect("it runs");
        let text = String::from_utf8(output.stdout).expect("text");
        (output.status.code(), text)
    };
    let names = |folder: &Path| {
        let files = std::fs::read_dir(folder).expect("a folder");
        let mut names: Vec<_> = files
            .map(|file| file.expect("a file").file_name())
            .collect();
        names.sort();
        names
    };
    // While the service runs its sockets are in use.
    let service = Service::start(&[], "");
    let (code, text) = check(&service.path(""), &[]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("is the service running?"), "{text}");
    let folder = service.end();
    let before = names(folder.path());
    let (code, text) = check(folder.path(), &[]);
    assert_eq!(code, Some(0), "{text}");
    for expected in [
        "drive rz26",
        "disk.img, 1052098560 bytes",
        "the emulated drive's own profile",
        "export small of volume small, read and write",
        "Nothing was opened for writing, made or changed.",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let (_, json) = check(folder.path(), &["--json"]);
    let steps: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(steps[0]["outcome"], "uses", "{steps}");
    assert_eq!(names(folder.path()), before);
    // And what it promised it does.
    Service::start_in(folder, &config("")).end();
}

#[test]
fn a_log_that_is_no_terminal_has_no_colours() {
    let service = Service::start(&[], "");
    let log = service.log();
    assert!(log.contains("INFO"), "{log}");
    assert!(!log.contains('\u{1b}'), "{log:?}");
    service.end();
}
