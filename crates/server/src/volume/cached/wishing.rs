//! Readmore on free blocks: the additional blocks of the coordinator are read at no cost for the drive, or
//! not at all.
//!
//! ```text
//!   level --Want, Unwant--> the engine's standing task --in a gap, in idle time--> bytes
//!     ^                                                                              |
//!     '--offer: still wished, and nothing has changed meanwhile? a frame, a page ----'
//! ```
//!
//! Background reads are not ordered with changes of the volume. So blocks that are being changed are not
//! wanted. Blocks of a read are discarded if a change has overlapped them during the read. The other blocks
//! are what the volume has and will have: [`super`].
//!
//! ```text
//!   a read at the drive     | 8  9  10  11 |
//!   a write of half of 10          ==           overtakes
//!   what may be taken       | 8  9 |  | 11 |
//! ```

use block::Interval;
use block::{CommandId, Extent, Instant};
use cache::level::Wish;

use super::pages::VolumeBytes;
use super::{Cached, PAGE, Readmore, overlap};
use crate::arena::Memory;

/// Blocks of a background read at the drive that no change has overlapped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passing {
    pub(super) read: Read,
    pub(super) blocks: Interval,
}

/// A background read at the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Read {
    id: CommandId,
    /// The first byte on the drive. A command may have background blocks on both sides of a request.
    start: u64,
}

/// A change of the blocks that the engine's standing task wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedChange {
    /// These blocks are wanted, too.
    More(Extent),
    /// These blocks are no longer wanted.
    Less(Extent),
}

impl Cached {
    /// Whether the coordinator's additional blocks come from free blocks.
    pub fn wishes(&self) -> bool {
        self.setting.readmore == Readmore::Free
    }

    /// The next change for the engine's standing task.
    pub fn next_wish(&mut self) -> Option<WantedChange> {
        loop {
            match self.level.next_wish()? {
                // It is taken back behind this, which nobody minds who was not told.
                Wish::Want(blocks) if self.is_unsettled(blocks) => self.level.unwish(blocks),
                Wish::Want(blocks) => return Some(WantedChange::More(self.extent_of(blocks))),
                Wish::Unwant(blocks) => return Some(WantedChange::Less(self.extent_of(blocks))),
            }
        }
    }

    /// A background read of `length` bytes from byte `start` of the drive on is dispatched.
    pub fn passes(&mut self, id: CommandId, start: u64, length: u64) {
        let blocks = self.whole_blocks(start, length);
        if blocks.is_empty() {
            return;
        }
        let read = Read { id, start };
        self.passing.push(Passing { read, blocks });
        for change in &self.changes {
            cut_out(&mut self.passing, change.blocks());
        }
    }

    /// A background read has ended, with these bytes or with none. Joined pieces and wanted blocks get its
    /// bytes.
    pub fn passed(&mut self, now: Instant, id: CommandId, start: u64, memory: Option<Memory>) {
        let read = Read { id, start };
        self.leave_read(now, read, memory);
        let is_of_it = |passing: &Passing| passing.read == read;
        while let Some(place) = self.passing.iter().position(is_of_it) {
            let Passing { blocks, .. } = self.passing.remove(place);
            if let Some(memory) = memory {
                self.offer(blocks, self.part_of(read, memory, blocks));
            }
        }
    }

    /// The memory of these blocks in a read's bytes.
    pub(super) fn part_of(&self, read: Read, memory: Memory, blocks: Interval) -> Memory {
        let before = (self.site.offset + blocks.first * PAGE - read.start) as usize;
        memory.part(before, (blocks.len() * PAGE) as usize)
    }

    /// Offers blocks of a read to the level.
    fn offer(&mut self, blocks: Interval, memory: Memory) {
        let came = VolumeBytes::page(blocks.first, memory);
        for block in blocks.blocks() {
            if self.level.wished() == 0 {
                return;
            }
            if let Some(frame) = self.level.offer(block) {
                self.take_departures();
                let place = self.pages.give(frame);
                came.copy_to(&VolumeBytes::page(block, self.pages.memory(place)));
            }
        }
    }

    /// These blocks change: reads of them in flight lose them.
    pub(super) fn overtake(&mut self, blocks: Interval) {
        cut_out(&mut self.passing, blocks);
        self.leave_overtaken(blocks);
        self.level.unwish(blocks);
    }

    /// The blocks of the volume that lie entirely in these bytes of the drive. Empty if the cache wants no
    /// free blocks.
    fn whole_blocks(&self, start: u64, length: u64) -> Interval {
        let site = &self.site;
        let end = (start + length).min(site.offset + site.length);
        let start = start.max(site.offset);
        if !self.wishes() || end <= start {
            return Interval::EMPTY;
        }
        let (start, end) = (start - site.offset, end - site.offset);
        let first = start.div_ceil(PAGE);
        Interval::of(first, (end / PAGE).saturating_sub(first))
    }

    /// Whether the volume does not have its latest bytes of these blocks yet.
    fn is_unsettled(&self, blocks: Interval) -> bool {
        let unwritten = self.unwritten.as_ref();
        let is_unwritten = unwritten.is_some_and(|unwritten| unwritten.has_any(blocks));
        let mut changes = self.changes.iter();
        is_unwritten || changes.any(|change| overlap(change.blocks(), blocks))
    }
}

/// Removes blocks from the reads in flight.
fn cut_out(passing: &mut Vec<Passing>, blocks: Interval) {
    for place in (0..passing.len()).rev() {
        let one = passing[place];
        if !overlap(one.blocks, blocks) {
            continue;
        }
        // What comes in its place was looked at, or is what is left.
        passing.swap_remove(place);
        if one.blocks.first < blocks.first {
            let blocks = Interval::new(one.blocks.first, blocks.first - 1);
            passing.push(Passing { blocks, ..one });
        }
        if blocks.last < one.blocks.last {
            let blocks = Interval::new(blocks.last + 1, one.blocks.last);
            passing.push(Passing { blocks, ..one });
        }
    }
}
