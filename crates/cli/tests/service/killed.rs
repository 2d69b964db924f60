//! `headtime emulate` and `headtime serve`, killed within a load and begun again, and a drive's power
//! cut by a signal.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use nbd::Style;
use tempfile::TempDir;

use crate::client::Client;
use crate::ledger::Ledger;

/// A file, opened past the page cache and not.
const SERVED: &str = r#"
[[drive]]
name = "file"
policy = "c-look"
belief = "nothing"
[drive.back_end]
kind = "file"
path = "image"
size = "1 GiB"
direct = DIRECT
[[drive.volume]]
name = "all"
offset = 0
[[drive.export]]
name = "all"
volume = "all"
class = "foreground"
[[nbd]]
unix = "socket"
[control]
socket = "control"
"#;

/// What is begun and killed.
#[derive(Clone, Copy)]
enum What {
    Emulate,
    /// `headtime serve` with a file, and whether that is opened with `O_DIRECT`.
    Serve {
        direct: &'static str,
    },
}

impl What {
    fn begin(self, folder: &Path) -> Service {
        match self {
            What::Emulate => Service::begin(folder),
            What::Serve { direct } => Service::serve(folder, direct),
        }
    }

    /// A client whose writes are half a block of a file past the page cache.
    fn connect(self, folder: &Path) -> Client {
        let socket = folder.join("socket");
        match self {
            What::Emulate => Client::connect(&socket, Style::Structured),
            What::Serve { .. } => Client::connect_unaware(&socket, Style::Structured),
        }
    }
}

/// A running service. Killed when it is dropped.
struct Service {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Service {
    /// Begins one, and waits until it listens.
    fn begin(folder: &Path) -> Service {
        Service::begin_with(folder, &[])
    }

    fn begin_with(folder: &Path, more: &[&str]) -> Service {
        let mut child = Command::new(env!("CARGO_BIN_EXE_headtime"))
            .args(["emulate", "--drive", "seagate-cheetah-9lp"])
            .args(["--time-scale", "0.01"])
            .args(more)
            .current_dir(folder)
            .arg("--image")
            .arg(folder.join("image"))
            .arg("--socket")
            .arg(folder.join("socket"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("it begins");
        let said = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut service = Service { child, said };
        assert!(service.line().starts_with("nbd+unix:"));
        service
    }

    fn serve(folder: &Path, direct: &str) -> Service {
        let config = SERVED.replace("DIRECT", direct);
        std::fs::write(folder.join("c.toml"), config).expect("a configuration");
        let mut child = Command::new(env!("CARGO_BIN_EXE_headtime"))
            .args(["serve", "c.toml"])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it begins");
        let said = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut service = Service { child, said };
        assert!(service.line().starts_with("control socket"));
        service
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("it says something");
        line
    }

    /// SIGKILL, as the machine's memory killer would.
    fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ran");
    }

    fn signal(&self, name: &str) {
        let told = Command::new("kill")
            .args([name, &self.child.id().to_string()])
            .status();
        assert!(told.expect("kill is there").success());
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Goes on with the load until so many have ended.
fn load(client: &mut Client, ledger: &mut Ledger, mut ends: u64) {
    while ends > 0 {
        while client.under_way() < 8 {
            let (rule, unit) = ledger.next();
            ledger.submit(client, rule, unit);
        }
        let end = client.end().expect("the server answers");
        assert_eq!(end.result, Ok(()));
        ledger.ended(&end);
        ends -= 1;
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

/// Kills it so often; what is broken in the end.
fn kill_and_begin_again(
    what: What,
    folder: &TempDir,
    ledger: &mut Ledger,
    rounds: u64,
) -> Vec<String> {
    let mut broken = Vec::new();
    let mut service = what.begin(folder.path());
    for round in 0..rounds {
        let mut client = what.connect(folder.path());
        load(&mut client, ledger, 5 + round % 60);
        service.kill();
        take_the_rest(&mut client, ledger);
        service = what.begin(folder.path());
        let mut client = what.connect(folder.path());
        broken.extend(ledger.verify(&mut client).0);
    }
    broken
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// `KILLS=n` for more or fewer.
fn survives_kills(what: What, seed: u64) {
    let rounds = std::env::var("KILLS").map_or(200, |n| n.parse().expect("a number of kills"));
    let broken = kill_and_begin_again(what, &folder(), &mut Ledger::new(seed), rounds);
    assert_eq!(broken, [""; 0]);
}

#[test]
fn what_was_flushed_survives_200_kills() {
    survives_kills(What::Emulate, 2);
}

#[test]
fn what_was_flushed_to_a_served_file_survives_200_kills() {
    survives_kills(What::Serve { direct: "false" }, 6);
}

#[test]
fn what_was_flushed_past_the_page_cache_survives_200_kills() {
    survives_kills(What::Serve { direct: "true" }, 7);
}

#[test]
fn an_image_that_lost_everything_is_found_out() {
    let folder = folder();
    let mut ledger = Ledger::new(3);
    let broken = kill_and_begin_again(What::Emulate, &folder, &mut ledger, 5);
    assert_eq!(broken, [""; 0]);
    let image = folder.path().join("image");
    let length = image.metadata().expect("it is there").len();
    let file = std::fs::File::create(&image).expect("it is cut");
    file.set_len(length).expect("it is as long as before");
    let _service = Service::begin(folder.path());
    let mut client = Client::connect(&folder.path().join("socket"), Style::Structured);
    assert_ne!(ledger.verify(&mut client).0, [""; 0]);
}

#[test]
fn a_signal_cuts_the_power_and_the_drive_goes_on() {
    let folder = folder();
    let mut service = Service::begin(folder.path());
    let mut ledger = Ledger::new(4);
    for round in 0..10 {
        let mut client = Client::connect(&folder.path().join("socket"), Style::Structured);
        load(&mut client, &mut ledger, 10 + round);
        service.signal("-USR1");
        take_the_rest(&mut client, &mut ledger);
        assert!(service.line().starts_with("power cut: "));
        let mut client = Client::connect(&folder.path().join("socket"), Style::Structured);
        assert_eq!(ledger.verify(&mut client).0, [""; 0]);
    }
}

fn replay(folder: &Path, arguments: &str) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_headtime"))
        .arg("replay")
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .expect("it runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).expect("text"))
}

#[test]
fn a_captured_service_replays_to_the_same_decisions() {
    let folder = folder();
    let more = ["--policy", "sptf", "--capture", "run", "--bus-mb-s", "20"];
    let mut service = Service::begin_with(folder.path(), &more);
    let mut client = Client::connect(&folder.path().join("socket"), Style::Structured);
    load(&mut client, &mut Ledger::new(5), 200);
    drop(client);
    service.signal("-TERM");
    service.child.wait().expect("it ends");
    let (code, said) = replay(folder.path(), "run");
    assert!(said.ends_with("all as captured\n"), "{said}");
    assert_eq!(code, Some(0));
    let (code, said) = replay(folder.path(), "run --policy fcfs");
    assert!(
        said.starts_with("error: run: event ") && said.contains("; replayed: "),
        "{said}"
    );
    assert_eq!(code, Some(1));
    let path = folder.path().join("run");
    let whole = std::fs::read(&path).expect("a capture");
    std::fs::write(&path, &whole[..whole.len() - 1]).expect("it is cut");
    let (code, said) = replay(folder.path(), "run");
    assert!(
        said.starts_with("error: run: byte ") && said.contains("expected 1 more bytes"),
        "{said}"
    );
    assert_eq!(code, Some(2));
}
