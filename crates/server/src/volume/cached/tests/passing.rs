//! Reads in the background: they are ordered with nothing.

use block::{CommandId, Extent};

use super::{OFFSET, SECTOR, World};
use crate::arena::Buffer;
use crate::volume::cached::pages::VolumeBytes;
use crate::volume::cached::{BackgroundReadId, BackgroundReadKind, WantedChange};

/// A read in the background.
pub(super) struct Passing {
    id: CommandId,
    bytes: VolumeBytes,
    buffer: Buffer,
    is_done: bool,
}

impl World {
    pub(super) fn pass(&mut self, kind: BackgroundReadKind, at: u64, count: u64) {
        let buffer = self.arena.allocate((count * SECTOR) as usize);
        let buffer = buffer.expect("memory");
        let id = CommandId(self.next as u64);
        self.next += 1;
        let bytes = VolumeBytes {
            start: at * SECTOR,
            memory: buffer.memory(),
        };
        let read = BackgroundReadId {
            command: id,
            start: OFFSET + bytes.start,
        };
        self.cached
            .background_read_dispatched((read, kind), count * SECTOR);
        self.wanted
            .retain(|sector| !(at..at + count).contains(sector));
        self.passing.push(Passing {
            id,
            bytes,
            buffer,
            is_done: false,
        });
    }

    /// It is done, if it is not; and if it ends: well, or not. Says whether there was one.
    pub(super) fn passed(&mut self, which: usize, ends: Option<bool>) -> bool {
        let place = which % self.passing.len().max(1);
        let Some(passing) = self.passing.get_mut(place) else {
            return false;
        };
        if !passing.is_done {
            let memory = self.volume.memory();
            VolumeBytes { start: 0, memory }.copy_to(&passing.bytes);
            passing.is_done = true;
        }
        if let Some(is_well) = ends {
            let passing = self.passing.remove(place);
            let memory = is_well.then_some(passing.bytes.memory);
            let read = BackgroundReadId {
                command: passing.id,
                start: OFFSET + passing.bytes.start,
            };
            self.cached.background_read_ended(self.now, read, memory);
            self.arena.free(passing.buffer);
        }
        true
    }

    pub(super) fn take_wishes(&mut self) {
        let before = OFFSET / SECTOR;
        let sectors = |extent: Extent| extent.start().0 - before..extent.end().0 - before;
        while let Some(wanted) = self.cached.poll_wanted() {
            match wanted {
                WantedChange::More(extent) => self.wanted.extend(sectors(extent)),
                WantedChange::Less(extent) => {
                    self.wanted
                        .retain(|sector| !sectors(extent).contains(sector));
                }
            }
        }
    }
}
