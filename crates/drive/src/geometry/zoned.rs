//! Zones of cylinders, filled cylinder by cylinder and head by head: the layout of drives until
//! about 2002 (DiskSim's first generation).
//!
//! Inside a zone every sector has a *position*: sectors counted along the tracks in the order in
//! which the heads follow each other. Blocks occupy positions in ascending order, except unmapped
//! sectors at the front of the zone, spare sectors, and slipped (defective) ones:
//!
//! ```text
//!   positions   0    1    2    3    4    5    6    7    8    9  ...
//!   sectors  [dead][ b0 ][ b1 ][slip][ b2 ][ b3 ][spare]...
//!                   \___ shift 0 ___/ \__ shift 1 __/
//! ```
//!
//! The *shift* of a block is the distance by which slips push it. It is a step function of the
//! block number, stored as a sorted list with a table of where to look.

use super::remap::{Lookup, Remap, Remaps};
use super::spot::Spot;
use super::{LayoutError, PatternStep, Track, Turn};
use crate::angle::Angle;
use block::Lba;

mod description;
mod index;
mod slips;
mod steps;

use index::StepIndex;
use steps::BlockPlace;

pub use description::{Description, HeadOrder, Sparing, ZoneDescription};

/// The positions that slips push: before or after the spares are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slipping {
    /// Slips push blocks over the unit's spares into the next unit.
    AcrossUnits,
    /// Slips push blocks into the unit's spares.
    WithinUnit,
}

/// A checked zone.
#[derive(Clone, Debug)]
struct ZoneTable {
    first: u64,
    blocks: u32,
    first_cylinder: u32,
    last_cylinder: u32,
    sectors: u32,
    /// Positions in the zone.
    positions: u32,
    /// Blocks that a unit holds, sectors that it has, spares at its front.
    unit_blocks: u32,
    unit_sectors: u32,
    unit_front: u32,
    unmapped: u32,
    slipping: Slipping,
    /// Its part of the steps of the drive.
    steps: std::ops::Range<u32>,
    /// Its part of the drive's slips, where slips push the skew as well.
    pushes: std::ops::Range<u32>,
    start: Angle,
    track_skew: Angle,
    /// From the first track of a cylinder to the first of the next.
    cylinder_step: Angle,
    width: Angle,
}

/// From `first` (relative to the zone) on, slips have pushed the blocks by `shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SlipStep {
    first: u32,
    shift: i32,
}

/// The layout of a drive of zones.
#[derive(Clone, Debug)]
pub(super) struct Zoned {
    surfaces: u32,
    cylinders: u32,
    blocks: u64,
    head_order: HeadOrder,
    /// Slips push the skew forward as well: per track, or per cylinder.
    push: Push,
    index: StepIndex,
    zones: Box<[ZoneTable]>,
    steps: Box<[SlipStep]>,
    /// Slipped positions, zone by zone, for `push`.
    pushes: Box<[u32]>,
    remaps: Remaps,
}

/// Whether slips move the beginning of the tracks after them by a sector each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Push {
    Nothing,
    Cylinders,
    Tracks,
}

impl Zoned {
    /// The layout of a description, after a check.
    pub fn new(description: &Description) -> Result<Self, LayoutError> {
        super::check_drive(
            description.surfaces,
            description.cylinders,
            description.blocks,
        )?;
        if description.zones.is_empty() {
            let reason = "no zones: expected at least one".to_owned();
            return Err(LayoutError::of_drive("zone", reason));
        }
        let push = match description.sparing {
            Sparing::CylinderEnd
            | Sparing::CylinderEndSlipToZoneEnd
            | Sparing::CylinderFront
            | Sparing::CylinderFrontSlipToZoneEnd => Push::Cylinders,
            Sparing::TrackEnd => Push::Tracks,
            _ => Push::Nothing,
        };
        let mut layout = Zoned {
            surfaces: description.surfaces,
            cylinders: description.cylinders,
            blocks: 0,
            head_order: description.head_order,
            push,
            index: StepIndex::default(),
            zones: Box::new([]),
            steps: Box::new([]),
            pushes: Box::new([]),
            remaps: Remaps::default(),
        };
        let (mut zones, mut steps, mut pushes) = (Vec::new(), Vec::new(), Vec::new());
        for (item, zone) in description.zones.iter().enumerate() {
            let zone = slips::prepare(description, item, zone, &mut steps, &mut pushes)?;
            zones.push(ZoneTable {
                first: layout.blocks,
                ..zone
            });
            layout.blocks += u64::from(zones[item].blocks);
        }
        if description.blocks > layout.blocks {
            return Err(LayoutError::of_drive(
                "blocks",
                format!(
                    "{} blocks, but the zones hold {}: expected not more than that",
                    description.blocks, layout.blocks
                ),
            ));
        }
        layout.blocks = description.blocks;
        for zone in &mut zones {
            let left = layout.blocks.saturating_sub(zone.first);
            zone.blocks = u64::from(zone.blocks).min(left) as u32;
        }
        layout.zones = zones.into();
        layout.index = StepIndex::new(&layout.zones, &steps, layout.blocks);
        layout.steps = steps.into();
        layout.pushes = pushes.into();
        layout.remaps = layout.find_remaps(description)?;
        Ok(layout)
    }

    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    pub fn surfaces(&self) -> u32 {
        self.surfaces
    }

    pub fn tracks(&self) -> u64 {
        self.zones
            .iter()
            .map(|zone| u64::from(zone.positions / zone.sectors))
            .sum()
    }

    pub fn zone_starts(&self) -> Vec<u64> {
        let filled = self.zones.iter().filter(|zone| zone.blocks > 0);
        filled.map(|zone| zone.first).collect()
    }

    /// The spot of a block.
    #[inline]
    pub fn spot(&self, lba: u64) -> Option<Spot> {
        if lba >= self.blocks {
            return None;
        }
        let mut regular = u32::MAX;
        if !self.remaps.is_empty() {
            match self.remaps.find(lba) {
                Lookup::Regular(blocks) => regular = blocks,
                Lookup::Moved(remap, into) => return self.moved(remap, into),
            }
        }
        let (zone, place) = self.place_of(lba);
        let spot = self.at_position(zone, place.position);
        let left = zone.sectors - spot.sector;
        let is_whole = place.before >= spot.sector && place.following >= left;
        Some(Spot {
            contiguous: place.following.min(left).min(regular),
            is_whole,
            ..spot
        })
    }

    /// The zone and its cylinder, then the track's turn in the cylinder.
    pub fn path_of(&self, lba: u64) -> Option<Vec<PatternStep>> {
        let spot = self.spot(lba)?;
        let index = self
            .zones
            .partition_point(|zone| zone.first_cylinder <= spot.cylinder)
            - 1;
        let zone = &self.zones[index];
        let cylinder = spot.cylinder - zone.first_cylinder;
        let turn = self.head_of_turn(zone, cylinder, spot.head);
        let step = |group, run, repetition| PatternStep {
            group,
            run,
            repetition,
        };
        let zone = index as u32;
        Some(vec![
            step(0, zone, cylinder.into()),
            step(1 + zone, 0, turn.into()),
        ])
    }

    /// The layout with corrected angles.
    pub fn turned(&self, turns: &[Turn]) -> Self {
        let mut turned = self.clone();
        for turn in turns {
            let zone = if turn.group == 0 {
                turn.run
            } else {
                turn.group - 1
            };
            let Some(zone) = turned.zones.get_mut(zone as usize) else {
                continue;
            };
            zone.start = zone.start + turn.start;
            match turn.group {
                0 => zone.cylinder_step = zone.cylinder_step + turn.step,
                _ => zone.track_skew = zone.track_skew + turn.step,
            }
        }
        turned
    }

    /// The block on a sector.
    pub fn lba_at(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        if let Some(lba) = self.remaps.moved_to(cylinder, head, sector) {
            return Some(lba);
        }
        let (zone, first) = self.track_position(cylinder, head)?;
        if sector >= zone.sectors {
            return None;
        }
        let lba = zone.first + u64::from(self.block_at(zone, first + sector).ok()?);
        match self.remaps.find(lba) {
            Lookup::Regular(_) => Some(lba),
            Lookup::Moved(..) => None,
        }
    }

    /// The track of a block.
    pub fn track_of(&self, lba: u64) -> Option<Track> {
        if lba >= self.blocks {
            return None;
        }
        if let Lookup::Moved(remap, _) = self.remaps.find(lba) {
            return self.track_at(remap.cylinder, remap.head);
        }
        let (zone, BlockPlace { position, .. }) = self.place_of(lba);
        self.track(zone, position - position % zone.sectors)
    }

    /// The track under a head, if there are blocks on it.
    pub fn track_at(&self, cylinder: u32, head: u32) -> Option<Track> {
        let (zone, position) = self.track_position(cylinder, head)?;
        self.track(zone, position)
    }

    /// The track that begins at a position of a zone, if there are blocks on it.
    fn track(&self, zone: &ZoneTable, position: u32) -> Option<Track> {
        let block = |position| match self.block_at(zone, position) {
            Ok(block) | Err(block) => block,
        };
        let first = block(position);
        let end = block(position + zone.sectors);
        if first >= end {
            return None;
        }
        let spot = self.at_position(zone, position);
        let (first, last) = (
            zone.first + u64::from(first),
            zone.first + u64::from(end) - 1,
        );
        Some(spot.track(Lba(first), Lba(last)))
    }

    /// The sector at a position of a zone. A call would copy the answer, which was just written.
    #[inline(always)]
    fn at_position(&self, zone: &ZoneTable, position: u32) -> Spot {
        let (track, sector) = (position / zone.sectors, position % zone.sectors);
        let (cylinder, turn) = (track / self.surfaces, track % self.surfaces);
        let mut start = zone.start
            + zone.cylinder_step.times(u64::from(cylinder))
            + zone.track_skew.times(u64::from(turn));
        if self.push != Push::Nothing && !zone.pushes.is_empty() {
            let before = match self.push {
                Push::Tracks => track,
                _ => track - turn,
            } * zone.sectors;
            let slips = &self.pushes[zone.pushes.start as usize..zone.pushes.end as usize];
            let pushed = slips.partition_point(|&slip| slip < before);
            start = start + zone.width.times(pushed as u64);
        }
        Spot {
            cylinder: zone.first_cylinder + cylinder,
            head: self.head_of_turn(zone, cylinder, turn),
            sector,
            sectors: zone.sectors,
            start,
            width: zone.width,
            contiguous: 1,
            is_whole: false,
            remapped: false,
        }
    }

    /// The head of a turn on a zone's cylinder, and the turn of a head: the map is its own inverse.
    #[inline]
    fn head_of_turn(&self, zone: &ZoneTable, cylinder: u32, turn: u32) -> u32 {
        let descending = match self.head_order {
            HeadOrder::Ascending => false,
            HeadOrder::AlternatingInZone => cylinder % 2 == 1,
            HeadOrder::AlternatingByParity => (zone.first_cylinder + cylinder) % 2 == 1,
        };
        if descending {
            self.surfaces - 1 - turn
        } else {
            turn
        }
    }

    /// The zone of a track, and the position of its sector 0.
    fn track_position(&self, cylinder: u32, head: u32) -> Option<(&ZoneTable, u32)> {
        if head >= self.surfaces {
            return None;
        }
        let above = self.zones.partition_point(|z| z.first_cylinder <= cylinder);
        let zone = &self.zones[above.checked_sub(1)?];
        if cylinder > zone.last_cylinder {
            return None;
        }
        let cylinder = cylinder - zone.first_cylinder;
        let track = cylinder * self.surfaces + self.head_of_turn(zone, cylinder, head);
        Some((zone, track * zone.sectors))
    }

    /// The spot of a remapped block.
    fn moved(&self, remap: Remap, into: u32) -> Option<Spot> {
        let (zone, first) = self.track_position(remap.cylinder, remap.head)?;
        Some(Spot {
            contiguous: remap.blocks - into,
            remapped: true,
            ..self.at_position(zone, first + remap.sector + into)
        })
    }

    /// The remapped blocks of a description: positions, or whole tracks.
    fn find_remaps(&self, description: &Description) -> Result<Remaps, LayoutError> {
        let mut remaps = Vec::new();
        for (item, (zone, described)) in self.zones.iter().zip(&description.zones).enumerate() {
            let unit = match description.sparing {
                Sparing::Tracks => zone.sectors,
                _ => 1,
            };
            for (entry, &(from, to)) in described.remaps.iter().enumerate() {
                let wrong = |reason: String| LayoutError {
                    item: Some(item),
                    entry: Some(entry),
                    key: "remaps",
                    reason,
                };
                let limit = zone.positions / unit;
                if from >= limit || to >= limit {
                    return Err(wrong(format!(
                        "remap of {from} to {to}: expected both below {limit}, the zone's size"
                    )));
                }
                if self.block_at(zone, to * unit).is_ok() {
                    return Err(wrong(format!(
                        "remap to {to}, which holds a block of its own: expected a spare"
                    )));
                }
                let Ok(block) = self.block_at(zone, from * unit) else {
                    return Err(wrong(format!(
                        "remap of {from}, which holds no block: expected a mapped one"
                    )));
                };
                let target = self.at_position(zone, to * unit);
                remaps.push(Remap {
                    first: zone.first + u64::from(block),
                    blocks: unit.min(zone.blocks - block),
                    cylinder: target.cylinder,
                    head: target.head,
                    sector: target.sector,
                });
            }
        }
        Remaps::new(remaps)
    }
}

impl ZoneTable {
    /// The position of a block that is pushed by `shift`. In units with spares, also its place in its unit.
    #[inline]
    fn place(&self, block: u32, shift: i32) -> (u32, Option<u32>) {
        let (before, after) = match self.slipping {
            Slipping::AcrossUnits => (shift, 0),
            Slipping::WithinUnit => (0, shift),
        };
        let place = (block + self.unmapped).wrapping_add_signed(before);
        if self.unit_blocks == self.unit_sectors {
            return (place.wrapping_add_signed(after), None);
        }
        let (unit, offset) = (place / self.unit_blocks, place % self.unit_blocks);
        let position = unit * self.unit_sectors + self.unit_front + offset;
        (position.wrapping_add_signed(after), Some(offset))
    }

    /// The block at a position inside a step, or else the next block, without regard to the
    /// step's end.
    fn block_in_step(&self, position: u32, step: SlipStep) -> Result<u32, u32> {
        let (before, after) = match self.slipping {
            Slipping::AcrossUnits => (step.shift, 0),
            Slipping::WithinUnit => (0, step.shift),
        };
        let block = |place: u32| {
            let block = place.wrapping_add_signed(-before);
            block.saturating_sub(self.unmapped)
        };
        let unit = position / self.unit_sectors;
        let offset = position % self.unit_sectors;
        let offset = i64::from(offset) - i64::from(self.unit_front) - i64::from(after);
        if offset < 0 {
            Err(block(unit * self.unit_blocks))
        } else if offset >= i64::from(self.unit_blocks) {
            Err(block((unit + 1) * self.unit_blocks))
        } else {
            let place = unit * self.unit_blocks + offset as u32;
            if place.wrapping_add_signed(-before) < self.unmapped {
                return Err(0);
            }
            Ok(block(place))
        }
    }
}
