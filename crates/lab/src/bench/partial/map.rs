//! A belief that knows a part of a drive's tracks, and guesses the others.
//!
//! ```text
//!   truth     |===|===|===|===|===|===|===|===|===|
//!   belief    |===|===|===| ?  |  ?| ?   |===|===|       same blocks between, other tracks and angles
//!              known       guessed        known
//! ```

use std::sync::Arc;

use block::{Extent, Lba, Sectors};
use drive::geometry::Track;
use drive::geometry::indexed::{Description, GroupDescription, TrackRun};
use drive::{Angle, Confidence, Geometry, Profile};
use serde::Serialize;

use crate::Failure;
use crate::dice::SplitMix;

/// Where the known tracks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KnownPlaces {
    /// In one piece, which begins anywhere.
    Contiguous,
    /// In pieces of 64 tracks all over the disk.
    Scattered,
}

/// The tracks of a scattered piece. A choice: what a profiler walks in a second or two.
const PIECE: usize = 64;

/// By how much a guessed track has fewer or more sectors than the true one at most, in thousandths:
/// the densities of surfaces differ by as much.
const WRONG_PERMILLE: u64 = 80;

/// Guessed tracks are not farther than so many tracks from where they are. A choice: the errors of 300,000
/// tracks in a row add up to as many, and the last one would have to take them all.
const DRIFT: u64 = 32;

/// A track of the truth, in the order of the blocks.
#[derive(Clone, Copy, Debug)]
struct ListedTrack {
    first: u64,
    end: u64,
    track: Track,
    /// The track, if all of its blocks lie sector by sector on it.
    run: Option<TrackRun>,
}

/// The belief with this share of the tracks known, in thousandths. Tracks with remapped blocks or with
/// slipped sectors between others are always guessed.
///
/// # Errors
/// If the guesses are no layout.
pub fn partly_known(
    truth: &Arc<Profile>,
    permille: u64,
    places: KnownPlaces,
    seed: u64,
) -> Result<Arc<Profile>, Failure> {
    let tracks = listed(&truth.geometry);
    let mut dice = SplitMix::new(seed);
    let known = known(tracks.len(), permille, places, &mut dice);
    let run_of = |at: usize| tracks[at].run.filter(|_| known[at]);
    let mut runs = Vec::new();
    let mut extents: Vec<(u64, u64)> = Vec::new();
    let mut at = 0;
    while at < tracks.len() {
        let begin = at;
        while at < tracks.len() && run_of(at).is_none() {
            at += 1;
        }
        guess(&tracks[begin..at], &mut dice, &mut runs);
        let begin = at;
        while let Some(run) = (at < tracks.len()).then(|| run_of(at)).flatten() {
            runs.push(run);
            at += 1;
        }
        if begin < at {
            extents.push((tracks[begin].first, tracks[at - 1].end));
        }
    }
    let description = Description {
        surfaces: truth.geometry.surfaces(),
        cylinders: truth.geometry.cylinders(),
        blocks: truth.geometry.sectors().0,
        groups: vec![GroupDescription::Tracks(runs)],
        ..Description::default()
    };
    let geometry = Geometry::indexed(&description);
    let geometry = geometry.map_err(|error| Failure::failed(format!("{error:?}")))?;
    let extents = extents.into_iter();
    let extents =
        extents.filter_map(|(first, end)| Extent::new(Lba(first), Sectors(end - first)).ok());
    let mut belief = Profile::clone(truth);
    belief.geometry = Arc::new(geometry);
    belief.confidence = Some(Confidence::default().with_known(extents.collect()));
    Ok(Arc::new(belief))
}

fn listed(geometry: &Geometry) -> Vec<ListedTrack> {
    let mut tracks = Vec::new();
    let mut next = Lba(0);
    while let Some(track) = geometry.track_of(next) {
        let end = track.last.0.max(next.0) + 1;
        tracks.push(ListedTrack {
            first: next.0,
            end,
            track,
            run: run(geometry, &track).filter(|_| track.first == next),
        });
        next = Lba(end);
    }
    tracks
}

/// The run of one track, if its blocks lie sector by sector on it.
fn run(geometry: &Geometry, track: &Track) -> Option<TrackRun> {
    let blocks = track.last.0 - track.first.0 + 1;
    let extent = Extent::new(track.first, Sectors(blocks)).ok()?;
    let mut runs = geometry.runs(extent);
    let run = runs.next()?;
    let is_full = blocks == u64::from(track.sectors);
    let is_one = runs.next().is_none() && (is_full || run.sweep <= track.width.times(blocks));
    let is_here = (run.cylinder, run.head) == (track.cylinder, track.head);
    (is_one && is_here).then_some(TrackRun {
        cylinder: track.cylinder,
        head: track.head,
        sectors: track.sectors,
        start: run.start,
        tracks: 1,
        step: Angle::ZERO,
        blocks: run.blocks,
    })
}

/// Which of so many tracks are known.
fn known(tracks: usize, permille: u64, places: KnownPlaces, dice: &mut SplitMix) -> Vec<bool> {
    let many = tracks * permille as usize / 1000;
    let mut known = vec![false; tracks];
    match places {
        KnownPlaces::Contiguous => {
            let begin = dice.below((tracks - many + 1) as u64) as usize;
            known[begin..begin + many].fill(true);
        }
        KnownPlaces::Scattered => {
            let mut pieces: Vec<usize> = (0..tracks.div_ceil(PIECE)).collect();
            for piece in (1..pieces.len()).rev() {
                pieces.swap(piece, dice.below(piece as u64 + 1) as usize);
            }
            let known_pieces = pieces.len() * permille as usize / 1000;
            for piece in &pieces[..known_pieces] {
                let end = ((piece + 1) * PIECE).min(tracks);
                known[piece * PIECE..end].fill(true);
            }
        }
    }
    known
}

/// Distributes the blocks of unknown tracks over the same places, in other numbers, at angles of
/// chance.
fn guess(tracks: &[ListedTrack], dice: &mut SplitMix, runs: &mut Vec<TrackRun>) {
    let (Some(first), Some(last)) = (tracks.first(), tracks.last()) else {
        return;
    };
    let mut left = last.end - first.first;
    for (at, listed) in tracks.iter().enumerate() {
        let Track { cylinder, head, .. } = listed.track;
        let is_last = at + 1 == tracks.len();
        let blocks = listed.end - listed.first;
        let (behind, ahead) = (listed.first - first.first, last.end - first.first - left);
        let [least, most] = match ahead.abs_diff(behind) > DRIFT * blocks {
            false => [1000 - WRONG_PERMILLE, 1000 + WRONG_PERMILLE],
            true if ahead > behind => [1000 - WRONG_PERMILLE, 1000],
            true => [1000, 1000 + WRONG_PERMILLE],
        };
        let wrong = dice.between(least, most);
        let blocks = match is_last {
            true => left,
            false => (blocks * wrong / 1000).max(1).min(left),
        };
        if blocks == 0 {
            return;
        }
        left -= blocks;
        runs.push(TrackRun {
            cylinder,
            head,
            sectors: blocks as u32,
            start: Angle::from_raw(dice.number()),
            tracks: 1,
            step: Angle::ZERO,
            blocks: blocks as u32,
        });
    }
}
