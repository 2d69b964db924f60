//! S3-FIFO of numbered blocks.

use std::collections::VecDeque;

use super::NumberedPolicy;
use super::log::{ABSENT, Log};
use crate::replacement::s3_fifo::{FillQueue, Sizes, SmallTurnEnd};
use crate::settings::AlgorithmSettings;

/// Bits of a block's state: the number of uses, the queue, and whether it is resident.
const COUNTER: u8 = 0b11;
const MAIN: u8 = 0b100;
const RESIDENT: u8 = 0b1000;

/// The queues, and a log of remembered blocks.
#[derive(Debug)]
pub(super) struct S3Fifo {
    sizes: Sizes,
    states: Vec<u8>,
    small: VecDeque<u32>,
    main: VecDeque<u32>,
    /// The states of blocks in `ghosts`.
    remembered: Vec<u32>,
    ghosts: Log,
    ghost_count: u32,
    free: u32,
    has_evicted: bool,
}

impl S3Fifo {
    pub(super) fn new(capacity: u32, settings: &AlgorithmSettings) -> Self {
        let sizes = Sizes::new(capacity, settings);
        Self {
            states: Vec::new(),
            small: VecDeque::new(),
            main: VecDeque::new(),
            remembered: Vec::new(),
            ghosts: Log::numbered(1, sizes.remembered as usize),
            ghost_count: 0,
            free: capacity,
            has_evicted: false,
            sizes,
        }
    }

    fn is_small_due(&self) -> bool {
        self.small.len() >= self.sizes.small as usize
    }

    /// Admits an absent block.
    fn admit(&mut self, block: u32) {
        let ghost = std::mem::replace(&mut self.remembered[block as usize], ABSENT);
        let was_remembered = ghost != ABSENT;
        if was_remembered {
            self.ghosts.remove(ghost);
            self.ghost_count -= 1;
        }
        match self.free {
            0 => self.evict(),
            _ => self.free -= 1,
        }
        let fills_main =
            !self.has_evicted && self.sizes.fill == FillQueue::Main && self.is_small_due();
        if was_remembered || fills_main {
            self.states[block as usize] = RESIDENT | MAIN;
            self.main.push_back(block);
        } else {
            self.states[block as usize] = RESIDENT;
            self.small.push_back(block);
        }
    }

    fn evict(&mut self) {
        self.has_evicted = true;
        let mut is_small = self.is_small_due();
        loop {
            let takes_small = match is_small {
                true => !self.small.is_empty(),
                false => self.main.is_empty(),
            };
            let queue = match takes_small {
                true => &mut self.small,
                false => &mut self.main,
            };
            let block = queue.pop_front().expect("the cache is full");
            let state = &mut self.states[block as usize];
            let counter = *state & COUNTER;
            if !takes_small {
                if counter == 0 {
                    *state = 0;
                    return;
                }
                *state -= 1;
                self.main.push_back(block);
            } else if counter >= self.sizes.again {
                *state = RESIDENT | MAIN;
                self.main.push_back(block);
                is_small &= self.sizes.turn == SmallTurnEnd::Gone || self.is_small_due();
            } else {
                *state = 0;
                return self.remember(block);
            }
        }
    }

    fn remember(&mut self, block: u32) {
        if self.sizes.remembered == 0 {
            return;
        }
        if self.ghost_count == self.sizes.remembered {
            let oldest = self.ghosts.pop_oldest();
            self.remembered[oldest as usize] = ABSENT;
            self.ghost_count -= 1;
        }
        self.ghosts.push(&mut self.remembered, block);
        self.ghost_count += 1;
    }
}

impl NumberedPolicy for S3Fifo {
    fn know(&mut self, blocks: u32) {
        self.states.resize(blocks as usize, 0);
        self.remembered.resize(blocks as usize, ABSENT);
    }

    fn demand(&mut self, blocks: &[u32]) -> u64 {
        let mut hits = 0;
        for &block in blocks {
            let state = &mut self.states[block as usize];
            if *state == 0 {
                self.admit(block);
            } else {
                hits += 1;
                *state += u8::from(*state & COUNTER != COUNTER);
            }
        }
        hits
    }
}
