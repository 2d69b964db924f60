//! What is known of blocks that follow each other at equal angles.

use block::Lba;
use drive::Angle;

use crate::prober::Unseen;

/// Why a track could not be made out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTrack {
    /// A block could not be sighted.
    Unseen(Unseen),
    /// The blocks there do not follow each other at equal angles.
    NoLine,
}

impl From<Unseen> for NoTrack {
    fn from(unseen: Unseen) -> Self {
        NoTrack::Unseen(unseen)
    }
}

/// Blocks that follow each other at equal angles.
#[derive(Clone, Copy, Debug)]
pub(super) struct SectorLine {
    pub(super) first: Lba,
    /// Where the first of them ends.
    pub(super) end: Angle,
    pub(super) sectors: u32,
    pub(super) blocks: u32,
    /// How far off the number of sectors usually is before it is rounded, because a host delays sightings.
    pub(super) doubt: f64,
}

/// Where the first block of a line is on its track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineBegin {
    /// It is the track's first, or follows such blocks that are elsewhere: so many.
    Track(u64),
    /// Anywhere.
    Anywhere,
}

impl SectorLine {
    /// Whether it tells how many sectors there are on a turn.
    pub(super) fn is_long(&self) -> bool {
        self.blocks >= LONG_ENOUGH && self.doubt <= DOUBT
    }
}

/// Lines whose number of sectors is usually farther off do not tell it. A choice: both ends are late by
/// exponentially distributed times, whose difference is half a sector once in thirty times then, and the
/// number is told twice.
pub(super) const DOUBT: f64 = 0.15;

/// The widths of sectors in revolutions: more than 10 on a track and fewer than 20,000, twice what
/// drives of 2020 have.
pub(super) const WIDTHS: (f64, f64) = (1.0 / 20_000.0, 1.0 / 10.0);

/// Lines of fewer blocks do not tell how many sectors there are on a turn. A choice.
pub(super) const LONG_ENOUGH: u32 = 16;

/// Sightings of the first block of a line behind a host that delays them. A choice: the line of all sightings
/// tells where it begins.
pub(super) const FIRSTS: usize = 3;
