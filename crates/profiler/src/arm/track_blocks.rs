//! The blocks of one track, between which the arm is measured.

use block::Lba;
use drive::Angle;

use crate::findings::FoundTrack;

/// The blocks of one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrackBlocks {
    pub first: Lba,
    pub blocks: u32,
    /// Sectors per revolution.
    pub sectors: u32,
}

impl From<&FoundTrack> for TrackBlocks {
    fn from(track: &FoundTrack) -> Self {
        TrackBlocks {
            first: track.first,
            blocks: track.blocks,
            sectors: track.sectors,
        }
    }
}

impl TrackBlocks {
    /// One sector.
    pub(crate) fn width(&self) -> Angle {
        Angle::fraction(1, u64::from(self.sectors))
    }

    /// From the end of the last block to the beginning of the first one, in revolutions.
    pub(crate) fn gap(&self) -> f64 {
        let spare = self.sectors.saturating_sub(self.blocks);
        f64::from(spare) / f64::from(self.sectors)
    }
}
