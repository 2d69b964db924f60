//! The resolution of a wanted set, and the offsets of the tracks' bits.
//!
//! ```text
//!   blocks of a track    0 1 2 3 4 5 6 7 8 9 10 ... 578 579 580 581 582 583 584 585
//!   slices of 11 blocks  |---------- 0 ---------|   |--------- 53 (shorter) -------|
//! ```

use drive::{Geometry, Position};

use super::home::densest;

/// The division of a drive into regions of tracks, and of tracks into slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::freeblock) struct Grain {
    /// Surfaces of the drive.
    pub surfaces: u32,
    /// Cylinders of the drive.
    pub cylinders: u32,
    /// Bytes for the slices of one track.
    pub stride: usize,
    /// Cylinders of a region.
    pub region_cylinders: u32,
}

impl Grain {
    /// One block per slice if the budget allows it.
    pub fn new(geometry: &Geometry) -> Self {
        let (surfaces, cylinders) = (geometry.surfaces(), geometry.cylinders());
        let exact = (densest(geometry) as usize).div_ceil(8);
        let tracks = surfaces as usize * cylinders as usize;
        let allowed = (BUDGET_BYTES / tracks).max(LEAST_STRIDE);
        Grain {
            surfaces,
            cylinders,
            stride: exact.min(allowed),
            region_cylinders: (REGION_TRACKS / surfaces).max(1),
        }
    }

    /// The number of blocks of a slice, on a track of `track_blocks` blocks.
    #[inline]
    pub fn slice(&self, track_blocks: u32) -> u32 {
        let slices = self.stride as u32 * 8;
        if track_blocks <= slices {
            1
        } else {
            track_blocks.div_ceil(slices)
        }
    }

    /// The region of a cylinder.
    #[inline]
    pub fn region(&self, cylinder: u32) -> usize {
        (cylinder / self.region_cylinders) as usize
    }

    /// The number of regions.
    pub fn regions(&self) -> usize {
        self.cylinders.div_ceil(self.region_cylinders) as usize
    }

    /// The first cylinder of a region.
    #[inline]
    pub fn first_cylinder(&self, region: usize) -> u32 {
        region as u32 * self.region_cylinders
    }

    /// The cylinders of a region.
    #[inline]
    pub fn cylinders_of(&self, region: usize) -> std::ops::Range<u32> {
        let first = self.first_cylinder(region);
        first..(first + self.region_cylinders).min(self.cylinders)
    }

    /// The tracks of a region.
    pub fn tracks_of(&self, region: usize) -> impl Iterator<Item = Position> + use<> {
        let surfaces = self.surfaces;
        self.cylinders_of(region)
            .flat_map(move |cylinder| (0..surfaces).map(move |head| Position { cylinder, head }))
    }

    /// The offset of a track's bits among those of its region.
    #[inline]
    pub fn offset(&self, position: Position) -> usize {
        let within = position.cylinder % self.region_cylinders;
        self.offset_of_cylinder(within) + position.head as usize * self.stride
    }

    /// The offset of the bits of the region's `within`-th cylinder.
    #[inline]
    pub fn offset_of_cylinder(&self, within: u32) -> usize {
        (within * self.surfaces) as usize * self.stride
    }

    /// The number of a track: by cylinder, then by surface.
    #[inline]
    pub fn track(&self, position: Position) -> usize {
        position.cylinder as usize * self.surfaces as usize + position.head as usize
    }

    /// The number of tracks whose wanted blocks are counted. It is zero if a track's bits fit one
    /// word, which is counted fast, or if a track has more blocks than a count can hold.
    pub fn counted(&self, geometry: &Geometry) -> usize {
        if self.stride <= size_of::<u64>() || densest(geometry) > u32::from(u16::MAX) {
            return 0;
        }
        self.surfaces as usize * self.cylinders as usize
    }

    /// Bytes for the slices of a region. Eight more than used, so that the last track's can be read
    /// as whole words.
    pub fn region_bytes(&self) -> usize {
        (self.region_cylinders * self.surfaces) as usize * self.stride + 8
    }
}

/// The memory of a set above which slices have several blocks. A choice: every drive below 100 GB
/// is exact.
const BUDGET_BYTES: usize = 32 << 20;

/// The least number of bytes per track: 3.7 MiB for each TB of a drive of 20 TB; the goal is 4 MiB.
const LEAST_STRIDE: usize = 7;

/// The approximate number of tracks in a region. A choice: a search through them takes less than a
/// microsecond, and a region's overhead is 2 % of its bits at 20 TB.
const REGION_TRACKS: u32 = 256;
