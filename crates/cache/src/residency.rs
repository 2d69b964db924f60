//! The blocks that a cache knows: resident ones in frames, and those that its policy remembers.
//!
//! ```text
//!   entries:   | heads of lists | capacity + remembered + 1 entries          |
//!              |  0 .. lists    |  free, remembered, in flight, or valid     |
//!
//!   an entry:  | flags, 12 bits | block, 52 bits | newer, 32 | older, 32 |   16 bytes
//! ```
//!
//! The policy places each entry that is not free. Lists are rings through a head, so that linking
//! has no special cases. All memory is allocated at the beginning.

use std::fmt;

mod index;
mod list;
mod neighbours;

pub use list::List;
pub use neighbours::Neighbours;

use block::Interval;
use index::Index;

/// The highest block number. 2^52 blocks of 4 KiB are all bytes that a u64 can address.
pub const MAX_BLOCK: u64 = (1 << 52) - 1;

/// The largest capacity, in blocks: 2 TiB of cache, and indices of entries fit 32 bits. A choice.
pub const MAX_CAPACITY: u32 = 1 << 29;

/// Bits of an entry's word above the block's number.
const STATE: u64 = 0b11 << 52;
const ORIGIN: u64 = 0b11 << 54;
const USED: u64 = 1 << 56;
const UNTOUCHED: u64 = 1 << 57;
const MARKS_SHIFT: u32 = 59;
const MARKS: u64 = 0b1_1111 << MARKS_SHIFT;

const FREE: u64 = 0;
const REMEMBERED: u64 = 1 << 52;
const IN_FLIGHT: u64 = 2 << 52;
const VALID: u64 = 3 << 52;

/// The common bits of the states with a frame.
const KEPT: u64 = IN_FLIGHT & VALID;

/// The number of an entry, below [`Residency::frame_ids`], so that a policy or prefetcher may index
/// a table with it. It is constant while the block is resident, and while it is remembered
/// afterwards.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameId(u32);

impl FrameId {
    /// The entry without a block.
    pub(crate) const HEAD: Self = Self(0);

    /// The entry with this number.
    pub(crate) const fn numbered(entry: u32) -> Self {
        Self(entry)
    }

    /// The index in a table with [`Residency::frame_ids`] elements.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for FrameId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "#{}", self.0)
    }
}

/// The state of a block in a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// The block has no frame; the policy may remember its number.
    Absent,
    /// The block has a frame, and its read is not complete.
    InFlight,
    /// The block has a frame with its contents.
    Valid,
}

/// The reason of a fetch. For metrics only: policies do not use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchOrigin {
    /// A request demanded the block.
    Demand,
    /// The level's prefetcher fetched it ahead.
    Prefetch,
    /// The coordinator fetched it ahead.
    Readmore,
}

#[derive(Clone, Copy, Debug)]
struct FrameEntry {
    word: u64,
    newer: u32,
    older: u32,
}

/// The entries and lists that a policy needs beside the frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The largest number of remembered blocks.
    pub remembered: u32,
    /// The number of lists.
    pub lists: u32,
}

/// The resident and remembered blocks.
#[derive(Clone, Debug)]
pub struct Residency {
    index: Index,
    entries: Box<[FrameEntry]>,
    /// Entries without a block; the last one is used first.
    free: Vec<u32>,
    capacity: u32,
    remembered: u32,
    resident: u32,
    in_flight: u32,
}

impl Residency {
    /// A residency with `capacity` frames, at least one and at most [`MAX_CAPACITY`].
    ///
    /// # Panics
    /// If the capacity is not in that range, which the maker of the cache has checked.
    pub fn new(capacity: u32, needs: Needs) -> Self {
        assert!(capacity > 0 && capacity <= MAX_CAPACITY, "capacity");
        // One more, for a new block while all others are known.
        let known = capacity as usize + needs.remembered as usize + 1;
        // Entry 0 has no block, even if there are no lists.
        let heads = needs.lists.max(1);
        let count = heads as usize + known;
        assert!(u32::try_from(count).is_ok(), "remembered blocks");
        let mut entries = Vec::with_capacity(count);
        for at in 0..count as u32 {
            entries.push(FrameEntry {
                word: FREE,
                newer: at,
                older: at,
            });
        }
        Self {
            index: Index::new(count - 1),
            entries: entries.into_boxed_slice(),
            free: (heads..count as u32).rev().collect(),
            capacity,
            remembered: needs.remembered,
            resident: 0,
            in_flight: 0,
        }
    }

    // Queries of prefetchers and coordinators.

    /// The number of frames.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The number of resident blocks.
    pub fn resident(&self) -> u32 {
        self.resident
    }

    /// The number of blocks in flight.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Whether no frame is free.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.resident == self.capacity
    }

    /// The state of a block.
    #[inline]
    pub fn state(&self, block: u64) -> BlockState {
        self.find(block)
            .map_or(BlockState::Absent, |frame| self.frame_state(frame))
    }

    /// Whether a block is in flight or valid.
    #[inline]
    pub fn is_resident(&self, block: u64) -> bool {
        self.frame(block).is_some()
    }

    /// The frame of a resident block.
    #[inline]
    pub fn frame(&self, block: u64) -> Option<FrameId> {
        self.find(block).filter(|frame| self.is_kept(*frame))
    }

    /// Whether every block is resident; false for an empty interval.
    pub fn has_all(&self, blocks: Interval) -> bool {
        let mut near = self.neighbours(blocks.first);
        !blocks.is_empty() && blocks.blocks().all(|block| near.is_resident(block))
    }

    /// Whether any block is resident.
    pub fn has_any(&self, blocks: Interval) -> bool {
        let mut near = self.neighbours(blocks.first);
        blocks.blocks().any(|block| near.is_resident(block))
    }

    /// The maximal runs of absent blocks in ascending order: one I/O each.
    pub fn absent_runs(&self, blocks: Interval) -> impl Iterator<Item = Interval> {
        let mut rest = blocks;
        let mut near = self.neighbours(blocks.first);
        std::iter::from_fn(move || {
            let first = rest.blocks().find(|block| !near.is_resident(*block))?;
            let mut after = first..=rest.last;
            let end = after.find(|block| near.is_resident(*block));
            let run = Interval::new(first, end.map_or(rest.last, |end| end - 1));
            rest = end.map_or(Interval::EMPTY, |end| Interval::new(end, rest.last));
            Some(run)
        })
    }

    /// The number of consecutive resident blocks just before `block`, at most `most`.
    pub fn resident_before(&self, block: u64, most: u64) -> u64 {
        let before = Interval::new(block.saturating_sub(most), block.saturating_sub(1));
        if block == 0 {
            return 0;
        }
        let mut near = self.neighbours(before.last);
        let run = before.blocks().rev();
        run.take_while(|block| near.is_resident(*block)).count() as u64
    }

    /// The first absent block of the interval.
    pub fn first_absent(&self, blocks: Interval) -> Option<u64> {
        let mut near = self.neighbours(blocks.first);
        blocks.blocks().find(|block| !near.is_resident(*block))
    }

    /// The frames of all resident blocks in arbitrary order, for reports.
    pub fn frames(&self) -> impl Iterator<Item = FrameId> {
        let entries = (0..self.entries.len() as u32).map(FrameId);
        entries.filter(|&frame| self.is_kept(frame))
    }

    /// The upper bound of all [`FrameId`] numbers, excluded.
    pub fn frame_ids(&self) -> usize {
        self.entries.len()
    }

    /// The block of an entry that is not free.
    #[inline]
    pub fn block(&self, frame: FrameId) -> u64 {
        self.word(frame) & MAX_BLOCK
    }

    /// The state of an entry's block.
    #[inline]
    pub fn frame_state(&self, frame: FrameId) -> BlockState {
        match self.word(frame) & STATE {
            IN_FLIGHT => BlockState::InFlight,
            VALID => BlockState::Valid,
            _ => BlockState::Absent,
        }
    }

    /// The reason of the resident block's fetch.
    #[inline]
    pub fn origin(&self, frame: FrameId) -> FetchOrigin {
        match (self.word(frame) & ORIGIN) >> ORIGIN.trailing_zeros() {
            0 => FetchOrigin::Demand,
            1 => FetchOrigin::Prefetch,
            _ => FetchOrigin::Readmore,
        }
    }

    /// Whether the block was delivered upwards since it became resident.
    #[inline]
    pub fn is_used(&self, frame: FrameId) -> bool {
        self.word(frame) & USED != 0
    }

    /// Whether the block was fetched ahead, and no demand has reached the policy since.
    #[inline]
    pub fn is_untouched(&self, frame: FrameId) -> bool {
        self.word(frame) & UNTOUCHED != 0
    }
}

/// Queries and changes of policies.
impl Residency {
    /// The policy's five mark bits of the entry, 0 when the block becomes known.
    #[inline]
    pub fn marks(&self, frame: FrameId) -> u8 {
        (self.word(frame) >> MARKS_SHIFT) as u8
    }

    /// Sets the policy's five mark bits.
    #[inline]
    pub fn set_marks(&mut self, frame: FrameId, marks: u8) {
        let word = &mut self.entries[frame.index()].word;
        *word = *word & !MARKS | u64::from(marks) << MARKS_SHIFT;
    }

    /// The policy's note at an entry that is in none of its lists.
    #[inline]
    pub fn note(&self, frame: FrameId) -> u64 {
        let FrameEntry { newer, older, .. } = self.entries[frame.index()];
        u64::from(newer) << 32 | u64::from(older)
    }

    /// Sets the policy's note at an entry. It shares memory with the links, so the entry must be in
    /// no list.
    #[inline]
    pub fn set_note(&mut self, frame: FrameId, note: u64) {
        let entry = &mut self.entries[frame.index()];
        entry.newer = (note >> 32) as u32;
        entry.older = note as u32;
    }

    /// Reads the neighbours of an entry in a list, to warm the processor's cache.
    #[inline]
    pub fn warm_neighbours(&self, frame: FrameId) -> u64 {
        let entry = &self.entries[frame.index()];
        let newer = &self.entries[entry.newer as usize];
        let older = &self.entries[entry.older as usize];
        newer.word ^ older.word
    }

    /// Reads an entry that will be forgotten soon, and its index position.
    #[inline]
    pub fn warm_forgotten(&self, frame: FrameId) -> u64 {
        u64::from(self.index.first_entry(self.block(frame)))
    }

    /// Whether the read into the entry's frame is not complete, so that the frame must not be
    /// evicted.
    #[inline]
    pub fn is_in_flight(&self, frame: FrameId) -> bool {
        self.word(frame) & STATE == IN_FLIGHT
    }

    /// Evicts a resident block whose number the policy remembers.
    #[inline]
    pub fn remember(&mut self, frame: FrameId) {
        self.leave(frame);
        let word = &mut self.entries[frame.index()].word;
        *word = *word & (MAX_BLOCK | MARKS) | REMEMBERED;
    }

    /// Evicts a block, or ends its remembrance. The policy has removed the entry from its lists.
    #[inline(always)]
    pub fn forget(&mut self, frame: FrameId) {
        if self.is_kept(frame) {
            self.leave(frame);
        }
        self.index.remove(&self.entries, self.block(frame), frame.0);
        self.entries[frame.index()].word = FREE;
        self.free.push(frame.0);
    }

    /// Frees the frame of a resident block.
    #[inline]
    fn leave(&mut self, frame: FrameId) {
        debug_assert!(self.is_kept(frame), "{frame:?} is not resident");
        self.resident -= 1;
        self.in_flight -= u32::from(self.is_in_flight(frame));
    }
}

/// Changes of the cache.
impl Residency {
    /// Whether the policy may remember blocks without a frame.
    pub(crate) fn remembers(&self) -> bool {
        self.remembered > 0
    }

    /// The entry of a known block, resident or not.
    #[inline]
    pub(crate) fn find(&self, block: u64) -> Option<FrameId> {
        self.index.find(&self.entries, block).map(FrameId)
    }

    /// Whether the entry is the frame of this block, which is resident then.
    #[inline]
    pub(crate) fn is_frame_of(&self, frame: FrameId, block: u64) -> bool {
        self.word(frame) & (MAX_BLOCK | KEPT) == block.wrapping_add(KEPT)
    }

    /// The most likely entry of a block.
    #[inline]
    pub(crate) fn likely(&self, block: u64) -> FrameId {
        FrameId(self.index.first_entry(block))
    }

    /// Whether the entry's block is resident.
    #[inline]
    pub(crate) fn is_kept(&self, frame: FrameId) -> bool {
        self.word(frame) & KEPT != 0
    }

    /// Gives the block a frame, in flight. `known` is its entry if it was remembered.
    #[inline(always)]
    pub(crate) fn enter(
        &mut self,
        block: u64,
        known: Option<FrameId>,
        origin: FetchOrigin,
    ) -> FrameId {
        debug_assert!(self.resident < self.capacity && block <= MAX_BLOCK);
        let frame = match known {
            Some(frame) => frame,
            None => {
                let entry = self.free.pop().expect("an entry for each block");
                self.index.insert(block, entry);
                FrameId(entry)
            }
        };
        let origin = match origin {
            FetchOrigin::Demand => 0,
            FetchOrigin::Prefetch => 1 << ORIGIN.trailing_zeros() | UNTOUCHED,
            FetchOrigin::Readmore => 2 << ORIGIN.trailing_zeros() | UNTOUCHED,
        };
        self.entries[frame.index()].word = block | IN_FLIGHT | origin;
        self.resident += 1;
        self.in_flight += 1;
        frame
    }

    /// Completes the read into the frame.
    #[inline]
    pub(crate) fn complete(&mut self, frame: FrameId) {
        if self.is_in_flight(frame) {
            self.in_flight -= 1;
            self.entries[frame.index()].word |= VALID;
        }
    }

    /// Notes that the block was delivered upwards.
    #[inline]
    pub(crate) fn set_used(&mut self, frame: FrameId) {
        self.entries[frame.index()].word |= USED;
    }

    /// Sets whether the block counts as delivered upwards.
    pub(crate) fn set_use(&mut self, frame: FrameId, is_used: bool) {
        let word = &mut self.entries[frame.index()].word;
        *word = *word & !USED | (USED * u64::from(is_used));
    }

    /// Notes that a demand reached the policy. Returns whether it is the first one for a block that
    /// was fetched ahead.
    #[inline]
    pub(crate) fn touch(&mut self, frame: FrameId) -> bool {
        let word = &mut self.entries[frame.index()].word;
        let was_untouched = *word & UNTOUCHED != 0;
        *word = (*word | USED) & !UNTOUCHED;
        was_untouched
    }

    #[inline]
    fn word(&self, frame: FrameId) -> u64 {
        self.entries[frame.index()].word
    }
}
