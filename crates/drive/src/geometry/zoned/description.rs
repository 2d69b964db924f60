//! A drive of zones as a profile describes it.

use crate::angle::Angle;

/// In which order the heads take their turns.
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

/// Where spare sectors are, and what a slipped sector does to the blocks after it.
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
    /// Sectors on each of its tracks.
    pub sectors_per_track: u32,
    /// Where its sector 0 begins.
    pub start: Angle,
    /// Sectors at its front that hold no blocks.
    pub unmapped: u32,
    /// From track to track of a cylinder.
    pub track_skew: Angle,
    /// From the last track of a cylinder to the first of the next.
    pub cylinder_skew: Angle,
    /// Spares of each unit that [`Sparing`] names: sectors, or tracks.
    pub spares: u32,
    /// Slipped positions in the zone, or slipped tracks.
    pub slips: Vec<u32>,
    /// Positions (or tracks) that are remapped, and where to.
    pub remaps: Vec<(u32, u32)>,
}

/// A drive of zones as a profile describes it.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// How many surfaces.
    pub surfaces: u32,
    /// How many cylinders.
    pub cylinders: u32,
    /// How many blocks; not more than the zones hold.
    pub blocks: u64,
    /// In which order the heads take their turns.
    pub head_order: HeadOrder,
    /// Where the spares are.
    pub sparing: Sparing,
    /// Cylinders of a range, for [`Sparing::RangeEnd`].
    pub range_cylinders: u32,
    /// The zones, from the first block to the last.
    pub zones: Vec<ZoneDescription>,
}
