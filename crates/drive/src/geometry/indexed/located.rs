//! A track of an indexed layout, as a search finds it.

use crate::angle::Angle;
use crate::geometry::spot::Spot;

/// A track that was found by a place, or by its cylinder and head.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocatedTrack {
    /// The place of its sector 0.
    pub(super) first: u64,
    pub(super) cylinder: u32,
    pub(super) head: u32,
    pub(super) sectors: u32,
    /// The number of its sectors, from sector 0 on, that have places.
    pub(super) places: u32,
    pub(super) start: Angle,
    pub(super) width: Angle,
}

impl LocatedTrack {
    /// The spot of a sector. `contiguous` blocks from its block on follow sector by sector.
    #[inline]
    pub(super) fn spot(&self, sector: u32, contiguous: u32) -> Spot {
        Spot {
            cylinder: self.cylinder,
            head: self.head,
            sector,
            sectors: self.sectors,
            start: self.start,
            width: self.width,
            contiguous,
            is_whole: false,
            remapped: false,
        }
    }
}
