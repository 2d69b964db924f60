//! Recordings that come while somebody else changes their blocks in steps that the engine does not
//! order: parts of blocks, which are read first, and zeroes, which are written piece by piece.

use std::sync::Arc;

use block::operation::OperationError;
use block::{Durability, Extent, Lba, Sectors};
use headtime_client::wire::{Attach, FilePiece, Places, StreamMode, Terms};

use crate::cached::posted::{Asked, alone, begun};
use crate::gate::{COARSE, Closed};
use crate::station::{BLOCK, Served};
use crate::streams::ask_for;

/// Bytes of a block of the drive, and of a page of streams.
const PAGE: u64 = COARSE * BLOCK;

const VOLATILE: Durability = Durability::Volatile;

fn gated() -> (Served, Closed) {
    let closed = Closed::default();
    (Served::gated(Arc::clone(&closed)), closed)
}

fn close(closed: &Closed, block: u64) {
    let block = Extent::new(Lba(block), Sectors(1)).expect("a block");
    *closed.lock().expect("a gate") = Some(block);
}

/// Somebody begins to change these bytes, and gets no further than a block of the drive; a recording
/// comes and writes its first page, and the first has its way. Both are told that all went well. What is
/// in that page while the recording is there, and when it has gone.
fn meet(changes: &Asked, stands_at: u64, recorded: u64) -> [Vec<u8>; 2] {
    let (served, closed) = gated();
    let old = Asked::write(VOLATILE, (recorded, PAGE), 1);
    alone(&served, old).expect("it is written");
    close(&closed, stands_at);
    let changed = begun(&served, changes);
    assert!(changed.try_recv().is_err(), "the drive keeps it back");
    let attach = Attach {
        terms: Terms {
            mode: StreamMode::Record,
            rate: 400_000,
            buffer: PAGE,
            memory: Some(16 * PAGE),
            ..Terms::default()
        },
        places: Places {
            length: 4 * PAGE,
            pieces: vec![FilePiece(0, recorded, 4 * PAGE)],
        },
    };
    ask_for(&served, 1, attach).expect("granted");
    let written = begun(&served, &Asked::write(VOLATILE, (recorded, PAGE), 3));
    let mut wrote: Vec<Result<Vec<u8>, OperationError>> = Vec::new();
    wrote.extend(written.try_recv().ok().map(|answer| answer.1));
    // If it was taken, it is on its way to the drive before the other goes on.
    while !wrote.is_empty() {
        let (waiting, from) = served.ask(|event_loop| {
            let streams = event_loop.streams().list();
            (event_loop.picture().queue.waiting, streams[0].from)
        });
        if waiting > 0 || from >= PAGE {
            break;
        }
        std::thread::yield_now();
    }
    *closed.lock().expect("a gate") = None;
    served.ask(|_| ());
    changed.recv().expect("an answer").1.expect("it is changed");
    wrote.extend(written.iter().map(|answer| answer.1));
    assert_eq!(wrote, [Ok(Vec::new())], "it is recorded, once");
    let beside = alone(&served, Asked::read(recorded, PAGE)).expect("it can be read");
    served.ask(|event_loop| event_loop.streams().close(1));
    while served.ask(|event_loop| !event_loop.streams().list().is_empty()) {
        std::thread::yield_now();
    }
    let after = alone(&served, Asked::read(recorded, PAGE)).expect("it can be read");
    served.stop();
    [beside, after]
}

#[test]
fn what_is_recorded_amid_a_change_of_a_blocks_part_is_not_lost() {
    let page = 10;
    let part = (page * PAGE + BLOCK, BLOCK);
    for changes in [
        Asked::write(VOLATILE, part, 2),
        Asked::zero(VOLATILE, part),
        // The last block of several.
        Asked::write(VOLATILE, (8 * PAGE, 2 * PAGE + BLOCK), 2),
    ] {
        let [beside, after] = meet(&changes, page, page * PAGE);
        assert!(beside == vec![3; PAGE as usize], "it came later");
        assert!(after == beside, "what was acknowledged and read is lost");
    }
}

#[test]
fn what_is_recorded_amid_zeroes_is_not_lost() {
    // The drive stands at the first piece of them.
    let zeroes = Asked::zero(VOLATILE, (0, 3 << 20));
    let [beside, after] = meet(&zeroes, 0, 2 << 20);
    assert!(beside == vec![3; PAGE as usize], "it came later");
    assert!(after == beside, "what was acknowledged and read is lost");
}
