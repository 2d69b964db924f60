//! The books about copies of recordings.

use block::{Extent, Lba, Owner, Sectors};

use super::super::copies::Copies;
use super::super::meeting::{Meeting, Serving};
use super::*;
use crate::volume::operation::Operation;

fn blocks(first: u64, count: u64) -> Extent {
    Extent::new(Lba(first), Sectors(count)).expect("blocks")
}

fn copy(block: u64, count: u64) -> Operation {
    Operation {
        export: 0,
        ask: WRITE,
        offset: block * BLOCK,
        length: count * BLOCK,
        owner: Owner::NOBODY,
        class: None,
    }
}

#[test]
fn copies_are_pending_from_the_queue_to_their_end() {
    let mut by_hand = by_hand();
    let (volumes, disk) = by_hand.parts();
    let operations = &mut volumes.operations;
    let mut copies = Copies::default();
    assert!(copies.is_empty());
    copies.queue_one(copy(0, 2));
    copies.queue_one(copy(8, 2));
    let first = OFFSET / BLOCK;
    let is_queued =
        |copies: &Copies, exports, at, count| copies.is_queued(exports, blocks(first + at, count));
    for (at, count, expected) in [
        (0, 1, true),
        (1, 4, true),
        (2, 6, false),
        (9, 1, true),
        (10, 1, false),
    ] {
        assert_eq!(
            is_queued(&copies, &operations.exports, at, count),
            expected,
            "{at}+{count}"
        );
    }
    let (_, one, _) = copies
        .next(disk, &operations.exports)
        .expect("there is room");
    assert_eq!((one.offset, one.length), (0, 2 * BLOCK), "the oldest first");
    assert!(!is_queued(&copies, &operations.exports, 0, 2) && !copies.is_empty());
    copies
        .next(disk, &operations.exports)
        .expect("there is room");
    assert!(copies.next(disk, &operations.exports).is_none());
    assert_eq!(copies.ended(operations, None, Ok(())), None);
    assert!(!copies.is_empty(), "one is in flight");
    assert_eq!(copies.ended(operations, None, Ok(())), None);
    assert!(copies.is_empty());
}

/// Copies for a read are made once, until anything of its blocks changes.
#[test]
fn copies_for_a_read_are_good_until_its_blocks_change() {
    let mut by_hand = by_hand();
    let (volumes, disk) = by_hand.parts();
    let operations = &mut volumes.operations;
    let mut copies = Copies::default();
    let (one, other) = (blocks(0, 8), blocks(8, 8));
    copies.note_before(one);
    copies.note_before(other);
    copies.outdate(blocks(15, 9));
    assert!(copies.is_before(one) && !copies.is_before(other) && !copies.is_before(blocks(0, 4)));
    copies.outdate_all();
    assert!(!copies.is_before(one));
    copies.note_before(one);
    for block in [0, 1] {
        copies.queue_one(copy(block, 1));
        copies
            .next(disk, &operations.exports)
            .expect("there is room");
    }
    copies.ended(operations, None, Ok(()));
    assert!(copies.is_before(one));
    copies.ended(operations, None, Err(block::operation::OperationError::Io));
    assert!(!copies.is_before(one), "the drive lacks it");
    // It remembers the last ones, however many there are.
    for number in 0..1000 {
        copies.note_before(blocks(16 * number, 8));
        assert!(copies.is_before(blocks(16 * number, 8)), "{number}");
    }
}

/// The recording could write newer bytes before the engine has the copy, which would overwrite them.
#[test]
fn a_recorded_write_waits_for_a_queued_copy_of_its_blocks() {
    let mut by_hand = by_hand();
    let record = Terms {
        mode: block::StreamMode::Record,
        ..terms(32)
    };
    let _events = granted(&mut by_hand, 1, record, file(0, 8 * PAGE));
    let (volumes, disk) = by_hand.parts();
    let (streams, operations) = (&mut volumes.streams, &volumes.operations);
    let page = |number: u64| copy(number * PAGE / BLOCK, PAGE / BLOCK);
    streams.copies.queue_one(page(0));
    let taken = |place| Meeting::Served(Serving::Written(0, place));
    assert_eq!(streams.meet(disk, operations, &page(0)), Meeting::Later);
    let beside = streams.meet(disk, operations, &page(1));
    assert_eq!(beside, taken(PAGE / BLOCK), "other blocks");
    // Once the engine has the copy, the engine keeps it before the recording's batches.
    streams
        .next_copy(disk, &operations.exports)
        .expect("there is room");
    assert_eq!(streams.meet(disk, operations, &page(0)), taken(0));
}
