//! Union and difference of wanted sets.

use super::region::Fill;
use super::{Region, Slices, WantedBlocks};
use drive::Position;

impl WantedBlocks {
    /// Adds the blocks of `other`, and returns the number of newly wanted blocks.
    ///
    /// # Panics
    /// If the two sets are of drives with different layouts.
    pub fn union_with(&mut self, other: &WantedBlocks) -> u64 {
        let before = self.left;
        if other.left == other.geometry.sectors().0 {
            self.assert_like(other);
            self.fill();
            return self.left - before;
        }
        self.each_difference(other, |set, here, blocks, theirs| {
            let mut slices = 0..theirs.count();
            while let Some(first) = theirs.first(slices.clone()) {
                let end = theirs.first_unwanted(first..slices.end);
                let end = end.unwrap_or(slices.end);
                set.set_slices(here, blocks, first..end);
                slices.start = end;
            }
        });
        self.left - before
    }

    /// Removes the blocks of `other`, and returns the number of removed blocks.
    ///
    /// # Panics
    /// If the two sets are of drives with different layouts.
    pub fn subtract(&mut self, other: &WantedBlocks) -> u64 {
        let before = self.left;
        if other.left == other.geometry.sectors().0 {
            self.assert_like(other);
            *self = WantedBlocks::of(&self.geometry, self.grain);
            return before;
        }
        self.each_difference(other, |set, here, blocks, theirs| {
            let mut slices = 0..theirs.count();
            while let Some(first) = theirs.first(slices.clone()) {
                let end = theirs.first_unwanted(first..slices.end);
                let end = end.unwrap_or(slices.end);
                set.clear_slices(here, blocks, first..end);
                slices.start = end;
            }
        });
        before - self.left
    }

    /// Calls `change` for every track with wanted blocks in `other`: its position, its blocks, its
    /// slices in `other`.
    fn each_difference(
        &mut self,
        other: &WantedBlocks,
        change: impl Fn(&mut WantedBlocks, Position, u32, Slices),
    ) {
        self.assert_like(other);
        for (index, region) in other.regions.iter().enumerate() {
            if let Fill::Nothing = Region::fill(region) {
                continue;
            }
            for position in self.grain.tracks_of(index) {
                let track = self.geometry.track_at(position.cylinder, position.head);
                let Some(track) = track else {
                    continue;
                };
                let blocks = (track.last.0 - track.first.0 + 1) as u32;
                if let Some(theirs) = other.slices_at(position, blocks) {
                    change(self, position, blocks, theirs);
                }
            }
        }
    }

    fn assert_like(&self, other: &WantedBlocks) {
        assert!(
            self.grain == other.grain && self.geometry.sectors() == other.geometry.sectors(),
            "sets of wanted blocks of two drives: expected the same layout"
        );
    }
}
