//! The map between block numbers and positions: cylinder, head, sector and angle.
//!
//! Two kinds of layout share one interface. [`zoned`] has zones of cylinders that are filled
//! cylinder by cylinder. [`indexed`] has nested patterns of tracks for drives with serpentines.
//! Both answer for one block at a time with a `Spot`, from which this module derives all else.
//! A [`Geometry::share`] is a part of such a layout with block numbers of its own.

pub mod indexed;
mod joined;
pub mod remap;
mod share;
mod spot;
mod track_extents;
mod turn;
pub mod zoned;

use std::sync::Arc;

use block::{Extent, Lba, Sectors};

use crate::angle::Angle;
use indexed::Indexed;
use joined::Joined;
use share::Share;
use spot::Spot;
pub use track_extents::TrackExtents;
pub use turn::{PatternStep, Turn};
use zoned::Zoned;

/// The position of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPosition {
    /// The cylinder.
    pub cylinder: u32,
    /// The surface.
    pub head: u32,
    /// The number of the sector on its track, slipped ones included.
    pub sector: u32,
    /// The number of sectors of the track.
    pub sectors_per_track: u32,
    /// The beginning of the sector.
    pub angle: Angle,
    /// The width of a sector.
    pub width: Angle,
}

/// The part of an extent that lies on one track and passes in one sweep of the head.
///
/// ```text
///        start                    sweep
///          |<------------------------------------------>|
///   ...----[ s0 ][ s1 ][ slipped ][ s2 ][ s3 ]...[ sn-1 ]----...
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrackExtent {
    /// The first block.
    pub first: Lba,
    /// The number of blocks.
    pub blocks: u32,
    /// The cylinder.
    pub cylinder: u32,
    /// The surface.
    pub head: u32,
    /// The beginning of the first sector.
    pub start: Angle,
    /// The angle from the beginning of the first sector to the end of the last. A whole track of
    /// exactly one revolution is `Angle::from_raw(u64::MAX)`.
    pub sweep: Angle,
    /// The width of a sector.
    pub width: Angle,
}

/// A whole track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// The lowest block on the track.
    pub first: Lba,
    /// The highest block on the track.
    pub last: Lba,
    /// The cylinder.
    pub cylinder: u32,
    /// The surface.
    pub head: u32,
    /// The beginning of sector 0.
    pub start: Angle,
    /// The number of sectors, unused ones included.
    pub sectors: u32,
    /// The width of a sector.
    pub width: Angle,
}

/// A range of blocks with one layout, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The first block.
    pub first: Lba,
    /// The cylinder of the first block.
    pub cylinder: u32,
    /// The number of sectors of the first track.
    pub sectors_per_track: u32,
    /// The beginning of the first block.
    pub start: Angle,
}

/// The reason that a description is no layout: the item, the key, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct LayoutError {
    /// The zone or group, from 0; `None` if the whole layout is wrong.
    pub item: Option<usize>,
    /// The index in the item's list, from 0, if the key holds a list.
    pub entry: Option<usize>,
    /// The key of the profile file that holds the number.
    pub key: &'static str,
    /// The mistake, and what was expected.
    pub reason: String,
}

/// The most surfaces: sets of them are the bits of one word.
pub const MAX_SURFACES: u32 = 64;

/// The most cylinders: six times those of a 20 TB drive of 2020. A seek table has an entry for
/// each.
pub const MAX_CYLINDERS: u32 = 1 << 22;

/// The most sectors of a track: ten times those of the largest drives of 2020 (about 4,700 sectors
/// of 512 bytes).
pub const MAX_SECTORS_PER_TRACK: u32 = 65_536;

impl LayoutError {
    /// An error about the whole layout.
    fn of_drive(key: &'static str, reason: String) -> Self {
        LayoutError {
            item: None,
            entry: None,
            key,
            reason,
        }
    }
}

/// Checks the numbers that concern a whole layout of either kind.
fn check_drive(surfaces: u32, cylinders: u32, blocks: u64) -> Result<(), LayoutError> {
    if surfaces == 0 || surfaces > MAX_SURFACES {
        return Err(LayoutError::of_drive(
            "surfaces",
            format!("{surfaces} surfaces: expected 1 to {MAX_SURFACES}"),
        ));
    }
    if cylinders == 0 || cylinders > MAX_CYLINDERS {
        return Err(LayoutError::of_drive(
            "cylinders",
            format!("{cylinders} cylinders: expected 1 to {MAX_CYLINDERS}"),
        ));
    }
    if blocks == 0 {
        return Err(LayoutError::of_drive(
            "blocks",
            "a drive without blocks: expected at least one".into(),
        ));
    }
    Ok(())
}

/// The two kinds of layout, a share of one, and two one after the other.
#[derive(Debug)]
enum LayoutKind {
    Zoned(Zoned),
    Indexed(Indexed),
    Share(Share),
    Joined(Joined),
}

impl LayoutKind {
    fn blocks(&self) -> u64 {
        match self {
            LayoutKind::Zoned(zoned) => zoned.blocks(),
            LayoutKind::Indexed(indexed) => indexed.blocks(),
            LayoutKind::Share(share) => share.blocks(),
            LayoutKind::Joined(joined) => joined.blocks(),
        }
    }
}

/// The map between blocks and positions.
#[derive(Clone, Debug)]
pub struct Geometry {
    layout: Arc<LayoutKind>,
    /// The blocks of the layout, which are asked for often.
    blocks: u64,
    /// The corrections of the layout's published angles.
    turns: Arc<[Turn]>,
}

impl Geometry {
    /// A drive of zones.
    ///
    /// # Errors
    /// If the description is no layout.
    pub fn zoned(description: &zoned::Description) -> Result<Self, LayoutError> {
        Ok(Self::of(LayoutKind::Zoned(Zoned::new(description)?)))
    }

    /// A drive of nested patterns.
    ///
    /// # Errors
    /// If the description is no layout.
    pub fn indexed(description: &indexed::Description) -> Result<Self, LayoutError> {
        Ok(Self::of(LayoutKind::Indexed(Indexed::new(description)?)))
    }

    fn of(layout: LayoutKind) -> Self {
        Geometry {
            blocks: layout.blocks(),
            layout: Arc::new(layout),
            turns: Arc::new([]),
        }
    }

    /// The layout with `turns` added to its angles and earlier corrections.
    ///
    /// Turns of runs that the layout does not have are ignored.
    pub fn turned(&self, turns: &[Turn]) -> Geometry {
        let layout = match &*self.layout {
            LayoutKind::Zoned(zoned) => LayoutKind::Zoned(zoned.turned(turns)),
            LayoutKind::Indexed(indexed) => LayoutKind::Indexed(indexed.turned(turns)),
            LayoutKind::Share(share) => LayoutKind::Share(share.turned(turns)),
            // It has no runs of its own.
            LayoutKind::Joined(_) => return self.clone(),
        };
        Geometry {
            blocks: layout.blocks(),
            layout: Arc::new(layout),
            turns: turn::combined(&self.turns, turns).into(),
        }
    }

    /// The layout of the blocks of `extent`, numbered from 0. Cylinders, surfaces and angles stay.
    ///
    /// # Panics
    /// If the extent is not on the drive.
    pub fn share(&self, extent: Extent) -> Geometry {
        let share = Share::new(self.clone(), extent.start().0, extent.length().0);
        Geometry {
            blocks: share.blocks(),
            layout: Arc::new(LayoutKind::Share(share)),
            turns: Arc::clone(&self.turns),
        }
    }

    /// Two layouts one after the other, with the cylinders of the second after those of the first.
    pub fn joined(first: &Geometry, second: &Geometry) -> Geometry {
        Self::of(LayoutKind::Joined(Joined::new(
            first.clone(),
            second.clone(),
        )))
    }

    /// The corrections of the published angles.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// The path from the whole drive to a block's track; `None` past the end.
    pub fn path_of(&self, lba: Lba) -> Option<Vec<PatternStep>> {
        match &*self.layout {
            LayoutKind::Zoned(zoned) => zoned.path_of(lba.0),
            LayoutKind::Indexed(indexed) => indexed.path_of(lba.0),
            LayoutKind::Share(share) => share.path_of(lba.0),
            LayoutKind::Joined(joined) => joined.path_of(lba.0),
        }
    }

    /// The number of blocks of the drive.
    #[inline]
    pub fn sectors(&self) -> Sectors {
        Sectors(self.blocks)
    }

    /// The number of cylinders.
    pub fn cylinders(&self) -> u32 {
        match &*self.layout {
            LayoutKind::Zoned(zoned) => zoned.cylinders(),
            LayoutKind::Indexed(indexed) => indexed.cylinders(),
            LayoutKind::Share(share) => share.whole().cylinders(),
            LayoutKind::Joined(joined) => joined.cylinders(),
        }
    }

    /// The number of surfaces.
    pub fn surfaces(&self) -> u32 {
        match &*self.layout {
            LayoutKind::Zoned(zoned) => zoned.surfaces(),
            LayoutKind::Indexed(indexed) => indexed.surfaces(),
            LayoutKind::Share(share) => share.whole().surfaces(),
            LayoutKind::Joined(joined) => joined.surfaces(),
        }
    }

    /// The number of tracks, those without blocks and those of other shares included.
    pub fn tracks(&self) -> u64 {
        match &*self.layout {
            LayoutKind::Zoned(zoned) => zoned.tracks(),
            LayoutKind::Indexed(indexed) => indexed.tracks(),
            LayoutKind::Share(share) => share.whole().tracks(),
            LayoutKind::Joined(joined) => joined.tracks(),
        }
    }

    /// The position of a block; `None` past the end.
    pub fn locate(&self, lba: Lba) -> Option<BlockPosition> {
        let spot = self.spot(lba.0)?;
        Some(BlockPosition {
            cylinder: spot.cylinder,
            head: spot.head,
            sector: spot.sector,
            sectors_per_track: spot.sectors,
            angle: spot.angle(),
            width: spot.width,
        })
    }

    /// The block on a sector; `None` if there is none.
    pub fn lba_at(&self, cylinder: u32, head: u32, sector: u32) -> Option<Lba> {
        let lba = match &*self.layout {
            LayoutKind::Zoned(zoned) => zoned.lba_at(cylinder, head, sector),
            LayoutKind::Indexed(indexed) => indexed.lba_at(cylinder, head, sector),
            LayoutKind::Share(share) => share.lba_at(cylinder, head, sector),
            LayoutKind::Joined(joined) => joined.lba_at(cylinder, head, sector),
        };
        lba.map(Lba)
    }

    /// The track of a block; `None` past the end.
    ///
    /// A block that was remapped is on the track that it was remapped to, which is then not
    /// between that track's first and last block.
    pub fn track_of(&self, lba: Lba) -> Option<Track> {
        let spot = self.spot(lba.0)?;
        if let Some(blocks) = spot.whole_track(lba.0) {
            return Some(spot.track(Lba(blocks.start), Lba(blocks.end - 1)));
        }
        let track = match &*self.layout {
            LayoutKind::Zoned(zoned) => zoned.track_of(lba.0),
            LayoutKind::Indexed(indexed) => indexed.track_of(lba.0),
            LayoutKind::Share(share) => share.track_of(lba.0),
            LayoutKind::Joined(joined) => joined.track_of(lba.0),
        };
        if track.is_some() {
            return track;
        }
        // A spare track may hold nothing but remapped blocks.
        Some(spot.track(lba, lba))
    }

    /// The track under a head; `None` if it has no blocks.
    pub fn track_at(&self, cylinder: u32, head: u32) -> Option<Track> {
        match &*self.layout {
            LayoutKind::Zoned(zoned) => zoned.track_at(cylinder, head),
            LayoutKind::Indexed(indexed) => indexed.track_at(cylinder, head),
            LayoutKind::Share(share) => share.track_at(cylinder, head),
            LayoutKind::Joined(joined) => joined.track_at(cylinder, head),
        }
    }

    /// The parts of an extent that lie on one track each, in the order of the blocks.
    ///
    /// Blocks past the end of the drive are ignored.
    pub fn runs(&self, extent: Extent) -> TrackExtents<'_> {
        let end = extent.end().0.min(self.sectors().0);
        TrackExtents::new(self, extent.start().0.min(end), end)
    }

    /// The ranges of blocks with one layout, in the order of the blocks.
    pub fn zones(&self) -> Vec<Zone> {
        let starts = match &*self.layout {
            LayoutKind::Zoned(zoned) => zoned.zone_starts(),
            LayoutKind::Indexed(indexed) => indexed.zone_starts(),
            LayoutKind::Share(share) => share.zone_starts(),
            LayoutKind::Joined(joined) => joined.zone_starts(),
        };
        starts
            .into_iter()
            .filter_map(|first| {
                let spot = self.spot(first)?;
                Some(Zone {
                    first: Lba(first),
                    cylinder: spot.cylinder,
                    sectors_per_track: spot.sectors,
                    start: spot.angle(),
                })
            })
            .collect()
    }

    /// The position of a block, and the number of blocks that follow it sector by sector.
    #[inline]
    fn spot(&self, lba: u64) -> Option<Spot> {
        match &*self.layout {
            LayoutKind::Zoned(zoned) => zoned.spot(lba),
            LayoutKind::Indexed(indexed) => indexed.spot(lba),
            LayoutKind::Share(share) => share.spot(lba),
            LayoutKind::Joined(joined) => joined.spot(lba),
        }
    }
}
