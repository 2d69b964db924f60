//! Requests that have the class of their program's I/O priority: a loop device over FUSE, and programs above it.
//!
//! It needs root, `/dev/fuse`, loop devices, events of block devices, and util-linux. Where one is missing, that is
//! said; in CI (`CI=true`) it is an error.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::here::are_here;
use crate::scanned::Service;

const CONFIG: &str = "[[drive]]\nname = \"disk\"\nback_end = { kind = \"memory\", size = \"64 MiB\" }\n\
                      [[drive.volume]]\nname = \"all\"\n[[drive.export]]\nname = \"all\"\nvolume = \"all\"\n\
                      classify = \"ioprio\"\n\
                      [[drive.export.rule]]\nprocess = \"auditor\"\nclass = \"best-effort-5\"\n\
                      [[nbd]]\nunix = \"nbd.sock\"\n[fuse]\nmount = \"volumes\"\n[control]\nsocket = \"control.sock\"\n";

/// The most questions until a device is seen. A choice: each is a process of some milliseconds, and the service looks
/// four times a second.
const QUESTIONS: u32 = 10_000;

/// Requests of the kernel's own that are in the foreground: it looks for partitions, and programs that look for file
/// systems follow. A choice far below the reads of a program.
const OWN: u64 = 64;

/// The files of the machine that this needs.
const NEEDED: [&str; 3] = [
    "/dev/fuse",
    "/dev/loop-control",
    "/sys/kernel/tracing/events/block/block_rq_issue/format",
];

/// What a program prints.
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {problem}"
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A loop device, which goes with its test.
struct LoopDevice(String);

impl LoopDevice {
    fn over(file: &Path) -> Self {
        let file = file.to_str().expect("UTF-8");
        let shown = run("losetup", &["--find", "--show", "--direct-io=on", file]);
        LoopDevice(shown.trim().to_owned())
    }

    /// Reads so many parts of so many bytes by a program, from a MiB on.
    fn read(&self, program: &[&str], (count, bytes): (u64, u64)) {
        let (first, rest) = program.split_first().expect("a program");
        let own = [
            format!("if={}", self.0),
            "of=/dev/null".to_owned(),
            "iflag=direct".to_owned(),
            format!("bs={bytes}"),
            format!("skip={}", (1 << 20) / bytes),
            format!("count={count}"),
        ];
        let own = own.iter().map(String::as_str);
        let arguments: Vec<&str> = rest.iter().copied().chain(own).collect();
        run(first, &arguments);
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).output();
    }
}

fn drive(service: &Service) -> Value {
    service.json(&["ctl", "--json", "status"])["drives"][0].clone()
}

/// The status of the export once it is so.
fn wait_until(service: &Service, is_so: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..QUESTIONS {
        let export = drive(service)["classified"][0].clone();
        if is_so(&export) {
            return export;
        }
    }
    panic!("it is never so: {}", drive(service)["classified"]);
}

/// The reads of foreground, best effort and background since the start.
fn reads(service: &Service) -> [u64; 3] {
    let drive = drive(service);
    ["foreground", "best-effort", "background"].map(|class| {
        let traffic = drive["traffic"].as_array().expect("traffic");
        let found = traffic.iter().find(|traffic| traffic["class"] == class);
        found.map_or(0, |traffic| {
            traffic["read"]["requests_total"]
                .as_u64()
                .expect("a number")
        })
    })
}

#[test]
fn programs_on_a_loop_device_have_the_classes_of_their_priorities() {
    if !are_here(&NEEDED, &["ionice"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let auditor = folder.path().join("auditor");
    std::fs::copy("/bin/dd", &auditor).expect("a program of that name");
    let auditor = auditor.to_str().expect("UTF-8").to_owned();
    let service = Service::start_in(folder, CONFIG);
    let export = wait_until(&service, |export| export["problem"].is_string());
    let problem = export["problem"].as_str().expect("a reason");
    assert!(
        problem.contains("volumes/all: expected `losetup"),
        "{problem}"
    );

    let device = LoopDevice::over(&service.path("volumes/all"));
    let export = wait_until(&service, |export| export["devices"][0].is_string());
    assert_eq!(export["devices"][0], device.0.as_str());
    assert_eq!(export["problem"], Value::Null);

    let small = (1000, 4096);
    for (program, class) in [
        (&["dd"][..], 0),
        (&["ionice", "-c2", "-n4", "dd"], 0),
        (&["ionice", "-c1", "-n0", "dd"], 0),
        (&["ionice", "-c2", "-n7", "dd"], 1),
        (&["nice", "-n19", "dd"], 1),
        (&["ionice", "-c3", "dd"], 2),
        // The first rule that fits decides, whatever the priority.
        (&["ionice", "-c3", &auditor], 1),
    ] {
        let before = reads(&service);
        device.read(program, small);
        let after = reads(&service);
        for other in 0..3 {
            let more = after[other] - before[other];
            let expected = match (other == class, other) {
                (true, 0) => 1000..=1000 + OWN,
                (true, _) => 1000..=1000,
                (false, 0) => 0..=OWN,
                (false, _) => 0..=0,
            };
            assert!(
                expected.contains(&more),
                "{program:?}: {before:?} {after:?}"
            );
        }
    }

    // FUSE splits what the device issues.
    let before = reads(&service);
    device.read(&["ionice", "-c3", "dd"], (8, 4 << 20));
    let after = reads(&service);
    assert!(after[2] - before[2] >= 16, "{before:?} {after:?}");
    assert!(after[0] - before[0] <= OWN, "{before:?} {after:?}");

    let export = drive(&service)["classified"][0].clone();
    let number = |key: &str| export[key].as_u64().expect("a number");
    assert!(number("requests_total") >= 7000, "{export}");
    assert!(number("unmatched_total") <= OWN, "{export}");
    assert_eq!(number("lost_events_total"), 0, "{export}");

    drop(device);
    wait_until(&service, |export| export["problem"].is_string());
    service.end();
}

#[test]
fn a_reload_of_a_classified_export_is_told_to_need_a_restart() {
    if !are_here(&NEEDED, &["ionice"]) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let service = Service::start_in(folder, CONFIG);
    let other = CONFIG.replace("best-effort-5", "background");
    std::fs::write(service.path("c.toml"), other).expect("a configuration");
    let changes = service.json(&["ctl", "--json", "reload"]);
    assert_eq!(
        changes["after_restart"][0],
        "the classification of exports differs from what is in force"
    );
    service.end();
}
