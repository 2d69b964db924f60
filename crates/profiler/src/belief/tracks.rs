//! A layout for tracks without known surfaces: each is assumed to be on a cylinder of its own.
//!
//! ```text
//!   found       |--- piece ---|     ?     |--- piece ---|   ?
//!   believed    |-- its tracks |like these|- its tracks -|like these
//! ```
//!
//! Angles are right where the map is known. Distances are not: consecutive tracks are assumed to be
//! one cylinder apart. Tracks beyond the maximum number of cylinders are on further surfaces.

use drive::Angle;
use drive::geometry::MAX_CYLINDERS;
use drive::geometry::indexed::{Description, GroupDescription, GroupRun, TrackRun};

use crate::findings::{Band, TrackMap};

/// The tracks of a drive without any known track. A choice: those of 1995.
const UNKNOWN: Band = Band {
    tracks: 1,
    blocks: 100,
    sectors: 100,
    start: Angle::ZERO,
    skew: Angle::ZERO,
};

/// A layout for a drive of `blocks` blocks.
pub fn description(map: &TrackMap, blocks: u64) -> Description {
    let mut filling = Filling::default();
    let pieces = map.pieces.iter();
    let first = pieces.clone().flat_map(|piece| piece.cycle.first()).next();
    // On a large drive so many more that they fit on one surface.
    let least = (blocks / u64::from(MAX_CYLINDERS) + 1) as u32;
    let unknown = Band {
        blocks: least.max(UNKNOWN.blocks),
        sectors: least.max(UNKNOWN.sectors),
        ..UNKNOWN
    };
    let mut like = *first.unwrap_or(&unknown);
    let (mut at, mut angle) = (0, Angle::ZERO);
    for piece in pieces {
        filling.like(like, angle, piece.first.0.saturating_sub(at));
        filling.repeat(&piece.cycle, piece.angle, piece.repeats, piece.step);
        like = *piece.cycle.last().unwrap_or(&like);
        at = piece.end().0;
        angle = piece.angle + piece.step.times(u64::from(piece.repeats));
    }
    filling.like(like, angle, blocks.saturating_sub(at));
    filling.description(blocks)
}

/// A layout under construction.
#[derive(Default)]
struct Filling {
    groups: Vec<GroupDescription>,
    runs: Vec<GroupRun>,
    surface: u32,
    cylinder: u32,
    /// Cylinders of the fullest surface.
    cylinders: u32,
}

impl Filling {
    /// Adds `blocks` blocks on tracks like those of a band; the last track may have fewer blocks.
    fn like(&mut self, band: Band, angle: Angle, blocks: u64) {
        let (whole, rest) = (
            blocks / u64::from(band.blocks),
            (blocks % u64::from(band.blocks)) as u32,
        );
        let one = Band {
            tracks: 1,
            start: Angle::ZERO,
            ..band
        };
        let repeats = u32::try_from(whole).unwrap_or(u32::MAX);
        self.repeat(&[one], angle, repeats, band.skew);
        let last = Band {
            blocks: rest,
            ..one
        };
        let angle = angle + band.skew.times(whole);
        self.repeat(&[last], angle, u32::from(rest > 0), Angle::ZERO);
    }

    /// Adds a repeated cycle of tracks.
    fn repeat(&mut self, cycle: &[Band], mut angle: Angle, mut repeats: u32, step: Angle) {
        let size: u32 = cycle.iter().map(|band| band.tracks).sum();
        while repeats > 0 && size > 0 {
            let fit = ((MAX_CYLINDERS - self.cylinder) / size).min(repeats);
            if fit == 0 && self.cylinder > 0 {
                (self.surface, self.cylinder) = (self.surface + 1, 0);
                continue;
            }
            // A cycle longer than a surface is refused when the layout is read.
            let fit = fit.max(1);
            self.runs.push(GroupRun {
                group: self.groups.len() as u32,
                cylinder: self.cylinder,
                start: angle,
                repeats: fit,
                cylinders: size,
                step,
            });
            self.groups.push(self.group(cycle));
            angle = angle + step.times(u64::from(fit));
            repeats -= fit;
            self.cylinder += fit * size;
            self.cylinders = self.cylinders.max(self.cylinder);
        }
    }

    /// The tracks of a cycle, side by side on the current surface.
    fn group(&self, cycle: &[Band]) -> GroupDescription {
        let mut cylinder = 0;
        let run = |band: &Band| {
            let run = TrackRun {
                cylinder,
                head: self.surface,
                sectors: band.sectors,
                start: band.start,
                tracks: band.tracks as i32,
                step: band.skew,
                blocks: band.blocks,
            };
            cylinder += band.tracks;
            run
        };
        GroupDescription::Tracks(cycle.iter().map(run).collect())
    }

    fn description(mut self, blocks: u64) -> Description {
        self.groups.push(GroupDescription::Groups(self.runs));
        Description {
            surfaces: self.surface + 1,
            cylinders: self.cylinders,
            blocks,
            groups: self.groups,
            slips: Vec::new(),
            remaps: Vec::new(),
        }
    }
}
