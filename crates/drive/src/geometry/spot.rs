//! One block's place, as the layouts find it: the track, the sector, and what follows it.

use crate::angle::Angle;

/// Where one block is, and how far the blocks after it lie on the sectors after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    /// The arm's position.
    pub cylinder: u32,
    /// The surface.
    pub head: u32,
    /// The sector's number on its track.
    pub sector: u32,
    /// Sectors on the track.
    pub sectors: u32,
    /// Where sector 0 of the track begins.
    pub start: Angle,
    /// How wide one sector is.
    pub width: Angle,
    /// How many blocks from this one on lie on consecutive sectors of the track; at least 1.
    pub contiguous: u32,
    /// Whether the block is not where the layout alone would put it.
    pub remapped: bool,
}

impl Spot {
    /// Where the sector begins.
    pub fn angle(&self) -> Angle {
        self.start + self.width.times(u64::from(self.sector))
    }

    /// Whether `next` is on the same track, at `sector` or after it, in its regular place.
    pub fn is_continued_by(&self, next: &Spot, sector: u32) -> bool {
        !next.remapped
            && next.cylinder == self.cylinder
            && next.head == self.head
            && next.sector >= sector
    }
}
