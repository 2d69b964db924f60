//! FIFO of numbered blocks.

use super::NumberedPolicy;

const ABSENT: u8 = 0;
const RESIDENT: u8 = 1;

/// A ring of blocks in the order of their admission.
#[derive(Debug)]
pub(super) struct Fifo {
    states: Vec<u8>,
    ring: Box<[u32]>,
    /// The place of the next block; the oldest block is there once the ring is full.
    next: usize,
    free: u32,
}

impl Fifo {
    pub(super) fn new(capacity: u32) -> Self {
        Self {
            states: Vec::new(),
            ring: vec![0; capacity as usize].into_boxed_slice(),
            next: 0,
            free: capacity,
        }
    }
}

impl NumberedPolicy for Fifo {
    fn know(&mut self, blocks: u32) {
        self.states.resize(blocks as usize, ABSENT);
    }

    fn demand(&mut self, blocks: &[u32]) -> u64 {
        let mut hits = 0;
        for &block in blocks {
            if self.states[block as usize] == RESIDENT {
                hits += 1;
                continue;
            }
            let oldest = std::mem::replace(&mut self.ring[self.next], block);
            match self.free {
                0 => self.states[oldest as usize] = ABSENT,
                _ => self.free -= 1,
            }
            self.states[block as usize] = RESIDENT;
            self.next += 1;
            if self.next == self.ring.len() {
                self.next = 0;
            }
        }
        hits
    }
}
