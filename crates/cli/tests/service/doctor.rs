//! `headtime doctor`: what it says of services, configurations and paths, and with which exit code.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::fake::Fake;
use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use server::config::SocketRights;
use server::control::{Bounds, Listeners, Plane, listen};
use server::status::{DriveStatus, Impact, Mode, ServiceState, Status};

/// The exit code, standard output and standard error.
fn doctor(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(cargo_bin("headtime"))
        .current_dir(folder)
        .env("XDG_RUNTIME_DIR", folder.join("run"))
        .env("XDG_DATA_HOME", folder.join("data"))
        .arg("doctor")
        .args(words)
        .output()
        .expect("it runs");
    (
        output.status.code(),
        String::from_utf8(output.stdout).expect("text"),
        String::from_utf8(output.stderr).expect("text"),
    )
}

/// The ids of the findings, and the exit code.
fn found(folder: &Path, subject: &str) -> (Option<i32>, Vec<String>) {
    let (code, said, problem) = doctor(folder, &[subject, "--json"]);
    let said: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{problem}"));
    let findings = said["findings"].as_array().expect("a list");
    let wrong = findings.iter().filter(|one| one["severity"] == "wrong");
    assert_eq!(said["wrong"], wrong.count());
    let id = |one: &Value| one["id"].as_str().expect("a name").to_owned();
    (code, findings.iter().map(id).collect())
}

/// A service with one drive in this mode, at `x.sock` of a folder.
fn service(mode: Mode, measured: f64) -> (tempfile::TempDir, Plane) {
    let drive = DriveStatus {
        name: "disk".to_owned(),
        model: Some("Atlas".to_owned()),
        mode,
        mode_reason: "12 % of recent commands ended as the belief predicts".to_owned(),
        impact: Impact {
            measured_percent: Some(measured),
            budget_percent: 2.0,
        },
        ..DriveStatus::default()
    };
    let status = Status {
        state: ServiceState::Serving,
        drives: vec![drive],
        ..Status::default()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("x.sock");
    let listeners = Listeners {
        sockets: vec![listen(&socket, SocketRights::default()).expect("a socket")],
        ..Listeners::default()
    };
    let plane = Plane::begin(Arc::new(Fake::new(status)), listeners, Bounds::default());
    (folder, plane.expect("it listens"))
}

#[test]
fn a_healthy_service_has_nothing_wrong_and_a_sick_one_says_what_to_do() {
    let (folder, _plane) = service(Mode::Following, 1.0);
    let (code, said, problem) = doctor(folder.path(), &["x.sock"]);
    assert_eq!((code, problem.as_str()), (Some(0), ""), "{said}");
    assert!(
        said.contains("drives: disk following; 0 connected"),
        "{said}"
    );
    assert!(said.ends_with("Nothing is wrong.\n"), "{said}");

    let (folder, _plane) = service(Mode::Learning, 1.0);
    let learning = (Some(0), vec!["learning".to_owned()]);
    assert_eq!(found(folder.path(), "x.sock"), learning);

    let (folder, _plane) = service(Mode::Safe, 3.0);
    let (code, said, problem) = doctor(folder.path(), &["x.sock"]);
    assert_eq!(code, Some(3), "{said}");
    assert_eq!(problem, "error: 2 things are wrong\n");
    for part in [
        "wrong   drive disk: safe mode: 12 % of recent commands",
        "  do    wait a minute: it ends by itself",
        "by 3.00 %: the budget is 2.00 %",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_service_that_is_gone_is_told_apart_from_one_that_never_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, said, _) = doctor(folder.path(), &[]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("there is no such socket"), "{said}");
    // A dropped listener leaves its socket, as a killed service does.
    drop(UnixListener::bind(folder.path().join("dead.sock")).expect("a socket"));
    let (code, said, _) = doctor(folder.path(), &["dead.sock"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("one that was killed"), "{said}");
}

const CONFIG: &str = "[[drive]]\nname = \"d\"\nback_end = { kind = \"file\", path = \"disk.img\" }\n\
                      [[drive.volume]]\nname = \"v\"\n[[drive.export]]\nname = \"e\"\nvolume = \"v\"\n\
                      [control]\nsocket = \"control.sock\"\n";

#[test]
fn a_configuration_is_checked_with_its_disks() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("a file");
    };
    write("c.toml", CONFIG);
    let refused = (
        Some(3),
        vec!["start-refused".to_owned(), "not-running".to_owned()],
    );
    assert_eq!(found(folder.path(), "c.toml"), refused, "no disk.img");
    write("disk.img", &"x".repeat(1 << 16));
    let file = (
        Some(0),
        vec!["no-disk".to_owned(), "not-running".to_owned()],
    );
    assert_eq!(found(folder.path(), "c.toml"), file);
    write("bad.toml", &CONFIG.replace("kind", "kinnd"));
    let (code, said, _) = doctor(folder.path(), &["bad.toml"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("wrong   bad.toml: bad.toml:3: "), "{said}");
    let (code, _, problem) = doctor(folder.path(), &["none.toml"]);
    assert_eq!(code, Some(2), "{problem}");
    assert!(problem.contains("none.toml: No such file"), "{problem}");
}

#[test]
fn a_path_that_is_no_disk_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("disk.img"), [0; 4096]).expect("a file");
    let file = (Some(3), vec!["no-disk".to_owned()]);
    assert_eq!(found(folder.path(), "disk.img"), file);
    for path in ["/dev/null", "/nothing/there"] {
        let (code, said, problem) = doctor(folder.path(), &[path]);
        assert_eq!((code, said.as_str()), (Some(2), ""), "{problem}");
    }
}

#[test]
fn a_folder_that_others_may_write_to_is_told() {
    let (folder, _plane) = service(Mode::Following, 1.0);
    let data = folder.path().join("data/headtime");
    std::fs::create_dir_all(&data).expect("a folder");
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o777)).expect("a mode");
    let open = (Some(3), vec!["folder".to_owned()]);
    assert_eq!(found(folder.path(), "x.sock"), open);
}

/// The status text is there before the service has served anybody.
#[test]
fn systemd_is_told_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("disk.img"), [0; 1 << 16]).expect("an image");
    std::fs::write(folder.path().join("c.toml"), CONFIG).expect("a configuration");
    let systemd = UnixDatagram::bind(folder.path().join("notify")).expect("a socket");
    let mut service = Command::new(cargo_bin("headtime"))
        .current_dir(folder.path())
        .env("NOTIFY_SOCKET", folder.path().join("notify"))
        .args(["serve", "c.toml"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let mut told = String::new();
    while !told.starts_with("STATUS=") {
        let mut bytes = [0; 1024];
        let length = systemd.recv(&mut bytes).expect("a message");
        told = String::from_utf8_lossy(&bytes[..length]).into_owned();
    }
    service.kill().expect("it runs");
    service.wait().expect("it ends");
    assert_eq!(
        told,
        "STATUS=OK; drives: d plain; headtime doctor says more\n"
    );
}
