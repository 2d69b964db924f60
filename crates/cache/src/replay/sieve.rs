//! SIEVE of numbered blocks.
//!
//! ```text
//!   oldest                                  newest
//!     [a  b  c]   gap   [d  e  f  g  h]
//!       kept             ^ hand                      the hand moves what it spares to the end of `kept`
//! ```
//!
//! At the newest end the hand goes back to the beginning, and the gap is gone.

use super::NumberedPolicy;

const ABSENT: u8 = 0;
const RESIDENT: u8 = 1;
const VISITED: u8 = 3;

/// Free places of the queue for each block. A choice: the gap is closed once in so many admissions.
const SPREAD: usize = 2;

/// The queue in two parts, and the hand between them.
#[derive(Debug)]
pub(super) struct Sieve {
    states: Vec<u8>,
    queue: Box<[u32]>,
    kept: usize,
    hand: usize,
    end: usize,
    free: u32,
}

impl Sieve {
    pub(super) fn new(capacity: u32) -> Self {
        Self {
            states: Vec::new(),
            queue: vec![0; capacity as usize * SPREAD + 1].into_boxed_slice(),
            kept: 0,
            hand: 0,
            end: 0,
            free: capacity,
        }
    }

    /// Evicts the first block from the hand on that was not visited.
    #[inline]
    fn evict(&mut self) {
        loop {
            let block = self.queue[self.hand];
            self.hand += 1;
            let state = &mut self.states[block as usize];
            let is_visited = *state == VISITED;
            if is_visited {
                *state = RESIDENT;
                self.queue[self.kept] = block;
                self.kept += 1;
            } else {
                *state = ABSENT;
            }
            if self.hand == self.end {
                self.end = self.kept;
                (self.kept, self.hand) = (0, 0);
            }
            if !is_visited {
                return;
            }
        }
    }

    #[cold]
    fn close_gap(&mut self) {
        self.queue.copy_within(self.hand..self.end, self.kept);
        self.end -= self.hand - self.kept;
        self.hand = self.kept;
    }
}

impl NumberedPolicy for Sieve {
    fn know(&mut self, blocks: u32) {
        self.states.resize(blocks as usize, ABSENT);
    }

    fn demand(&mut self, blocks: &[u32]) -> u64 {
        let mut hits = 0;
        for &block in blocks {
            let state = &mut self.states[block as usize];
            if *state != ABSENT {
                *state = VISITED;
                hits += 1;
                continue;
            }
            *state = RESIDENT;
            match self.free {
                0 => self.evict(),
                _ => self.free -= 1,
            }
            if self.end == self.queue.len() {
                self.close_gap();
            }
            self.queue[self.end] = block;
            self.end += 1;
        }
        hits
    }
}
