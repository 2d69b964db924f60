//! Operations of front ends on other threads: what is refused, and in which order the others begin.

#![allow(unsafe_code, reason = "lends memory, as front ends do")]

use block::operation::{Ask, OperationError, Space, ZeroingPace};
use block::{Action, Durability};

use crate::arena::{Memory, Region};
use crate::event_loop::by_hand::{BLOCK, ByHand, Setup};
use crate::volume::posted::{Contents, Lent};

const WRITE: Ask = Ask::Write {
    durability: Durability::Volatile,
};
const ZERO: Ask = Ask::Zero {
    durability: Durability::Volatile,
    space: Space::Kept,
    pace: ZeroingPace::Any,
};
const TRIM: Ask = Ask::Trim {
    durability: Durability::Volatile,
};

/// Bytes of the longest read or write, as for `Setup::of_blocks`.
const LONGEST: u64 = 1 << 20;

const BYTES: u64 = 2 * LONGEST;

fn by_hand() -> ByHand {
    ByHand::new(Setup::of_blocks(BYTES / BLOCK))
}

fn lent(memory: Memory) -> Contents {
    // SAFETY: the region outlives the loop of its test.
    Contents::Lent(unsafe { Lent::new(memory) })
}

#[test]
fn an_operation_is_refused_at_once_if_it_cannot_be_done() {
    let mut by_hand = by_hand();
    let zeroes = |length: u64| vec![0; length as usize];
    let invalid = Some(Err(OperationError::Invalid));
    let long = Some(Err(OperationError::TooLong));
    for (ask, offset, length, contents, expected) in [
        (Ask::Read, BYTES - 1, 1, 0, None),
        (Ask::Read, BYTES, 1, 0, invalid.clone()),
        (Ask::Read, BYTES - 1, 2, 0, invalid.clone()),
        (Ask::Read, u64::MAX, 2, 0, invalid.clone()),
        (Ask::Read, 0, LONGEST, 0, None),
        (Ask::Read, 0, LONGEST + 1, 0, long.clone()),
        (Ask::Cache, 0, LONGEST, 0, None),
        (Ask::Cache, 0, LONGEST + 1, 0, long.clone()),
        (WRITE, 0, 100, 100, None),
        (WRITE, 0, 100, 99, invalid.clone()),
        (WRITE, 0, 100, 101, invalid.clone()),
        (WRITE, 0, LONGEST, LONGEST, None),
        (WRITE, 0, LONGEST + 1, LONGEST + 1, long),
        // They need no memory for their bytes.
        (ZERO, 0, BYTES, 0, None),
        (TRIM, 0, BYTES, 0, None),
        (ZERO, 1, BYTES, 0, invalid.clone()),
        (Ask::Flush, 0, 0, 0, None),
    ] {
        let answer = by_hand.post(0, ask, (offset, length), zeroes(contents));
        let found = answer.take();
        match &expected {
            Some(_) => assert_eq!(found, expected, "{ask:?} {offset}+{length}"),
            None => assert!(!matches!(found, Some(Err(_))), "{ask:?} {offset}+{length}"),
        }
        by_hand.run();
        if expected.is_none() && found.is_none() {
            let ended = answer.take().expect("it has ended");
            assert!(ended.is_ok(), "{ask:?} {offset}+{length}");
        }
    }
    let nowhere = by_hand.post(1, Ask::Flush, (0, 0), Vec::new());
    assert_eq!(nowhere.take(), invalid, "no such export");
}

/// The rest of a block would have no memory.
#[test]
fn lent_memory_is_for_whole_blocks_and_has_as_many_bytes_as_the_operation() {
    let mut region = Region::map(4096).expect("memory");
    let all = region.memory();
    let mut by_hand = by_hand();
    let invalid = Some(Err(OperationError::Invalid));
    for (ask, offset, length, given) in [
        (Ask::Read, 1, 512, 512),
        (Ask::Read, 0, 511, 511),
        (WRITE, 256, 512, 512),
        (WRITE, 512, 100, 100),
        (Ask::Read, 0, 512, 1024),
        (WRITE, 0, 1024, 512),
    ] {
        let contents = lent(all.part(0, given));
        let answer = by_hand.post_with(0, ask, (offset, length), contents);
        assert_eq!(answer.take(), invalid, "{ask:?} {offset}+{length}");
    }
    region.bytes_mut()[..1024].fill(7);
    let write = by_hand.post_with(0, WRITE, (512, 1024), lent(all.part(0, 1024)));
    by_hand.run();
    assert_eq!(write.take(), Some(Ok(Vec::new())));
    assert_eq!(
        by_hand.bytes()[511..1537]
            .iter()
            .filter(|&&byte| byte == 7)
            .count(),
        1024
    );
    let read = by_hand.post_with(0, Ask::Read, (1024, 1024), lent(all.part(2048, 1024)));
    by_hand.run();
    assert_eq!(
        read.take(),
        Some(Ok(Vec::new())),
        "the bytes are where it wants them"
    );
    let expected = [[7; 512], [0; 512]].concat();
    assert_eq!(region.bytes()[2048..3072], expected);
}

/// The blocks of a change that waits are passed by no later change of them, and by all other operations.
#[test]
fn a_change_waits_for_the_edges_of_another_and_only_changes_of_its_blocks_wait_behind_it() {
    let mut by_hand = by_hand();
    let block = |number: u64| (number * BLOCK, BLOCK);
    let write = |by_hand: &mut ByHand, place: (u64, u64), value: u8| {
        by_hand.post(0, WRITE, place, vec![value; place.1 as usize])
    };
    let partial = write(&mut by_hand, (100, 10), 1);
    assert!(matches!(by_hand.commands()[..], [Action::Read { .. }]));
    let wide = write(&mut by_hand, (0, 4 * BLOCK), 2);
    let behind = write(&mut by_hand, block(3), 3);
    assert_eq!(by_hand.commands().len(), 1, "both wait");
    assert_eq!(by_hand.volumes().pending(), 3);
    let other = write(&mut by_hand, block(4), 4);
    let read = by_hand.post(0, Ask::Read, block(3), Vec::new());
    assert_eq!(by_hand.commands().len(), 3, "these do not");
    by_hand.run();
    for answer in [partial, wide, behind, other] {
        assert_eq!(answer.take(), Some(Ok(Vec::new())));
    }
    assert!(matches!(read.take(), Some(Ok(_))));
    let blocks: Vec<u8> = (0..6)
        .map(|number| by_hand.bytes()[number * 512 + 200])
        .collect();
    assert_eq!(blocks, [2, 2, 2, 3, 4, 0]);
    assert_eq!(by_hand.volumes().pending(), 0);
}

#[test]
fn a_loop_that_stops_refuses_what_waits_in_the_mailbox_and_what_comes_later() {
    let mut by_hand = by_hand();
    let begun = by_hand.post(0, WRITE, (0, BLOCK), vec![5; BLOCK as usize]);
    by_hand.event_loop.stop();
    let late = by_hand.post(0, Ask::Read, (0, BLOCK), Vec::new());
    assert_eq!(late.take(), Some(Err(OperationError::ShuttingDown)));
    by_hand.run();
    assert_eq!(begun.take(), Some(Ok(Vec::new())), "it had begun");
}
