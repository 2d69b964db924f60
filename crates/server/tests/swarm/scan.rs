//! A background task that reads all blocks, and the check of what is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;

use server::event_loop::EventLoop;
use server::event_loop::mailbox::Mailbox;
use server::tasks::Portion;

use crate::history::History;
use crate::model::{Stamp, stamp_of};
use crate::plan::Setting;
use crate::run::BLOCK;
use crate::whole::task;

/// A task and its sink.
pub struct Scan {
    number: u64,
    /// The first byte of the volume on its drive.
    origin: u64,
    received: Receiver<Portion>,
    outstanding: Arc<AtomicUsize>,
    /// What each block may have, or had since the begin.
    pub possible: Vec<Vec<Stamp>>,
    cuts: usize,
}

impl Scan {
    /// Begins a task, which the service may refuse because there are many.
    pub fn begin(number: u64, setting: &Setting, history: &History, mailbox: &Mailbox) -> Scan {
        let (origin, sector) = (setting.origin(), u64::from(setting.sector));
        let sectors = (origin / sector, setting.blocks * BLOCK / sector);
        let (task, (received, outstanding)) = task(number, sectors);
        let begun = mailbox.call(|event_loop| {
            if let Err(refused) = event_loop.tasks().begin(task) {
                assert!(refused.contains("tasks are under way"), "{refused}");
            }
        });
        begun.expect("it runs");
        Scan {
            number,
            origin,
            received,
            outstanding,
            possible: history.possible(0, setting.blocks),
            cuts: history.cuts(),
        }
    }

    /// Takes and checks what was read. The answer is how many blocks.
    pub fn take(&mut self, history: &History, mailbox: &Mailbox) -> u64 {
        let mut taken = 0;
        while let Ok(portion) = self.received.try_recv() {
            self.outstanding.fetch_sub(1, Ordering::AcqRel);
            let first = (portion.offset - self.origin) / BLOCK;
            taken += portion.bytes.len() as u64 / BLOCK;
            if self.cuts == history.cuts() {
                let possible = &self.possible[first as usize..];
                let _ = check(first, &portion.bytes, possible);
            }
        }
        if taken > 0 {
            let number = self.number;
            let call = move |event_loop: &mut EventLoop| event_loop.tasks().caught_up(number);
            // After the end of the loop nothing waits for it.
            let _ = mailbox.call(call);
        }
        taken
    }
}

/// Every block has one of the values that it may have. The answer is which.
pub fn check(first: u64, bytes: &[u8], possible: &[Vec<Stamp>]) -> Vec<Stamp> {
    let blocks = bytes.chunks_exact(BLOCK as usize);
    let each = (first..).zip(blocks).zip(possible);
    let found = each.map(|((block, bytes), possible)| {
        let found = stamp_of(block, bytes);
        let allowed = found.filter(|stamp| possible.contains(stamp));
        allowed
            .unwrap_or_else(|| panic!("block {block} has {found:?}, expected one of {possible:?}"))
    });
    found.collect()
}
