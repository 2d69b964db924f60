//! What caches wish for, on its way to the engine's gaps, and what comes of it.

use block::{CommandId, Lba};
use scheduler::background::TaskId;

use crate::arena::Memory;
use crate::cached::Wanted;
use crate::event_loop::EventLoop;
use crate::status::{Cache, Standing};

/// Wishes come before scans of the same priority: they are few, and of use for a short time. A scan without
/// another priority has this one.
const PRIORITY: u8 = 0;

impl EventLoop {
    /// Tells the engine what the caches wish for, and no longer; whether anything has changed.
    pub(super) fn tell_wishes(&mut self) -> bool {
        let mut is_any = false;
        for number in 0..self.caches.all.len() {
            while let Some(wanted) = self.caches.all[number].next_wish() {
                is_any = true;
                let Some(task) = self.standing_task() else {
                    continue;
                };
                // A task that was left at the end of the service wants nothing, and a volume is on its drive.
                let _ = match wanted {
                    Wanted::More(extent) => self.engine.want(self.now, task, extent),
                    Wanted::Less(extent) => self.engine.unwant(self.now, task, extent),
                };
            }
        }
        is_any
    }

    /// The task of all caches of the drive, begun with the first wish.
    fn standing_task(&mut self) -> Option<TaskId> {
        if self.caches.standing.is_none() && self.engine.background().is_on() {
            let task = self.engine.begin_standing_task(self.now, PRIORITY);
            self.caches.standing = task.ok();
        }
        self.caches.standing
    }

    /// How that task stands, once it was begun.
    pub(in crate::event_loop) fn standing(&self) -> Vec<Standing> {
        let progress = self
            .caches
            .standing
            .and_then(|task| self.engine.background().task(task));
        let Some(progress) = progress else {
            return Vec::new();
        };
        let block = u64::from(self.shape.block_bytes);
        let told = self.caches.told();
        let sum = |of: fn(&Cache) -> u64| told.iter().map(of).sum();
        vec![Standing {
            name: "readmore".to_owned(),
            priority: PRIORITY,
            wanted_bytes: progress.left.0 * block,
            free_bytes_total: progress.account.free.blocks.0 * block,
            idle_bytes_total: progress.account.idle.blocks.0 * block,
            failed_bytes_total: progress.failed.0 * block,
            satisfied_bytes_total: sum(|cache| cache.granted_bytes_total),
            dropped_bytes_total: sum(|cache| {
                cache.withdrawn_bytes_total + cache.expired_bytes_total
            }),
        }]
    }

    /// A background read of so many bytes is given to the drive.
    pub(in crate::event_loop) fn note_passing(&mut self, id: CommandId, start: Lba, length: usize) {
        let start = start.0 * u64::from(self.shape.block_bytes);
        for cached in &mut self.caches.all {
            cached.passes(id, start, length as u64);
        }
    }

    /// It has ended with these bytes, or without any.
    pub(in crate::event_loop) fn note_passed(
        &mut self,
        id: CommandId,
        start: Lba,
        memory: Option<Memory>,
    ) {
        let start = start.0 * u64::from(self.shape.block_bytes);
        for number in 0..self.caches.all.len() {
            self.caches.all[number].passed(self.now, id, start, memory);
            self.take_cache_answers(number);
        }
    }
}
