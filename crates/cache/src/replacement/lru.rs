//! LRU: evicts the least recently used block.
//!
//! The baseline, and PFC's policy at both levels except with SARC. Not for loops over more blocks
//! than the cache has: they evict every block just before its next demand.

use super::{GhostTag, Pattern, Replacement, Touch};
use crate::residency::{FrameId, List, Needs, Residency};

/// An LRU policy: one list, newest first.
#[derive(Debug)]
pub struct Lru {
    order: List,
}

impl Lru {
    /// An empty policy.
    pub fn new() -> Self {
        Self {
            order: List::numbered(0),
        }
    }
}

impl Default for Lru {
    fn default() -> Self {
        Self::new()
    }
}

impl Replacement for Lru {
    fn needs(&self) -> Needs {
        Needs {
            remembered: 0,
            lists: 1,
        }
    }

    #[inline]
    fn touch(&mut self, residency: &mut Residency, frame: FrameId, _: Touch, _: Pattern) {
        self.order.move_to_newest(residency, frame);
    }

    #[inline]
    fn victim(&mut self, residency: &mut Residency, _: GhostTag) -> Option<FrameId> {
        self.order.oldest_valid(residency)
    }

    #[inline]
    fn evict(&mut self, residency: &mut Residency, frame: FrameId) {
        self.withdraw(residency, frame);
    }

    #[inline]
    fn warm_next(&self, residency: &Residency) -> u64 {
        self.order.warm_oldest(residency)
    }

    #[inline]
    fn insert(&mut self, residency: &mut Residency, frame: FrameId, _: Pattern, _: GhostTag) {
        self.order.push_newest(residency, frame);
    }

    fn refresh(&mut self, residency: &mut Residency, frame: FrameId, _: Pattern) {
        self.order.move_to_newest(residency, frame);
    }

    fn withdraw(&mut self, residency: &mut Residency, frame: FrameId) {
        self.order.remove(residency, frame);
        residency.forget(frame);
    }
}
