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
    pub slot: StoreSlot,
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
            WriteBackTarget::Evicted(evicted) => Interval::new(evicted.block, evicted.block),
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
    dirty_frames: usize,
    limit: usize,
    age: Duration,
    /// Evicted blocks, in the order of their eviction.
    evicted: Vec<EvictedDirty>,
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
    /// An empty set for an owner with `slots` slots, and at most `limit` dirty blocks. Blocks of the age `age`
    /// become due.
    pub fn new(slots: usize, limit: usize, age: Duration) -> Self {
        let none = DirtyLink {
            newer: NONE,
            older: NONE,
            block: 0,
            serial: 0,
            since: Instant::ZERO,
        };
        Unwritten {
            links: vec![none; slots].into_boxed_slice(),
            first: NONE,
            last: NONE,
            dirty_frames: 0,
            limit,
            age,
            evicted: Vec::with_capacity(limit),
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
        self.dirty_frames + self.evicted.len()
    }

    /// Whether `more` blocks may become dirty.
    pub fn has_room(&self, more: u64) -> bool {
        self.count() as u64 + more <= self.limit as u64
    }

    /// Whether the block in this slot, in a frame, is dirty.
    pub fn has(&self, slot: StoreSlot) -> bool {
        self.links[slot.index()].newer != NONE || self.last == slot.0
    }

    /// Whether any of these blocks is dirty.
    pub fn has_any(&self, blocks: Interval) -> bool {
        let mut evicted = self.evicted.iter();
        evicted.any(|evicted| blocks.contains(evicted.block))
            || self.in_frames().any(|(_, block)| blocks.contains(block))
    }

    /// The evicted dirty blocks, in the order of their eviction.
    pub fn evicted(&self) -> &[EvictedDirty] {
        &self.evicted
    }

    /// The number of blocks whose writes ended, and how many of them were lost by failed writes.
    pub fn written_and_lost(&self) -> (u64, u64) {
        (self.written, self.lost)
    }

    /// Marks the block in this slot dirty under `serial`. A dirty block keeps its place in the
    /// order: it is as old as its oldest change.
    pub fn store(&mut self, now: Instant, slot: StoreSlot, block: u64, serial: u64) {
        if self.has(slot) {
            return;
        }
        self.links[slot.index()] = DirtyLink {
            newer: NONE,
            older: self.last,
            block,
            serial,
            since: now,
        };
        match self.links.get_mut(self.last as usize) {
            Some(last) => last.newer = slot.0,
            None => self.first = slot.0,
        }
        self.last = slot.0;
        self.dirty_frames += 1;
    }

    /// Notes the eviction of the block in this slot. Returns whether it is dirty, so that its slot
    /// stays occupied.
    pub fn evict(&mut self, slot: StoreSlot, block: u64) -> bool {
        let serial = self.forget(slot);
        self.evicted.extend(serial.map(|serial| EvictedDirty {
            block,
            slot,
            serial,
        }));
        serial.is_some()
    }

    /// Marks the block in this slot, in a frame, clean without a write. Returns its serial if it
    /// was dirty.
    pub fn forget(&mut self, slot: StoreSlot) -> Option<u64> {
        if !self.has(slot) {
            return None;
        }
        let DirtyLink {
            newer,
            older,
            serial,
            ..
        } = self.links[slot.index()];
        match self.links.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.first = newer,
        }
        match self.links.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.last = older,
        }
        let link = &mut self.links[slot.index()];
        (link.newer, link.older) = (NONE, NONE);
        self.dirty_frames -= 1;
        Some(serial)
    }

    /// Drops all dirty blocks from `end` on, because the device ends there. Returns the freed slots
    /// of evicted ones.
    pub fn cut(&mut self, end: u64) -> Vec<StoreSlot> {
        let beyond = self.in_frames().filter(|&(_, block)| block >= end);
        let beyond: Vec<StoreSlot> = beyond.map(|(slot, _)| slot).collect();
        for slot in beyond {
            self.forget(slot);
        }
        let gone = self.evicted.extract_if(.., |evicted| evicted.block >= end);
        gone.map(|evicted| evicted.slot).collect()
    }

    /// Makes all dirty blocks due: a client waits for them.
    pub fn set_urgent(&mut self) {
        self.is_urgent = true;
    }

    /// Ends the urgency of [`Unwritten::set_urgent`].
    pub fn clear_urgent(&mut self) {
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
        self.is_urgent || self.is_writing || is_old || !self.evicted.is_empty()
    }

    /// The moment at which the oldest block in a frame becomes due.
    pub fn next_due(&self) -> Option<Instant> {
        let link = self.links.get(self.first as usize)?;
        Some(link.since + self.age)
    }

    /// The next write. In frames, it has at most `most` consecutive blocks before block `end`.
    /// `slot` returns the slot of a block in a frame.
    pub fn next(
        &self,
        (most, end): (u64, u64),
        slot: impl Fn(u64) -> Option<StoreSlot>,
    ) -> Option<WriteBackTarget> {
        if let Some(&evicted) = self.evicted.first() {
            return Some(WriteBackTarget::Evicted(evicted));
        }
        let &DirtyLink { block, serial, .. } = self.links.get(self.first as usize)?;
        let follows = |&block: &u64| slot(block).is_some_and(|slot| self.has(slot));
        let more = (block + 1..end.min(block + most)).take_while(follows);
        let blocks = Interval::of(block, 1 + more.count() as u64);
        Some(WriteBackTarget::Run { blocks, serial })
    }

    /// Notes that a write begins with the current bytes. A later store makes a block dirty again.
    pub fn begin(&mut self, next: &WriteBackTarget, slot: impl Fn(u64) -> Option<StoreSlot>) {
        match next {
            WriteBackTarget::Evicted(_) => drop(self.evicted.remove(0)),
            WriteBackTarget::Run { blocks, .. } => {
                for slot in blocks.blocks().filter_map(slot) {
                    self.forget(slot);
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
        let evicted = self.evicted.iter().map(|evicted| evicted.serial);
        let oldest = self.links.get(self.first as usize).map(|link| link.serial);
        let mut all = evicted.chain(oldest).chain(self.begun.iter().copied());
        all.any(|least| least <= serial)
    }

    /// Whether a write has failed since the last call.
    pub fn take_failure(&mut self) -> bool {
        std::mem::take(&mut self.has_failed)
    }

    /// The slots in frames and their blocks, oldest first.
    fn in_frames(&self) -> impl Iterator<Item = (StoreSlot, u64)> {
        let mut at = self.first;
        std::iter::from_fn(move || {
            let link = self.links.get(at as usize)?;
            let slot = StoreSlot(at);
            at = link.newer;
            Some((slot, link.block))
        })
    }
}

#[cfg(test)]
mod tests;
