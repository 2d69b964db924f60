//! The bits of a region of tracks, and the number of wanted blocks.

use std::ops::Range;

use super::slices::{mask, word_at};

/// A region of neighbouring tracks.
#[derive(Clone, Debug, Default)]
pub(super) struct Region {
    /// The slices of its tracks, if some are wanted and some are not.
    bits: Option<Box<[u8]>>,
    /// The number of wanted blocks; `ALL` if all are wanted.
    blocks: u32,
    /// An upper bound of the wanted blocks of any of its tracks.
    most: u32,
    /// Removals since `most` was computed.
    pub removals: u8,
}

/// The wanted part of a region.
pub(super) enum Fill<'a> {
    Nothing,
    Everything,
    /// The slices with these bits.
    Part(&'a [u8]),
}

impl Region {
    /// A region that is wholly wanted.
    pub fn all() -> Self {
        Region {
            blocks: ALL,
            most: u32::MAX,
            ..Region::default()
        }
    }

    #[inline]
    pub fn fill(&self) -> Fill<'_> {
        match &self.bits {
            Some(bits) => Fill::Part(bits),
            None if self.blocks == ALL => Fill::Everything,
            None => Fill::Nothing,
        }
    }

    /// An upper bound of the wanted blocks of any of its tracks.
    #[inline]
    pub fn most(&self) -> u32 {
        self.most
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        self.bits.as_ref().map_or(0, |bits| bits.len())
    }

    /// Sets slices of the track at `offset`, and updates the counts.
    pub fn set(&mut self, size: usize, offset: usize, slices: Range<u32>, counts: TrackCounts) {
        let bits = self
            .bits
            .get_or_insert_with(|| vec![0; size].into_boxed_slice());
        change(&mut bits[offset..], slices, |word, mask| word | mask);
        self.blocks += counts.changed;
        self.most = self.most.max(counts.on_track);
    }

    /// Clears slices of the track at `offset`, which have `removed` blocks. Frees the memory if
    /// none are left.
    pub fn clear(&mut self, offset: usize, slices: Range<u32>, removed: u32) {
        let Some(bits) = &mut self.bits else {
            return;
        };
        change(&mut bits[offset..], slices, |word, mask| word & !mask);
        self.blocks -= removed;
        self.removals = self.removals.saturating_add(1);
        if self.blocks == 0 {
            *self = Region::default();
        }
    }

    /// Replaces the upper bound by a computed one.
    pub fn set_most(&mut self, most: u32) {
        self.most = most;
        self.removals = 0;
    }
}

/// The effect of an addition on a track, in blocks.
pub(super) struct TrackCounts {
    /// The number of newly wanted blocks.
    pub changed: u32,
    /// The number of the track's wanted blocks afterwards.
    pub on_track: u32,
}

/// Changes the bits of a range of slices, word by word.
fn change(bytes: &mut [u8], slices: Range<u32>, with: impl Fn(u64, u64) -> u64) {
    if slices.is_empty() {
        return;
    }
    for word in slices.start / 64..=(slices.end - 1) / 64 {
        let changed = with(word_at(bytes, word), mask(word, &slices));
        let from = word as usize * 8;
        bytes[from..from + 8].copy_from_slice(&changed.to_le_bytes());
    }
}

/// The count of a wholly wanted region, whose tracks were never read.
const ALL: u32 = u32::MAX;
