//! A set of block numbers of bounded size that forgets the one that was used longest ago.
//!
//! ```text
//!   ring     | 41 | 42 |  - | 17 | 40 |  .   .     oldest to newest; a number that was used again
//!              ^oldest                ^next        stands anew at the end, and leaves a gap
//!   next     |  4 |  . |    |  . |  . |            the next one of the same bucket
//!   buckets  [ 1  .  0  .  3 ]                     the newest one of each
//! ```
//!
//! A request adds and asks for runs of numbers: both go through the ring in order. There are no links
//! from newer to older: 12 bytes for a place of the ring, of which there are an eighth more than numbers,
//! and 4 for a bucket are 17.5 bytes for each number that can be held.

use crate::coordinator::Footprint;
use crate::interval::Interval;
use crate::residency::MAX_BLOCK;

/// Block numbers in the order of their use.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    ring: Box<[u64]>,
    next: Box<[u32]>,
    buckets: Box<[u32]>,
    capacity: usize,
    len: usize,
    /// Where the oldest may stand; gaps may come first.
    oldest: usize,
    /// How many places from there on are numbers or gaps.
    taken: usize,
}

/// Where a number stands.
#[derive(Clone, Copy, Debug)]
struct Found {
    bucket: usize,
    /// The place before it in its bucket, or [`NONE`].
    before: u32,
    place: u32,
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

/// Neither a block's number (they end at [`MAX_BLOCK`]) nor forgotten: nothing.
const GAP: u64 = u64::MAX;

const NONE: u32 = u32::MAX;

/// 2^64 divided by the golden ratio, made odd: neighbours are spread evenly (Knuth, The Art of Computer
/// Programming 3, 6.4).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The ring is longer than the queue by a part of this many, for gaps. With an eighth, gaps are cleared
/// once in an eighth of the queue's size of repeated uses: nine steps for each.
const GAPS: usize = 8;

impl Queue {
    /// Holds at most `capacity` numbers, at least one.
    pub(super) fn new(capacity: u32) -> Self {
        let capacity = capacity.clamp(1, 1 << 30) as usize;
        Queue {
            ring: vec![GAP; capacity + capacity.div_ceil(GAPS)].into(),
            next: vec![NONE; capacity + capacity.div_ceil(GAPS)].into(),
            buckets: vec![NONE; capacity].into(),
            capacity,
            len: 0,
            oldest: 0,
            taken: 0,
        }
    }

    /// Bytes: the numbers that it can hold are the rule's, the rest is ours.
    pub(super) fn footprint(&self) -> Footprint {
        let rule = self.capacity * size_of::<u64>();
        let links = size_of_val(&*self.next) + size_of_val(&*self.buckets);
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
        for block in blocks.blocks() {
            is_met |= self.finds(block, on_hit);
        }
        is_met
    }

    /// Whether it holds the block.
    pub(super) fn finds(&mut self, block: u64, on_hit: OnHit) -> bool {
        let Some(found) = self.find(block) else {
            return false;
        };
        match on_hit {
            OnHit::Stay => (),
            OnHit::Refresh => self.refresh(found, block),
            OnHit::Remove => {
                self.unlink(found);
                self.ring[found.place as usize] = GAP;
                self.len -= 1;
            }
        }
        true
    }

    /// The blocks become the newest, the last one as the very newest. Says how many others were
    /// forgotten for them.
    pub(super) fn add(&mut self, blocks: Interval, keep: Keep) -> u64 {
        if blocks.is_empty() {
            return 0;
        }
        let blocks = Interval::new(blocks.first, blocks.last.min(MAX_BLOCK));
        let most = blocks.len().min(self.capacity as u64);
        if most == 0 {
            return 0;
        }
        let kept = match keep {
            Keep::Lowest => Interval::of(blocks.first, most),
            Keep::Highest => Interval::new(blocks.last - (most - 1), blocks.last),
        };
        let mut forgotten = 0;
        for block in kept.blocks() {
            match self.find(block) {
                Some(found) => self.refresh(found, block),
                None => {
                    if self.len == self.capacity {
                        self.forget_oldest();
                        forgotten += 1;
                    }
                    self.push(block);
                }
            }
        }
        forgotten
    }

    /// Forgets the oldest; nothing if there is none.
    pub(super) fn forget_oldest(&mut self) {
        if self.len == 0 {
            return;
        }
        while self.ring[self.oldest] == GAP {
            self.step();
        }
        let found = self.found_at(self.oldest);
        self.unlink(found);
        self.ring[self.oldest] = GAP;
        self.step();
        self.len -= 1;
    }

    /// The oldest place of the ring is given up.
    fn step(&mut self) {
        self.oldest += 1;
        if self.oldest == self.ring.len() {
            self.oldest = 0;
        }
        self.taken -= 1;
    }

    fn bucket(&self, block: u64) -> usize {
        let hash = block.wrapping_mul(GOLDEN) >> 32;
        ((hash * self.buckets.len() as u64) >> 32) as usize
    }

    fn find(&self, block: u64) -> Option<Found> {
        let bucket = self.bucket(block);
        let mut before = NONE;
        let mut place = self.buckets[bucket];
        while let Some(&held) = self.ring.get(place as usize) {
            if held == block {
                return Some(Found {
                    bucket,
                    before,
                    place,
                });
            }
            before = place;
            place = self.next[place as usize];
        }
        None
    }

    /// The number at a place of the ring, which is no gap.
    fn found_at(&self, at: usize) -> Found {
        let bucket = self.bucket(self.ring[at]);
        let mut before = NONE;
        let mut place = self.buckets[bucket];
        while place as usize != at {
            before = place;
            place = self.next[place as usize];
        }
        Found {
            bucket,
            before,
            place,
        }
    }

    /// Takes a number out of its bucket.
    fn unlink(&mut self, found: Found) {
        let after = self.next[found.place as usize];
        self.lead(found, after);
    }

    /// What led to the place leads to another one.
    fn lead(&mut self, found: Found, to: u32) {
        match self.next.get_mut(found.before as usize) {
            Some(before) => *before = to,
            None => self.buckets[found.bucket] = to,
        }
    }

    fn push(&mut self, block: u64) {
        let place = self.append(block);
        let bucket = self.bucket(block);
        self.next[place as usize] = self.buckets[bucket];
        self.buckets[bucket] = place;
        self.len += 1;
    }

    fn refresh(&mut self, mut found: Found, block: u64) {
        if self.taken == self.ring.len() {
            self.clear_gaps();
            let Some(moved) = self.find(block) else {
                return;
            };
            found = moved;
        }
        let place = self.append(block);
        self.next[place as usize] = self.next[found.place as usize];
        self.lead(found, place);
        self.ring[found.place as usize] = GAP;
    }

    /// Puts a number at the end of the ring.
    fn append(&mut self, block: u64) -> u32 {
        if self.taken == self.ring.len() {
            self.clear_gaps();
        }
        let mut place = self.oldest + self.taken;
        if place >= self.ring.len() {
            place -= self.ring.len();
        }
        self.ring[place] = block;
        self.taken += 1;
        place as u32
    }

    /// Moves the numbers together, in their order, so that the gaps are at the end.
    fn clear_gaps(&mut self) {
        let (mut from, mut to) = (self.oldest, self.oldest);
        let mut kept = 0;
        let length = self.ring.len();
        let next = |at: usize| if at + 1 == length { 0 } else { at + 1 };
        for _ in 0..self.taken {
            let block = self.ring[from];
            if block != GAP {
                if from != to {
                    let found = self.found_at(from);
                    self.next[to] = self.next[from];
                    self.lead(found, to as u32);
                    self.ring[from] = GAP;
                    self.ring[to] = block;
                }
                to = next(to);
                kept += 1;
            }
            from = next(from);
        }
        self.taken = kept;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Keep, OnHit, Queue};
    use crate::interval::Interval;
    use crate::residency::MAX_BLOCK;

    /// The numbers, oldest first.
    fn held(queue: &Queue) -> Vec<u64> {
        let places = (0..queue.taken).map(|step| (queue.oldest + step) % queue.ring.len());
        let numbers = places.map(|place| queue.ring[place]);
        numbers.filter(|&number| number != super::GAP).collect()
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
                        prop_assert_eq!(queue.add(run, keep), forgotten);
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
            assert!(!queue.finds(u64::MAX, OnHit::Refresh));
            queue.add(Interval::EMPTY, Keep::Highest);
            assert_eq!(queue.len, capacity.max(1) as usize);
        }
    }
}
