//! Rows of tracks as nested patterns: equal rows are written once.

use block::{Extent, Lba};
use drive::Angle;
use drive::geometry::indexed::{Description, GroupDescription, GroupRun, TrackRun};

use super::rows::Laid;
use super::skipped::{AROUND, Skipped};
use super::strip::{CUT, StripOrigin, other_density};
use crate::clock::apart;
use crate::findings::{Heading, Pattern, Slip};

/// Among how many of the last patterns of rows an equal one is looked for. A choice: drives have
/// a cycle of one or two.
const LOOK_BACK: usize = 8;

/// What rows become.
struct Builder {
    groups: Vec<GroupDescription>,
    runs: Vec<GroupRun>,
    /// The first cylinder of the next row.
    cylinder: u32,
}

/// The layout of tracks that were laid out.
pub(super) fn describe(
    laid: &[Laid],
    pattern: Pattern,
    blocks: u64,
    slips: &[Slip],
    skipped: &[Skipped],
) -> Description {
    let mut builder = Builder {
        groups: Vec::new(),
        runs: Vec::new(),
        cylinder: 0,
    };
    for row in laid.chunk_by(|a, b| a.row == b.row) {
        let first = row[0].strip.first;
        let here = skipped.iter().find(|skipped| skipped.before == first);
        builder.cylinder += here.map_or(0, |here| here.cylinders);
        builder.row(row, pattern);
    }
    let mut groups = builder.groups;
    groups.push(GroupDescription::Groups(builder.runs));
    Description {
        surfaces: pattern.surfaces,
        cylinders: builder.cylinder,
        blocks,
        groups,
        slips: places(laid, slips),
        remaps: Vec::new(),
    }
}

impl Builder {
    /// Adds a row.
    fn row(&mut self, row: &[Laid], pattern: Pattern) {
        let base = row[0].strip.start;
        let runs: Vec<TrackRun> = row
            .chunk_by(|a, b| a.band == b.band)
            .flat_map(|band| band_runs(band, base, pattern))
            .collect();
        let reach = |run: &TrackRun| run.cylinder + run.tracks.max(1) as u32;
        let cylinders = runs.iter().map(reach).max().unwrap_or(0);
        let group = self.group(runs);
        let cylinder = self.cylinder;
        self.cylinder += cylinders;
        if let Some(last) = self.runs.last_mut()
            && last.group == group
            && last.cylinder + last.cylinders * last.repeats == cylinder
        {
            let step = base - last.start;
            if last.repeats == 1 {
                (last.repeats, last.step) = (2, step);
                return;
            }
            if step == last.step.times(u64::from(last.repeats)) {
                last.repeats += 1;
                return;
            }
        }
        self.runs.push(GroupRun {
            group,
            cylinder,
            start: base,
            repeats: 1,
            cylinders,
            step: Angle::ZERO,
        });
    }

    /// The number of a pattern of a row.
    fn group(&mut self, runs: Vec<TrackRun>) -> u32 {
        let from = self.groups.len().saturating_sub(LOOK_BACK);
        let group = GroupDescription::Tracks(runs);
        let equal = self.groups[from..].iter().position(|other| *other == group);
        if let Some(equal) = equal {
            return (from + equal) as u32;
        }
        self.groups.push(group);
        self.groups.len() as u32 - 1
    }
}

/// The runs of a band, with angles from where its row begins.
fn band_runs(band: &[Laid], base: Angle, pattern: Pattern) -> Vec<TrackRun> {
    let end = band
        .iter()
        .map(|laid| (laid.within + laid.strip.tracks).max(laid.band_tracks))
        .max();
    let last = end.unwrap_or(1) - 1;
    let mut runs: Vec<TrackRun> = Vec::new();
    for laid in band {
        let strip = &laid.strip;
        let (cylinder, sign) = match pattern.heading(laid.band) {
            Heading::Onward => (laid.within, 1),
            Heading::Back => (last - laid.within, -1),
        };
        let run = TrackRun {
            cylinder,
            head: laid.band,
            sectors: strip.sectors,
            start: strip.start - base,
            tracks: strip.tracks as i32 * sign,
            step: strip.skew,
            blocks: strip.blocks + strip.slipped,
        };
        let before = runs.last_mut();
        let joined = before.and_then(|before| joined(before, &run).map(|step| (before, step)));
        match joined {
            Some((before, step)) => {
                before.tracks += run.tracks;
                before.step = step;
            }
            None => runs.push(run),
        }
    }
    for run in &mut runs {
        if run.tracks.unsigned_abs() == 1 {
            run.step = Angle::ZERO;
        }
    }
    runs
}

/// The skew of two runs that are one, if a run's tracks are more of those of the run before it. A
/// single track has no skew of its own: a map's pieces may be repetitions of one track.
fn joined(before: &TrackRun, run: &TrackRun) -> Option<Angle> {
    let tracks = u64::from(before.tracks.unsigned_abs());
    let step = match (before.tracks.abs(), run.tracks.abs()) {
        (1, 1) => run.start - before.start,
        (1, _) => run.step,
        _ => before.step,
    };
    let alike = (before.sectors, before.blocks) == (run.sectors, run.blocks)
        && (run.tracks.abs() == 1 || run.step == step);
    let next = before.cylinder.checked_add_signed(before.tracks);
    let follows = next == Some(run.cylinder) && before.start + step.times(tracks) == run.start;
    (alike && follows).then_some(step)
}

/// The first blocks of rows with which another zone begins, or behind which tracks do not follow
/// each other regularly.
pub(super) fn breaks(laid: &[Laid], pattern: Pattern) -> Vec<Lba> {
    let mut breaks = Vec::new();
    let mut last = None;
    for pair in laid.windows(2) {
        let (before, after) = (&pair[0].strip, &pair[1].strip);
        if pair[0].row == pair[1].row || after.origin != StripOrigin::Map {
            continue;
        }
        let expected = match pattern.surfaces {
            1 => after.regular_skews.step,
            _ => after.regular_skews.jump,
        };
        let skew = after.turn_start() - before.last_turn_start();
        let other = other_density(before.sectors, after.sectors);
        let near = last.is_some_and(|last| pair[1].row - last <= AROUND);
        if !near && (other || apart(expected, skew).abs() > CUT) {
            breaks.push(after.first);
            last = Some(pair[1].row);
        }
    }
    breaks
}

/// The slips' places: sectors counted along the tracks.
fn places(laid: &[Laid], slips: &[Slip]) -> Vec<(u64, u32)> {
    let mut places: Vec<(u64, u32)> = Vec::new();
    let mut slips = slips.iter().peekable();
    let mut place = 0;
    for laid in laid {
        let strip = &laid.strip;
        let mut slipped = 0;
        while let Some(slip) = slips.next_if(|slip| slip.before < strip.end()) {
            if slip.before >= strip.first && strip.slipped > 0 {
                let into = slip.before.0 - strip.first.0;
                places.push((place + into + slipped, slip.sectors));
                slipped += u64::from(slip.sectors);
            }
        }
        place += u64::from(strip.tracks) * u64::from(strip.blocks + strip.slipped);
    }
    places
}

/// Which blocks the map knows.
pub(super) fn known(pieces: &[crate::findings::MapPiece]) -> Vec<Extent> {
    let mut known: Vec<Extent> = Vec::new();
    for piece in pieces {
        let (first, end) = (piece.first, piece.end());
        match known.last_mut() {
            Some(last) if last.end() == first => {
                let sectors = block::Sectors(end.0 - last.start().0);
                if let Ok(longer) = Extent::new(last.start(), sectors) {
                    *last = longer;
                }
            }
            _ => known.extend(Extent::new(first, block::Sectors(end.0 - first.0))),
        }
    }
    known
}
