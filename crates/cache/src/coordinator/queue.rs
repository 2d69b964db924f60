//! A set of block numbers of bounded size that forgets the one that was used longest ago.
//!
//! ```text
//!   ring     | 10: 1110 | 10: ---- | 4: 1--- | 11: 11-- |  .   .     oldest to newest
//!              ^oldest                                     ^next
//!   heads    [ 3  .  2  .  0 ]                                       the newest step of each bucket
//!
//!   a place: | rest of the group's hash | marks, 8 | older step of the same bucket |     64 bits
//! ```
//!
//! A place of the ring has those of eight neighbours that were used together, upwards: what names their
//! group, and a mark for each. A number that is used again stands anew at the end and loses its mark; a
//! place without marks is a gap. Numbers are forgotten by stepping over them: what leads to a place that
//! was given up is not mended, but seen to be void. For that steps are counted twice around the ring: how long
//! ago a step was is known exactly if it is no longer than that, and a place is in use if its step is
//! not longer ago than the oldest. Links are not older, for what they lead to was in use when they were written;
//! of heads those that are void are cleared once around the ring.
//!
//! A group's hash is its number multiplied by an odd one, so that no two groups have the same. Its upper
//! bits choose the bucket; a place keeps the lower ones, which tell all groups of a bucket apart (Knuth,
//! The Art of Computer Programming 3, 6.4, exercise 13; Cleary 1984). The more buckets, the fewer bits
//! are kept and the more a link takes: both fit into 64 bits, whatever the size. If no two neighbours are
//! used together, each number takes a place: 9 bytes, for there is an eighth more of them than numbers,
//! and 1 for a quarter of a bucket.

mod parts;

use crate::coordinator::Footprint;
use crate::residency::MAX_BLOCK;
use block::Interval;
use parts::{GROUP, GROUP_BITS, GroupPart, HASH_BITS, MARKS, WordLayout, counted};

/// Block numbers in the order of their use.
#[derive(Clone, Debug)]
pub(super) struct GroupQueue {
    ring: Box<[u64]>,
    /// Of each bucket its newest step.
    heads: Box<[u32]>,
    /// The next step; steps are counted twice around the ring.
    next: u32,
    capacity: usize,
    len: usize,
    /// Where the oldest may stand; gaps may come first.
    oldest: usize,
    /// How many places from there on are in use, gaps among them.
    taken: usize,
    layout: WordLayout,
}

/// Which blocks of a run stay that is longer than the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// Those nearest to the request before them.
    Lowest,
    /// Those that come last.
    Highest,
}

/// What being found does to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnHit {
    /// It becomes the newest.
    Refresh,
    /// Nothing.
    Stay,
    /// It is taken out.
    Remove,
}

/// A bucket without places, while gaps are cleared.
const NONE: u32 = u32::MAX;

/// The ring is longer than the queue by a part of this many, for gaps. With an eighth, gaps are cleared
/// once in an eighth of the queue's size of repeated uses, if no neighbours are used together: nine
/// steps for each. More places would be quicker, and more than 0.05 % of the cache.
const GAPS: usize = 8;

/// So many numbers share a bucket. With fewer the memory is more than 0.05 % of the cache.
const SHARED: usize = 4;

impl GroupQueue {
    /// Holds at most `capacity` numbers, at least one.
    pub(super) fn new(capacity: u32) -> Self {
        let capacity = capacity.clamp(1, 1 << 30) as usize;
        let places = capacity + (capacity / GAPS).max(GROUP as usize);
        let buckets = capacity.div_ceil(SHARED);
        let layout = WordLayout {
            link: usize::BITS - (2 * places).leading_zeros(),
            // As many as tell the hashes of the widest bucket apart.
            rest: HASH_BITS - buckets.ilog2(),
            buckets: buckets as u32,
        };
        assert!(layout.link + layout.rest + GROUP as u32 <= u64::BITS);
        GroupQueue {
            ring: vec![0; places].into(),
            heads: vec![places as u32; buckets].into(),
            next: 0,
            capacity,
            len: 0,
            oldest: 0,
            taken: 0,
            layout,
        }
    }

    /// Bytes: the numbers that it can hold are the rule's, the rest is ours.
    pub(super) fn footprint(&self) -> Footprint {
        let rule = self.capacity * size_of::<u64>();
        let all = size_of_val(&*self.ring) + size_of_val(&*self.heads);
        Footprint {
            rule,
            beyond: all - rule,
        }
    }

    /// Whether it holds any of the blocks; all that it holds are found.
    pub(super) fn meets(&mut self, blocks: Interval, on_hit: OnHit) -> bool {
        if self.len == 0 {
            return false;
        }
        let mut is_met = false;
        for part in self.layout.parts(blocks) {
            let held = match on_hit {
                OnHit::Stay => self.find(part),
                OnHit::Refresh | OnHit::Remove => self.take(part),
            };
            if held == 0 {
                continue;
            }
            is_met = true;
            match on_hit {
                OnHit::Stay => (),
                OnHit::Refresh => self.append(self.layout.only(part, held)),
                OnHit::Remove => self.len -= counted(held),
            }
        }
        is_met
    }

    /// Whether it holds the block.
    pub(super) fn finds(&mut self, block: u64, on_hit: OnHit) -> bool {
        self.meets(Interval::new(block, block), on_hit)
    }

    /// The blocks become the newest, the last one as the very newest. Says how many others were
    /// forgotten for them.
    pub(super) fn add(&mut self, blocks: Interval, keep: Keep) -> u64 {
        let kept = self.kept(blocks, keep);
        if self.layout.parts(kept).all(|part| self.find(part) == 0) {
            return self.add_kept(kept);
        }
        if self.are_newest(kept) {
            return 0;
        }
        let parts = self.layout.parts(kept);
        parts.map(|part| self.add_part(part)).sum()
    }

    /// [`GroupQueue::add`] of blocks none of which is held: for who has looked for them.
    pub(super) fn add_absent(&mut self, blocks: Interval, keep: Keep) -> u64 {
        self.add_kept(self.kept(blocks, keep))
    }

    /// Adds blocks that are not held, and not more than there is room for.
    fn add_kept(&mut self, blocks: Interval) -> u64 {
        let forgotten = self.grow(blocks.len() as usize);
        for part in self.layout.parts(blocks) {
            debug_assert_eq!(self.find(part), 0, "it is held");
            self.append(part);
        }
        forgotten as u64
    }

    /// Which of the blocks there is room for.
    fn kept(&self, blocks: Interval, keep: Keep) -> Interval {
        let blocks = Interval::new(blocks.first, blocks.last.min(MAX_BLOCK));
        match (blocks.len().min(self.capacity as u64), keep) {
            (0, _) => Interval::EMPTY,
            (most, Keep::Lowest) => Interval::of(blocks.first, most),
            (most, Keep::Highest) => Interval::new(blocks.last - (most - 1), blocks.last),
        }
    }

    /// Adds blocks of a group; there are never more than the queue holds, so that none of them is
    /// forgotten for another one.
    fn add_part(&mut self, part: GroupPart) -> u64 {
        let (held, behind) = self.find_oldest(part);
        let marks = self.layout.marks(part.word);
        let more = counted(marks) - counted(held);
        let over = (self.len + more).saturating_sub(self.capacity);
        let mut forgotten = 0;
        if held == 0 || over == 0 || behind >= self.reach(over) {
            // None of those that are held is forgotten for the others.
            self.take(part);
            forgotten = self.grow(more);
        } else {
            // Those that are held may be the oldest: then they are forgotten and added again.
            for mark in (0..GROUP).map(|at| marks & (1 << at)) {
                if mark != 0 && self.take(self.layout.only(part, mark)) == 0 {
                    forgotten += self.grow(1);
                }
            }
        }
        self.append(part);
        forgotten as u64
    }

    /// So many more are held; as many of the oldest as have no room are forgotten for them.
    fn grow(&mut self, by: usize) -> usize {
        let forgotten = (self.len + by).saturating_sub(self.capacity);
        self.forget(forgotten);
        self.len += by;
        forgotten
    }

    /// Whether the ring is seen to end with just these, group by group: then they need not be moved there. So it
    /// is where a request was looked up before it is added.
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
            is_newest && (self.ring[place] ^ part.word) >> self.layout.link == 0
        })
    }

    /// Forgets the oldest; nothing if there is none.
    pub(super) fn forget_oldest(&mut self) {
        self.forget(self.len.min(1));
    }

    /// Forgets so many of the oldest; there are as many.
    fn forget(&mut self, count: usize) {
        self.len -= count;
        let link = self.layout.link;
        let (mut rest, mut gone) = (count, 0);
        let mut oldest = self.oldest;
        while rest > 0 {
            let held = &mut self.ring[oldest];
            let marks = *held >> link & MARKS;
            let there = counted(marks);
            if there > rest {
                // The lowest mark is the oldest of a place.
                let kept = (0..rest).fold(marks, |marks, _| marks & (marks - 1));
                *held ^= (marks ^ kept) << link;
                break;
            }
            rest -= there;
            gone += 1;
            oldest += 1;
            if oldest == self.ring.len() {
                oldest = 0;
            }
        }
        self.oldest = oldest;
        self.taken -= gone;
    }

    /// How many places from the oldest on have so many numbers; there are as many.
    fn reach(&self, count: usize) -> usize {
        let (mut rest, mut steps) = (count, 0);
        while rest > 0 {
            let word = self.ring[self.place(steps)];
            rest = rest.saturating_sub(counted(word >> self.layout.link & MARKS));
            steps += 1;
        }
        steps
    }

    /// The place so many steps behind the oldest.
    fn place(&self, step: usize) -> usize {
        let place = self.oldest + step;
        match place.checked_sub(self.ring.len()) {
            Some(wrapped) => wrapped,
            None => place,
        }
    }

    /// The marks of those that are held.
    #[inline]
    fn find(&mut self, part: GroupPart) -> u64 {
        self.walk(part, |_, _| ()).0
    }

    /// The same, and how far behind the oldest place the oldest of them stands.
    fn find_oldest(&mut self, part: GroupPart) -> (u64, usize) {
        self.walk(part, |_, _| ())
    }

    /// The marks of those that were held: now they are not, and still count in the length. No way leads to
    /// a gap any more, unless it is the last of its bucket.
    #[inline]
    fn take(&mut self, part: GroupPart) -> u64 {
        let layout = self.layout;
        let beyond_marks = layout.link + GROUP as u32;
        let sought = layout.marks(part.word);
        let mut found = 0;
        let mut newer = None;
        let mut step = self.heads[part.bucket];
        while self.is_used(step) {
            let place = self.place_of(step);
            let word = self.ring[place];
            step = (word & layout.links()) as u32;
            if (word ^ part.word) >> beyond_marks != 0 {
                newer = Some(place);
                continue;
            }
            let marks = layout.marks(word) & sought;
            found |= marks;
            let rest = word & !(marks << layout.link);
            self.ring[place] = rest;
            if layout.marks(rest) != 0 || !self.is_used(step) {
                newer = Some(place);
            } else if let Some(newer) = newer {
                let word = &mut self.ring[newer];
                *word = *word & !layout.links() | u64::from(step);
            } else {
                self.heads[part.bucket] = step;
            }
            if found == sought {
                break;
            }
        }
        found
    }

    /// From the newest place of the part's bucket to the oldest that is needed. Says what is found, and how far
    /// behind the oldest place of the ring the oldest of it is.
    #[inline]
    fn walk(&mut self, part: GroupPart, mut on_found: impl FnMut(&mut u64, u64)) -> (u64, usize) {
        let layout = self.layout;
        let beyond_marks = layout.link + GROUP as u32;
        let sought = layout.marks(part.word);
        let (mut found, mut furthest) = (0, 0);
        let mut step = self.heads[part.bucket];
        while self.is_used(step) {
            let place = self.place_of(step);
            let held = &mut self.ring[place];
            let word = *held;
            if (word ^ part.word) >> beyond_marks == 0 {
                let marks = layout.marks(word) & sought;
                on_found(held, marks << layout.link);
                found |= marks;
                if marks != 0 {
                    furthest = self.ago(step);
                }
                if found == sought {
                    break;
                }
            }
            step = (word & layout.links()) as u32;
        }
        (found, self.taken - furthest as usize)
    }

    /// How many steps ago a step was, if it was less than two laps ago.
    #[inline]
    fn ago(&self, step: u32) -> u32 {
        let ago = self.next.wrapping_sub(step);
        match step > self.next {
            true => ago.wrapping_add(2 * self.ring.len() as u32),
            false => ago,
        }
    }

    /// Whether the place of a step is in use and was not written again.
    #[inline]
    fn is_used(&self, step: u32) -> bool {
        // The next step itself was two laps ago.
        (self.ago(step).wrapping_sub(1) as usize) < self.taken
    }

    /// The place of a step.
    #[inline]
    fn place_of(&self, step: u32) -> usize {
        let (step, length) = (step as usize, self.ring.len());
        if step < length { step } else { step - length }
    }

    /// A step that is void until the next one, and for a lap: that of the same place a lap before.
    #[inline]
    fn void(&self) -> u32 {
        let length = self.ring.len() as u32;
        match self.next < length {
            true => self.next + length,
            false => self.next - length,
        }
    }

    /// Writes a part at the end.
    #[inline]
    fn append(&mut self, part: GroupPart) {
        if self.taken == self.ring.len() {
            self.clear_gaps();
        }
        let place = self.place_of(self.next);
        if place == 0 {
            self.begin_lap();
        }
        let older = match self.heads[part.bucket] {
            head if self.is_used(head) => head,
            _ => self.void(),
        };
        self.ring[place] = part.word | u64::from(older);
        self.heads[part.bucket] = self.next;
        self.next = self.step_behind(self.next);
        self.taken += 1;
    }

    /// The step behind this one.
    #[inline]
    fn step_behind(&self, step: u32) -> u32 {
        match step + 1 {
            end if end as usize == 2 * self.ring.len() => 0,
            next => next,
        }
    }

    /// The next place is the first of the ring: heads that are void stay so for another lap.
    #[cold]
    fn begin_lap(&mut self) {
        for bucket in 0..self.heads.len() {
            if !self.is_used(self.heads[bucket]) {
                self.heads[bucket] = self.void();
            }
        }
    }

    /// Moves what is no gap together, in its order, so that the gaps are at the end: at least one, for
    /// there are more places than numbers. All buckets are filled anew: that is less work than to look
    /// for each place in its own.
    #[cold]
    fn clear_gaps(&mut self) {
        self.note_buckets();
        let WordLayout { link, .. } = self.layout;
        let mut from = self.oldest;
        // All places are in use: the oldest was written a lap ago.
        let taken = std::mem::take(&mut self.taken);
        self.next = self.void();
        for _ in 0..taken {
            let word = std::mem::take(&mut self.ring[from]);
            if word >> link & MARKS != 0 {
                let bucket = (word & self.layout.links()) as usize;
                let older = match self.heads[bucket] {
                    NONE => self.void(),
                    head => head,
                };
                let to = self.place_of(self.next);
                self.ring[to] = word >> link << link | u64::from(older);
                self.heads[bucket] = self.next;
                self.next = self.step_behind(self.next);
                self.taken += 1;
            }
            from += 1;
            if from == self.ring.len() {
                from = 0;
            }
        }
        let void = self.void();
        for head in self.heads.iter_mut().filter(|head| **head == NONE) {
            *head = void;
        }
    }

    /// Every place in use gets its bucket's number instead of its link, and no bucket leads anywhere:
    /// where a place is no more than a part of its hash, only the way to it says which bucket it is in.
    fn note_buckets(&mut self) {
        let links = self.layout.links();
        for bucket in 0..self.heads.len() {
            let mut step = std::mem::replace(&mut self.heads[bucket], NONE);
            while self.is_used(step) {
                let place = self.place_of(step);
                let word = &mut self.ring[place];
                step = (*word & links) as u32;
                *word = *word & !links | bucket as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests;
