//! The position of one block, as the layouts find it: track, sector, and following blocks.

use std::ops::Range;

use block::Lba;

use super::Track;
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
    /// Whether the track is known to have a block on every sector, in order, but for remapped ones.
    pub is_whole: bool,
    /// Whether the block is remapped.
    pub remapped: bool,
}

impl Spot {
    /// The blocks of the track of this block, if the track has one on every sector.
    #[inline]
    pub fn whole_track(&self, lba: u64) -> Option<Range<u64>> {
        self.is_whole.then(|| {
            let first = lba - u64::from(self.sector);
            first..first + u64::from(self.sectors)
        })
    }

    /// The track, with these blocks as its lowest and highest.
    pub fn track(&self, first: Lba, last: Lba) -> Track {
        Track {
            first,
            last,
            cylinder: self.cylinder,
            head: self.head,
            start: self.start,
            sectors: self.sectors,
            width: self.width,
        }
    }

    /// The beginning of the sector.
    #[inline]
    pub fn angle(&self) -> Angle {
        self.start + self.width.times(u64::from(self.sector))
    }

    /// Whether `next` is on the same track, at `sector` or after it, and not remapped.
    #[inline]
    pub fn is_continued_by(&self, next: &Spot, sector: u32) -> bool {
        !next.remapped
            && next.cylinder == self.cylinder
            && next.head == self.head
            && next.sector >= sector
    }
}
