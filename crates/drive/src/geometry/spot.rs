//! The position of one block, as the layouts find it: track, sector, and following blocks.

use crate::angle::Angle;

/// The position of a block, and the number of blocks that follow it sector by sector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    /// The cylinder.
    pub cylinder: u32,
    /// The surface.
    pub head: u32,
    /// The sector's number on its track.
    pub sector: u32,
    /// The number of sectors on the track.
    pub sectors: u32,
    /// The beginning of the track's sector 0.
    pub start: Angle,
    /// The width of a sector.
    pub width: Angle,
    /// The number of blocks from this one on that lie on consecutive sectors of the track; at least
    /// 1.
    pub contiguous: u32,
    /// Whether the block is remapped.
    pub remapped: bool,
}

impl Spot {
    /// The beginning of the sector.
    pub fn angle(&self) -> Angle {
        self.start + self.width.times(u64::from(self.sector))
    }

    /// Whether `next` is on the same track, at `sector` or after it, and not remapped.
    pub fn is_continued_by(&self, next: &Spot, sector: u32) -> bool {
        !next.remapped
            && next.cylinder == self.cylinder
            && next.head == self.head
            && next.sector >= sector
    }
}
