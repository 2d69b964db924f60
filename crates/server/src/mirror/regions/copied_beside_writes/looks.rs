//! What is compared with the two arrays.

use std::ops::Range;

use super::{BLOCK, REGION, World, blocks};

impl World {
    /// What holds at any moment.
    pub(super) fn look(&mut self) {
        let lacks = self.lacks.iter().filter(|&&lacks| lacks).count() as u64;
        assert_eq!(self.regions.stale_bytes().0, lacks * BLOCK);
        for run in self.regions.wanted().iter() {
            for block in blocks(run) {
                assert!(self.lacks[block as usize], "it has {block}");
                assert!(
                    !self.failed[block as usize],
                    "{block} cannot be read in gaps"
                );
            }
        }
        if self.is_filled && self.regions.is_copied() && self.writes.is_empty() {
            assert_eq!(self.legs[0], self.legs[1]);
            self.equal_looks += 1;
        }
    }

    /// Naively: a leg lacks blocks of which it has none and is given none.
    pub(super) fn look_at_lacking(&self, blocks: &Range<u64>, lacks: bool) {
        let meets = |locked: &Range<u64>| locked.start < blocks.end && blocks.start < locked.end;
        let is_locked = self.locked_blocks().is_some_and(meets);
        let all_lack = blocks.clone().all(|block| self.lacks[block as usize]);
        // That a region cannot be read is found out by reading.
        let may_be_unreadable = blocks.clone().any(|block| self.is_beside_unreadable(block));
        assert!(lacks <= (all_lack && !is_locked), "{blocks:?}");
        assert!(
            lacks || may_be_unreadable || !all_lack || is_locked,
            "{blocks:?}"
        );
    }

    /// Whether a region has a block that cannot be read.
    pub(super) fn is_beside_unreadable(&self, block: u64) -> bool {
        let region = |block: u64| block * BLOCK / REGION;
        let mut all = self.unreadable.iter();
        all.any(|&bad| region(bad) == region(block))
    }
}
