//! A set of block numbers of bounded size that forgets the one that was used longest ago.
//!
//! ```text
//!   ring     | 10: 1110 | 10: ---- | 4: 1--- | 11: 11-- |  .   .     oldest to newest
//!              ^oldest                                     ^next
//!   older    |     .    |     .    |    .    |     1    |            the place before in the same bucket
//!   buckets  [ 3  .  2  .  0 ]                                       the newest place of each
//! ```
//!
//! A place of the ring has those of four neighbours that were used together, upwards: a group's number
//! and a mark for each. A number that is used again stands anew at the end and loses its mark; a place
//! without marks is a gap. Numbers are forgotten by stepping over them: what leads to a place that was given
//! up is not mended, but seen to be void, because the way through a bucket goes from newer to older
//! places and no other way. If no two neighbours are used together, each number takes a place: 12 bytes
//! for a place, of which there are a quarter more than numbers, and 2 for half a bucket are 17 bytes for
//! each number that can be held.

use crate::coordinator::Footprint;
use crate::interval::Interval;
use crate::residency::MAX_BLOCK;

/// Block numbers in the order of their use.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    /// Groups with their marks.
    ring: Box<[u64]>,
    older: Box<[u32]>,
    buckets: Box<[u32]>,
    capacity: usize,
    len: usize,
    /// Where the oldest may stand; gaps may come first.
    oldest: usize,
    /// How many places from there on are in use, gaps among them.
    taken: usize,
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

const NONE: u32 = u32::MAX;

/// 2^64 divided by the golden ratio, made odd: neighbours are spread evenly (Knuth, The Art of Computer
/// Programming 3, 6.4).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Neighbours of a group, as a power of two.
const GROUP_BITS: u32 = 2;
const GROUP: u64 = 1 << GROUP_BITS;

/// The lower bits of a place: a mark for each of a group.
const MARKS: u64 = (1 << GROUP) - 1;

/// The ring is longer than the queue by a part of this many, for gaps. With a quarter, gaps are cleared
/// once in a quarter of the queue's size of repeated uses: five steps for each. More places would be
/// quicker, and more than 0.05 % of the cache.
const GAPS: usize = 4;

impl Queue {
    /// Holds at most `capacity` numbers, at least one.
    pub(super) fn new(capacity: u32) -> Self {
        let capacity = capacity.clamp(1, 1 << 30) as usize;
        let places = capacity + (capacity / GAPS).max(GROUP as usize);
        Queue {
            ring: vec![0; places].into(),
            older: vec![NONE; places].into(),
            buckets: vec![NONE; capacity.div_ceil(2)].into(),
            capacity,
            len: 0,
            oldest: 0,
            taken: 0,
        }
    }

    /// Bytes: the numbers that it can hold are the rule's, the rest is ours.
    pub(super) fn footprint(&self) -> Footprint {
        let rule = self.capacity * size_of::<u64>();
        let links = size_of_val(&*self.older) + size_of_val(&*self.buckets);
        let all = size_of_val(&*self.ring) + links;
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
        if kept.is_empty() || self.are_newest(kept) {
            return 0;
        }
        parts(kept).map(|part| self.add_part(part)).sum()
    }

    /// [`Queue::add`] of blocks none of which is held: for who has looked for them.
    pub(super) fn add_absent(&mut self, blocks: Interval, keep: Keep) -> u64 {
        let mut forgotten = 0;
        for part in parts(self.kept(blocks, keep)) {
            debug_assert_eq!(self.find(part), 0, "it is held");
            forgotten += self.grow(part.count());
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

    /// Whether the ring ends with just these, group by group: then they need not be moved there. So it
    /// is where a request was looked up before it is added.
    fn are_newest(&self, blocks: Interval) -> bool {
        let groups = (blocks.last >> GROUP_BITS) - (blocks.first >> GROUP_BITS) + 1;
        let Some(before) = self.taken.checked_sub(groups as usize) else {
            return false;
        };
        parts(blocks)
            .zip(before..)
            .all(|(part, step)| self.ring[self.place(step)] == part.word())
    }

    /// Forgets the oldest; nothing if there is none.
    pub(super) fn forget_oldest(&mut self) {
        self.forget(self.len.min(1));
    }

    /// Forgets so many of the oldest; there are as many.
    fn forget(&mut self, count: usize) {
        self.len -= count;
        let mut rest = count;
        while rest > 0 {
            let held = &mut self.ring[self.oldest];
            let there = counted(*held & MARKS);
            if there > rest {
                // The lowest mark is the oldest of a place.
                (0..rest).for_each(|_| *held &= *held - 1);
                return;
            }
            rest -= there;
            self.step();
        }
    }

    /// The oldest place of the ring is given up.
    fn step(&mut self) {
        self.oldest += 1;
        if self.oldest == self.ring.len() {
            self.oldest = 0;
        }
        self.taken -= 1;
    }

    /// The place so many steps behind the oldest.
    fn place(&self, step: usize) -> usize {
        let place = self.oldest + step;
        match place.checked_sub(self.ring.len()) {
            Some(wrapped) => wrapped,
            None => place,
        }
    }

    fn bucket(&self, group: u64) -> usize {
        let hash = group.wrapping_mul(GOLDEN) >> 32;
        ((hash * self.buckets.len() as u64) >> 32) as usize
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
        let mut found = 0;
        let mut place = self.buckets[self.bucket(part.group)] as usize;
        // How far behind the oldest a place may be: less and less.
        let mut within = self.taken;
        while found != part.marks {
            let behind = match place.checked_sub(self.oldest) {
                Some(behind) => behind,
                None => place + self.ring.len() - self.oldest,
            };
            if behind >= within {
                break;
            }
            let held = &mut self.ring[place];
            if *held >> GROUP == part.group {
                let marks = *held & part.marks;
                found |= marks;
                on_found(held, marks);
            }
            within = behind;
            place = self.older[place] as usize;
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
        self.put(place, part.word());
    }

    fn put(&mut self, place: usize, word: u64) {
        let bucket = self.bucket(word >> GROUP);
        self.ring[place] = word;
        self.older[place] = self.buckets[bucket];
        self.buckets[bucket] = place as u32;
    }

    /// Moves what is no gap together, in its order, so that the gaps are at the end: at least one, for
    /// there are more places than numbers. All buckets are filled anew: that is less work than to look
    /// for each place in its own.
    fn clear_gaps(&mut self) {
        self.buckets.fill(NONE);
        let (mut from, mut to) = (self.oldest, self.oldest);
        let mut kept = 0;
        let length = self.ring.len();
        let next = |at: usize| if at + 1 == length { 0 } else { at + 1 };
        for _ in 0..self.taken {
            let word = std::mem::take(&mut self.ring[from]);
            if word & MARKS != 0 {
                self.put(to, word);
                to = next(to);
                kept += 1;
            }
            from = next(from);
        }
        self.taken = kept;
    }
}

/// Some of a group.
#[derive(Clone, Copy, Debug)]
struct Part {
    group: u64,
    marks: u64,
}

impl Part {
    /// How many blocks.
    fn count(self) -> usize {
        counted(self.marks)
    }

    /// As it stands in the ring.
    fn word(self) -> u64 {
        self.group << GROUP | self.marks
    }
}

/// How many marks there are: without an instruction of its own, which not every processor has, counting
/// bits takes fifteen.
fn counted(marks: u64) -> usize {
    /// The count for each of the sixteen, in four bits.
    const COUNTS: u64 = 0x4332_3221_3221_2110;
    (COUNTS >> (4 * marks) & 0b111) as usize
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
        Some(Part { group, marks })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{GROUP, Keep, OnHit, Queue};
    use crate::interval::Interval;
    use crate::residency::MAX_BLOCK;

    /// The numbers, oldest first.
    fn held(queue: &Queue) -> Vec<u64> {
        let words = (0..queue.taken).map(|step| queue.ring[queue.place(step)]);
        let numbers = words.flat_map(|word| {
            let held = (0..GROUP).filter(move |at| word & (1 << at) != 0);
            held.map(move |at| (word >> GROUP) * GROUP + at)
        });
        numbers.collect()
    }

    #[derive(Clone, Debug)]
    enum Step {
        Add(Interval, Keep),
        Meet(Interval, OnHit),
        Forget,
    }

    fn step() -> impl Strategy<Value = Step> {
        let first = prop_oneof![0u64..30, MAX_BLOCK - 3..=MAX_BLOCK];
        let run = (first, 1u64..12).prop_map(|(first, count)| Interval::of(first, count));
        let keep = prop_oneof![Just(Keep::Lowest), Just(Keep::Highest)];
        let hit = prop_oneof![Just(OnHit::Refresh), Just(OnHit::Stay), Just(OnHit::Remove)];
        prop_oneof![
            4 => (run.clone(), keep).prop_map(|(run, keep)| Step::Add(run, keep)),
            4 => (run, hit).prop_map(|(run, hit)| Step::Meet(run, hit)),
            1 => Just(Step::Forget),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_naive_list_in_the_order_of_use(
            capacity in 0u32..20,
            steps in prop::collection::vec(step(), 0..200),
        ) {
            let mut queue = Queue::new(capacity);
            let capacity = capacity.max(1) as usize;
            let mut naive: Vec<u64> = Vec::new();
            for step in steps {
                match step {
                    Step::Add(run, keep) => {
                        let run = Interval::new(run.first, run.last.min(MAX_BLOCK));
                        let mut blocks: Vec<u64> = run.blocks().collect();
                        match keep {
                            Keep::Lowest => blocks.truncate(capacity),
                            Keep::Highest => drop(blocks.drain(..blocks.len().saturating_sub(capacity))),
                        }
                        let mut forgotten = 0;
                        for block in blocks {
                            let before = naive.len();
                            naive.retain(|&other| other != block);
                            if naive.len() == before && before == capacity {
                                naive.remove(0);
                                forgotten += 1;
                            }
                            naive.push(block);
                        }
                        let ours = match queue.meets(run, OnHit::Stay) {
                            true => queue.add(run, keep),
                            false => queue.add_absent(run, keep),
                        };
                        prop_assert_eq!(ours, forgotten);
                    }
                    Step::Meet(run, hit) => {
                        let mut found = false;
                        for block in run.blocks() {
                            if let Some(place) = naive.iter().position(|&other| other == block) {
                                found = true;
                                if hit != OnHit::Stay {
                                    naive.remove(place);
                                }
                                if hit == OnHit::Refresh {
                                    naive.push(block);
                                }
                            }
                        }
                        prop_assert_eq!(queue.meets(run, hit), found);
                    }
                    Step::Forget => {
                        queue.forget_oldest();
                        if !naive.is_empty() {
                            naive.remove(0);
                        }
                    }
                }
                prop_assert_eq!(held(&queue), naive.clone());
                prop_assert_eq!(queue.len, naive.len());
            }
        }
    }

    #[test]
    fn hostile_runs_are_cut_to_what_exists() {
        for capacity in [0, 1, 3] {
            let mut queue = Queue::new(capacity);
            queue.add(Interval::new(0, u64::MAX), Keep::Lowest);
            queue.add(Interval::new(0, u64::MAX), Keep::Highest);
            assert!(queue.finds(MAX_BLOCK, OnHit::Stay));
            queue.add(Interval::new(u64::MAX, u64::MAX), Keep::Lowest);
            // Gaps are no number.
            queue.finds(MAX_BLOCK, OnHit::Refresh);
            let beyond = Interval::new(MAX_BLOCK + 1, MAX_BLOCK + 5000);
            assert!(!queue.meets(beyond, OnHit::Refresh));
            let last = Interval::new(u64::MAX - 5000, u64::MAX);
            assert!(!queue.meets(last, OnHit::Refresh));
            queue.add(Interval::EMPTY, Keep::Highest);
            assert_eq!(queue.len, capacity.max(1) as usize);
        }
    }
}
