//! Nested patterns of tracks: the layout of drives since about 2002 (DiskSim's fourth
//! generation), which write a band of tracks on one surface before they switch heads.
//!
//! ```text
//!   head 0   0 --> 1 --> 2 --> ... --> 64     a serpentine: there on one surface,
//!                                       |
//!   head 1  129 <-- ... <-- 66 <-- 65 <-'     and back on the next
//! ```
//!
//! A *group* is either a list of runs of equal tracks, or a list of runs of repeated groups; the
//! last group is the whole drive. Ten million tracks are a few hundred numbers. Runs follow each
//! other without gaps in a numbering of all sectors that hold data or were slipped, in the order
//! of the blocks (a track's spares are not in it); `Slips` turn a block's number into that *place*.

use super::remap::{Lookup, Remap, Remaps};
use super::spot::Spot;
use super::{LayoutError, PatternStep, Track, Turn};
use crate::angle::Angle;
use block::Lba;

mod build;
mod located;
mod slips;

use located::LocatedTrack;
use slips::Slips;

/// Neighbouring tracks of one surface with equally many sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackRun {
    /// The cylinder of the first track, relative to the group.
    pub cylinder: u32,
    /// The surface.
    pub head: u32,
    /// The number of sectors of each track.
    pub sectors: u32,
    /// The beginning of the first track's sector 0, relative to the group.
    pub start: Angle,
    /// The number of tracks; negative if the arm moves towards lower cylinders.
    pub tracks: i32,
    /// The angle from the beginning of a track to that of the next.
    pub step: Angle,
    /// The number of sectors of each track, from its first on, that hold blocks or were slipped: 1
    /// to `sectors`. The others are spares.
    pub blocks: u32,
}

/// Repetitions of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupRun {
    /// The index of the repeated group in the list of groups, below that of this one.
    pub group: u32,
    /// The first cylinder of the first repetition, relative to this group.
    pub cylinder: u32,
    /// The beginning of the first repetition, relative to this group.
    pub start: Angle,
    /// The number of repetitions.
    pub repeats: u32,
    /// The number of cylinders from a repetition to the next.
    pub cylinders: u32,
    /// The angle from the beginning of a repetition to that of the next.
    pub step: Angle,
}

/// A group as a profile describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupDescription {
    /// Runs of tracks.
    Tracks(Vec<TrackRun>),
    /// Runs of groups.
    Groups(Vec<GroupRun>),
}

/// A drive of nested patterns as a profile describes it.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// The number of surfaces.
    pub surfaces: u32,
    /// The number of cylinders.
    pub cylinders: u32,
    /// The number of blocks, at most the capacity of the tracks.
    pub blocks: u64,
    /// The groups; the last is the whole drive.
    pub groups: Vec<GroupDescription>,
    /// Slipped places: the first one, and their number.
    pub slips: Vec<(u64, u32)>,
    /// Remapped blocks.
    pub remaps: Vec<Remap>,
}

/// The pattern that a run repeats.
#[derive(Clone, Copy, Debug)]
enum Child {
    Track {
        head: u8,
        sectors: u32,
        width: Angle,
    },
    Group(u32),
}

/// A checked run of tracks or groups.
#[derive(Clone, Copy, Debug)]
struct PatternRun {
    /// Its first place, relative to its group.
    first: u64,
    /// The number of places of one track or repetition.
    places: u64,
    repeats: u32,
    /// Its first cylinder, relative to its group.
    cylinder: u32,
    /// The distance of repetitions in cylinders.
    pitch: i32,
    /// The number of cylinders of one repetition.
    span: u32,
    start: Angle,
    step: Angle,
    child: Child,
}

/// A checked group.
#[derive(Clone, Debug)]
struct Group {
    /// Its range in the drive's runs, in the order of the places.
    runs: std::ops::Range<u32>,
    places: u64,
    cylinders: u32,
    tracks: u64,
    /// The surfaces that it uses, as bits.
    heads: u64,
}

/// One run in the order of the cylinders.
#[derive(Clone, Copy, Debug)]
struct Lowest {
    cylinder: u32,
    /// One more than the highest cylinder of this run and of those before it.
    reach: u32,
    run: u32,
}

/// A layout of nested patterns.
#[derive(Clone, Debug)]
pub(super) struct Indexed {
    surfaces: u32,
    cylinders: u32,
    blocks: u64,
    groups: Box<[Group]>,
    /// The first place of each run, in a separate array so that a search touches little memory.
    firsts: Box<[u64]>,
    runs: Box<[PatternRun]>,
    /// The runs of each group in the order of their cylinders, in the same ranges.
    lowest: Box<[Lowest]>,
    slips: Slips,
    remaps: Remaps,
}

impl Indexed {
    /// The layout of a description, after a check.
    pub fn new(description: &Description) -> Result<Self, LayoutError> {
        build::indexed(description)
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
        self.root().tracks
    }

    /// The first blocks of the whole drive's runs. An unrepeated run of groups of groups, which is
    /// an actuator's share, is replaced by its own runs.
    pub fn zone_starts(&self) -> Vec<u64> {
        let runs_of =
            |group: &Group| &self.runs[group.runs.start as usize..group.runs.end as usize];
        let mut places = Vec::new();
        for run in runs_of(self.root()) {
            let inner = match run.child {
                Child::Group(child) if run.repeats == 1 => runs_of(&self.groups[child as usize]),
                _ => &[],
            };
            if let Some(Child::Group(_)) = inner.first().map(|run| run.child) {
                places.extend(inner.iter().map(|inner| run.first + inner.first));
            } else {
                places.push(run.first);
            }
        }
        let blocks = places
            .into_iter()
            .map(|place| match self.slips.block_at(place) {
                Ok(block) | Err(block) => block,
            });
        blocks.filter(|&block| block < self.blocks).collect()
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
        let (place, from_slip, until_slip) = self.slips.place(lba);
        let track = self.track_of_place(place);
        let sector = (place - track.first) as u32;
        let until_end = (self.blocks - lba).min(until_slip);
        let regular = u64::from((track.places - sector).min(regular));
        let is_whole = track.places == track.sectors
            && from_slip >= u64::from(sector)
            && until_end >= u64::from(track.places - sector);
        Some(Spot {
            is_whole,
            ..track.spot(sector, until_end.min(regular) as u32)
        })
    }

    /// The path to a block's track: the runs and their repetitions.
    pub fn path_of(&self, lba: u64) -> Option<Vec<PatternStep>> {
        if lba >= self.blocks {
            return None;
        }
        let (mut left, ..) = self.slips.place(lba);
        let mut group = self.groups.len() - 1;
        let mut path = Vec::new();
        loop {
            let runs = &self.groups[group].runs;
            let firsts = &self.firsts[runs.start as usize..runs.end as usize];
            let index = firsts.partition_point(|&first| first <= left) - 1;
            let run = &self.runs[runs.start as usize + index];
            left -= run.first;
            let repetition = left / run.places;
            left -= repetition * run.places;
            path.push(PatternStep {
                group: group as u32,
                run: index as u32,
                repetition,
            });
            match run.child {
                Child::Group(child) => group = child as usize,
                Child::Track { .. } => return Some(path),
            }
        }
    }

    /// The layout with corrected angles.
    pub fn turned(&self, turns: &[Turn]) -> Self {
        let mut turned = self.clone();
        for turn in turns {
            let Some(group) = turned.groups.get(turn.group as usize) else {
                continue;
            };
            let index = group.runs.start + turn.run;
            if index < group.runs.end {
                let run = &mut turned.runs[index as usize];
                run.start = run.start + turn.start;
                run.step = run.step + turn.step;
            }
        }
        turned
    }

    /// The block on a sector.
    pub fn lba_at(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        if let Some(lba) = self.remaps.moved_to(cylinder, head, sector) {
            return Some(lba);
        }
        let track = self.track_under(cylinder, head)?;
        if sector >= track.places {
            return None;
        }
        let lba = self.slips.block_at(track.first + u64::from(sector)).ok()?;
        match self.remaps.find(lba) {
            Lookup::Regular(_) if lba < self.blocks => Some(lba),
            _ => None,
        }
    }

    /// The track of a block.
    pub fn track_of(&self, lba: u64) -> Option<Track> {
        if lba >= self.blocks {
            return None;
        }
        match self.remaps.find(lba) {
            Lookup::Moved(remap, _) => self.track_at(remap.cylinder, remap.head),
            Lookup::Regular(_) => {
                let (place, ..) = self.slips.place(lba);
                self.track(self.track_of_place(place))
            }
        }
    }

    /// The track under a head, if there are blocks on it.
    pub fn track_at(&self, cylinder: u32, head: u32) -> Option<Track> {
        self.track(self.track_under(cylinder, head)?)
    }

    /// A track, if there are blocks on it.
    fn track(&self, found: LocatedTrack) -> Option<Track> {
        let block = |place| match self.slips.block_at(place) {
            Ok(block) | Err(block) => block.min(self.blocks),
        };
        let first = block(found.first);
        let end = block(found.first + u64::from(found.places));
        (first < end).then(|| found.spot(0, 0).track(Lba(first), Lba(end - 1)))
    }

    fn root(&self) -> &Group {
        &self.groups[self.groups.len() - 1]
    }

    /// The track of a place below the last one.
    #[inline]
    fn track_of_place(&self, place: u64) -> LocatedTrack {
        let mut group = self.root();
        let mut left = place;
        let (mut cylinder, mut start) = (0u32, Angle::ZERO);
        loop {
            let firsts = &self.firsts[group.runs.start as usize..group.runs.end as usize];
            let index = firsts.partition_point(|&first| first <= left) - 1;
            let run = &self.runs[group.runs.start as usize + index];
            left -= run.first;
            let repeat = if run.repeats == 1 {
                0
            } else {
                divide(&mut left, run.places)
            };
            cylinder += run
                .cylinder
                .wrapping_add_signed(run.pitch.wrapping_mul(repeat as i32));
            start = start + run.start + run.step.times(u64::from(repeat));
            match run.child {
                Child::Group(child) => group = &self.groups[child as usize],
                Child::Track {
                    head,
                    sectors,
                    width,
                } => {
                    return LocatedTrack {
                        first: place - left,
                        cylinder,
                        head: head.into(),
                        sectors,
                        places: run.places as u32,
                        start,
                        width,
                    };
                }
            }
        }
    }

    /// The track under a head, with or without blocks.
    fn track_under(&self, cylinder: u32, head: u32) -> Option<LocatedTrack> {
        if head >= self.surfaces || cylinder >= self.cylinders {
            return None;
        }
        let (first, run, start) = self.search(self.root(), cylinder, head)?;
        let Child::Track { sectors, width, .. } = run.child else {
            return None;
        };
        Some(LocatedTrack {
            first,
            cylinder,
            head,
            sectors,
            places: run.places as u32,
            start,
            width,
        })
    }

    /// The first place, run and start of a group's track, relative to the group.
    ///
    /// The depth is that of the groups, which is limited when they are read.
    fn search(&self, group: &Group, cylinder: u32, head: u32) -> Option<(u64, &PatternRun, Angle)> {
        let lowest = &self.lowest[group.runs.start as usize..group.runs.end as usize];
        let above = lowest.partition_point(|low| low.cylinder <= cylinder);
        for low in lowest[..above].iter().rev() {
            if low.reach <= cylinder {
                break;
            }
            let run = &self.runs[low.run as usize];
            let Some((repeat, within)) = run.repeat_at(cylinder - low.cylinder) else {
                continue;
            };
            let first = run.first + run.places * u64::from(repeat);
            let start = run.start + run.step.times(u64::from(repeat));
            match run.child {
                Child::Track { head: of_run, .. } if u32::from(of_run) == head => {
                    return Some((first, run, start));
                }
                Child::Group(child) => {
                    let child = &self.groups[child as usize];
                    if child.heads & (1 << head) != 0
                        && let Some((place, run, angle)) = self.search(child, within, head)
                    {
                        return Some((first + place, run, start + angle));
                    }
                }
                Child::Track { .. } => {}
            }
        }
        None
    }

    /// The spot of a remapped block.
    fn moved(&self, remap: Remap, into: u32) -> Option<Spot> {
        let track = self.track_under(remap.cylinder, remap.head)?;
        Some(Spot {
            remapped: true,
            ..track.spot(remap.sector + into, remap.blocks - into)
        })
    }
}

impl PatternRun {
    /// The lowest cylinder of the run.
    fn lowest(&self) -> u32 {
        let last = self.pitch.min(0).wrapping_mul(self.repeats as i32 - 1);
        self.cylinder.wrapping_add_signed(last)
    }

    /// The cylinder after the highest one of the run.
    fn reach(&self) -> u32 {
        let pitch = self.pitch.max(0) as u32;
        self.cylinder + pitch * (self.repeats - 1) + self.span
    }

    /// The repetition that covers a cylinder, which is relative to the lowest one, and the cylinder's
    /// index in the repetition.
    fn repeat_at(&self, cylinder: u32) -> Option<(u32, u32)> {
        let pitch = self.pitch.unsigned_abs();
        let nth = cylinder
            .checked_div(pitch)
            .unwrap_or(0)
            .min(self.repeats - 1);
        let within = cylinder - nth * pitch;
        let repeat = if self.pitch < 0 {
            self.repeats - 1 - nth
        } else {
            nth
        };
        (within < self.span).then_some((repeat, within))
    }
}

/// Divides `left` and leaves the remainder in it. Most numbers fit 32 bits, whose division is
/// faster.
#[inline]
fn divide(left: &mut u64, by: u64) -> u32 {
    let quotient = match (u32::try_from(*left), u32::try_from(by)) {
        (Ok(left), Ok(by)) => left / by,
        _ => (*left / by) as u32,
    };
    *left -= u64::from(quotient) * by;
    quotient
}
