//! A set of block numbers of bounded size that forgets the one that was used longest ago.
//!
//! ```text
//!   ring     | 10: 1110 | 10: ---- | 4: 1--- | 11: 11-- |  .   .     oldest to newest
//!              ^oldest                                     ^next
//!   heads    [ 3  .  2  .  0 ]                                       the newest place of each bucket
//!
//!   a place: | rest of the group's hash | marks, 8 | older place of the same bucket |    64 bits
//! ```
//!
//! A place of the ring has those of eight neighbours that were used together, upwards: what names their
//! group, and a mark for each. A number that is used again stands anew at the end and loses its mark; a
//! place without marks is a gap. Numbers are forgotten by stepping over them: what leads to a place that
//! was given up is not mended, but seen to be void, because the way through a bucket goes from newer to
//! older places and no other way. Where a bucket begins may be written again for another bucket: so its
//! head says in which of two laps around the ring it was written, and once a lap void heads are cleared.
//!
//! A group's hash is its number multiplied by an odd one, so that no two groups have the same. Its upper
//! bits choose the bucket; a place keeps the lower ones, which tell all groups of a bucket apart (Knuth,
//! The Art of Computer Programming 3, 6.4, exercise 13; Cleary 1984). The more buckets, the fewer bits
//! are kept and the more a link takes: both fit into 64 bits, whatever the size. If no two neighbours are
//! used together, each number takes a place: 9 bytes, for there is an eighth more of them than numbers,
//! and 1 for a quarter of a bucket.

mod parts;

use crate::coordinator::Footprint;
use crate::interval::Interval;
use crate::residency::MAX_BLOCK;
use parts::{GROUP, GROUP_BITS, HASH_BITS, MARKS, Part, counted, parts};

/// Block numbers in the order of their use.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    ring: Box<[u64]>,
    /// Of each bucket its newest place, and in which lap that was written, or [`NONE`].
    heads: Box<[u32]>,
    /// Whether the next place is written in an odd lap around the ring.
    lap: u32,
    capacity: usize,
    len: usize,
    /// Where the oldest may stand; gaps may come first.
    oldest: usize,
    /// How many places from there on are in use, gaps among them.
    taken: usize,
    layout: Layout,
}

/// Where the parts of a place's word are.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Bits of a link to an older place.
    link: u32,
    /// Bits of a group's hash that a place keeps.
    rest: u32,
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

/// A bucket without places.
const NONE: u32 = u32::MAX;

/// The upper bits of a hash, which choose the bucket.
const UPPER_BITS: u32 = 32;

/// The ring is longer than the queue by a part of this many, for gaps. With an eighth, gaps are cleared
/// once in an eighth of the queue's size of repeated uses, if no neighbours are used together: nine
/// steps for each. More places would be quicker, and more than 0.05 % of the cache.
const GAPS: usize = 8;

/// So many numbers share a bucket. With fewer the memory is more than 0.05 % of the cache.
const SHARED: usize = 4;

impl Queue {
    /// Holds at most `capacity` numbers, at least one.
    pub(super) fn new(capacity: u32) -> Self {
        let capacity = capacity.clamp(1, 1 << 30) as usize;
        let places = capacity + (capacity / GAPS).max(GROUP as usize);
        let buckets = capacity.div_ceil(SHARED);
        let layout = Layout {
            link: usize::BITS - places.leading_zeros(),
            // As many as tell the hashes of the widest bucket apart.
            rest: HASH_BITS - buckets.ilog2(),
        };
        assert!(layout.link + layout.rest + GROUP as u32 <= u64::BITS);
        Queue {
            ring: vec![0; places].into(),
            heads: vec![NONE; buckets].into(),
            lap: 0,
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
        for part in parts(blocks) {
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
                OnHit::Refresh => self.append(Part {
                    marks: held,
                    ..part
                }),
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
        if parts(kept).all(|part| self.find(part) == 0) {
            return self.add_kept(kept);
        }
        if self.are_newest(kept) {
            return 0;
        }
        parts(kept).map(|part| self.add_part(part)).sum()
    }

    /// [`Queue::add`] of blocks none of which is held: for who has looked for them.
    pub(super) fn add_absent(&mut self, blocks: Interval, keep: Keep) -> u64 {
        self.add_kept(self.kept(blocks, keep))
    }

    /// Adds blocks that are not held, and not more than there is room for.
    fn add_kept(&mut self, blocks: Interval) -> u64 {
        let forgotten = self.grow(blocks.len() as usize);
        for part in parts(blocks) {
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
    fn add_part(&mut self, part: Part) -> u64 {
        let (held, behind) = self.find_oldest(part);
        let more = part.count() - counted(held);
        let over = (self.len + more).saturating_sub(self.capacity);
        let mut forgotten = 0;
        if held == 0 || over == 0 || behind >= self.reach(over) {
            // None of those that are held is forgotten for the others.
            self.take(part);
            forgotten = self.grow(more);
        } else {
            // Those that are held may be the oldest: then they are forgotten and added again.
            for mark in (0..GROUP).map(|at| part.marks & (1 << at)) {
                if mark != 0
                    && self.take(Part {
                        marks: mark,
                        ..part
                    }) == 0
                {
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
        parts(blocks).zip(before..).all(|(part, step)| {
            let place = self.place(step);
            let is_newest = self.head(self.bucket(part)) == Some(place);
            is_newest && self.ring[place] >> self.layout.link == self.word(part) >> self.layout.link
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

    fn bucket(&self, part: Part) -> usize {
        let upper = part.hash >> (HASH_BITS - UPPER_BITS);
        ((upper * self.heads.len() as u64) >> UPPER_BITS) as usize
    }

    /// What stands in the ring for a part, before it is linked.
    fn word(&self, part: Part) -> u64 {
        let Layout { link, rest } = self.layout;
        let kept = part.hash & ((1 << rest) - 1);
        (kept << GROUP | part.marks) << link
    }

    /// The marks of those that are held.
    fn find(&mut self, part: Part) -> u64 {
        self.walk(part, |_, _| ()).0
    }

    /// The same, and how far behind the oldest place the oldest of them stands.
    fn find_oldest(&mut self, part: Part) -> (u64, usize) {
        self.walk(part, |_, _| ())
    }

    /// The marks of those that were held: now they are not, and still count in the length.
    fn take(&mut self, part: Part) -> u64 {
        self.walk(part, |held, marks| *held &= !marks).0
    }

    /// From the newest place of the part's bucket to the oldest that is needed. Says what is found, and how far
    /// behind the oldest place of the ring the oldest of it is.
    fn walk(&mut self, part: Part, mut on_found: impl FnMut(&mut u64, u64)) -> (u64, usize) {
        let Layout { link, .. } = self.layout;
        let sought = self.word(part);
        let (beyond_marks, links) = (link + GROUP as u32, self.layout.links());
        let length = self.ring.len();
        let (mut found, mut oldest) = (0, 0);
        let Some(mut place) = self.head(self.bucket(part)) else {
            return (0, 0);
        };
        // How far behind the oldest a place may be: less and less.
        let mut within = self.taken;
        while let Some(held) = self.ring.get_mut(place) {
            let behind = match place.checked_sub(self.oldest) {
                Some(behind) => behind,
                None => place + length - self.oldest,
            };
            if behind >= within {
                break;
            }
            within = behind;
            place = (*held & links) as usize;
            if (*held ^ sought) >> beyond_marks == 0 {
                let marks = *held >> link & part.marks;
                on_found(held, marks << link);
                found |= marks;
                if marks != 0 {
                    oldest = behind;
                }
                if found == part.marks {
                    break;
                }
            }
        }
        (found, oldest)
    }

    /// Puts blocks of a group, which are not held, at the end of the ring.
    fn append(&mut self, part: Part) {
        if self.taken == self.ring.len() {
            self.clear_gaps();
        }
        let place = self.place(self.taken);
        let bucket = self.bucket(part);
        let older = self.head(bucket).unwrap_or(self.ring.len());
        if place == 0 {
            self.begin_lap();
        }
        self.ring[place] = self.word(part) | older as u64;
        self.heads[bucket] = head(place, self.lap);
        self.taken += 1;
    }

    /// The next place is the first of the ring: what leads to a place that was given up is cleared, before
    /// that is written for the second time.
    fn begin_lap(&mut self) {
        for bucket in 0..self.heads.len() {
            if self.head(bucket).is_none() {
                self.heads[bucket] = NONE;
            }
        }
        self.lap ^= 1;
    }

    /// The newest place of a bucket, if it has one in use.
    fn head(&self, bucket: usize) -> Option<usize> {
        let head = self.heads[bucket];
        let place = (head >> 1) as usize;
        let is_used = head != NONE && self.behind(place) < self.taken;
        (is_used && head & 1 == self.lap_of(place)).then_some(place)
    }

    /// In which lap a place in use was written.
    fn lap_of(&self, place: usize) -> u32 {
        let wraps = self.oldest + self.taken > self.ring.len();
        self.lap ^ u32::from(wraps && place >= self.oldest)
    }

    /// How far a place is behind the oldest.
    fn behind(&self, place: usize) -> usize {
        match place.checked_sub(self.oldest) {
            Some(behind) => behind,
            None => place + self.ring.len() - self.oldest,
        }
    }

    /// Moves what is no gap together, in its order, so that the gaps are at the end: at least one, for
    /// there are more places than numbers. All buckets are filled anew: that is less work than to look
    /// for each place in its own.
    #[cold]
    fn clear_gaps(&mut self) {
        self.note_buckets();
        let Layout { link, .. } = self.layout;
        let length = self.ring.len();
        let (mut from, mut to) = (self.oldest, self.oldest);
        let (mut kept, mut lap) = (0, 0);
        for _ in 0..self.taken {
            let word = std::mem::take(&mut self.ring[from]);
            if word >> link & MARKS != 0 {
                let bucket = (word & self.layout.links()) as usize;
                let older = match self.heads[bucket] {
                    NONE => length,
                    head => (head >> 1) as usize,
                };
                self.ring[to] = word >> link << link | older as u64;
                self.heads[bucket] = head(to, lap);
                kept += 1;
                to += 1;
                if to == length {
                    (to, lap) = (0, 1);
                }
            }
            from += 1;
            if from == length {
                from = 0;
            }
        }
        self.taken = kept;
        self.lap = u32::from(self.oldest + kept > length);
    }

    /// Every place in use gets its bucket's number instead of its link, and no bucket leads anywhere:
    /// where a place is no more than a part of its hash, only the way to it says which bucket it is in.
    fn note_buckets(&mut self) {
        let links = self.layout.links();
        for bucket in 0..self.heads.len() {
            let mut next = self.head(bucket);
            let mut within = self.taken;
            while let Some(place) = next.filter(|place| *place < self.ring.len()) {
                let behind = self.behind(place);
                if behind >= within {
                    break;
                }
                within = behind;
                let word = &mut self.ring[place];
                next = Some((*word & links) as usize);
                *word = *word & !links | bucket as u64;
            }
            self.heads[bucket] = NONE;
        }
    }
}

/// A bucket's head: its newest place, and in which of two laps that was written.
fn head(place: usize, lap: u32) -> u32 {
    (place as u32) << 1 | lap
}

impl Layout {
    /// The bits of a link.
    fn links(self) -> u64 {
        (1 << self.link) - 1
    }
}

#[cfg(test)]
mod tests;
