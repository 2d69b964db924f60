//! FIFO: evicts the block that became resident first.
//!
//! A baseline: what a policy gains over it, its references gain. Not where blocks are demanded again: a demand
//! does not keep its block.

use super::{GhostTag, Pattern, Replacement, Touch};
use crate::residency::{FrameId, List, Needs, Residency};

/// One list, newest first.
#[derive(Debug)]
pub struct Fifo {
    order: List,
}

impl Fifo {
    /// An empty policy.
    pub fn new() -> Self {
        Self {
            order: List::numbered(0),
        }
    }
}

impl Default for Fifo {
    fn default() -> Self {
        Self::new()
    }
}

impl Replacement for Fifo {
    fn needs(&self) -> Needs {
        Needs {
            remembered: 0,
            lists: 1,
        }
    }

    #[inline]
    fn touch(&mut self, _: &mut Residency, _: FrameId, _: Touch, _: Pattern) {}

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
