//! Coarse positions of the blocks of a track, because most tracks have no wanted block among those
//! that pass.
//!
//! The exact computation costs ten times as much. The coarse one may report blocks that do not
//! pass, and never misses one that does.

use std::ops::Range;
use std::sync::Arc;

use block::{Duration, Instant, Lba};
use drive::geometry::{Track, TrackExtent};
use drive::{Angle, Position, Profile, Spindle};

use super::turning::Rim;
use super::visit::{WholeTrack, blocks_of, only_run, whole};

/// The number of tracks up to which every track of a drive is read. They take a tenth of a second.
pub(super) const COUNTED: u32 = 1 << 20;

/// The outlines of all tracks; none on a drive of `COUNTED` tracks or more.
#[derive(Clone, Debug)]
pub(super) struct Outlines {
    surfaces: u32,
    /// In the order of the tracks.
    outlines: Arc<[Outline]>,
    /// In the same order, apart from what a search through many tracks reads.
    places: Arc<[TrackPlace]>,
    /// The width of a sector on tracks with so many sectors; zero if no track has.
    widths: Arc<[Angle]>,
}

/// The coarse place and the number of the blocks of a track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outline {
    /// The beginning of sector 0 in parts of a revolution out of 2^32, rounded down.
    start: u32,
    /// The number of sectors; 0 if blocks were remapped, which makes the outline unknown.
    sectors: u16,
    /// The number of blocks, at most that of sectors.
    blocks: u16,
}

/// The exact place of a track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TrackPlace {
    /// The beginning of sector 0.
    start: Angle,
    /// The lowest block.
    lowest: Lba,
    /// The sector of the first block if the others are on the following sectors, without gaps; else
    /// `SLIPPED`.
    first: u16,
}

/// No sector's number: the outline of a track counts at most as many sectors from 0.
const SLIPPED: u16 = u16::MAX;

/// The part of a cylinder that passes under the head, in parts of a revolution out of 2^32.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passing {
    /// The angle under the head at the beginning, rounded down.
    from: u32,
    /// The rotation, rounded up; `None` above a revolution.
    turn: Option<u32>,
}

impl Outlines {
    pub fn new(profile: &Profile) -> Self {
        let geometry = &profile.geometry;
        let surfaces = geometry.surfaces();
        let cylinders = match surfaces * geometry.cylinders() < COUNTED {
            true => 0..geometry.cylinders(),
            false => 0..0,
        };
        let places = cylinders
            .flat_map(|cylinder| (0..surfaces).map(move |head| Position { cylinder, head }));
        let mut widths = Vec::new();
        let (outlines, places): (Vec<_>, Vec<_>) = places
            .map(|place| outlined(profile, place, &mut widths).unwrap_or_default())
            .unzip();
        Outlines {
            surfaces,
            outlines: outlines.into(),
            places: places.into(),
            widths: widths.into(),
        }
    }

    /// The outline of a track, if it has one.
    #[inline]
    pub fn at(&self, position: Position) -> Option<&Outline> {
        known(self.of(position.cylinder), position.head)
    }

    /// The outlines of a cylinder's tracks; none on a drive without outlines.
    #[inline]
    pub fn of(&self, cylinder: u32) -> &[Outline] {
        let surfaces = self.surfaces as usize;
        let first = cylinder as usize * surfaces;
        let outlines = self.outlines.get(first..first + surfaces);
        outlines.unwrap_or_default()
    }

    /// The track at a position, as the geometry has it, if it has an outline.
    pub fn track(&self, position: Position) -> Option<WholeTrack> {
        let outline = self.at(position)?;
        let place = self.place(position);
        let track = Track {
            first: place.lowest,
            last: Lba(place.lowest.0 + u64::from(outline.blocks) - 1),
            cylinder: position.cylinder,
            head: position.head,
            start: place.start,
            sectors: outline.sectors.into(),
            width: self.widths[usize::from(outline.sectors)],
        };
        Some(WholeTrack {
            track,
            straight: place.straight(),
        })
    }

    /// The sectors of a track with an outline, and the one of its first block, if the others follow without gaps.
    #[inline]
    pub fn straight(&self, position: Position, outline: &Outline) -> Option<(Rim, u32)> {
        let place = self.place(position);
        let rim = Rim {
            start: place.start,
            width: self.widths[usize::from(outline.sectors)],
            sectors: outline.sectors.into(),
        };
        Some((rim, place.straight()?))
    }

    /// The place of a track with an outline.
    #[inline]
    fn place(&self, position: Position) -> &TrackPlace {
        &self.places[(position.cylinder * self.surfaces + position.head) as usize]
    }
}

/// The outline of a track among those of its cylinder, if it has one.
#[inline]
pub(super) fn known(outlines: &[Outline], head: u32) -> Option<&Outline> {
    let outline = outlines.get(head as usize)?;
    (outline.sectors > 0).then_some(outline)
}

/// The outline and the place of a track; `None` if blocks were remapped.
fn outlined(
    profile: &Profile,
    place: Position,
    widths: &mut Vec<Angle>,
) -> Option<(Outline, TrackPlace)> {
    let track = profile.geometry.track_at(place.cylinder, place.head)?;
    let blocks = track.last.0 - track.first.0 + 1;
    let (sectors, blocks) = (
        u16::try_from(track.sectors).ok()?,
        u16::try_from(blocks).ok()?,
    );
    let run = only_run(profile, blocks_of(&track, 0..u32::from(blocks)));
    let here = |run: &TrackExtent| {
        run.cylinder == track.cylinder && run.head == track.head && blocks <= sectors
    };
    if !run.as_ref().is_some_and(here) || !is_one_width(widths, &track) {
        return None;
    }
    let straight = whole(profile, &track).and_then(|piece| piece.straight_from());
    let outline = Outline {
        start: parts(track.start),
        sectors,
        blocks,
    };
    let place = TrackPlace {
        start: track.start,
        lowest: track.first,
        first: straight.map_or(SLIPPED, |first| first as u16),
    };
    Some((outline, place))
}

/// An angle in parts of a revolution out of 2^32, rounded down.
#[inline]
fn parts(angle: Angle) -> u32 {
    (angle.raw() >> 32) as u32
}

impl TrackPlace {
    /// The sector of the first block if the others are on the following ones, without gaps.
    #[inline]
    fn straight(&self) -> Option<u32> {
        (self.first != SLIPPED).then_some(self.first.into())
    }
}

impl Outline {
    /// The number of the track's blocks.
    #[inline]
    pub fn blocks(&self) -> u32 {
        self.blocks.into()
    }

    /// The number of the track's sectors.
    #[inline]
    pub fn sectors(&self) -> u32 {
        self.sectors.into()
    }

    /// A superset of the blocks that pass wholly: those before the track's logical start, and those
    /// from it on. `None` if all may pass.
    #[inline]
    pub fn passing(&self, passing: &Passing) -> Option<[Range<u32>; 2]> {
        let sectors = u64::from(self.sectors);
        let whole = |angle: u32| ((u64::from(angle) * sectors) >> 32) as u32;
        // Both angles are rounded down: the difference is at most a part too large.
        let from = whole(passing.from.wrapping_sub(self.start)).saturating_sub(1);
        let until = from + whole(passing.turn?) + ROUNDED;
        let sectors = u32::from(self.sectors);
        if until >= from + sectors || passing.from == self.start {
            return None;
        }
        let slipped = sectors - self.blocks();
        let before = from.saturating_sub(slipped)..until.min(self.blocks());
        let after = 0..until.saturating_sub(sectors).min(self.blocks());
        Some([before, after])
    }
}

/// Whether all tracks so far with as many sectors as this one have sectors as wide. The width of
/// the first of them is noted.
fn is_one_width(widths: &mut Vec<Angle>, track: &Track) -> bool {
    let sectors = track.sectors as usize;
    if widths.len() <= sectors {
        widths.resize(sectors + 1, Angle::ZERO);
    }
    if widths[sectors] == Angle::ZERO {
        widths[sectors] = track.width;
    }
    widths[sectors] == track.width
}

impl Passing {
    /// The rotation between two moments.
    #[inline]
    pub fn new(spindle: &Spindle, from: Instant, time: Duration) -> Self {
        let nano = spindle.angle_at(Instant::from_nanos(1)) - spindle.phase();
        let turn = time.as_nanos().checked_mul(nano.raw());
        Passing {
            from: parts(spindle.angle_at(from)),
            turn: turn.and_then(|turn| u32::try_from(turn >> 32).ok()?.checked_add(1)),
        }
    }
}

/// Sectors that are counted in addition: one that was subtracted at the beginning, one each for
/// rounding down the angle before and the rotation, and one for the rounding of times and widths,
/// which is far less than a sector.
const ROUNDED: u32 = 4;
