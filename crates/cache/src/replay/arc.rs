//! ARC of numbered blocks.

use super::log::{ABSENT, Log};
use super::{AHEAD, NumberedPolicy, warm};

/// The numbers of the logs.
const T1: u32 = 1;
const T2: u32 = 2;
const B1: u32 = 3;
const B2: u32 = 4;

/// The lists.
const LISTS: [u32; 4] = [T1, T2, B1, B2];

/// Four logs and the target.
#[derive(Debug)]
pub(super) struct Arc {
    states: Vec<u32>,
    logs: [Log; 4],
    counts: [u32; 4],
    capacity: u32,
    /// The target size of T1: the paper's p, a real number.
    target: f64,
}

impl Arc {
    pub(super) fn new(capacity: u32) -> Self {
        Self {
            states: Vec::new(),
            // One more while a block leaves for another.
            logs: LISTS.map(|list| Log::numbered(list, capacity as usize + 1)),
            counts: [0; 4],
            capacity,
            target: 0.0,
        }
    }

    fn count(&self, list: u32) -> u32 {
        self.counts[list as usize - 1]
    }

    #[inline]
    fn push(&mut self, block: u32, list: u32) {
        self.logs[list as usize - 1].push(&mut self.states, block);
        self.counts[list as usize - 1] += 1;
    }

    #[inline]
    fn pop_oldest(&mut self, list: u32) -> u32 {
        self.counts[list as usize - 1] -= 1;
        self.logs[list as usize - 1].pop_oldest()
    }

    /// Removes a block of this state from its list. Its state is void then.
    #[inline]
    fn remove(&mut self, state: u32) {
        let list = Log::of(state) as usize - 1;
        self.counts[list] -= 1;
        self.logs[list].remove(state);
    }

    fn forget_oldest(&mut self, list: u32) {
        if self.count(list) > 0 {
            let oldest = self.pop_oldest(list);
            self.states[oldest as usize] = ABSENT;
        }
    }

    /// Makes a remembered block resident.
    fn recall(&mut self, block: u32, state: u32) {
        let list = Log::of(state);
        let (b1, b2) = (f64::from(self.count(B1)), f64::from(self.count(B2)));
        self.target = match list {
            B1 => (self.target + (b2 / b1).max(1.0)).min(f64::from(self.capacity)),
            _ => (self.target - (b1 / b2).max(1.0)).max(0.0),
        };
        self.remove(state);
        self.replace(list);
        self.push(block, T2);
    }

    /// Makes an unknown block resident.
    fn admit(&mut self, block: u32) {
        self.replace(ABSENT);
        if self.count(T1) + self.count(B1) >= self.capacity {
            self.forget_oldest(B1);
        } else if self.counts.iter().sum::<u32>() >= 2 * self.capacity {
            self.forget_oldest(B2);
        }
        self.push(block, T1);
    }

    /// The paper's REPLACE, if no frame is free.
    #[inline]
    fn replace(&mut self, coming: u32) {
        if self.count(T1) + self.count(T2) < self.capacity {
            return;
        }
        let t1 = f64::from(self.count(T1));
        let is_above = t1 > self.target || (coming == B2 && t1 == self.target);
        let takes_t1 = self.count(T2) == 0 || t1 >= 1.0 && is_above;
        let (from, to) = match takes_t1 {
            true => (T1, B1),
            false => (T2, B2),
        };
        let oldest = self.pop_oldest(from);
        self.push(oldest, to);
    }
}

impl NumberedPolicy for Arc {
    fn know(&mut self, blocks: u32) {
        self.states.resize(blocks as usize, ABSENT);
    }

    fn demand(&mut self, blocks: &[u32]) -> u64 {
        let mut hits = 0;
        for piece in blocks.chunks(AHEAD) {
            warm(&self.states, piece);
            for &block in piece {
                let state = self.states[block as usize];
                match Log::of(state) {
                    T1 | T2 => {
                        hits += 1;
                        self.remove(state);
                        self.push(block, T2);
                    }
                    B1 | B2 => self.recall(block, state),
                    _ => self.admit(block),
                }
            }
        }
        hits
    }
}
