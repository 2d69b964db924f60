//! A bounded LRU set of block numbers.
//!
//! ```text
//!   ring     | 10: 1110 | 10: ---- | 4: 1--- | 11: 11-- |  .   .     oldest to newest
//!              ^oldest                                     ^next
//!   heads    [ 3  .  2  .  0 ]                                       the newest step of each bucket
//!
//!   a place: | marks, 8 | rest of the group's hash | older step of the same bucket |     64 bits
//! ```
//!
//! A *group* has eight neighbouring blocks. A place of the ring holds those of a group that were used together in
//! ascending order: the rest of the group's hash, and a mark for each block. A repeated use moves the block to the
//! end and clears its old mark. A place without marks is a gap.
//!
//! Eviction advances the oldest place. Links to evicted places are not repaired but recognised as void. Steps are
//! therefore counted twice around the ring, so that the age of a step below two laps is exact. A place is in use
//! if its step is no older than the oldest. Links are never older than two laps, because their targets were in use
//! when they were written. Void heads are refreshed once per lap.
//!
//! A group's hash is its number times an odd constant, so that all hashes differ. Its upper bits select the bucket.
//! A place keeps the lower bits, which distinguish all groups of a bucket (Knuth, The Art of Computer Programming
//! 3, 6.4, exercise 13; Cleary 1984). More buckets need fewer hash bits and longer links, so that both fit into 64
//! bits at any size. Without neighbours that are used together, a block takes 9 bytes of the ring, which has an
//! eighth more places than blocks, and 1 byte for a quarter of a bucket.

mod gaps;
mod parts;

use crate::coordinator::Footprint;
use crate::residency::MAX_BLOCK;
use block::Interval;
use std::hint::select_unpredictable;

use parts::{
    GROUP, GROUP_BITS, GroupPart, MARKS_SHIFT, WordLayout, counted, marks, without_lowest,
};

/// Block numbers in order of use.
#[derive(Clone, Debug)]
pub(super) struct GroupQueue {
    ring: Box<[u64]>,
    /// The newest step of each bucket.
    heads: Box<[u32]>,
    /// The next step; steps are counted twice around the ring.
    next: u32,
    /// The number of steps twice around the ring.
    steps: u32,
    capacity: usize,
    len: usize,
    /// The oldest place in use, which may be a gap.
    oldest: usize,
    /// The number of places in use from `oldest` on, gaps included.
    taken: usize,
    layout: WordLayout,
}

/// The blocks that are kept of a run longer than the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// The lowest blocks, which are nearest to the request before them.
    Lowest,
    /// The highest blocks.
    Highest,
}

/// The effect of a hit on a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnHit {
    /// The block becomes the newest.
    Refresh,
    /// No effect.
    Stay,
    /// The block is removed.
    Remove,
}

/// The held blocks of a part.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// Their marks.
    marks: u64,
    /// The distance of the oldest of them from the ring's oldest place.
    behind: usize,
}

/// The divisor of the ring's additional length for gaps. With an eighth, and without neighbours that are used
/// together, gaps are cleared once per capacity / 8 repeated uses: nine steps for each use. More places would be
/// faster, and exceed 0.05 % of the cache.
const GAPS: usize = 8;

/// Blocks per bucket. With fewer the memory exceeds 0.05 % of the cache.
const SHARED: usize = 4;

impl GroupQueue {
    /// An empty queue of at most `capacity` blocks, at least one.
    pub(super) fn new(capacity: u32) -> Self {
        let capacity = capacity.clamp(1, 1 << 30) as usize;
        let places = capacity + (capacity / GAPS).max(GROUP as usize);
        let buckets = capacity.div_ceil(SHARED);
        let link = usize::BITS - (2 * places).leading_zeros();
        GroupQueue {
            ring: vec![0; places].into(),
            heads: vec![places as u32; buckets].into(),
            next: 0,
            steps: 2 * places as u32,
            capacity,
            len: 0,
            oldest: 0,
            taken: 0,
            layout: WordLayout::new(buckets, link),
        }
    }

    /// The memory: the capacity's block numbers belong to the rule, the rest to this representation.
    pub(super) fn footprint(&self) -> Footprint {
        let rule = self.capacity * size_of::<u64>();
        let all = size_of_val(&*self.ring) + size_of_val(&*self.heads);
        Footprint {
            rule,
            beyond: all - rule,
        }
    }

    /// Whether the queue holds any of the blocks. `on_hit` applies to all that it holds.
    pub(super) fn meets(&mut self, blocks: Interval, on_hit: OnHit) -> bool {
        let parts = self.layout.parts(blocks);
        parts.fold(false, |is_met, part| is_met | self.meets_part(part, on_hit))
    }

    /// [`GroupQueue::meets`] for two queues of the same capacity.
    pub(super) fn both_meet(queues: [&mut Self; 2], blocks: Interval, on_hit: OnHit) -> [bool; 2] {
        let [one, other] = queues;
        debug_assert_eq!(one.capacity, other.capacity, "parts are of a capacity");
        let mut are_met = [false; 2];
        for part in one.layout.parts(blocks) {
            are_met[0] |= one.meets_part(part, on_hit);
            are_met[1] |= other.meets_part(part, on_hit);
        }
        are_met
    }

    /// [`GroupQueue::meets`] for blocks of a group.
    #[inline]
    fn meets_part(&mut self, part: GroupPart, on_hit: OnHit) -> bool {
        let held = match on_hit {
            OnHit::Stay => self.find(part),
            OnHit::Refresh | OnHit::Remove => self.take(part),
        };
        if held == 0 {
            return false;
        }
        match on_hit {
            OnHit::Stay => (),
            OnHit::Refresh => self.append(part.only(held)),
            OnHit::Remove => self.len -= counted(held),
        }
        true
    }

    /// Whether the queue holds the block.
    pub(super) fn finds(&mut self, block: u64, on_hit: OnHit) -> bool {
        self.meets(Interval::new(block, block), on_hit)
    }

    /// Adds the blocks as the newest, in ascending order. Returns the number of evicted blocks.
    pub(super) fn add(&mut self, blocks: Interval, keep: Keep) -> u64 {
        let kept = self.kept(blocks, keep);
        let mut parts = self.layout.parts(kept);
        let Some(first) = parts.next() else {
            return 0;
        };
        let found = self.walk(first);
        if found.marks == 0 && parts.clone().all(|part| self.find(part) == 0) {
            let forgotten = self.grow(kept.len() as usize);
            self.append(first);
            parts.for_each(|part| self.append(part));
            return forgotten as u64;
        }
        if found.marks == marks(first.word) && self.are_newest(kept) {
            return 0;
        }
        let forgotten = self.add_part(first, found);
        let rest = parts.map(|part| self.add_part(part, self.walk(part)));
        forgotten + rest.sum::<u64>()
    }

    /// [`GroupQueue::add`] for blocks that a lookup found absent.
    pub(super) fn add_absent(&mut self, blocks: Interval, keep: Keep) -> u64 {
        let kept = self.kept(blocks, keep);
        let forgotten = self.grow(kept.len() as usize);
        for part in self.layout.parts(kept) {
            debug_assert_eq!(self.find(part), 0, "it is held");
            self.append(part);
        }
        forgotten as u64
    }

    /// The blocks that fit into the capacity.
    fn kept(&self, blocks: Interval, keep: Keep) -> Interval {
        let blocks = Interval::new(blocks.first, blocks.last.min(MAX_BLOCK));
        match (blocks.len().min(self.capacity as u64), keep) {
            (0, _) => Interval::EMPTY,
            (most, Keep::Lowest) => Interval::of(blocks.first, most),
            (most, Keep::Highest) => Interval::new(blocks.last - (most - 1), blocks.last),
        }
    }

    /// Adds blocks of a group, at most the capacity, so that none of them is evicted for another. `found` is what a
    /// walk has just found of them.
    fn add_part(&mut self, part: GroupPart, found: Found) -> u64 {
        let marks = marks(part.word);
        let more = counted(marks) - counted(found.marks);
        let over = (self.len + more).saturating_sub(self.capacity);
        let mut forgotten = 0;
        if found.marks == 0 {
            forgotten = self.grow(more);
        } else if over == 0 || found.behind >= self.reach(over) {
            // No held block of the part is evicted for the others.
            self.take(part);
            forgotten = self.grow(more);
        } else {
            // Held blocks may be the oldest: then they are evicted and added again.
            for mark in (0..GROUP).map(|at| marks & (1 << at)) {
                if mark != 0 && self.take(part.only(mark)) == 0 {
                    forgotten += self.grow(1);
                }
            }
        }
        self.append(part);
        forgotten as u64
    }

    /// Adds `by` to the length, and evicts the oldest blocks beyond the capacity. Returns their number.
    fn grow(&mut self, by: usize) -> usize {
        let forgotten = (self.len + by).saturating_sub(self.capacity);
        self.forget(forgotten);
        self.len += by;
        forgotten
    }

    /// Whether the ring ends with exactly these blocks, group by group, so that they need not move. This is the
    /// case if a lookup of the request precedes its addition.
    fn are_newest(&self, blocks: Interval) -> bool {
        let groups = (blocks.last >> GROUP_BITS) - (blocks.first >> GROUP_BITS) + 1;
        let Some(before) = self.taken.checked_sub(groups as usize) else {
            return false;
        };
        let mut parts = self.layout.parts(blocks).zip(before..);
        parts.all(|(part, step)| {
            let place = self.place(step);
            let head = self.heads[part.bucket];
            let is_newest = self.is_used(head) && self.place_of(head) == place;
            is_newest && self.layout.linked(self.ring[place] ^ part.word, 0) == 0
        })
    }

    /// Evicts the oldest block, if any.
    pub(super) fn forget_oldest(&mut self) {
        self.forget(self.len.min(1));
    }

    /// Evicts the `count` oldest blocks, at most as many as are held.
    fn forget(&mut self, count: usize) {
        self.len -= count;
        let mut rest = count;
        let mut oldest = self.oldest;
        // Gaps behind the last evicted block go, too: the walk has one end, where a block stays.
        while self.taken > 0 {
            let held = &mut self.ring[oldest];
            let there = counted(marks(*held));
            if there > rest {
                *held = without_lowest(*held, rest);
                break;
            }
            rest -= there;
            self.taken -= 1;
            oldest += 1;
            oldest = select_unpredictable(oldest == self.ring.len(), 0, oldest);
        }
        self.oldest = oldest;
    }

    /// The number of places from the oldest on that hold `count` blocks, at most the length.
    fn reach(&self, count: usize) -> usize {
        let (mut rest, mut steps) = (count, 0);
        while rest > 0 {
            let word = self.ring[self.place(steps)];
            rest = rest.saturating_sub(counted(marks(word)));
            steps += 1;
        }
        steps
    }

    /// The place `step` steps after the oldest.
    fn place(&self, step: usize) -> usize {
        let place = self.oldest + step;
        match place.checked_sub(self.ring.len()) {
            Some(wrapped) => wrapped,
            None => place,
        }
    }

    /// The marks of the held blocks.
    #[inline]
    fn find(&self, part: GroupPart) -> u64 {
        self.walk(part).marks
    }

    /// Clears the marks of held blocks and returns them. The length stays. Gaps are unlinked.
    #[inline]
    fn take(&mut self, part: GroupPart) -> u64 {
        let layout = self.layout;
        let sought = marks(part.word);
        let mut found = 0;
        let mut newer = None;
        let mut step = self.heads[part.bucket];
        while self.is_used(step) {
            let place = self.place_of(step);
            let word = self.ring[place];
            step = layout.link(word);
            if !layout.is_same_group(word, part.word) {
                newer = Some(place);
                continue;
            }
            let here = marks(word) & sought;
            found |= here;
            let rest = word & !(here << MARKS_SHIFT);
            self.ring[place] = rest;
            if marks(rest) != 0 {
                newer = Some(place);
            } else {
                // A link to an evicted place may be too old to be written again.
                let older = select_unpredictable(self.is_used(step), step, self.evicted());
                match newer {
                    Some(newer) => self.ring[newer] = layout.linked(self.ring[newer], older),
                    None => self.heads[part.bucket] = older,
                }
            }
            if found == sought {
                break;
            }
        }
        found
    }

    /// Walks the part's bucket from its newest place until all blocks are found.
    #[inline]
    fn walk(&self, part: GroupPart) -> Found {
        let layout = self.layout;
        let sought = marks(part.word);
        let (mut found, mut furthest) = (0, 0);
        let mut step = self.heads[part.bucket];
        while self.is_used(step) & (found != sought) {
            let word = self.ring[self.place_of(step)];
            let is_same = layout.is_same_group(word, part.word);
            let here = select_unpredictable(is_same, marks(word) & sought, 0);
            found |= here;
            furthest = select_unpredictable(here == 0, furthest, self.ago(step));
            step = layout.link(word);
        }
        Found {
            marks: found,
            behind: self.taken - furthest as usize,
        }
    }

    /// The age of a step in steps, if it is less than two laps.
    #[inline]
    fn ago(&self, step: u32) -> u32 {
        let ago = self.next.wrapping_sub(step);
        match step > self.next {
            true => ago.wrapping_add(self.steps),
            false => ago,
        }
    }

    /// Whether the place of a step is in use and not overwritten.
    #[inline]
    fn is_used(&self, step: u32) -> bool {
        // The age of the next step itself is two laps.
        (self.ago(step).wrapping_sub(1) as usize) < self.taken
    }

    /// The place of a step.
    #[inline]
    fn place_of(&self, step: u32) -> usize {
        let (step, length) = (step as usize, self.ring.len());
        if step < length { step } else { step - length }
    }

    /// A step that is void for a lap, unless all places are in use: that of the next place a lap earlier.
    #[inline]
    fn void(&self) -> u32 {
        let length = self.ring.len() as u32;
        match self.next < length {
            true => self.next + length,
            false => self.next - length,
        }
    }

    /// A step that is void while a place in use, or a head, leads to it: that of the place before the next one, a lap
    /// earlier. If all places are in use, [`GroupQueue::void`] is the oldest one.
    #[inline]
    fn evicted(&self) -> u32 {
        let length = self.ring.len() as u32;
        match self.next <= length {
            true => self.next + length - 1,
            false => self.next - length - 1,
        }
    }

    /// Writes a part to the end of the ring. Copies of it where it is called would lack registers.
    #[inline(never)]
    fn append(&mut self, part: GroupPart) {
        let place = self.place_of(self.next);
        if self.taken == self.ring.len() || place == 0 {
            return self.append_at_turn(part);
        }
        self.write(part, place);
    }

    /// [`GroupQueue::append`] where the ring is full, or a lap begins. Apart from it, so that it saves no registers.
    #[cold]
    fn append_at_turn(&mut self, part: GroupPart) {
        if self.taken == self.ring.len() {
            self.clear_gaps();
        }
        let place = self.place_of(self.next);
        if place == 0 {
            self.begin_lap();
        }
        self.write(part, place);
    }

    /// Writes a part to the place of the next step.
    #[inline]
    fn write(&mut self, part: GroupPart, place: usize) {
        let head = self.heads[part.bucket];
        let older = select_unpredictable(self.is_used(head), head, self.void());
        self.ring[place] = part.word | u64::from(older);
        self.heads[part.bucket] = self.next;
        self.next = self.step_behind(self.next);
        self.taken += 1;
    }

    /// The step after this one.
    #[inline]
    fn step_behind(&self, step: u32) -> u32 {
        match step + 1 {
            end if end == self.steps => 0,
            next => next,
        }
    }

    /// Begins a lap at the first place: renews void heads, so that they stay void for another lap.
    #[cold]
    fn begin_lap(&mut self) {
        for bucket in 0..self.heads.len() {
            if !self.is_used(self.heads[bucket]) {
                self.heads[bucket] = self.void();
            }
        }
    }
}

#[cfg(test)]
mod tests;
