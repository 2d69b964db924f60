//! `headtime ctl` over a fake service.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;

use crate::fake::Fake;
use assert_cmd::Command;
use server::config::SocketRights;
use server::control::{Bounds, Listeners, Plane, listen};
use server::status::Status;

struct Scene {
    fake: Fake,
    folder: tempfile::TempDir,
    _plane: Plane,
}

fn scene() -> Scene {
    scene_of(crate::fake::status())
}

fn scene_of(status: Status) -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let fake = Fake::new(status);
    let listeners = Listeners {
        sockets: vec![listen(&socket(folder.path()), SocketRights::default()).unwrap()],
        ..Listeners::default()
    };
    let plane = Plane::begin(Arc::new(fake.clone()), listeners, Bounds::default()).unwrap();
    Scene {
        fake,
        folder,
        _plane: plane,
    }
}

/// Where a service of a user with this folder for sockets has it.
fn socket(runtime: &Path) -> PathBuf {
    runtime.join("headtime/control.sock")
}

fn ctl(runtime: &Path, words: &str) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin!("headtime"))
        .env("XDG_RUNTIME_DIR", runtime)
        .arg("ctl")
        .args(words.split_whitespace())
        .output()
        .unwrap()
}

impl Scene {
    fn ctl(&self, words: &str) -> String {
        let output = ctl(self.folder.path(), words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }
}

#[test]
fn status_and_tasks_are_told_to_people_and_to_programs() {
    let scene = scene();
    let text = scene.ctl("status");
    for part in [
        "serving for 93784 s, version 0.1.0, 1 connected\n",
        "disk: emulated quantum-atlas-10k at time scale 4, sptf-sw60\n",
        "  mode         following: 97 % of recent commands ended as the belief predicts\n",
        "14 waiting, 1 at the drive\n",
        "foreground   read 1.3 MB/s 155/s, write 0.6 MB/s 74/s; p50 31.40 p95 96.10 p99 141.70 p99.9 388.90 ms\n",
        "foreground 61.0 %, real-time 4.5 %, free 19.0 %, idle 5.0 %, calibration 0.5 %, lost 5.0 %, unused 5.0 %\n",
        "impact       1.37 % of 2.00 %, over about the last 5,000 requests\n",
        "lateness     p50 12 us, p99 74 us, at most 312 us\n",
        "errors       5 reads, 8 writes, 11 flushes\n",
        "heads        2,003 of 91,009 compared reads late, which took 2.25 % more time; head 3 is slow: its reads take 21.",
        "readmore     32,768 bytes wanted, 5,000,192 read in free time, 1,000,448 in idle time, 512 could not be read; 4,001,792 satisfied, 802,816 dropped\n",
        "task 3: scan db, active, 42.6 % of 8,000,000,000 bytes at 2.31 MB/s, 33 minutes left, 4,096 bytes could not be read\n",
        "    85.1 % in gaps, 12.0 % in idle time, 2.9 % in granted time; since it began, the foreground waited at most 38.67 ms for a MB\n",
        "connection 41: nbd from 127.0.0.1:50123 to db (foreground), 27 in flight, 1,234,567 requests\n",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let read: Status = serde_json::from_str(&scene.ctl("status --json")).unwrap();
    assert_eq!(read, crate::fake::status());
    assert!(
        scene
            .ctl("tasks")
            .starts_with("disk: task 3: scan db, active, 42.6 %")
    );
    let tasks: serde_json::Value = serde_json::from_str(&scene.ctl("--json tasks")).unwrap();
    assert_eq!(tasks[0]["tasks"][1]["state"], "suspended");
    assert!(scene.fake.told().is_empty(), "looking changes nothing");
}

#[test]
fn answers_fit_the_terminal() {
    let scene = scene();
    let program = assert_cmd::cargo::cargo_bin!("headtime");
    for words in ["status", "tasks", "streams"] {
        let plain = scene.ctl(words);
        for columns in [60, 160] {
            let line = format!("stty cols {columns}; {} ctl {words}", program.display());
            let output = Command::new("script")
                .args(["-qec", &line, "/dev/null"])
                .env("XDG_RUNTIME_DIR", scene.folder.path())
                .output()
                .unwrap();
            let text = String::from_utf8(output.stdout).unwrap().replace('\r', "");
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(
                longest.is_some_and(|longest| longest <= columns),
                "{words}: {text}"
            );
            for word in plain.split_whitespace() {
                assert!(text.contains(word), "{words}: {word} is not in\n{text}");
            }
        }
    }
}

#[test]
fn the_service_is_told_what_was_said() {
    let scene = scene();
    let reload = "now: export db-idle is new\nafter a restart: drive disk has another back end\n";
    assert_eq!(scene.ctl("reload"), reload);
    for (words, said) in [
        (
            "suspend 3",
            "task 3 is suspended: `headtime ctl resume 3` goes on with it\n",
        ),
        ("resume 3", "task 3 goes on\n"),
        ("promote 3 --priority 2", "task 3 has priority 2\n"),
        (
            "promote 3 --foreground",
            "task 3 takes turns with the foreground\n",
        ),
        ("abort 3", "task 3 is aborted\n"),
        (
            "impact disk 0.25",
            "disk: background tasks may lengthen the foreground by 0.25 %, until a restart or a reload\n",
        ),
    ] {
        assert_eq!(scene.ctl(words), said);
    }
    scene.ctl("drain");
    scene.ctl("stop");
    let told = [
        "reload",
        "steer 3 Suspend",
        "steer 3 Resume",
        "steer 3 Promote { priority: 2 }",
        "steer 3 Hasten",
        "steer 3 Abort",
        "impact disk 2500",
        "drain",
        "stop",
    ];
    assert_eq!(scene.fake.told(), told);
}

#[test]
fn names_from_a_service_do_not_steer_the_terminal() {
    let mut status = crate::fake::status();
    status.drives[0].name = String::from("\u{1b}[2J\u{9b}31mdisk");
    let scene = scene_of(status.clone());
    let text = scene.ctl("status");
    assert!(
        text.contains("\\u001b[2J\\u009b31mdisk: emulated"),
        "{text}"
    );
    let json = scene.ctl("status --json");
    assert!(
        !json.contains(|c: char| c.is_control() && c != '\n'),
        "{json}"
    );
    let read: Status = serde_json::from_str(&json).unwrap();
    assert_eq!(read, status, "escaped JSON means the same");
}

#[test]
fn what_fails_is_said_in_one_line() {
    let scene = scene();
    let nobody = tempfile::tempdir().unwrap();
    for (runtime, words, code, part) in [
        (
            scene.folder.path(),
            "abort 8",
            2,
            "error: no task 8 is under way\n",
        ),
        (
            nobody.path(),
            "status",
            1,
            "expected the control socket of a running service\n",
        ),
        (
            scene.folder.path(),
            "status --socket /nowhere",
            1,
            "error: /nowhere: ",
        ),
        (scene.folder.path(), "statsu", 2, "status"),
    ] {
        let output = ctl(runtime, words);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{words}: {errors}");
        assert!(errors.contains(part), "{words}: {errors}");
        assert_eq!(errors.matches('\n').count(), 1, "{errors}");
        assert!(output.stdout.is_empty());
    }
    let help = scene.ctl("--help");
    assert!(
        help.contains("Examples:\n  headtime ctl status\n"),
        "{help}"
    );
}

#[test]
fn a_drive_in_service_is_profiled_and_the_profile_is_written() {
    let scene = scene();
    let file = scene.folder.path().join("new.toml");
    let words = format!("profile disk --minutes 5 --percent 2 -o {}", file.display());
    let text = scene.ctl(&words);
    for part in [
        "disk: profiled for 244 s, at done: 5.9850 ms a revolution, tracks of 99.5 % of the blocks, 32,000 reads \
         in 91.0 % of the time\n",
        "new.toml: a profile. The service follows it from now on, and after a restart with belief = ",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let profile = std::fs::read_to_string(&file).unwrap();
    assert_eq!(profile, "name = \"disk\"\n");
    let order = "learn Learn { drive: \"disk\", seconds: 300, granted_ppm: 20000 }";
    assert_eq!(scene.fake.told(), [order, "follow disk"]);
    let report = crate::judged::judge("ctl-profile", &scene.ctl("profile disk --detach --json"));
    assert_eq!(report["probes"], 32_000);
    assert_eq!(scene.fake.told(), [order, "follow disk"], "it has begun");
    scene.ctl("profile disk --stop");
    assert_eq!(scene.fake.told()[2..], ["stop learning disk"]);
}

#[test]
fn a_profile_that_cannot_be_had_leaves_no_file() {
    let scene = scene();
    let file = scene.folder.path().join("no.toml");
    for (words, expected) in [
        ("profile nope", "no drive nope: expected one of disk"),
        ("profile disk --percent 101", "expected 0 to 100"),
        ("profile disk --minutes 0", "--minutes"),
        ("profile disk --stop", "cannot be used with"),
    ] {
        let words = format!("{words} -o {}", file.display());
        let output = ctl(scene.folder.path(), &words);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}: {error}");
        assert!(error.contains(expected), "{words}: {error}");
        assert!(!file.exists(), "{words}");
    }
}
