//! Where a block is: cylinder, head, sector and angle, and back.

use block::Lba;

use crate::angle::Angle;

/// Where one block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The arm's position.
    pub cylinder: u32,
    /// The surface.
    pub head: u32,
    /// The sector's number on its track, counting slipped ones.
    pub sector: u32,
    /// Sectors on the track.
    pub sectors_per_track: u32,
    /// Where the sector begins.
    pub angle: Angle,
    /// How wide one sector is.
    pub width: Angle,
}

/// The part of an extent that lies on one track and is passed in one sweep of the head.
///
/// ```text
///        start                    sweep
///          |<------------------------------------------>|
///   ...----[ s0 ][ s1 ][ slipped ][ s2 ][ s3 ]...[ sn-1 ]----...
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first block.
    pub first: Lba,
    /// Blocks.
    pub blocks: u32,
    /// The arm's position.
    pub cylinder: u32,
    /// The surface.
    pub head: u32,
    /// Where the first sector begins.
    pub start: Angle,
    /// From the beginning of the first sector to the end of the last; a whole track that is
    /// exactly one revolution is `Angle::from_raw(u64::MAX)`.
    pub sweep: Angle,
    /// How wide one sector is.
    pub width: Angle,
}

/// A whole track: what a head passes in one revolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// The lowest block on it.
    pub first: Lba,
    /// The highest block on it.
    pub last: Lba,
    /// The arm's position.
    pub cylinder: u32,
    /// The surface.
    pub head: u32,
    /// Where sector 0 begins.
    pub start: Angle,
    /// Sectors on it, unused ones too.
    pub sectors: u32,
    /// How wide one sector is.
    pub width: Angle,
}

/// The map between blocks and places.
#[derive(Clone, Debug)]
pub struct Geometry {}
impl Geometry {
    /// x
    pub fn sectors(&self) -> block::Sectors {
        block::Sectors(0)
    }
    /// x
    pub fn locate(&self, _l: Lba) -> Option<Place> {
        None
    }
    /// x
    pub fn track_of(&self, _l: Lba) -> Option<Track> {
        None
    }
    /// x
    pub fn runs(&self, _e: block::Extent) -> std::vec::IntoIter<Run> {
        vec![].into_iter()
    }
}
