//! Write-back: the dirty blocks of a cache, and the order in which they are written.
//!
//! ```text
//!               store                  begin                    ended
//!   owner's page ---> dirty, in a frame -------> being written ---> clean, or lost
//!                           |  evict                  ^
//!                           '--> evicted, dirty ------'
//!
//!   in frames:  first ->  page <-> page <-> page  <- last     the oldest is written first, with
//!               serial    3    <   5    <   9                 the blocks that follow it below
//! ```
//!
//! The owner of the bytes keeps them in slots, numbers each acknowledged write (serials, which
//! grow), and issues the writes. It issues overlapping ones in the order in which they begin. Then:
//!
//! - The versions of a block are written in the order of their stores. Evicted blocks are written
//!   before those in frames, in the order of their eviction.
//! - A barrier is a serial. While [`Unwritten::has_unwritten`] is true, a block that was stored
//!   under this serial or an earlier one is not below. Later stores do not delay a barrier.
//! - The version of a failed write is lost and not written again. [`Unwritten::take_failure`]
//!   reports it once. Later stores of the block are still written.
//! - The number of dirty blocks has a limit, which includes evicted ones.

use block::{Duration, Instant};

use block::Interval;

/// The slot of a block's bytes in the owner's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreSlot(pub u32);

impl StoreSlot {
    /// The index in a table of all slots.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A dirty block that was evicted. Its slot stays occupied until its write begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictedDirty {
    /// The number of the block.
    pub block: u64,
    /// The slot of its bytes.
    pub place: StoreSlot,
    /// The serial of its first unwritten store.
    pub serial: u64,
}

/// The blocks of one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteBackTarget {
    /// An evicted block. Its slot is free once the write has begun.
    Evicted(EvictedDirty),
    /// Consecutive blocks in frames.
    Run {
        /// The blocks; the first is the oldest of all.
        blocks: Interval,
        /// The serial of the first block, which is the least of all.
        serial: u64,
    },
}

impl WriteBackTarget {
    /// The blocks of the write.
    pub fn blocks(&self) -> Interval {
        match *self {
            WriteBackTarget::Evicted(left) => Interval::new(left.block, left.block),
            WriteBackTarget::Run { blocks, .. } => blocks,
        }
    }

    /// The least serial of the write.
    pub fn serial(&self) -> u64 {
        match *self {
            WriteBackTarget::Evicted(EvictedDirty { serial, .. })
            | WriteBackTarget::Run { serial, .. } => serial,
        }
    }
}

/// A write failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

/// The absent slot.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct DirtyLink {
    newer: u32,
    older: u32,
    block: u64,
    serial: u64,
    since: Instant,
}

/// All dirty blocks.
pub struct Unwritten {
    /// By slot.
    links: Box<[DirtyLink]>,
    first: u32,
    last: u32,
    in_frames: usize,
    limit: usize,
    age: Duration,
    /// Evicted blocks, in the order of their eviction.
    left: Vec<EvictedDirty>,
    /// The serials of the writes in flight.
    begun: Vec<u64>,
    /// Whether write-back continues down to a quarter of the limit.
    is_writing: bool,
    is_urgent: bool,
    has_failed: bool,
    written: u64,
    lost: u64,
}

impl Unwritten {
    /// An empty set for `places` slots and at most `limit` dirty blocks. Blocks of the age `age`
    /// become due.
    pub fn new(places: usize, limit: usize, age: Duration) -> Self {
        let none = DirtyLink {
            newer: NONE,
            older: NONE,
            block: 0,
            serial: 0,
            since: Instant::ZERO,
        };
        Unwritten {
            links: vec![none; places].into_boxed_slice(),
            first: NONE,
            last: NONE,
            in_frames: 0,
            limit,
            age,
            left: Vec::with_capacity(limit),
            begun: Vec::new(),
            is_writing: false,
            is_urgent: false,
            has_failed: false,
            written: 0,
            lost: 0,
        }
    }

    /// The number of dirty blocks, without those of writes in flight.
    pub fn count(&self) -> usize {
        self.in_frames + self.left.len()
    }

    /// Whether `more` blocks may become dirty.
    pub fn has_room(&self, more: u64) -> bool {
        self.count() as u64 + more <= self.limit as u64
    }

    /// Whether the block in this slot, in a frame, is dirty.
    pub fn has(&self, place: StoreSlot) -> bool {
        self.links[place.index()].newer != NONE || self.last == place.0
    }

    /// Whether any of these blocks is dirty.
    pub fn has_any(&self, blocks: Interval) -> bool {
        let mut left = self.left.iter();
        left.any(|left| blocks.contains(left.block))
            || self.places().any(|(_, block)| blocks.contains(block))
    }

    /// The evicted dirty blocks, in the order of their eviction.
    pub fn left(&self) -> &[EvictedDirty] {
        &self.left
    }

    /// The number of blocks whose writes ended, and how many of them were lost by failed writes.
    pub fn written_and_lost(&self) -> (u64, u64) {
        (self.written, self.lost)
    }

    /// Marks the block in this slot dirty under `serial`. A dirty block keeps its place in the
    /// order: it is as old as its oldest change.
    pub fn store(&mut self, now: Instant, place: StoreSlot, block: u64, serial: u64) {
        if self.has(place) {
            return;
        }
        self.links[place.index()] = DirtyLink {
            newer: NONE,
            older: self.last,
            block,
            serial,
            since: now,
        };
        match self.links.get_mut(self.last as usize) {
            Some(last) => last.newer = place.0,
            None => self.first = place.0,
        }
        self.last = place.0;
        self.in_frames += 1;
    }

    /// Notes the eviction of the block in this slot. Returns whether it is dirty, so that its slot
    /// stays occupied.
    pub fn leave(&mut self, place: StoreSlot, block: u64) -> bool {
        let serial = self.forget(place);
        self.left.extend(serial.map(|serial| EvictedDirty {
            block,
            place,
            serial,
        }));
        serial.is_some()
    }

    /// Marks the block in this slot, in a frame, clean without a write. Returns its serial if it
    /// was dirty.
    pub fn forget(&mut self, place: StoreSlot) -> Option<u64> {
        if !self.has(place) {
            return None;
        }
        let DirtyLink {
            newer,
            older,
            serial,
            ..
        } = self.links[place.index()];
        match self.links.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.first = newer,
        }
        match self.links.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.last = older,
        }
        let link = &mut self.links[place.index()];
        (link.newer, link.older) = (NONE, NONE);
        self.in_frames -= 1;
        Some(serial)
    }

    /// Drops all dirty blocks from `end` on, because the device ends there. Returns the freed slots
    /// of evicted ones.
    pub fn cut(&mut self, end: u64) -> Vec<StoreSlot> {
        let beyond = self.places().filter(|&(_, block)| block >= end);
        let beyond: Vec<StoreSlot> = beyond.map(|(place, _)| place).collect();
        for place in beyond {
            self.forget(place);
        }
        let gone = self.left.extract_if(.., |left| left.block >= end);
        gone.map(|left| left.place).collect()
    }

    /// Makes all dirty blocks due: a client waits for them.
    pub fn urge(&mut self) {
        self.is_urgent = true;
    }

    /// Ends the urgency of [`Unwritten::urge`].
    pub fn calm(&mut self) {
        self.is_urgent = false;
    }

    /// Whether a client waits for all dirty blocks.
    pub fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// Whether a write is due: a block was evicted or is old enough, there are many, or a client
    /// waits.
    pub fn is_due(&mut self, now: Instant) -> bool {
        if self.count() == 0 {
            self.is_writing = false;
            self.is_urgent = false;
            return false;
        }
        self.is_writing |= self.count() * 2 > self.limit;
        self.is_writing &= self.count() * 4 > self.limit;
        let is_old = self.next_due().is_some_and(|then| then <= now);
        self.is_urgent || self.is_writing || is_old || !self.left.is_empty()
    }

    /// The moment at which the oldest block in a frame becomes due.
    pub fn next_due(&self) -> Option<Instant> {
        let link = self.links.get(self.first as usize)?;
        Some(link.since + self.age)
    }

    /// The next write. In frames, it has at most `most` consecutive blocks before block `end`.
    /// `place` returns the slot of a block in a frame.
    pub fn next(
        &self,
        (most, end): (u64, u64),
        place: impl Fn(u64) -> Option<StoreSlot>,
    ) -> Option<WriteBackTarget> {
        if let Some(&left) = self.left.first() {
            return Some(WriteBackTarget::Evicted(left));
        }
        let &DirtyLink { block, serial, .. } = self.links.get(self.first as usize)?;
        let follows = |&block: &u64| place(block).is_some_and(|place| self.has(place));
        let more = (block + 1..end.min(block + most)).take_while(follows);
        let blocks = Interval::of(block, 1 + more.count() as u64);
        Some(WriteBackTarget::Run { blocks, serial })
    }

    /// Notes that a write begins with the current bytes. A later store makes a block dirty again.
    pub fn begin(&mut self, next: &WriteBackTarget, place: impl Fn(u64) -> Option<StoreSlot>) {
        match next {
            WriteBackTarget::Evicted(_) => drop(self.left.remove(0)),
            WriteBackTarget::Run { blocks, .. } => {
                for place in blocks.blocks().filter_map(place) {
                    self.forget(place);
                }
            }
        }
        self.begun.push(next.serial());
    }

    /// Notes the end of a write of `blocks` blocks that began under `serial`.
    ///
    /// # Panics
    /// If no such write is in flight: each ends once.
    pub fn ended(&mut self, serial: u64, blocks: u64, result: Result<(), Lost>) {
        let mut begun = self.begun.iter();
        let place = begun.position(|&begun| begun == serial);
        self.begun.swap_remove(place.expect("it was begun"));
        self.written += blocks;
        if result.is_err() {
            self.lost += blocks;
            self.has_failed = true;
        }
    }

    /// Whether a block that was stored under `serial` or an earlier one is dirty or being written.
    pub fn has_unwritten(&self, serial: u64) -> bool {
        let left = self.left.iter().map(|left| left.serial);
        let oldest = self.links.get(self.first as usize).map(|link| link.serial);
        let mut all = left.chain(oldest).chain(self.begun.iter().copied());
        all.any(|least| least <= serial)
    }

    /// Whether a write has failed since the last call.
    pub fn take_failure(&mut self) -> bool {
        std::mem::take(&mut self.has_failed)
    }

    /// The slots in frames and their blocks, oldest first.
    fn places(&self) -> impl Iterator<Item = (StoreSlot, u64)> {
        let mut at = self.first;
        std::iter::from_fn(move || {
            let link = self.links.get(at as usize)?;
            let place = StoreSlot(at);
            at = link.newer;
            Some((place, link.block))
        })
    }
}

#[cfg(test)]
mod tests;
