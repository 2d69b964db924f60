//! Readmore on free blocks: what the coordinator would read more is read where that costs the drive
//! nothing, or not at all.
//!
//! ```text
//!   level --Want, Unwant--> the engine's standing task --in a gap, in idle time--> bytes
//!     ^                                                                              |
//!     '--offer: still wished, and nothing has changed meanwhile? a frame, a page ----'
//! ```
//!
//! Background reads are not ordered with what changes the volume. So two things are kept apart: nothing is
//! wished that is being changed, and no block of a read is taken that something overlapped between the
//! read's beginning and its end. What is then taken is what the volume has and will have: [`super`].
//!
//! ```text
//!   a read at the drive     | 8  9  10  11 |
//!   a write of half of 10          ==           overtakes
//!   what may be taken       | 8  9 |  | 11 |
//! ```

use block::Interval;
use block::{CommandId, Extent, Instant};
use cache::level::Wish;

use super::pages::Bytes;
use super::{Cached, PAGE, Readmore, overlap};
use crate::arena::Memory;

/// Blocks of the volume that a background read at the drive has, and that nothing has overlapped since it began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passing {
    pub(super) read: Read,
    pub(super) blocks: Interval,
}

/// A background read at the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Read {
    id: CommandId,
    /// Its first byte on the drive: a command may have some on both sides of a request.
    start: u64,
}

/// A change of what the engine's standing task wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// These blocks of the drive, too.
    More(Extent),
    /// These no longer.
    Less(Extent),
}

impl Cached {
    /// Whether what the coordinator reads more comes from free blocks.
    pub fn wishes(&self) -> bool {
        self.setting.readmore == Readmore::Free
    }

    /// What the engine is to be told next.
    pub fn next_wish(&mut self) -> Option<Wanted> {
        loop {
            match self.level.next_wish()? {
                // It is taken back behind this, which nobody minds who was not told.
                Wish::Want(blocks) if self.is_unsettled(blocks) => self.level.unwish(blocks),
                Wish::Want(blocks) => return Some(Wanted::More(self.extent_of(blocks))),
                Wish::Unwant(blocks) => return Some(Wanted::Less(self.extent_of(blocks))),
            }
        }
    }

    /// A background read of `length` bytes from byte `start` of the drive on is given to the drive.
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

    /// It has ended with these bytes, or without any. Whoever waits for it has them, or reads them himself; what
    /// is still wished of it takes frames.
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

    /// Where these blocks are in what a read has brought.
    pub(super) fn part_of(&self, read: Read, memory: Memory, blocks: Interval) -> Memory {
        let before = (self.site.offset + blocks.first * PAGE - read.start) as usize;
        memory.part(before, (blocks.len() * PAGE) as usize)
    }

    /// Somebody has read these blocks.
    fn offer(&mut self, blocks: Interval, memory: Memory) {
        let came = Bytes::page(blocks.first, memory);
        for block in blocks.blocks() {
            if self.level.wished() == 0 {
                return;
            }
            if let Some(frame) = self.level.offer(block) {
                self.take_departures();
                let place = self.pages.give(frame);
                came.copy_to(&Bytes::page(block, self.pages.memory(place)));
            }
        }
    }

    /// These blocks change: nothing is taken of what is being read of them.
    pub(super) fn overtake(&mut self, blocks: Interval) {
        cut_out(&mut self.passing, blocks);
        self.leave_overtaken(blocks);
        self.level.unwish(blocks);
    }

    /// The blocks of the volume of which all bytes are among these of the drive; none if nobody wishes.
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

    /// Whether the engine was asked to write some of these and has not.
    fn is_being_written(&self, blocks: Interval) -> bool {
        let mut changes = self.changes.iter();
        changes.any(|change| overlap(change.blocks(), blocks))
    }

    /// Whether the volume has not what it will have of these.
    fn is_unsettled(&self, blocks: Interval) -> bool {
        let unwritten = self.unwritten.as_ref();
        let is_unwritten = unwritten.is_some_and(|unwritten| unwritten.has_any(blocks));
        is_unwritten || self.is_being_written(blocks)
    }
}

/// What is left of reads of which some blocks are of no use any more.
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
