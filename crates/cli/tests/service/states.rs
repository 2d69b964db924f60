//! States of a drive where people look: status, log, systemd's text, and the begin of a scan.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use assert_cmd::cargo::cargo_bin;
use block::operation::Ask;
use nbd::Style;
use nbd::request::Asked;
use server::config::SocketRights;
use server::control::{Bounds, Listeners, Plane, listen};
use server::status::{Lateness, Mode, Status};

use crate::client::Client;
use crate::fake::Fake;
use crate::scanned::{BYTES, config};

/// What `headtime` says of a service with this status.
fn said(status: Status, words: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("x.sock");
    let listeners = Listeners {
        sockets: vec![listen(&socket, SocketRights::default()).expect("a socket")],
        ..Listeners::default()
    };
    let fake = Arc::new(Fake::new(status));
    let _plane = Plane::begin(fake, listeners, Bounds::default()).expect("it listens");
    let output = Command::new(cargo_bin("headtime"))
        .args(words)
        .arg("--socket")
        .arg(&socket)
        .output()
        .expect("it runs");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn each_state_is_told_with_its_reason_and_what_to_do() {
    let changed = |change: &dyn Fn(&mut server::status::DriveStatus)| {
        let mut status = crate::fake::status();
        change(&mut status.drives[0]);
        said(status, &["ctl", "status"])
    };
    let reason = "12 % of recent commands ended as the belief predicts";
    let safe = changed(&|drive| {
        drive.mode = Mode::Safe;
        drive.mode_reason = reason.to_owned();
    });
    let of = |text: &str, about: &str| {
        let found = text.lines().find(|line| line.contains(about));
        found
            .unwrap_or_else(|| panic!("{about}: {text}"))
            .to_owned()
    };
    let line = of(&safe, "safe mode: 12 %");
    assert!(
        line.starts_with("wrong: drive disk: ") && line.contains(reason),
        "{line}"
    );
    assert!(
        line.contains("slow the drive down (time_scale in [drive.back_end]"),
        "{line}"
    );
    let learning = changed(&|drive| {
        drive.mode = Mode::Learning;
        drive.mode_reason = "12 commands were compared".to_owned();
    });
    let line = of(&learning, "notice: drive disk: ");
    assert!(line.contains("12 commands were compared"), "{line}");
    let over = changed(&|drive| drive.impact.measured_percent = Some(7.3));
    let line = of(&over, "wrong: drive disk: background reads");
    assert!(
        line.contains("7.30 %") && line.contains("headtime ctl impact disk 8"),
        "{line}"
    );
    let following = changed(&|_| ());
    assert!(
        !following.contains("drive disk: safe mode") && !following.contains("too late"),
        "{following}"
    );
}

#[test]
fn a_machine_that_is_too_late_is_told_where_times_are_judged() {
    let mut late = crate::fake::status();
    // Its time scale is 4: 300 us are 1.2 ms here.
    late.drives[0].lateness = Some(Lateness {
        p50_us: 40.0,
        p99_us: 5_200.0,
        max_us: 61_000.0,
    });
    let reason = "the emulated drive ends one command in a hundred 5.2 ms late or more, the latest by 61.0 ms";
    for (words, about) in [
        (
            &["ctl", "status"][..],
            "  impact       1.37 % of 2.00 %, over about the last 5,000 requests; this machine is too late to judge it: ",
        ),
        (
            &["ctl", "impact", "disk", "0.25"],
            "until a restart or a reload; this machine is too late to judge it: ",
        ),
        (
            &["why"],
            "drive disk: this machine is too late to judge these times: ",
        ),
    ] {
        let text = said(late.clone(), words);
        assert!(text.contains(&format!("{about}{reason}\n")), "{text}");
        let in_time = said(crate::fake::status(), words);
        assert!(
            !in_time.is_empty() && !in_time.contains("too late"),
            "{in_time}"
        );
    }
}

#[test]
fn a_task_that_reads_nothing_says_why() {
    let mut status = crate::fake::status();
    status.drives[0].mode = Mode::Safe;
    status.drives[0].mode_reason =
        "12 % of recent commands ended as the belief predicts".to_owned();
    status.drives[0].tasks[0].mb_per_s = 0.0;
    status.drives[0].tasks[0].elapsed_s = 60.0;
    let text = said(status, &["ctl", "tasks"]);
    let mut lines = text.lines().skip_while(|line| !line.contains("task 3"));
    let reason = lines.find(|line| line.contains("it reads nothing: "));
    assert!(
        reason.is_some_and(|line| line.contains("without a profile that fits")),
        "{text}"
    );
}

/// A service whose drive turns faster than its profile says. It tells systemd and logs in the folder.
fn with_a_wrong_belief(folder: &Path) -> Child {
    let truth = concat!(env!("CARGO_MANIFEST_DIR"), "/../../drives/dec-rz26.toml");
    let truth = std::fs::read_to_string(truth).expect("a profile");
    assert!(truth.contains("rpm = 5360"), "{truth}");
    let wrong = truth.replace("rpm = 5360", "rpm = 4800");
    std::fs::write(folder.join("wrong.toml"), wrong).expect("a profile");
    let image = std::fs::File::create(folder.join("disk.img")).expect("an image");
    image.set_len(1_052_098_560).expect("as long as the drive");
    let believed = "belief = \"wrong.toml\"\nbelief_unchecked = true";
    let text = config("").replace("belief = \"emulated\"", believed);
    std::fs::write(folder.join("c.toml"), text).expect("a configuration");
    Command::new(cargo_bin("headtime"))
        .current_dir(folder)
        .env("NOTIFY_SOCKET", folder.join("notify"))
        .args(["serve", "c.toml"])
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(folder.join("log")).expect("a log"))
        .spawn()
        .expect("it runs")
}

/// A drive that turns faster than its profile says, under a load: log and systemd tell it, and so does a scan that begins.
#[test]
fn a_wrong_belief_is_told_in_the_log_to_systemd_and_by_a_scan() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let systemd = UnixDatagram::bind(at("notify")).expect("a socket");
    systemd.set_nonblocking(true).expect("a socket");
    let mut service = with_a_wrong_belief(folder.path());
    let told = || {
        let mut bytes = [0; 4096];
        let length = systemd.recv(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
    };
    while !at("nbd.sock").exists() || told().is_none() {
        std::thread::yield_now();
    }
    let mut client = Client::connect(&at("nbd.sock"), Style::Simple);
    let read = |client: &mut Client, offset| {
        let end = client.ask(Asked::Of(Ask::Read), offset, 4096, &[]);
        assert_eq!(end.result, Ok(()));
    };
    let mut offset = 0;
    let status = loop {
        for _ in 0..20 {
            offset = (offset * 48_271 + 4096) % (BYTES as u64 / 4096 - 1);
            read(&mut client, offset * 4096);
        }
        if let Some(status) =
            told().filter(|told| told.starts_with("STATUS=wrong: drive rz26: safe mode"))
        {
            break status;
        }
    };
    assert!(
        status.contains("of recent commands ended as the belief predicts"),
        "{status}"
    );
    assert!(
        status.contains("slow the drive down (time_scale in [drive.back_end]"),
        "{status}"
    );
    let log = loop {
        read(&mut client, 0);
        let log = std::fs::read_to_string(at("log")).expect("a log");
        if log.contains("drive rz26: safe mode") {
            break log;
        }
    };
    assert_eq!(log.matches("drive rz26: safe mode").count(), 1, "{log}");
    let scan = Command::new(cargo_bin("headtime"))
        .args(["scan", "small", "--socket", "control.sock"])
        .current_dir(folder.path())
        .output()
        .expect("it runs");
    let noted = String::from_utf8_lossy(&scan.stderr);
    assert!(noted.contains("wrong: drive rz26: safe mode: "), "{noted}");
    service.kill().expect("it runs");
    service.wait().expect("it ended");
}
