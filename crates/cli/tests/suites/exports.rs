//! What `nbdinfo` says of a service with several exports.

use serde_json::Value;

use super::served::{SIZE, has};
use super::service::{DOORS, Service, emulated, file};
use super::wire::{HELLO, Wire};

/// Two volumes, one of which is read-only, and one that is so for some.
const VOLUMES: &str = r#"
[[drive.volume]]
name = "db"
offset = 0
size = "16 MiB"
[[drive.volume]]
name = "archive"
offset = "16 MiB"
read_only = true
[[drive.export]]
name = "db"
volume = "db"
class = "foreground"
description = "the database"
[[drive.export]]
name = "db-bulk"
volume = "db"
class = "best-effort-3"
connections = 1
[[drive.export]]
name = "db-look"
volume = "db"
class = "background"
read_only = true
[[drive.export]]
name = "archive"
volume = "archive"
class = "background"
"#;

fn start() -> Service {
    Service::start(&format!("{}{DOORS}", emulated(VOLUMES)))
}

/// Whether the export can.
fn can(service: &Service, export: &str, what: &str) -> bool {
    let words = format!("nbdinfo --can {what} {}", service.uri(export));
    let output = service.output(&words);
    match output.status.code() {
        Some(0) => true,
        Some(2) => false,
        _ => panic!("{words}: {output:?}"),
    }
}

#[test]
fn each_export_can_do_what_its_configuration_says() {
    if !has("nbdinfo") {
        return;
    }
    let service = start();
    for export in ["db", "db-bulk", "db-look", "archive"] {
        let is_writable = ["db", "db-bulk"].contains(&export);
        for what in ["write", "trim", "zero", "fast-zero"] {
            assert_eq!(can(&service, export, what), is_writable, "{export} {what}");
        }
        for what in ["cache", "df", "flush", "fua", "read", "structured-reply"] {
            assert!(can(&service, export, what), "{export} {what}");
        }
        let is_shared = export != "db-bulk";
        assert_eq!(can(&service, export, "multi-conn"), is_shared, "{export}");
        let read_only = format!("nbdinfo --is read-only {}", service.uri(export));
        assert_eq!(service.output(&read_only).status.success(), !is_writable);
        let rotational = format!("nbdinfo --is rotational {}", service.uri(export));
        service.prints(&rotational);
    }
    service.stop();
}

#[test]
fn the_default_export_is_the_first_and_all_are_listed() {
    if !has("nbdinfo") {
        return;
    }
    let service = start();
    let size = |export: &str| service.prints(&format!("nbdinfo --size {}", service.uri(export)));
    assert_eq!(size(""), format!("{}\n", 16 << 20));
    assert_eq!(size("db"), size("db-look"));
    assert_eq!(size("archive"), format!("{}\n", SIZE - (16 << 20)));
    let listed = service.prints(&format!("nbdinfo --list --json {}", service.uri("")));
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let exports = listed["exports"].as_array().expect("exports");
    let names: Vec<&str> = exports
        .iter()
        .filter_map(|export| export["export-name"].as_str())
        .collect();
    assert_eq!(names, ["db", "db-bulk", "db-look", "archive"]);
    assert_eq!(exports[0]["description"], "the database");
    let unknown = format!("nbdinfo --size {}", service.uri("nothing"));
    assert_eq!(service.output(&unknown).status.code(), Some(1));
    service.stop();
}

#[test]
fn exports_of_a_volume_have_the_same_bytes_and_read_only_ones_are_not_written() {
    if !has("qemu-io") {
        return;
    }
    let service = start();
    let io = |export: &str, command: &str| {
        let uri = service.uri(export);
        let mut program = std::process::Command::new("qemu-io");
        let read_only: &[&str] = match export {
            "db-look" | "archive" => &["-r"],
            _ => &[],
        };
        let program = program.args(["-f", "raw"]).args(read_only);
        let output = program
            .args(["-c", command, &uri])
            .output()
            .expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8(said).expect("text")
    };
    assert!(io("db-bulk", "write -P 7 1M 64k").contains("wrote 65536"));
    for export in ["db", "db-look"] {
        let said = io(export, "read -P 7 1M 64k");
        assert!(
            said.contains("read 65536") && !said.contains("ailed"),
            "{said}"
        );
    }
    let said = io("archive", "read -P 0 0 64k");
    assert!(
        said.contains("read 65536") && !said.contains("ailed"),
        "{said}"
    );
    service.stop();
}

#[test]
fn as_many_clients_are_served_as_the_limit_says_on_all_drives_together() {
    let second = file(
        SIZE as u64,
        "[[drive.volume]]\nname = \"all\"\noffset = 0\n",
    ) + "[[drive.export]]\nname = \"other\"\nvolume = \"all\"\nclass = \"foreground\"\n";
    let first = file(SIZE as u64, super::service::WHOLE)
        .replace("\"file\"\npolicy", "\"first\"\npolicy")
        .replace("\"image\"", "\"first\"");
    let limits = "[limits]\nconnections = 3\n";
    let service = Service::start(&format!("{first}{second}{DOORS}{limits}"));
    let socket = service.path("nbd.sock");
    let other = [&HELLO[..HELLO.len() - 1], b"\x05other"].concat();
    let mut all = Vec::new();
    for export in [HELLO, &other, HELLO] {
        let mut client = Wire::connect(&socket);
        client.say(export);
        client.welcome();
        all.push(client);
    }
    for export in [HELLO, &other] {
        let mut client = Wire::connect(&socket);
        client.say(export);
        assert!(client.is_hung_up());
    }
    assert!(
        service
            .log()
            .contains("as many are served as connections in [limits] allows")
    );
    for client in &mut all {
        client.write(0, &[7; 512]);
    }
    // When one has left, and the service has seen it, there is a seat.
    drop(all.pop());
    let served = (0..1000).any(|_| {
        let mut client = Wire::connect(&socket);
        client.say(HELLO);
        !client.is_hung_up_after_greeting()
    });
    assert!(served, "a seat is free");
    drop(all);
    service.stop();
}
