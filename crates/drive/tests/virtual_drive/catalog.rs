//! The shipped drives keep the promises of the small ones.

use block::{Action, Duration, Extent, Instant, Lba, Sectors};
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
fn every_shipped_drive_reads_ahead_at_the_speed_of_its_medium() {
    for entry in catalog::ALL {
        let profile = entry.profile().expect("a shipped profile");
        let (track, revolution) = (
            profile.geometry.track_of(Lba(0)).expect("a track"),
            profile.spindle.period(),
        );
        let blocks = 20 * u64::from(track.sectors);
        let mut play = Play::new(VirtualDrive::new(std::sync::Arc::new(profile)));
        let size = 64;
        let extents = (0..blocks / size)
            .map(|n| Extent::new(Lba(n * size), Sectors(size)).expect("a valid extent"));
        play.keep(
            1,
            extents.map(|extent| read(extent.start().0, extent.length().0)),
        );
        let took = play.now.since(Instant::ZERO);
        // Twenty tracks, with skew, slips and a bus that is slower on some of the old drives: not
        // a revolution for each of the commands.
        let each = took.as_nanos() / (blocks / size);
        let one = revolution.as_nanos() * size / u64::from(track.sectors);
        assert!(
            each < one + revolution.as_nanos(),
            "{}: {each} ns, {one} at best",
            entry.name
        );
    }
}
