//! The server behind goes away: what was under way is repeated, what may be lost is said, and nobody
//! waits for ever.

use std::fs::File;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use block::Durability;
use block::operation::{Ask, OperationError};
use nbd::Style;
use nbd::request::Asked;

use super::process::Folder;
use super::proxy::{Evil, Proxy};
use crate::client::Client;
use crate::ledger::{Ledger, Rule};

/// A file that is as long as the load needs.
fn image(folder: &Folder, ledger: &Ledger) -> String {
    let image = folder.path("disk");
    let file = std::fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&image);
    let length = file.and_then(|file| file.set_len(ledger.bytes()));
    length.expect("an image");
    format!(
        "{{ kind = \"file\", path = \"{}\", direct = false }}",
        image.display()
    )
}

/// Goes on with the load until so many have ended: all well, but for flushes.
fn load(client: &mut Client, ledger: &mut Ledger, ends: usize) -> usize {
    let mut flushes = Vec::new();
    let mut failed = 0;
    for _ in 0..ends {
        while client.under_way() < 8 {
            let (rule, unit) = ledger.next();
            ledger.submit(client, rule, unit);
            flushes.push(rule == Rule::Flush);
        }
        let end = client.end().expect("the service answers");
        match end.result {
            Ok(()) => ledger.ended(&end),
            Err(OperationError::Io) => {
                failed += 1;
                ledger.failed(&end);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(flushes.contains(&true));
    while client.under_way() > 0 {
        let end = client.end().expect("the service answers");
        match end.result {
            Ok(()) => ledger.ended(&end),
            Err(_) => {
                failed += 1;
                ledger.failed(&end);
            }
        }
    }
    failed
}

/// All that is under way ends, and well.
fn ended_well(client: &mut Client, ledger: &mut Ledger) {
    while client.under_way() > 0 {
        let end = client.end().expect("the service answers");
        assert_eq!(end.result, Ok(()), "what was under way is repeated");
        ledger.ended(&end);
    }
}

#[test]
fn a_server_that_is_killed_and_comes_back_is_missed_by_nobody() {
    let folder = Folder::new();
    let mut ledger = Ledger::new(21);
    let back_end = image(&folder, &ledger);
    let doors = "[[nbd]]\nunix = \"behind\"\n";
    let mut behind = folder.serve("behind", &back_end, doors);
    let front = folder.over("front", &folder.uri("behind"), "");
    let mut client = Client::connect(&folder.path("front"), Style::Structured);
    let flush = Asked::Of(Ask::Flush);
    for round in 0..8 {
        assert_eq!(load(&mut client, &mut ledger, 40 + round), 0);
        // Answered, and not flushed: the server may take it with it.
        let (_, unit) = ledger.next();
        ledger.submit(&mut client, Rule::Write, unit);
        ended_well(&mut client, &mut ledger);
        // In the middle: some are under way when it goes, and all of them end well.
        for _ in 0..8 {
            let (_, unit) = ledger.next();
            ledger.submit(&mut client, Rule::Durable, unit);
        }
        behind.kill();
        behind = folder.serve("behind", &back_end, doors);
        ended_well(&mut client, &mut ledger);
        assert_eq!(client.ask(flush, 0, 0, &[]).result, Err(OperationError::Io));
        let end = client.ask(flush, 0, 0, &[]);
        assert_eq!(end.result, Ok(()), "that is said once");
    }
    assert_eq!(ledger.verify(&mut client), (vec![], 0));
    let log = front.log();
    assert!(log.contains("begin that server again"), "{log}");
    assert!(log.contains("the next flush fails"), "{log}");
    drop(client);
    front.stop();
}

#[test]
fn connections_that_are_cut_anywhere_lose_nothing() {
    let folder = Folder::new();
    let mut ledger = Ledger::new(22);
    let back_end = image(&folder, &ledger);
    let behind = folder.serve("behind", &back_end, "[[nbd]]\nunix = \"behind\"\n");
    let evil = Evil::Cuts {
        connections: 25,
        bytes: 997,
    };
    let proxy = Proxy::between(&folder.path("proxy"), folder.path("behind"), evil);
    let front = folder.over("front", &folder.uri("proxy"), "");
    let mut client = Client::connect(&folder.path("front"), Style::Structured);
    load(&mut client, &mut ledger, 400);
    // Long reads are received where they belong, and are cut there.
    for _ in 0..40 {
        let end = client.ask(Asked::Of(Ask::Read), 0, 1 << 20, &[]);
        assert_eq!(end.result, Ok(()));
    }
    assert!(proxy.connections() > 25, "{}", proxy.connections());
    assert_eq!(ledger.verify(&mut client), (vec![], 0));
    // A cut connection may have lost answered writes. A flush says so once; else the end of the service would.
    let flush = Asked::Of(Ask::Flush);
    let _ = client.ask(flush, 0, 0, &[]).result;
    assert_eq!(client.ask(flush, 0, 0, &[]).result, Ok(()));
    drop(client);
    front.stop();
    behind.stop();
}

#[test]
fn a_server_that_lies_is_cut_off_and_asked_again() {
    let folder = Folder::new();
    let mut ledger = Ledger::new(23);
    let back_end = image(&folder, &ledger);
    let _behind = folder.serve("behind", &back_end, "[[nbd]]\nunix = \"behind\"\n");
    let evil = Evil::Lies { connections: 3 };
    let proxy = Proxy::between(&folder.path("proxy"), folder.path("behind"), evil);
    let front = folder.over("front", &folder.uri("proxy"), "");
    let mut client = Client::connect(&folder.path("front"), Style::Structured);
    load(&mut client, &mut ledger, 50);
    assert_eq!(ledger.verify(&mut client), (vec![], 0));
    assert_eq!(proxy.connections(), 4, "three lied");
    let log = front.log();
    assert!(
        log.contains("it cannot be trusted: a reply begins with"),
        "{log}"
    );
}

#[test]
fn nobody_waits_longer_than_the_patience() {
    let folder = Folder::new();
    let memory = "{ kind = \"memory\", size = \"64 MiB\" }";
    let doors = "[[nbd]]\nunix = \"behind\"\n";
    let behind = folder.serve("behind", memory, doors);
    let front = folder.over("front", &folder.uri("behind"), ", patience_s = 1");
    let mut client = Client::connect(&folder.path("front"), Style::Structured);
    let write = Asked::Of(Ask::Write {
        durability: Durability::Volatile,
    });
    assert_eq!(client.ask(write, 0, 4096, &[1; 4096]).result, Ok(()));
    behind.kill();
    let read = Asked::Of(Ask::Read);
    for _ in 0..3 {
        assert_eq!(
            client.ask(read, 0, 4096, &[]).result,
            Err(OperationError::Io)
        );
    }
    assert!(front.log().contains("patience_s"), "{}", front.log());
    // It comes back, and with it the service; what was in its memory has gone, which is told.
    let _behind = folder.serve("behind", memory, doors);
    loop {
        let end = client.ask(read, 0, 4096, &[]);
        if end.result == Ok(()) {
            assert!(end.bytes == [0; 4096]);
            break;
        }
    }
    let flush = Asked::Of(Ask::Flush);
    assert_eq!(client.ask(flush, 0, 0, &[]).result, Err(OperationError::Io));
    assert_eq!(client.ask(flush, 0, 0, &[]).result, Ok(()));
    drop(client);
    front.stop();
}

/// A signal waits for operations in flight, here for an hour; a second one does not.
#[test]
fn a_second_signal_ends_a_service_that_waits() {
    let folder = Folder::new();
    let memory = "{ kind = \"memory\", size = \"64 MiB\" }";
    let behind = folder.serve("behind", memory, "[[nbd]]\nunix = \"behind\"\n");
    let front = folder.over("front", &folder.uri("behind"), ", patience_s = 3600");
    let mut client = Client::connect(&folder.path("front"), Style::Structured);
    let read = Asked::Of(Ask::Read);
    assert_eq!(client.ask(read, 0, 4096, &[]).result, Ok(()));
    behind.kill();
    client.submit(read, 0, 4096, &[]);
    front.terminate();
    while !front.log().contains("a signal ends the service") {
        std::thread::yield_now();
    }
    front.terminate();
    let log = folder.path("front.log");
    assert_eq!(front.code(), Some(1));
    let log = std::fs::read_to_string(log).expect("a log");
    assert!(
        log.contains("a second signal: operations had no end"),
        "{log}"
    );
}

/// A start waits for the server behind; a signal does not wait as long.
#[test]
fn a_signal_ends_a_service_that_does_not_come_up() {
    let folder = Folder::new();
    let silent = std::os::unix::net::UnixListener::bind(folder.path("behind")).expect("a socket");
    let uri = folder.uri("behind");
    folder.configure(
        "front",
        &format!("{{ kind = \"nbd\", uri = \"{uri}\" }}"),
        "",
    );
    let mut front = Command::new(cargo_bin("headtime"))
        .args(["serve", "front.toml"])
        .current_dir(folder.path(""))
        .stderr(File::create(folder.path("log")).expect("a log"))
        .spawn()
        .expect("it runs");
    let _connected = silent.accept().expect("it comes");
    let told = Command::new("kill")
        .args(["-TERM", &front.id().to_string()])
        .status();
    assert!(told.expect("kill runs").success());
    let code = front.wait().expect("it ends").code();
    let log = std::fs::read_to_string(folder.path("log")).expect("a log");
    assert_eq!(code, Some(128 + 15), "{log}");
    assert!(log.contains("the start had no end within 2 s"), "{log}");
}

/// Another, shorter export in its place is not taken for it.
#[test]
fn another_export_in_its_place_is_not_taken_for_it() {
    let folder = Folder::new();
    let doors = "[[nbd]]\nunix = \"behind\"\n";
    let behind = folder.serve("behind", "{ kind = \"memory\", size = \"64 MiB\" }", doors);
    let front = folder.over("front", &folder.uri("behind"), ", patience_s = 1");
    let mut client = Client::connect(&folder.path("front"), Style::Structured);
    let read = Asked::Of(Ask::Read);
    assert_eq!(client.ask(read, 0, 4096, &[]).result, Ok(()));
    behind.kill();
    let _behind = folder.serve("behind", "{ kind = \"memory\", size = \"32 MiB\" }", doors);
    assert_eq!(
        client.ask(read, 0, 4096, &[]).result,
        Err(OperationError::Io)
    );
    let log = front.log();
    assert!(log.contains("33554432 bytes, and had 67108864"), "{log}");
}
