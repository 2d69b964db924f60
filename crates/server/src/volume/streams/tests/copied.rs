//! The books about copies of recordings.

use block::{Extent, Lba, Owner, Sectors};

use super::super::copies::Copies;
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
