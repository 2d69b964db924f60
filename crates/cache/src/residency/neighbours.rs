//! Lookups of blocks that are mostly neighbours: the index hashes each group of them once.

use super::index::{Group, LINE_BITS};
use super::{BlockState, FrameId, Residency};

/// Lookups in a residency that remember the last group.
#[derive(Clone, Copy, Debug)]
pub struct Neighbours<'a> {
    residency: &'a Residency,
    /// The number of the group.
    number: u64,
    group: Group,
}

impl Residency {
    /// Lookups that begin near this block.
    #[inline]
    pub fn neighbours(&self, block: u64) -> Neighbours<'_> {
        Neighbours {
            residency: self,
            number: block >> LINE_BITS,
            group: self.index.group(block),
        }
    }
}

impl Neighbours<'_> {
    /// As [`Residency::frame`].
    #[inline]
    pub fn frame(&mut self, block: u64) -> Option<FrameId> {
        if block >> LINE_BITS != self.number {
            *self = self.residency.neighbours(block);
        }
        let residency = self.residency;
        let found = residency
            .index
            .find_in(&residency.entries, self.group, block);
        found.map(FrameId).filter(|frame| residency.is_kept(*frame))
    }

    /// As [`Residency::is_resident`].
    #[inline]
    pub fn is_resident(&mut self, block: u64) -> bool {
        self.frame(block).is_some()
    }

    /// As [`Residency::state`].
    #[inline]
    pub fn state(&mut self, block: u64) -> BlockState {
        self.frame(block).map_or(BlockState::Absent, |frame| {
            self.residency.frame_state(frame)
        })
    }
}
