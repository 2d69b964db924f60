//! The bits of some neighbouring tracks, and how many of their blocks are wanted.

use std::ops::Range;

use super::slices::{mask, word_at};

/// Some neighbouring tracks.
#[derive(Clone, Debug, Default)]
pub(super) struct Region {
    /// The slices of its tracks, where some are wanted and some are not.
    bits: Option<Box<[u8]>>,
    /// How many blocks are wanted; `ALL` if all are, however many that is.
    blocks: u32,
    /// Not less than the wanted blocks of any of its tracks.
    most: u32,
    /// Tracks of which something was removed since `most` was found.
    pub removals: u8,
}

/// What is wanted of a region.
pub(super) enum Fill<'a> {
    Nothing,
    Everything,
    /// The slices with these bits.
    Part(&'a [u8]),
}

impl Region {
    /// A region of which everything is wanted.
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

    /// Not less than the wanted blocks of any of its tracks.
    #[inline]
    pub fn most(&self) -> u32 {
        self.most
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        self.bits.as_ref().map_or(0, |bits| bits.len())
    }

    /// Sets the slices of the track at `offset`; they get `added` blocks, the track `on_track`.
    pub fn set(&mut self, size: usize, offset: usize, slices: Range<u32>, counts: TrackCounts) {
        let bits = self
            .bits
            .get_or_insert_with(|| vec![0; size].into_boxed_slice());
        change(&mut bits[offset..], slices, |word, mask| word | mask);
        self.blocks += counts.changed;
        self.most = self.most.max(counts.on_track);
    }

    /// Clears slices of the track at `offset`, which lose `removed` blocks; gives back the memory if none are left.
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

    /// The largest count of a track was looked up again.
    pub fn set_most(&mut self, most: u32) {
        self.most = most;
        self.removals = 0;
    }
}

/// What an addition does to a track, in blocks.
pub(super) struct TrackCounts {
    /// Blocks that are newly wanted.
    pub changed: u32,
    /// Wanted blocks of the track afterwards.
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

/// The count of a region of which everything is wanted: its tracks were never looked at.
const ALL: u32 = u32::MAX;
