//! LIRS of numbered blocks.

use super::log::{ABSENT, Log};
use super::{AHEAD, NumberedPolicy, warm};
use crate::replacement::lirs::Sizes;
use crate::settings::AlgorithmSettings;

/// The numbers of the logs that share `places`, and of blocks with a low distance, which are in none of them.
const QUEUE: u32 = 1;
const GONE: u32 = 2;
const LOW: u32 = 7 << 29;

/// The stack, the queue, and the remembered blocks in the order of their eviction.
#[derive(Debug)]
pub(super) struct Lirs {
    sizes: Sizes,
    /// The states of blocks in the stack.
    stacked: Vec<u32>,
    /// The states of blocks in the queue, of remembered ones, and of those with a low distance.
    places: Vec<u32>,
    stack: Log,
    queue: Log,
    gone: Log,
    /// Blocks in the stack, in the queue, remembered, and with a low distance.
    stack_count: u32,
    queue_count: u32,
    gone_count: u32,
    low_count: u32,
    free: u32,
}

impl Lirs {
    pub(super) fn new(capacity: u32, settings: &AlgorithmSettings) -> Self {
        let sizes = Sizes::new(capacity, settings);
        let (capacity_size, remembered) = (capacity as usize, sizes.remembered as usize);
        Self {
            stacked: Vec::new(),
            places: Vec::new(),
            stack: Log::numbered(1, capacity_size + remembered + 1),
            queue: Log::numbered(QUEUE, capacity_size),
            gone: Log::numbered(GONE, remembered + 1),
            stack_count: 0,
            queue_count: 0,
            gone_count: 0,
            low_count: 0,
            free: capacity,
            sizes,
        }
    }

    /// Moves the block to the top of the stack.
    #[inline]
    fn stack(&mut self, block: u32) {
        self.unstack(block);
        self.stack_count += 1;
        self.stack.push(&mut self.stacked, block);
    }

    /// Removes the block from the stack, if it is there.
    #[inline]
    fn unstack(&mut self, block: u32) {
        let state = std::mem::replace(&mut self.stacked[block as usize], ABSENT);
        if state != ABSENT {
            self.stack_count -= 1;
            self.stack.remove(state);
        }
    }

    #[inline]
    fn enqueue(&mut self, block: u32) {
        self.queue.push(&mut self.places, block);
        self.queue_count += 1;
    }

    /// Removes the oldest blocks of the stack until one with a low distance is the oldest. Returns that.
    #[inline]
    fn prune(&mut self) -> Option<u32> {
        while self.stack_count > 0 {
            let oldest = self.stack.oldest();
            let place = &mut self.places[oldest as usize];
            if *place == LOW {
                return Some(oldest);
            }
            if Log::of(*place) == GONE {
                self.gone.remove(*place);
                *place = ABSENT;
                self.gone_count -= 1;
            }
            self.unstack(oldest);
        }
        None
    }

    /// Gives a block that is at most in the stack a low distance.
    fn promote(&mut self, block: u32) {
        self.stack(block);
        self.places[block as usize] = LOW;
        self.low_count += 1;
        let mut oldest = self.prune();
        // The last one may be this block itself: then the cache has no room for any.
        while self.low_count > self.sizes.low
            && let Some(demoted) = oldest
        {
            self.unstack(demoted);
            self.low_count -= 1;
            self.enqueue(demoted);
            oldest = self.prune();
        }
    }

    fn hit(&mut self, block: u32) {
        let place = self.places[block as usize];
        if place == LOW {
            self.stack(block);
            self.prune();
            return;
        }
        self.queue_count -= 1;
        self.queue.remove(place);
        match self.stacked[block as usize] {
            ABSENT => {
                self.stack(block);
                self.enqueue(block);
            }
            _ => self.promote(block),
        }
    }

    fn miss(&mut self, block: u32) {
        let place = std::mem::replace(&mut self.places[block as usize], ABSENT);
        let was_remembered = place != ABSENT;
        if was_remembered {
            self.gone.remove(place);
            self.gone_count -= 1;
            self.unstack(block);
        }
        match self.free {
            0 => self.evict(),
            _ => self.free -= 1,
        }
        if was_remembered || self.low_count < self.sizes.low {
            self.promote(block);
        } else {
            self.stack(block);
            self.enqueue(block);
        }
    }

    fn evict(&mut self) {
        if self.queue_count == 0 {
            let oldest = self.prune().expect("the cache is full");
            self.unstack(oldest);
            self.low_count -= 1;
            self.places[oldest as usize] = ABSENT;
            self.prune();
            return;
        }
        self.queue_count -= 1;
        let oldest = self.queue.pop_oldest();
        self.places[oldest as usize] = ABSENT;
        if self.stacked[oldest as usize] == ABSENT {
            return;
        }
        self.gone.push(&mut self.places, oldest);
        self.gone_count += 1;
        if self.gone_count > self.sizes.remembered {
            let forgotten = self.gone.pop_oldest();
            self.gone_count -= 1;
            self.places[forgotten as usize] = ABSENT;
            self.unstack(forgotten);
        }
    }
}

impl NumberedPolicy for Lirs {
    fn know(&mut self, blocks: u32) {
        self.stacked.resize(blocks as usize, ABSENT);
        self.places.resize(blocks as usize, ABSENT);
    }

    fn demand(&mut self, blocks: &[u32]) -> u64 {
        let mut hits = 0;
        for piece in blocks.chunks(AHEAD) {
            warm(&self.places, piece);
            warm(&self.stacked, piece);
            for &block in piece {
                let place = self.places[block as usize];
                if place == LOW || Log::of(place) == QUEUE {
                    hits += 1;
                    self.hit(block);
                } else {
                    self.miss(block);
                }
            }
        }
        hits
    }
}
