//! Write-back: which blocks are newer than what is below, and in which order they get there.
//!
//! ```text
//!               store                  begin                    ended
//!   owner's page ---> unwritten, in a frame ---> being written ---> the same below, or lost
//!                           |  leave                  ^
//!                           '--> left the cache ------'
//!
//!   in frames:  first ->  page <-> page <-> page  <- last     the oldest is written first, with
//!               serial    3    <   5    <   9                 what follows it below
//! ```
//!
//! Whoever keeps the blocks' bytes, in places of its own, numbers what it acknowledges (serials, which
//! grow) and does the writes. It does overlapping ones in the order in which they are begun. Then:
//!
//! - The versions of a block are written in the order in which they were stored: what has left is
//!   written before anything in a frame, in the order in which it left.
//! - A barrier is a serial: as long as [`Unwritten::has_unwritten`] says so, something that was stored
//!   under it or an earlier one is not below. What is stored later delays nobody.
//! - A write that fails leaves nothing to be written again: its version is lost, whoever asks next is
//!   told so once ([`Unwritten::take_failure`]), and what was stored over it meanwhile is still written.
//! - There are never more than a limit, those that have left included.

use block::{Duration, Instant};

use block::Interval;

/// Where the owner has the bytes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreSlot(pub u32);

impl StoreSlot {
    /// Its place in a table of all.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A block that has no frame any more and is not written. Its place is its own until that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictedDirty {
    /// Which.
    pub block: u64,
    /// Where its bytes are.
    pub place: StoreSlot,
    /// Under which serial it became unwritten.
    pub serial: u64,
}

/// What is to be written in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteBackTarget {
    /// A block that has left. Its place is nobody's once this has begun.
    Evicted(EvictedDirty),
    /// Blocks in frames that follow one another.
    Run {
        /// Which; the first is the oldest of all.
        blocks: Interval,
        /// The serial of the first, which is the least of all.
        serial: u64,
    },
}

impl WriteBackTarget {
    /// Its blocks.
    pub fn blocks(&self) -> Interval {
        match *self {
            WriteBackTarget::Evicted(left) => Interval::new(left.block, left.block),
            WriteBackTarget::Run { blocks, .. } => blocks,
        }
    }

    /// The least serial of it.
    pub fn serial(&self) -> u64 {
        match *self {
            WriteBackTarget::Evicted(EvictedDirty { serial, .. })
            | WriteBackTarget::Run { serial, .. } => serial,
        }
    }
}

/// A write could not be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

/// No place.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct DirtyLink {
    newer: u32,
    older: u32,
    block: u64,
    serial: u64,
    since: Instant,
}

/// All blocks that are newer than what is below.
pub struct Unwritten {
    /// By place.
    links: Box<[DirtyLink]>,
    first: u32,
    last: u32,
    in_frames: usize,
    limit: usize,
    age: Duration,
    /// In the order in which they left.
    left: Vec<EvictedDirty>,
    /// The serials of what is being written.
    begun: Vec<u64>,
    /// It writes until a quarter of the limit is left.
    is_writing: bool,
    is_urgent: bool,
    has_failed: bool,
    written: u64,
    lost: u64,
}

impl Unwritten {
    /// None yet. The owner has so many places; at most `limit` may be unwritten, and what is as old as
    /// `age` is written of itself.
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

    /// How many there are. What is being written is not among them.
    pub fn count(&self) -> usize {
        self.in_frames + self.left.len()
    }

    /// Whether so many more may become unwritten.
    pub fn has_room(&self, more: u64) -> bool {
        self.count() as u64 + more <= self.limit as u64
    }

    /// Whether what is at the place, in a frame, is newer than what is below.
    pub fn has(&self, place: StoreSlot) -> bool {
        self.links[place.index()].newer != NONE || self.last == place.0
    }

    /// Whether any of these blocks is unwritten.
    pub fn has_any(&self, blocks: Interval) -> bool {
        let mut left = self.left.iter();
        left.any(|left| blocks.contains(left.block))
            || self.places().any(|(_, block)| blocks.contains(block))
    }

    /// Those that have left, in the order in which they did.
    pub fn left(&self) -> &[EvictedDirty] {
        &self.left
    }

    /// Blocks that were written, those that could not be among them, and these.
    pub fn written_and_lost(&self) -> (u64, u64) {
        (self.written, self.lost)
    }

    /// What is at the place is newer than what is below from now on, under this serial. If it was
    /// before, it stays where it is in the order: it is as old as the oldest change of it.
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

    /// What was at the place has left its frame. Whether it is unwritten: then its place stays its own.
    pub fn leave(&mut self, place: StoreSlot, block: u64) -> bool {
        let serial = self.forget(place);
        self.left.extend(serial.map(|serial| EvictedDirty {
            block,
            place,
            serial,
        }));
        serial.is_some()
    }

    /// What is at the place, in a frame, needs not be written. Says its serial if it had to be.
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

    /// There are no blocks below from `end` on: nothing is written there. The places of those that had
    /// left are nobody's any more.
    pub fn cut(&mut self, end: u64) -> Vec<StoreSlot> {
        let beyond = self.places().filter(|&(_, block)| block >= end);
        let beyond: Vec<StoreSlot> = beyond.map(|(place, _)| place).collect();
        for place in beyond {
            self.forget(place);
        }
        let gone = self.left.extract_if(.., |left| left.block >= end);
        gone.map(|left| left.place).collect()
    }

    /// Somebody waits for all of it to be written.
    pub fn urge(&mut self) {
        self.is_urgent = true;
    }

    /// Nobody waits any more.
    pub fn calm(&mut self) {
        self.is_urgent = false;
    }

    /// Whether somebody waits.
    pub fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// Whether something is to be written now: it has left or is old enough, there are many, or somebody
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

    /// When the oldest in a frame is old enough to be written.
    pub fn next_due(&self) -> Option<Instant> {
        let link = self.links.get(self.first as usize)?;
        Some(link.since + self.age)
    }

    /// What is to be written next: of frames, at most `most` blocks that follow one another, before
    /// block `end`. `place` says where a block in a frame is.
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

    /// That is being written from now on, as its bytes are now. What is stored of it afterwards is
    /// unwritten anew.
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

    /// So many blocks that were begun under this serial are the same below now, or lost.
    ///
    /// # Panics
    /// If nothing was: each ends once.
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

    /// Whether something that was stored under this serial or an earlier one is not below, because it is
    /// still to be written or being written.
    pub fn has_unwritten(&self, serial: u64) -> bool {
        let left = self.left.iter().map(|left| left.serial);
        let oldest = self.links.get(self.first as usize).map(|link| link.serial);
        let mut all = left.chain(oldest).chain(self.begun.iter().copied());
        all.any(|least| least <= serial)
    }

    /// Whether something was lost since this was last asked.
    pub fn take_failure(&mut self) -> bool {
        std::mem::take(&mut self.has_failed)
    }

    /// The places in frames and their blocks, the oldest first.
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
