//! The shipped drives keep the promises of the small ones.

use block::{Action, Duration, Switch};
use drive::{VirtualDrive, catalog};

use crate::play::Play;
use crate::small::{read, seek, write};

/// Knuth's multiplicative hashing: any fixed sequence that spreads will do.
fn hash(n: u64) -> u64 {
    n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11
}

/// 2,000 commands: far and near ones, short and long ones, of all kinds.
fn commands(capacity: u64) -> impl Iterator<Item = Action> {
    (0..2_000).map(move |n| {
        let far = hash(n) % capacity;
        let start = match n % 4 {
            0 => far,
            1 => hash(n - 1) % capacity + 8,
            2 => capacity - 1 - hash(n) % 1_000,
            _ => hash(n) % 5_000,
        };
        let start = start.min(capacity - 1);
        let blocks = (1 + hash(n + 7) % if n % 50 == 0 { 2_000 } else { 64 }).min(capacity - start);
        match n % 23 {
            22 => Action::Flush,
            21 => seek(start),
            kind if kind % 3 == 0 => write(start, blocks),
            _ => read(start, blocks),
        }
    })
}

#[test]
fn every_shipped_drive_ends_every_command_once_and_accounts_for_it() {
    for entry in catalog::ALL {
        let profile = entry.profile().expect("a shipped profile");
        let capacity = profile.geometry.sectors().0;
        let drive = VirtualDrive::new(std::sync::Arc::new(profile));
        let depth = drive.truth().queue.depth.max(4);
        let order = drive.truth().queue.order;
        let mut play = Play::new(drive.with_queue(depth, order));
        play.keep(4, commands(capacity));
        assert_eq!(play.done.len(), 2_000, "{}", entry.name);
        let slowest = play.done.iter().map(|done| done.account().service()).max();
        assert!(
            slowest < Some(Duration::from_secs(10)),
            "{}: {slowest:?}",
            entry.name
        );
    }
}

#[test]
fn every_shipped_drive_gains_by_reading_ahead() {
    for entry in catalog::ALL {
        // As published: to those that were fitted to random loads, look-ahead does not matter.
        let mut profile = entry.profile().expect("a shipped profile").published();
        // Without overhead a drive needs no look-ahead: the next block is the next to come.
        profile.overheads.read_miss.read = Duration::from_micros(500);
        let took = |switch| {
            let mut play = Play::new(VirtualDrive::new(std::sync::Arc::new(profile.clone())));
            play.then(Action::SetLookAhead(switch));
            play.keep(1, (0..100).map(|n| read(n * 32, 32)));
            play.now.as_nanos()
        };
        let (with, without) = (took(Switch::On), took(Switch::Off));
        let name = entry.name;
        assert!(
            with < without / 10 * 9,
            "{name}: {with} ns with look-ahead, {without} without"
        );
    }
}
