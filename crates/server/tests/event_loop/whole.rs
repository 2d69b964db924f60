//! A background task that reads blocks of a drive in a row, and its sink.

use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, OnceLock};

use block::{Extent, Lba, Sectors};
use scheduler::background::DeclaredSet;
use server::tasks::{Portion, ROOM, SinkHandle, TaskRequest};

/// What a task sends, and how much of it was not dealt with.
pub type Sink = (Receiver<Portion>, Arc<AtomicUsize>);

/// A task with this number over so many blocks from the first one on.
pub fn task(number: u64, (first, blocks): (u64, u64)) -> (TaskRequest, Sink) {
    let (portions, received) = sync_channel(ROOM);
    let outstanding = Arc::new(AtomicUsize::new(0));
    let whole = Extent::new(Lba(first), Sectors(blocks)).expect("blocks");
    let task = TaskRequest {
        number,
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
    (task, (received, outstanding))
}
