//! A set of block numbers of bounded size that forgets the one that was used longest ago.
//!
//! ```text
//!   ring     | 41 | 42 |  - | 17 | 40 |  .   .     oldest to newest; a number that was used again
//!              ^oldest                ^next        stands anew at the end, and leaves a gap
//!   older    |  4 |  . |  . |  . |  2 |            the one before in the same bucket
//!   buckets  [ 1  .  0  .  4 ]                     the newest one of each
//! ```
//!
//! Numbers are forgotten by stepping over them: what leads to a place that was given up is not mended, but
//! seen to be void, because the way through a bucket goes from newer to older ones and no other way.
//! Neighbours share a bucket, four by four, so that a run is looked up by a few walks. 12 bytes for a place
//! of the ring, of which there are a quarter more than numbers, and 2 for half a bucket are 17 bytes for
//! each number that can be held.

use crate::coordinator::Footprint;
use crate::interval::Interval;
use crate::residency::MAX_BLOCK;

/// Block numbers in the order of their use.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    ring: Box<[u64]>,
    older: Box<[u32]>,
    buckets: Box<[u32]>,
    capacity: usize,
    len: usize,
    /// Where the oldest may stand; gaps may come first.
    oldest: usize,
    /// How many places from there on are numbers or gaps.
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

/// Neither a block's number (they end at [`MAX_BLOCK`]) nor forgotten: nothing.
const GAP: u64 = u64::MAX;

const NONE: u32 = u32::MAX;

/// 2^64 divided by the golden ratio, made odd: neighbours are spread evenly (Knuth, The Art of Computer
/// Programming 3, 6.4).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Neighbours that share a bucket, as a power of two.
const GROUP_BITS: u32 = 2;
const GROUP: usize = 1 << GROUP_BITS;

/// The ring is longer than the queue by a part of this many, for gaps. With a quarter, gaps are cleared
/// once in a quarter of the queue's size of repeated uses: five steps for each. More places would be
/// quicker, and more than 0.05 % of the cache.
const GAPS: usize = 4;

impl Queue {
    /// Holds at most `capacity` numbers, at least one.
    pub(super) fn new(capacity: u32) -> Self {
        let capacity = capacity.clamp(1, 1 << 30) as usize;
        // A group is added without gaps being cleared in between.
        let places = capacity + (capacity / GAPS).max(GROUP);
        Queue {
            ring: vec![GAP; places].into(),
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
        let blocks = Interval::new(blocks.first, blocks.last.min(MAX_BLOCK));
        let mut is_met = false;
        for group in groups(blocks) {
            let places = self.look_up(group);
            for block in group.blocks() {
                let place = places[block as usize % GROUP] as usize;
                let Some(held) = self.ring.get_mut(place) else {
                    continue;
                };
                is_met = true;
                match on_hit {
                    OnHit::Stay => (),
                    OnHit::Refresh => {
                        *held = GAP;
                        self.append(block);
                    }
                    OnHit::Remove => {
                        *held = GAP;
                        self.len -= 1;
                    }
                }
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
        if self.are_newest(kept) {
            return 0;
        }
        let mut forgotten = 0;
        for group in groups(kept) {
            let places = self.look_up(group);
            for block in group.blocks() {
                match self.ring.get_mut(places[block as usize % GROUP] as usize) {
                    // It may have been forgotten for one of its own group.
                    Some(held) if *held == block => *held = GAP,
                    _ if self.len == self.capacity => {
                        self.forget_oldest();
                        self.len += 1;
                        forgotten += 1;
                    }
                    _ => self.len += 1,
                }
                self.append(block);
            }
        }
        forgotten
    }

    /// Whether the ring ends with just these: then they need not be moved there. So it is where a
    /// request was looked up before it is added.
    fn are_newest(&self, blocks: Interval) -> bool {
        let count = blocks.len() as usize;
        if count > self.taken {
            return false;
        }
        let first = self.oldest + self.taken - count;
        blocks.blocks().zip(first..).all(|(block, place)| {
            let past_the_end = place >= self.ring.len();
            self.ring[place - if past_the_end { self.ring.len() } else { 0 }] == block
        })
    }

    /// Forgets the oldest; nothing if there is none.
    pub(super) fn forget_oldest(&mut self) {
        if self.len == 0 {
            return;
        }
        while self.ring[self.oldest] == GAP {
            self.step();
        }
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
        let hash = (block >> GROUP_BITS).wrapping_mul(GOLDEN) >> 32;
        ((hash * self.buckets.len() as u64) >> 32) as usize
    }

    /// Where in the ring the blocks of a group are. There is room for all of them behind it
    /// afterwards, so that the places stay what they are.
    fn look_up(&mut self, group: Interval) -> [u32; GROUP] {
        if self.taken + GROUP > self.ring.len() {
            self.clear_gaps();
        }
        let mut places = [NONE; GROUP];
        let number = group.first >> GROUP_BITS;
        let mut place = self.buckets[self.bucket(group.first)] as usize;
        // How far behind the oldest a place may be: less and less.
        let mut within = self.taken;
        loop {
            let behind = match place.checked_sub(self.oldest) {
                Some(behind) => behind,
                None => place + self.ring.len() - self.oldest,
            };
            if behind >= within {
                return places;
            }
            let held = self.ring[place];
            if held >> GROUP_BITS == number {
                places[held as usize % GROUP] = place as u32;
            }
            within = behind;
            place = self.older[place] as usize;
        }
    }

    /// Puts a number at the end of the ring.
    fn append(&mut self, block: u64) {
        debug_assert!(self.taken < self.ring.len(), "no room");
        let mut place = self.oldest + self.taken;
        if place >= self.ring.len() {
            place -= self.ring.len();
        }
        self.taken += 1;
        self.put(place, block);
    }

    fn put(&mut self, place: usize, block: u64) {
        let bucket = self.bucket(block);
        self.ring[place] = block;
        self.older[place] = self.buckets[bucket];
        self.buckets[bucket] = place as u32;
    }

    /// Moves the numbers together, in their order, so that the gaps are at the end. All buckets are
    /// filled anew: that is less work than to look for each number in its own.
    fn clear_gaps(&mut self) {
        self.buckets.fill(NONE);
        let (mut from, mut to) = (self.oldest, self.oldest);
        let mut kept = 0;
        let length = self.ring.len();
        let next = |at: usize| if at + 1 == length { 0 } else { at + 1 };
        for _ in 0..self.taken {
            let block = std::mem::replace(&mut self.ring[from], GAP);
            if block != GAP {
                self.put(to, block);
                to = next(to);
                kept += 1;
            }
            from = next(from);
        }
        self.taken = kept;
    }
}

/// The blocks, group by group.
fn groups(blocks: Interval) -> impl Iterator<Item = Interval> {
    let mut rest = blocks;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let last = rest.last.min(rest.first | (GROUP as u64 - 1));
        let group = Interval::new(rest.first, last);
        rest.first = last + 1;
        Some(group)
    })
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
