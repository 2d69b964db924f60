//! SIEVE: a hand walks over one queue and takes the first block that was not visited since it last
//! came by (Zhang et al., NSDI 2024).
//!
//! ```text
//!   newest                      oldest
//!     [a  .  b* .  c  .  d* ]              * visited
//!                  <- hand                 clears the stars that it passes, takes the first without
//! ```
//!
//! A hit sets a bit and moves nothing. Not for scans that are read twice soon after another: a
//! block that was visited once survives a whole round.

use super::{GhostTag, Pattern, Replacement, Touch};
use crate::residency::{FrameId, List, Needs, Residency};

const VISITED: u8 = 1;

/// One queue and a hand.
#[derive(Debug)]
pub struct Sieve {
    queue: List,
    /// Where the search goes on; at the oldest if it is nowhere.
    hand: Option<FrameId>,
}

impl Sieve {
    /// Makes one.
    pub fn new() -> Self {
        Self {
            queue: List::numbered(0),
            hand: None,
        }
    }

    /// The hand leaves a frame that is about to move.
    fn leave(&mut self, residency: &Residency, frame: FrameId) {
        if self.hand == Some(frame) {
            self.hand = self.queue.newer(residency, frame);
        }
    }
}

impl Default for Sieve {
    fn default() -> Self {
        Self::new()
    }
}

impl Replacement for Sieve {
    fn needs(&self) -> Needs {
        Needs {
            remembered: 0,
            lists: 1,
        }
    }

    #[inline]
    fn touch(&mut self, residency: &mut Residency, frame: FrameId, touch: Touch, _: Pattern) {
        if touch == Touch::Again {
            residency.set_marks(frame, VISITED);
        }
    }

    #[inline]
    fn victim(&mut self, residency: &mut Residency, _: GhostTag) -> Option<FrameId> {
        if residency.in_flight() == residency.resident() {
            return None;
        }
        loop {
            let frame = self.hand.or_else(|| self.queue.oldest(residency))?;
            self.hand = Some(frame);
            if !residency.is_in_flight(frame) {
                if residency.marks(frame) != VISITED {
                    return Some(frame);
                }
                residency.set_marks(frame, 0);
            }
            self.hand = self.queue.newer(residency, frame);
        }
    }

    #[inline]
    fn evict(&mut self, residency: &mut Residency, frame: FrameId) {
        self.withdraw(residency, frame);
    }

    #[inline]
    fn insert(&mut self, residency: &mut Residency, frame: FrameId, _: Pattern, _: GhostTag) {
        self.queue.push_newest(residency, frame);
    }

    fn refresh(&mut self, residency: &mut Residency, frame: FrameId, _: Pattern) {
        self.leave(residency, frame);
        self.queue.move_to_newest(residency, frame);
    }

    fn withdraw(&mut self, residency: &mut Residency, frame: FrameId) {
        self.leave(residency, frame);
        self.queue.remove(residency, frame);
        residency.forget(frame);
    }
}
