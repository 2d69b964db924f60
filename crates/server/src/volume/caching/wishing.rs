//! What caches wish for, on its way to the engine's gaps, and what comes of it.

use block::{CommandId, Lba};
use scheduler::background::TaskId;

use super::Caches;
use crate::arena::Memory;
use crate::disk::Disk;
use crate::status::{Cache, Standing};
use crate::volume::Volumes;
use crate::volume::cached::Wanted;

/// Wishes come before scans of the same priority: they are few, and of use for a short time. A scan without
/// another priority has this one.
const PRIORITY: u8 = 0;

impl Caches {
    /// Tells the engine what the caches wish for, and no longer; whether anything has changed.
    pub(super) fn tell_wishes(&mut self, disk: &mut Disk) -> bool {
        let mut is_any = false;
        for number in 0..self.all.len() {
            while let Some(wanted) = self.all[number].next_wish() {
                is_any = true;
                let Some(task) = self.standing_task(disk) else {
                    continue;
                };
                // A task that was left at the end of the service wants nothing, and a volume is on its drive.
                let _ = match wanted {
                    Wanted::More(extent) => disk.engine.want(disk.now, task, extent),
                    Wanted::Less(extent) => disk.engine.unwant(disk.now, task, extent),
                };
            }
        }
        is_any
    }

    /// The task of all caches of the drive, begun with the first wish.
    fn standing_task(&mut self, disk: &mut Disk) -> Option<TaskId> {
        if self.standing.is_none() && disk.engine.background().is_on() {
            let task = disk.engine.begin_standing_task(disk.now, PRIORITY);
            self.standing = task.ok();
        }
        self.standing
    }

    /// How that task stands, once it was begun.
    pub(crate) fn standing(&self, disk: &Disk) -> Vec<Standing> {
        let progress = self
            .standing
            .and_then(|task| disk.engine.background().task(task));
        let Some(progress) = progress else {
            return Vec::new();
        };
        let block = disk.block();
        let told = self.listed();
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

    /// A background read of so many bytes is given to the drive, from this byte of it on.
    pub(crate) fn note_passing(&mut self, id: CommandId, start: u64, length: usize) {
        for cached in &mut self.all {
            cached.passes(id, start, length as u64);
        }
    }
}

impl Volumes {
    /// A background read has ended, with these bytes or without any.
    pub(crate) fn note_passed(
        &mut self,
        disk: &mut Disk,
        id: CommandId,
        start: Lba,
        memory: Option<Memory>,
    ) {
        let start = start.0 * disk.block();
        for number in 0..self.caches.all.len() {
            self.caches.all[number].passed(disk.now, id, start, memory);
            self.take_cache_answers(disk, number);
        }
    }
}
