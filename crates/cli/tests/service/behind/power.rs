//! The power of an emulated drive is cut below one service, and below two: what was flushed is there, and what may be
//! lost is said.
//!
//! ```text
//!   load --> serve [--> serve] --> emulate <-- SIGUSR1, within the load
//! ```

use block::operation::{Ask, OperationError};
use nbd::Style;
use nbd::request::Asked;

use super::process::{Folder, Server};
use crate::client::Client;
use crate::ledger::Ledger;

/// A drive with a volatile write cache, of a speed at which some of it is lost.
const EMULATE: [&str; 9] = [
    "emulate",
    "--drive",
    "seagate-cheetah-9lp",
    "--image",
    "image",
    "--time-scale",
    "0.05",
    "--socket",
    "drive",
];

/// A service of the drive without a cache, and one that writes back.
const PLAIN: &str = "";
const BACK: &str = "{ size = \"8 MiB\", write = \"back\" }";

/// `CUTS=n` for more or fewer.
fn cuts() -> u64 {
    std::env::var("CUTS").map_or(12, |n| n.parse().expect("a number of power cuts"))
}

/// A service over another server.
fn over(folder: &Folder, name: &str, below: &str, cache: &str) -> Server {
    let uri = folder.uri(below);
    match cache.is_empty() {
        true => folder.over(name, &uri, ""),
        false => folder.cached(
            name,
            &format!("{{ kind = \"nbd\", uri = \"{uri}\" }}"),
            cache,
        ),
    }
}

/// Goes on with the load until so many have ended, all well: earlier cuts were told of.
fn load(client: &mut Client, ledger: &mut Ledger, ends: u64) {
    for _ in 0..ends {
        while client.under_way() < 8 {
            let (rule, unit) = ledger.next();
            ledger.submit(client, rule, unit);
        }
        assert_eq!(end(client, ledger), 0, "a request failed");
    }
}

/// Takes the next end. Returns whether the request failed, as a number.
fn end(client: &mut Client, ledger: &mut Ledger) -> u64 {
    let end = client.end().expect("the service answers");
    match end.result {
        Ok(()) => ledger.ended(&end),
        Err(OperationError::Io) => ledger.failed(&end),
        other => panic!("{other:?}"),
    }
    u64::from(end.result.is_err())
}

/// Cuts the power so often, each time within a load.
fn survives_cuts(caches: &[&str], seed: u64) {
    let folder = Folder::new();
    let drive = folder.headtime("drive", &EMULATE, "nbd+unix:");
    let names = ["lower", "upper"];
    let mut services = Vec::new();
    let mut below = "drive";
    for (name, cache) in names.into_iter().zip(caches) {
        services.push(over(&folder, name, below, cache));
        below = name;
    }
    let mut client = Client::connect(&folder.path(below), Style::Structured);
    let mut ledger = Ledger::new(seed);
    let (mut failed, mut told) = (0, 0);
    for round in 0..cuts() {
        load(&mut client, &mut ledger, 20 + round * 7 % 60);
        drive.signal("-USR1");
        while client.under_way() > 0 {
            failed += end(&mut client, &mut ledger);
        }
        // What was answered and not flushed may be lost, which a flush says: once or twice a service.
        let mut tries = 0;
        while client.ask(Asked::Of(Ask::Flush), 0, 0, &[]).result == Err(OperationError::Io) {
            tries += 1;
            assert!(tries <= 2 * caches.len(), "{tries} flushes failed");
        }
        told += tries;
        assert_eq!(ledger.verify(&mut client).0, [""; 0], "round {round}");
    }
    assert!(
        failed + told as u64 > 0,
        "no cut lost anything, so that this tests nothing"
    );
    drop(client);
    while let Some(service) = services.pop() {
        service.stop();
    }
    drive.stop();
}

#[test]
fn a_service_over_a_drive_whose_power_is_cut_loses_nothing_flushed() {
    survives_cuts(&[PLAIN], 51);
}

#[test]
fn a_write_back_cache_over_a_drive_whose_power_is_cut_loses_nothing_flushed() {
    survives_cuts(&[BACK], 52);
}

#[test]
fn two_levels_over_a_drive_whose_power_is_cut_lose_nothing_flushed() {
    survives_cuts(&[PLAIN, PLAIN], 53);
    survives_cuts(&[BACK, BACK], 54);
}
