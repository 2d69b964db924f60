//! An engine without room: everything waits at its place, and nothing is lost or overtaken.

use block::operation::{Ask, OperationError, Space, ZeroingPace};
use block::{Action, Class, Durability, Extent};

use crate::event_loop::by_hand::{Answer, BLOCK, ByHand, Setup, export};
use crate::volume::operation::Operation;
use crate::volume::operations::ZEROES;

const WRITE: Ask = Ask::Write {
    durability: Durability::Volatile,
};

fn by_hand(requests: usize, blocks: u64) -> ByHand {
    let mut setup = Setup::of_blocks(blocks);
    setup.requests = Some(requests);
    setup.shape.zeroes_fast = false;
    ByHand::new(setup)
}

fn write(by_hand: &mut ByHand, block: u64, value: u8) -> Answer {
    by_hand.post(
        0,
        WRITE,
        (block * BLOCK, BLOCK),
        vec![value; BLOCK as usize],
    )
}

#[test]
fn operations_begin_in_their_order_as_far_as_there_is_room() {
    let mut by_hand = by_hand(2, 64);
    let answers: Vec<Answer> = (0..6)
        .map(|n| write(&mut by_hand, n % 3, n as u8 + 1))
        .collect();
    assert_eq!(by_hand.commands().len(), 2);
    assert_eq!(by_hand.volumes().pending(), 6);
    by_hand.end(0, Ok(()));
    assert_eq!(by_hand.volumes().pending(), 5);
    assert!(by_hand.commands().len() <= 2);
    by_hand.run();
    assert!(
        answers
            .iter()
            .all(|answer| answer.take() == Some(Ok(Vec::new())))
    );
    let found: Vec<u8> = (0..3).map(|block| by_hand.bytes()[block * 512]).collect();
    assert_eq!(found, [4, 5, 6], "the later write of each block");
    assert_eq!(by_hand.volumes().operations.bytes(), 0);
}

/// A flush holds a place in the engine, too: with more flushes than places the others wait, in order.
#[test]
fn flushes_wait_for_room_and_end_in_their_order() {
    let mut by_hand = by_hand(2, 64);
    let first = write(&mut by_hand, 0, 1);
    let flushes: Vec<Answer> = (0..5)
        .map(|_| by_hand.post(0, Ask::Flush, (0, 0), Vec::new()))
        .collect();
    assert!(first.take().is_none() && flushes.iter().all(|flush| flush.take().is_none()));
    let mut ended = Vec::new();
    while !by_hand.commands().is_empty() {
        by_hand.end(0, Ok(()));
        ended.extend((0..5).filter(|&n| flushes[n].take().is_some()));
    }
    assert_eq!(ended, [0, 1, 2, 3, 4]);
    assert_eq!(by_hand.medium()[0], 1);
}

/// Zeroes are written piece by piece. A piece that finds no room waits, and the operation is not answered before
/// the last one.
#[test]
fn pieces_of_zeroes_cover_all_blocks_and_wait_for_room() {
    let blocks = 3 * ZEROES as u64 / BLOCK;
    let mut by_hand = by_hand(2, blocks);
    by_hand.bytes().fill(9);
    let zero = Ask::Zero {
        durability: Durability::Durable,
        space: Space::MayBeFreed,
        pace: ZeroingPace::Any,
    };
    // Two and a half pieces, and a part of a block on both sides.
    let (offset, length) = (700, 5 * ZEROES as u64 / 2);
    let answer = by_hand.post(0, zero, (offset, length), Vec::new());
    let filler: Vec<Answer> = (0..3)
        .map(|n| write(&mut by_hand, blocks - 1 - n, 7))
        .collect();
    let mut longest = 0;
    while !by_hand.commands().is_empty() {
        for action in by_hand.commands() {
            longest = longest.max(action.extent().map_or(0, |extent| extent.length().0));
        }
        assert!(answer.take().is_none());
        let place = by_hand.commands().len() - 1;
        by_hand.end(place, Ok(()));
        if let Some(answered) = answer.take() {
            assert_eq!(answered, Ok(Vec::new()));
            break;
        }
    }
    by_hand.run();
    assert_eq!(
        longest,
        ZEROES as u64 / BLOCK,
        "pieces are as long as the zeroes in memory"
    );
    assert!(
        filler
            .iter()
            .all(|answer| answer.take() == Some(Ok(Vec::new())))
    );
    let end = (offset + length) as usize;
    let bytes = by_hand.medium().to_vec();
    assert!(
        bytes[700..end].iter().all(|&byte| byte == 0),
        "durable at its answer"
    );
    drop(bytes);
    let bytes = by_hand.bytes();
    assert!(
        bytes[..700]
            .iter()
            .chain(&bytes[end..end + 512])
            .all(|&byte| byte == 9)
    );
}

/// The error is the drive's own, and the rest is not written.
#[test]
fn zeroes_end_with_the_first_piece_that_fails() {
    let blocks = 3 * ZEROES as u64 / BLOCK;
    let mut by_hand = by_hand(4, blocks);
    let zero = Ask::Zero {
        durability: Durability::Volatile,
        space: Space::Kept,
        pace: ZeroingPace::Any,
    };
    let answer = by_hand.post(0, zero, (0, 3 * ZEROES as u64), Vec::new());
    by_hand.end(0, Ok(()));
    assert!(answer.take().is_none());
    by_hand.end(0, Err(OperationError::NoSpace));
    assert_eq!(answer.take(), Some(Err(OperationError::NoSpace)));
    assert_eq!(by_hand.commands(), Vec::<Action>::new());
}

#[test]
fn zeroes_that_have_to_be_fast_are_refused_where_they_are_not() {
    let mut by_hand = by_hand(4, 64);
    by_hand.bytes().fill(3);
    let zero = Ask::Zero {
        durability: Durability::Volatile,
        space: Space::Kept,
        pace: ZeroingPace::Fast,
    };
    let answer = by_hand.post(0, zero, (0, 10 * BLOCK), Vec::new());
    assert_eq!(answer.take(), Some(Err(OperationError::Unsupported)));
    assert!(by_hand.bytes().iter().all(|&byte| byte == 3));
}

/// A priority is for the waiting operations of its blocks on its export that have a lower one.
#[test]
fn less_urgent_operations_are_those_of_the_blocks_and_the_export() {
    let mut setup = Setup::of_blocks(64);
    setup.exports.push(export("again", 0, 64 * BLOCK));
    let mut by_hand = ByHand::new(setup);
    for (export, block) in [(0, 0), (0, 8), (0, 16), (1, 8), (0, 24)] {
        by_hand.post(export, Ask::Read, (block * BLOCK + 1, BLOCK), Vec::new());
    }
    by_hand.post(0, Ask::Flush, (0, 0), Vec::new());
    let operations = &by_hand.volumes().operations;
    let starts = |class: Class, most: u64| {
        let overlaps = |extent: Extent| extent.start().0 < most;
        // The operation on block 16 is urgent.
        let class_of = |operation: &Operation| match operation.offset / BLOCK {
            16 => Class::BestEffort(1),
            _ => Class::BestEffort(3),
        };
        let all = operations.less_urgent(0, class, overlaps, class_of);
        let mut starts: Vec<(u64, u64)> = all
            .iter()
            .map(|(_, extent)| (extent.start().0, extent.length().0))
            .collect();
        starts.sort_unstable();
        starts
    };
    assert_eq!(starts(Class::BestEffort(2), 20), [(0, 2), (8, 2)]);
    assert_eq!(starts(Class::BestEffort(0), 20), [(0, 2), (8, 2), (16, 2)]);
    assert_eq!(starts(Class::BestEffort(3), 64), []);
}
