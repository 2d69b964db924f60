//! A drive of zones as a profile describes it.

use crate::angle::Angle;

/// The order of the heads on a cylinder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeadOrder {
    /// 0, 1, 2... on every cylinder.
    #[default]
    Ascending,
    /// Ascending on a zone's first cylinder, descending on the next, and so on.
    AlternatingInZone,
    /// Ascending on even cylinders of the drive, descending on odd ones.
    AlternatingByParity,
}

/// The position of spare sectors, and the effect of a slipped sector on the blocks after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sparing {
    /// No spares and no slips.
    #[default]
    None,
    /// Spare tracks at the end of each zone; whole tracks are slipped.
    Tracks,
    /// Spare sectors at the end of each cylinder, used by its slips.
    CylinderEnd,
    /// Spare sectors at the end of each track, used by its slips.
    TrackEnd,
    /// Spare sectors at the end of each cylinder; slips push everything to the zone's end.
    CylinderEndSlipToZoneEnd,
    /// Spare sectors at the front of each cylinder, used by its slips.
    CylinderFront,
    /// Spare sectors at the front of each cylinder; slips push everything to the zone's end.
    CylinderFrontSlipToZoneEnd,
    /// No spares but at the disk's end; slips push everything to the zone's end.
    DiskEnd,
    /// Spare sectors at the end of each range of cylinders, used by its slips.
    RangeEnd,
    /// Spare sectors at the end of each zone, used by its slips.
    ZoneEnd,
    /// Spare sectors at the end of each zone; slips push everything towards them.
    ZoneEndSlipToZoneEnd,
}

/// One zone as a profile describes it.
#[derive(Clone, Debug, Default)]
pub struct ZoneDescription {
    /// Its first cylinder.
    pub first_cylinder: u32,
    /// Its last cylinder.
    pub last_cylinder: u32,
    /// The number of sectors of each of its tracks.
    pub sectors_per_track: u32,
    /// The beginning of its sector 0.
    pub start: Angle,
    /// The number of sectors at its front without blocks.
    pub unmapped: u32,
    /// The angle from track to track of a cylinder.
    pub track_skew: Angle,
    /// The angle from the last track of a cylinder to the first of the next.
    pub cylinder_skew: Angle,
    /// The number of spares of each unit of the [`Sparing`]: sectors, or tracks.
    pub spares: u32,
    /// Slipped positions in the zone, or slipped tracks.
    pub slips: Vec<u32>,
    /// Remapped positions (or tracks), and their targets.
    pub remaps: Vec<(u32, u32)>,
}

/// A drive of zones as a profile describes it.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// The number of surfaces.
    pub surfaces: u32,
    /// The number of cylinders.
    pub cylinders: u32,
    /// The number of blocks, at most the capacity of the zones.
    pub blocks: u64,
    /// The order of the heads on a cylinder.
    pub head_order: HeadOrder,
    /// The position of the spares.
    pub sparing: Sparing,
    /// The number of cylinders of a range, for [`Sparing::RangeEnd`].
    pub range_cylinders: u32,
    /// The zones, from the first block to the last.
    pub zones: Vec<ZoneDescription>,
}
