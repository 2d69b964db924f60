//! LRU of numbered blocks.

use super::log::{ABSENT, Log};
use super::{AHEAD, NumberedPolicy, warm};

/// One log.
#[derive(Debug)]
pub(super) struct Lru {
    states: Vec<u32>,
    order: Log,
    free: u32,
}

impl Lru {
    pub(super) fn new(capacity: u32) -> Self {
        Self {
            states: Vec::new(),
            order: Log::numbered(1, capacity as usize),
            free: capacity,
        }
    }
}

impl NumberedPolicy for Lru {
    fn know(&mut self, blocks: u32) {
        self.states.resize(blocks as usize, ABSENT);
    }

    fn demand(&mut self, blocks: &[u32]) -> u64 {
        let mut hits = 0;
        for piece in blocks.chunks(AHEAD) {
            warm(&self.states, piece);
            for &block in piece {
                let state = self.states[block as usize];
                if state != ABSENT {
                    hits += 1;
                    self.order.remove(state);
                } else if self.free > 0 {
                    self.free -= 1;
                } else {
                    let oldest = self.order.pop_oldest();
                    self.states[oldest as usize] = ABSENT;
                }
                self.order.push(&mut self.states, block);
            }
        }
        hits
    }
}
