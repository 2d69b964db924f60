//! Background reads of a volume with a cache.

use std::sync::atomic::Ordering;

use block::Durability;
use server::cache_setting::PAGE;

use super::posted::{Asked, alone, writing_back};
use crate::random::BLOCKS;
use crate::station::{BLOCK, Served};
use crate::whole::{Sink, task};

/// Begins to read the first bytes in the background; what is read, and how much of it was not dealt with.
pub fn scan(served: &Served, length: u64) -> Sink {
    let (scan, sink) = task(1, (0, length / BLOCK));
    let begun = served.ask(move |event_loop| event_loop.tasks().begin(scan));
    begun.expect("there are free blocks");
    sink
}

/// The drive has not what was acknowledged: it is written when it is a second old, and the scan takes
/// some revolutions.
#[test]
fn a_scan_has_what_was_acknowledged_and_is_not_written() {
    let served = Served::swept(writing_back(64), 1.0, BLOCKS * BLOCK);
    let store = Asked::write(Durability::Volatile, (PAGE, PAGE), 7);
    alone(&served, store).expect("it is kept");
    let (received, outstanding) = scan(&served, 4 * PAGE);
    let mut found = vec![1; 4 * PAGE as usize];
    for portion in received {
        let at = portion.offset as usize;
        found[at..at + portion.bytes.len()].copy_from_slice(&portion.bytes);
        outstanding.fetch_sub(1, Ordering::AcqRel);
    }
    let mut expected = vec![0; 4 * PAGE as usize];
    expected[PAGE as usize..2 * PAGE as usize].fill(7);
    assert!(found == expected, "the scan has what is not so any more");
    served.stop();
}
