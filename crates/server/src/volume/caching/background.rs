//! Background reads that caches want: requests to the engine's standing task, and their bytes.

use block::{CommandId, Lba};
use scheduler::background::TaskId;

use super::Caches;
use crate::arena::Memory;
use crate::disk::Disk;
use crate::status::{Cache, Standing};
use crate::volume::cached::{BackgroundReadId, BackgroundReadKind, WantedChange};

/// The priority of the standing task, and the default of scans. Among equals the standing task comes first:
/// its blocks are few, and useful for a short time.
const PRIORITY: u8 = 0;

impl Caches {
    /// Updates the engine's standing task with what the caches want. The answer is whether it has changed.
    pub(in crate::volume) fn submit_wanted(&mut self, disk: &mut Disk) -> bool {
        let mut is_any = false;
        for number in 0..self.all.len() {
            while let Some(wanted) = self.all[number].poll_wanted() {
                is_any = true;
                let Some(task) = self.standing_task(disk) else {
                    continue;
                };
                // A task that was left at the end of the service wants nothing, and a volume is on its drive.
                let _ = match wanted {
                    WantedChange::More(extent) => disk.engine.want(disk.now, task, extent),
                    WantedChange::Less(extent) => disk.engine.unwant(disk.now, task, extent),
                };
            }
        }
        is_any
    }

    /// The standing task of all caches of the drive. It begins with the first wanted block.
    fn standing_task(&mut self, disk: &mut Disk) -> Option<TaskId> {
        if self.standing.is_none() && disk.engine.background().is_on() {
            let task = disk.engine.begin_standing_task(disk.now, PRIORITY);
            self.standing = task.ok();
        }
        self.standing
    }

    /// The progress of the standing task, once it has begun.
    pub(crate) fn standing(&self, disk: &Disk) -> Vec<Standing> {
        let progress = self.standing.and_then(|task| disk.engine.task(task));
        let Some(progress) = progress else {
            return Vec::new();
        };
        let block = disk.block();
        let caches = self.status();
        let sum = |of: fn(&Cache) -> u64| caches.iter().map(of).sum();
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

    /// A background read of `length` bytes from byte `start` of the drive on is dispatched.
    pub(crate) fn background_read_dispatched(
        &mut self,
        (command, kind): (CommandId, BackgroundReadKind),
        start: u64,
        length: usize,
    ) {
        let read = BackgroundReadId { command, start };
        for cached in &mut self.all {
            cached.background_read_dispatched((read, kind), length as u64);
        }
    }

    /// A background read has ended for a cache, with these bytes or with none.
    pub(in crate::volume) fn background_read_ended(
        &mut self,
        disk: &Disk,
        number: usize,
        (command, start): (CommandId, Lba),
        memory: Option<Memory>,
    ) {
        let start = start.0 * disk.block();
        let read = BackgroundReadId { command, start };
        self.all[number].background_read_ended(disk.now, read, memory);
    }
}
