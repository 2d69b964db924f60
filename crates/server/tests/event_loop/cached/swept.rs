//! Background reads of a volume with a cache.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, OnceLock};

use block::{Durability, Extent, Lba, Sectors};
use scheduler::background::DeclaredSet;
use server::cache_setting::PAGE;
use server::tasks::{Portion, ROOM, SinkHandle, TaskRequest};

use super::posted::{Asked, alone, writing_back};
use crate::random::BLOCKS;
use crate::station::{BLOCK, Served};

/// Begins to read the first bytes in the background; what is read, and how much of it was not dealt with.
pub fn scan(served: &Served, length: u64) -> (Receiver<Portion>, Arc<AtomicUsize>) {
    let (portions, received) = sync_channel(ROOM);
    let outstanding = Arc::new(AtomicUsize::new(0));
    let whole = Extent::new(Lba(0), Sectors(length / BLOCK)).expect("blocks");
    let scan = TaskRequest {
        number: 1,
        name: "a test".to_owned(),
        set: DeclaredSet::all(vec![whole]).expect("a piece"),
        priority: 0,
        deadline: None,
        left: None,
        sink: SinkHandle {
            portions,
            outstanding: Arc::clone(&outstanding),
            is_cut: Arc::default(),
            is_enough: Arc::default(),
            outcome: Arc::new(OnceLock::new()),
        },
    };
    let begun = served.ask(move |event_loop| event_loop.tasks().begin(scan));
    begun.expect("there are free blocks");
    (received, outstanding)
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
