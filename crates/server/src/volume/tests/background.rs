//! Blocks that nobody waits for: those that a cache wishes, beside the requests of clients.

use std::sync::Arc;

use block::operation::Ask;
use block::{Durability, Duration};
use engine::Rules;

use super::random::setting;
use crate::cache_setting::{CacheSetting, PAGE, Readmore, Writes};
use crate::event_loop::by_hand::{BLOCK, ByHand, Setup, export};

const WRITE: Ask = Ask::Write {
    durability: Durability::Volatile,
};

/// The first byte of the volume on the drive.
const OFFSET: u64 = 4 * PAGE;
const BYTES: u64 = 256 * PAGE;

/// A volume with a cache that wishes for the blocks behind a sequence, on a drive that turns.
fn wishing() -> ByHand {
    let entry = drive::catalog::find("dec-rz26").expect("it is shipped");
    let mut setup = Setup::of_blocks((OFFSET + BYTES) / BLOCK);
    setup.exports = vec![export("v0", OFFSET, BYTES)];
    setup.profile = Some(Arc::new(entry.profile().expect("a profile")));
    setup.adapt = |engine| engine.with_background(Rules::default());
    setup.policy = "sptf-sw60";
    setup.commands = 2;
    let mut by_hand = ByHand::new(setup);
    let free = CacheSetting {
        coordinator: "pfc".to_owned(),
        readmore: Readmore::Free,
        ..setting(64, Writes::Through)
    };
    let (volumes, disk) = by_hand.parts();
    let exports = &volumes.operations.exports;
    volumes
        .caches
        .add(disk, exports, &[(free, OFFSET, BYTES)])
        .expect("a cache");
    by_hand
}

fn read(by_hand: &mut ByHand, page: u64, count: u64) -> Vec<u8> {
    let answer = by_hand.post(0, Ask::Read, (page * PAGE, count * PAGE), Vec::new());
    by_hand.run();
    answer.take().expect("it has ended").expect("bytes")
}

/// Pages have their number.
fn fill(by_hand: &ByHand) {
    let mut bytes = by_hand.bytes();
    for (page, bytes) in bytes[OFFSET as usize..]
        .chunks_mut(PAGE as usize)
        .enumerate()
    {
        bytes.fill(page as u8);
    }
}

#[test]
fn wished_blocks_are_read_in_idle_time_and_are_pages_then() {
    let mut by_hand = wishing();
    fill(&by_hand);
    let standing = |by_hand: &mut ByHand| {
        let (volumes, disk) = by_hand.parts();
        volumes.caches.standing(disk)
    };
    assert!(standing(&mut by_hand).is_empty(), "nothing was wished yet");
    for page in [0, 4] {
        let found = read(&mut by_hand, page, 4);
        assert!(
            found
                .chunks(PAGE as usize)
                .zip(page..)
                .all(|(bytes, page)| bytes[9] == page as u8)
        );
    }
    let wished = standing(&mut by_hand).remove(0);
    assert_eq!(
        (wished.name.as_str(), wished.wanted_bytes),
        ("readmore", 4 * PAGE)
    );
    assert_eq!(
        (wished.satisfied_bytes_total, wished.failed_bytes_total),
        (0, 0)
    );
    assert_eq!(wished.dropped_bytes_total, 0);
    assert_eq!(wished.idle_bytes_total + wished.free_bytes_total, 0);
    let until = by_hand.disk().now + Duration::from_secs(5);
    while by_hand.disk().now < until && by_hand.commands().is_empty() {
        by_hand.pass(until);
    }
    assert!(!by_hand.commands().is_empty(), "an idle drive reads them");
    by_hand.run();
    let read_ahead = standing(&mut by_hand).remove(0);
    assert_eq!(read_ahead.wanted_bytes, 0);
    // A page that was read in two parts is none of the cache's.
    let satisfied = by_hand.volumes().caches.status()[0].granted_bytes_total;
    assert_eq!(read_ahead.satisfied_bytes_total, satisfied);
    assert!((PAGE..=4 * PAGE).contains(&satisfied), "{satisfied}");
    let transferred = read_ahead.idle_bytes_total + read_ahead.free_bytes_total;
    assert_eq!(transferred, 4 * PAGE);
    assert_eq!(by_hand.disk().scratch_bytes(), 0);
    let found = read(&mut by_hand, 8, 4);
    assert!(
        found
            .chunks(PAGE as usize)
            .zip(8..)
            .all(|(bytes, page)| bytes[9] == page)
    );
}

/// A write withdraws a wish: the volume has newer bytes soon.
#[test]
fn blocks_that_are_written_are_wished_no_longer() {
    let mut by_hand = wishing();
    fill(&by_hand);
    read(&mut by_hand, 0, 4);
    read(&mut by_hand, 4, 4);
    let answer = by_hand.post(0, WRITE, (9 * PAGE, PAGE), vec![200; PAGE as usize]);
    by_hand.run();
    assert!(matches!(answer.take(), Some(Ok(_))));
    let (volumes, disk) = by_hand.parts();
    let standing = volumes.caches.standing(disk).remove(0);
    assert!(standing.wanted_bytes <= 3 * PAGE);
    assert_eq!(standing.dropped_bytes_total, PAGE);
    let until = by_hand.disk().now + Duration::from_secs(5);
    by_hand.pass(until);
    by_hand.run();
    let found = read(&mut by_hand, 8, 4);
    let pages: Vec<u8> = found.chunks(PAGE as usize).map(|bytes| bytes[9]).collect();
    assert_eq!(pages, [8, 200, 10, 11]);
}
