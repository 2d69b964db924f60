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
//! older places and no other way.
//!
//! A group's hash is its number multiplied by an odd one, so that no two groups have the same. Its upper
//! bits choose the bucket; a place keeps the lower ones, which tell all groups of a bucket apart (Knuth,
//! The Art of Computer Programming 3, 6.4, exercise 13; Cleary 1984). The more buckets, the fewer bits
//! are kept and the more a link takes: both fit into 64 bits, whatever the size. If no two neighbours are
//! used together, each number takes a place: 9 bytes, for there is an eighth more of them than numbers,
//! and 1 for a quarter of a bucket.

use crate::coordinator::Footprint;
use crate::interval::Interval;
use crate::residency::MAX_BLOCK;

/// Block numbers in the order of their use.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    ring: Box<[u64]>,
    heads: Box<[u32]>,
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

/// Neighbours of a group, as a power of two.
const GROUP_BITS: u32 = 3;
const GROUP: u64 = 1 << GROUP_BITS;

/// A mark for each of a group.
const MARKS: u64 = (1 << GROUP) - 1;

/// Bits of a group's number and of its hash.
const HASH_BITS: u32 = 52 - GROUP_BITS;
const _: () = assert!(MAX_BLOCK >> GROUP_BITS == (1 << HASH_BITS) - 1);

/// The upper bits of a hash, which choose the bucket.
const UPPER_BITS: u32 = 32;

/// 2^49 divided by the golden ratio, made odd: neighbours are spread evenly (Knuth, The Art of Computer
/// Programming 3, 6.4).
const GOLDEN: u64 = 0x1_3C6E_F372_FE95;

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
            heads: vec![places as u32; buckets].into(),
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
        let held = self.find(part);
        let mut forgotten = 0;
        if held == 0 {
            forgotten = self.grow(part.count());
        } else if held == part.marks || self.len + part.count() <= self.capacity {
            self.take(part);
            self.len += part.count() - counted(held);
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
            let is_newest = self.heads[self.bucket(part)] as usize == place;
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
        self.walk(part, |_, _| ())
    }

    /// The marks of those that were held: now they are not, and still count in the length.
    fn take(&mut self, part: Part) -> u64 {
        self.walk(part, |held, marks| *held &= !marks)
    }

    fn walk(&mut self, part: Part, mut on_found: impl FnMut(&mut u64, u64)) -> u64 {
        let Layout { link, .. } = self.layout;
        let sought = self.word(part);
        let (beyond_marks, links) = (link + GROUP as u32, self.layout.links());
        let length = self.ring.len();
        let mut found = 0;
        let mut place = self.heads[self.bucket(part)] as usize;
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
                if found == part.marks {
                    break;
                }
            }
        }
        found
    }

    /// Puts blocks of a group, which are not held, at the end of the ring.
    fn append(&mut self, part: Part) {
        if self.taken == self.ring.len() {
            self.clear_gaps();
        }
        let place = self.place(self.taken);
        self.taken += 1;
        self.put(place, self.word(part), self.bucket(part));
    }

    /// Puts a word at the newest end of its bucket.
    fn put(&mut self, place: usize, word: u64, bucket: usize) {
        let older = std::mem::replace(&mut self.heads[bucket], place as u32);
        self.ring[place] = word | u64::from(older);
    }

    /// Moves what is no gap together, in its order, so that the gaps are at the end: at least one, for
    /// there are more places than numbers. All buckets are filled anew: that is less work than to look
    /// for each place in its own.
    #[cold]
    fn clear_gaps(&mut self) {
        self.note_buckets();
        let (mut from, mut to) = (self.oldest, self.oldest);
        let mut kept = 0;
        let length = self.ring.len();
        let next = |at: usize| if at + 1 == length { 0 } else { at + 1 };
        let Layout { link, .. } = self.layout;
        for _ in 0..self.taken {
            let word = std::mem::take(&mut self.ring[from]);
            if word >> link & MARKS != 0 {
                let bucket = (word & self.layout.links()) as usize;
                self.put(to, word >> link << link, bucket);
                to = next(to);
                kept += 1;
            }
            from = next(from);
        }
        self.taken = kept;
    }

    /// Every place in use gets its bucket's number instead of its link, and no bucket leads anywhere:
    /// where a place is no more than a part of its hash, only the way to it says which bucket it is in.
    fn note_buckets(&mut self) {
        let length = self.ring.len();
        let links = self.layout.links();
        for bucket in 0..self.heads.len() {
            let mut place = std::mem::replace(&mut self.heads[bucket], length as u32) as usize;
            let mut within = self.taken;
            while let Some(word) = self.ring.get_mut(place) {
                let behind = match place.checked_sub(self.oldest) {
                    Some(behind) => behind,
                    None => place + length - self.oldest,
                };
                if behind >= within {
                    break;
                }
                within = behind;
                place = (*word & links) as usize;
                *word = *word & !links | bucket as u64;
            }
        }
    }
}

impl Layout {
    /// The bits of a link.
    fn links(self) -> u64 {
        (1 << self.link) - 1
    }
}

/// Some of a group.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Of the group's number.
    hash: u64,
    marks: u64,
}

impl Part {
    /// How many blocks.
    fn count(self) -> usize {
        counted(self.marks)
    }
}

/// How many marks there are: looked up, because not every processor has an instruction for it.
fn counted(marks: u64) -> usize {
    const COUNTS: [u8; 1 << GROUP] = {
        let mut counts = [0; 1 << GROUP];
        let mut marks = 1;
        while marks < counts.len() {
            counts[marks] = counts[marks >> 1] + (marks as u8 & 1);
            marks += 1;
        }
        counts
    };
    usize::from(COUNTS[(marks & MARKS) as usize])
}

/// The blocks that exist, group by group.
fn parts(blocks: Interval) -> impl Iterator<Item = Part> {
    let last = blocks.last.min(MAX_BLOCK);
    let mut first = blocks.first;
    std::iter::from_fn(move || {
        if first > last {
            return None;
        }
        let group = first >> GROUP_BITS;
        let end = last.min(first | (GROUP - 1));
        let (from, to) = (first % GROUP, end % GROUP);
        first = end + 1;
        let marks = (MARKS >> (GROUP - 1 - to)) & (MARKS << from);
        let hash = group.wrapping_mul(GOLDEN) & ((1 << HASH_BITS) - 1);
        Some(Part { hash, marks })
    })
}

#[cfg(test)]
mod tests;
