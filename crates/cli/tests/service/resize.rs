//! Volumes of a running service that become longer and shorter by a reload.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use assert_cmd::cargo::cargo_bin;
use block::Durability;
use block::operation::Ask;
use nbd::Style;
use nbd::request::{Asked, Header};

use crate::begun::{SERVES, begin};
use crate::client::Client;

const MIB: u64 = 1 << 20;
const READ: Asked = Asked::Of(Ask::Read);
const WRITE: Asked = Asked::Of(Ask::Write {
    durability: Durability::Volatile,
});

/// 64 MiB of memory: a volume of so many at the front, one of eight at the end.
struct Service {
    child: Child,
    folder: tempfile::TempDir,
}

fn config(mib: u64, memory: u64) -> String {
    format!(
        r#"
[[drive]]
name = "d"
back_end = {{ kind = "memory", size = "{memory} MiB" }}
[[drive.volume]]
name = "front"
size = "{mib} MiB"
[[drive.volume]]
name = "end"
offset = "56 MiB"
[[drive.export]]
name = "front"
volume = "front"
[[drive.export]]
name = "front-idle"
volume = "front"
class = "background"
[[drive.export]]
name = "end"
volume = "end"
[[nbd]]
unix = "nbd.sock"
[control]
socket = "control.sock"
"#
    )
}

impl Service {
    fn start(mib: u64) -> Service {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("c.toml"), config(mib, 64)).expect("a configuration");
        let child = begin(folder.path(), &["serve", "c.toml"], Stdio::null(), SERVES);
        let child = child.expect("it serves");
        Service { child, folder }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("nbd.sock")
    }

    fn client(&self, style: Style) -> Client {
        Client::connect(&self.socket(), style)
    }

    /// What a reload of another configuration says, and whether it was taken.
    fn reload(&self, config: &str) -> (bool, String) {
        std::fs::write(self.folder.path().join("c.toml"), config).expect("a configuration");
        let output = Command::new(cargo_bin("headtime"))
            .args(["ctl", "--socket", "control.sock", "reload"])
            .current_dir(self.folder.path())
            .output()
            .expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).expect("text");
        (output.status.success(), said)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_longer_volume_is_seen_by_who_comes_and_kept_from_who_is_there() {
    let service = Service::start(16);
    let mut old = service.client(Style::Simple);
    let end = old.ask(WRITE, 16 * MIB - 4096, 4096, &[7; 4096]);
    assert_eq!(end.result, Ok(()));
    let (is_taken, said) = service.reload(&config(32, 64));
    assert!(is_taken, "{said}");
    let expected = "volume front of drive d has 33554432 bytes instead of 16777216";
    assert!(said.contains(expected), "{said}");
    let mut new = service.client(Style::Structured);
    assert_eq!(new.ask(WRITE, 31 * MIB, 4096, &[8; 4096]).result, Ok(()));
    let end = new.ask(READ, 16 * MIB - 4096, 8192, &[]);
    assert!(end.bytes[..4096] == [7; 4096] && end.bytes[4096..] == [0; 4096]);
    // Who was there goes on, and is told that there is nothing where it was told so.
    assert_eq!(old.ask(READ, 0, 4096, &[]).result, Ok(()));
    let mut past = Vec::new();
    Header::new(READ, Style::Simple, 77, 31 * MIB, 4096).encode(&mut past, Style::Simple);
    old.send(&past);
    let reply = old.exactly(16);
    let refused = [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 22, 0, 0, 0, 0, 0, 0, 0, 77];
    assert_eq!(reply, refused, "EINVAL");
    assert_eq!(old.ask(READ, 0, 4096, &[]).result, Ok(()));
}

#[test]
fn a_volume_becomes_shorter_when_nobody_uses_it() {
    let service = Service::start(32);
    let mut client = service.client(Style::Structured);
    assert_eq!(client.ask(WRITE, 0, 4096, &[7; 4096]).result, Ok(()));
    let (is_taken, said) = service.reload(&config(16, 64));
    assert!(!is_taken, "{said}");
    let expected = "1 connections use it: make what is on it smaller, have them disconnect";
    assert!(said.contains(expected), "{said}");
    assert_eq!(client.ask(READ, 31 * MIB, 4096, &[]).result, Ok(()));
    client.say_goodbye();
    assert!(client.is_closed_by_server());
    // That it was closed is seen a moment before the loop forgets it.
    loop {
        let (is_taken, said) = service.reload(&config(16, 64));
        if is_taken {
            assert!(said.contains("has 16777216 bytes instead of"), "{said}");
            break;
        }
        assert!(said.contains("connections use it"), "{said}");
    }
    let mut client = service.client(Style::Simple);
    let mut past = Vec::new();
    Header::new(READ, Style::Simple, 77, 16 * MIB, 4096).encode(&mut past, Style::Simple);
    client.send(&past);
    assert_eq!(client.exactly(16)[7], 22, "EINVAL");
    assert!(client.ask(READ, 0, 4096, &[]).bytes == [7; 4096]);
}

#[test]
fn what_does_not_fit_or_needs_a_restart_is_said() {
    let service = Service::start(16);
    let (is_taken, said) = service.reload(&config(60, 64));
    assert!(!is_taken && said.contains("without common bytes"), "{said}");
    let beyond = config(16, 64).replace("offset = \"56 MiB\"", "offset = \"48 MiB\"");
    let (is_taken, said) = service.reload(&beyond);
    assert!(is_taken, "{said}");
    assert!(
        said.contains("[[drive]] differs"),
        "a volume that moves: {said}"
    );
    let (is_taken, said) = service.reload(&config(32, 128));
    assert!(is_taken, "{said}");
    assert!(said.contains("[[drive]] differs"), "a larger drive: {said}");
    assert!(
        !said.contains("instead of"),
        "and nothing else of it: {said}"
    );
    let mut client = service.client(Style::Structured);
    assert_eq!(client.ask(READ, 16 * MIB - 4096, 4096, &[]).result, Ok(()));
}
