//! The findings of a profiled drive, and their stored part.

use std::path::Path;
use std::sync::Arc;

use block::{Instant, Lba};
use drive::{Angle, Profile};
use profiler::findings::{Band, Elsewhere, MapPiece, Slip, TrackMap};
use profiler::{DriveIdentity, Findings, belief};
use serde::{Deserialize, Serialize};

use crate::Failure;

/// A profiled drive.
#[derive(Debug)]
pub struct FoundDrive {
    /// The name in kebab case.
    pub name: String,
    /// The drive's identity, which needs no timing.
    pub device: DriveIdentity,
    /// The findings.
    pub findings: Findings,
    /// The truth of a simulated drive.
    pub truth: Option<Arc<Profile>>,
    /// The drive's time at the end.
    pub at: Instant,
    /// The number of the profiler's commands.
    pub probes: u64,
    /// The reason for the end.
    pub ended: ProfilingEnd,
}

/// The reason for the end of profiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfilingEnd {
    /// No question was left.
    Finished,
    /// The budget was spent.
    OutOfTime,
}

impl FoundDrive {
    /// Checks that the profile predicts the head: a service would refuse it otherwise.
    ///
    /// # Errors
    /// If the spindle, the map or the seeks have too little confidence, with the reasons that the
    /// profiler states.
    pub fn needs_belief(&self) -> Result<(), Failure> {
        let failed = self.findings.progress.failed.iter();
        let reasons: Vec<String> = failed
            .map(|(stage, why)| format!("; {}: {why}", stage.name()))
            .collect();
        let reasons = reasons.concat();
        if self.findings.clock.is_none() {
            let budget = "the budget was too small for any profile";
            return Err(Failure::failed(match reasons.strip_prefix("; ") {
                None => budget.to_owned(),
                Some(reasons) => format!("no profile: {reasons}"),
            }));
        }
        match self.profile()?.confidence.and_then(|found| found.doubt()) {
            None => Ok(()),
            Some(doubt) => Err(Failure::failed(format!(
                "{}: {doubt}{reasons}: no profile is written; a larger --budget, with --resume, may find \
                 more",
                self.name
            ))),
        }
    }

    /// The text of the profile file.
    pub fn text(&self) -> String {
        belief::text(&self.findings, &self.device, &self.name)
    }

    /// The profile.
    ///
    /// # Errors
    /// If the findings contradict each other.
    pub fn profile(&self) -> Result<Profile, Failure> {
        let found = belief::profile(&self.findings, &self.device, &self.name);
        found.map_err(|error| Failure::failed(format!("what was found is no profile: {error}")))
    }
}

/// The name of a range of a drive that is profiled by itself.
pub fn range_name(drive: &str, range: usize) -> String {
    format!("{drive}-range-{range}")
}

/// The text of the profile file of a drive: as it was found, or of two actuators that were found as drives of
/// their own.
///
/// # Errors
/// If a part of it predicts nothing, see [`FoundDrive::needs_belief`].
pub fn file_text(founds: &[FoundDrive]) -> Result<String, Failure> {
    founds.iter().try_for_each(FoundDrive::needs_belief)?;
    match founds {
        [found] => Ok(found.text()),
        [first, second] => {
            let name = first.name.trim_end_matches(&range_name("", 0));
            let ranges = [first.text(), second.text()];
            Ok(belief::of_ranges(name, &ranges))
        }
        _ => Err(Failure::failed(format!(
            "{} actuators: expected one or two",
            founds.len()
        ))),
    }
}

/// The stored part of the findings. Angles are stored up to a constant, which reads of known blocks
/// determine again.
#[derive(Debug, Default, Deserialize, Serialize)]
struct StoredFindings {
    pieces: Vec<KeptPiece>,
    /// `[block, sectors before it]`
    slips: Vec<(u64, u32)>,
    /// `[block, blocks]`
    elsewhere: Vec<(u64, u32)>,
}

#[derive(Debug, Deserialize, Serialize)]
struct KeptPiece {
    first: u64,
    angle: u64,
    repeats: u32,
    step: u64,
    /// `[tracks, blocks, sectors, start, skew]`
    cycle: Vec<(u32, u32, u32, u64, u64)>,
}

/// Parses the findings that [`kept`] wrote to this file.
///
/// # Errors
/// If the text has another form.
pub fn resumed(file: &Path, text: &str) -> Result<Findings, Failure> {
    let wrong = |problem: String| Failure::input(format!("{}: {problem}", file.display()));
    let kept: StoredFindings =
        serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let map = kept.map();
    match is_map(&map) {
        true => Ok(Findings {
            map,
            ..Findings::default()
        }),
        false => Err(wrong(
            "pieces that overlap or are empty: expected what --resume has written".to_owned(),
        )),
    }
}

/// Whether the pieces are ascending, disjoint, and have tracks.
fn is_map(map: &TrackMap) -> bool {
    let whole = |piece: &MapPiece| {
        piece.repeats > 0
            && !piece.cycle.is_empty()
            && piece
                .cycle
                .iter()
                .all(|band| band.tracks > 0 && band.blocks > 0 && band.sectors >= band.blocks)
            && u128::from(piece.cycle_blocks()) * u128::from(piece.repeats) < 1 << 60
            && piece.first.0 < 1 << 60
    };
    map.pieces.iter().all(whole)
        && map
            .pieces
            .windows(2)
            .all(|two| two[0].end() <= two[1].first)
}

/// The tracks of the findings as text, for a later run.
///
/// # Errors
/// If they cannot be serialised.
pub fn kept(findings: &Findings) -> Result<String, Failure> {
    let text =
        serde_json::to_string(&StoredFindings::of(&findings.map)).map_err(Failure::failed)?;
    Ok(text + "\n")
}

impl StoredFindings {
    fn of(map: &TrackMap) -> Self {
        let band = |band: &Band| {
            let (start, skew) = (band.start.raw(), band.skew.raw());
            (band.tracks, band.blocks, band.sectors, start, skew)
        };
        let piece = |piece: &MapPiece| KeptPiece {
            first: piece.first.0,
            angle: piece.angle.raw(),
            repeats: piece.repeats,
            step: piece.step.raw(),
            cycle: piece.cycle.iter().map(band).collect(),
        };
        let slips = map.slips.iter();
        let elsewhere = map.elsewhere.iter();
        StoredFindings {
            pieces: map.pieces.iter().map(piece).collect(),
            slips: slips.map(|slip| (slip.before.0, slip.sectors)).collect(),
            elsewhere: elsewhere
                .map(|moved| (moved.first.0, moved.blocks))
                .collect(),
        }
    }

    fn map(self) -> TrackMap {
        let band = |(tracks, blocks, sectors, start, skew)| Band {
            tracks,
            blocks,
            sectors,
            start: Angle::from_raw(start),
            skew: Angle::from_raw(skew),
        };
        let piece = |piece: KeptPiece| MapPiece {
            first: Lba(piece.first),
            angle: Angle::from_raw(piece.angle),
            cycle: piece.cycle.into_iter().map(band).collect(),
            repeats: piece.repeats,
            step: Angle::from_raw(piece.step),
        };
        let slip = |(before, sectors)| Slip {
            before: Lba(before),
            sectors,
        };
        let moved = |(first, blocks)| Elsewhere {
            first: Lba(first),
            blocks,
        };
        TrackMap {
            pieces: self.pieces.into_iter().map(piece).collect(),
            slips: self.slips.into_iter().map(slip).collect(),
            elsewhere: self.elsewhere.into_iter().map(moved).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TrackMap {
        let kept = StoredFindings {
            pieces: vec![KeptPiece {
                first: 7,
                angle: u64::MAX - 3,
                repeats: 4,
                step: 1 << 63,
                cycle: vec![(2, 9, 10, 5, 6)],
            }],
            slips: vec![(8, 1)],
            elsewhere: vec![(20, 2)],
        };
        kept.map()
    }

    #[test]
    fn a_map_that_is_kept_comes_back() {
        let text = serde_json::to_string(&StoredFindings::of(&map())).expect("JSON");
        let kept: StoredFindings = serde_json::from_str(&text).expect("the same");
        assert_eq!(kept.map(), map());
        assert!(is_map(&map()));
    }

    #[test]
    fn maps_that_are_none_are_told() {
        let changed = |change: fn(&mut TrackMap)| {
            let mut map = map();
            change(&mut map);
            is_map(&map)
        };
        assert!(!changed(|map| map.pieces[0].repeats = 0));
        assert!(!changed(|map| map.pieces[0].cycle.clear()));
        assert!(!changed(|map| map.pieces[0].cycle[0].blocks = 11));
        assert!(!changed(|map| map.pieces.push(map.pieces[0].clone())));
        assert!(!changed(|map| {
            map.pieces[0].cycle[0].tracks = u32::MAX;
            map.pieces[0].repeats = u32::MAX;
        }));
    }
}
