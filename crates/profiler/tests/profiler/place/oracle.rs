//! Maps as the truth has them.

use block::Lba;
use drive::{Angle, Geometry};
use profiler::findings::{Band, MapPiece, Slip, TrackMap};

/// One track.
#[derive(Clone, Copy, Debug)]
struct Seen {
    first: Lba,
    blocks: u32,
    sectors: u32,
    start: Angle,
}

/// Neighbouring tracks that are alike.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: Lba,
    band: Band,
}

/// The longest cycle that is looked for, in runs.
const CYCLE: usize = 40;

/// A map of the blocks of some stretches of a drive, each extended to whole tracks; angles are
/// from `zero`.
pub fn map(truth: &Geometry, stretches: &[(u64, u64)], zero: Angle) -> TrackMap {
    let mut map = TrackMap::default();
    for &(from, to) in stretches {
        let tracks = tracks(truth, from, to, zero, &mut map);
        pieces(&runs(&tracks), &mut map.pieces);
    }
    map
}

/// The tracks of some blocks, in their order.
fn tracks(truth: &Geometry, from: u64, to: u64, zero: Angle, map: &mut TrackMap) -> Vec<Seen> {
    let mut tracks = Vec::new();
    let mut lba = match truth.track_of(Lba(from)) {
        Some(track) if from > 0 => track.last.0 + 1,
        _ => 0,
    };
    while lba < to {
        let place = truth.locate(Lba(lba)).expect("a block");
        let track = truth.track_of(Lba(lba)).expect("its track");
        let blocks = (track.last.0 - lba + 1) as u32;
        let last = truth.locate(track.last).expect("a block");
        if last.sector - place.sector + 1 != blocks {
            slips(truth, lba, blocks, map);
        }
        tracks.push(Seen {
            first: Lba(lba),
            blocks,
            sectors: track.sectors,
            start: place.angle - zero,
        });
        lba += u64::from(blocks);
    }
    tracks
}

/// Notes the slips within a track.
fn slips(truth: &Geometry, first: u64, blocks: u32, map: &mut TrackMap) {
    let sector = |lba: u64| truth.locate(Lba(lba)).map_or(0, |place| place.sector);
    for lba in first + 1..first + u64::from(blocks) {
        let skipped = sector(lba) - sector(lba - 1) - 1;
        if skipped > 0 {
            map.slips.push(Slip {
                before: Lba(lba),
                sectors: skipped,
            });
        }
    }
}

/// Neighbours that are alike, put together.
fn runs(tracks: &[Seen]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for track in tracks {
        if let Some(run) = runs.last_mut() {
            let band = &mut run.band;
            let alike = band.blocks == track.blocks && band.sectors == track.sectors;
            let skew = track.start - (band.start + band.skew.times(u64::from(band.tracks - 1)));
            if alike && (band.tracks == 1 || skew == band.skew) {
                band.skew = skew;
                band.tracks += 1;
                continue;
            }
        }
        runs.push(Run {
            first: track.first,
            band: Band {
                tracks: 1,
                blocks: track.blocks,
                sectors: track.sectors,
                start: track.start,
                skew: Angle::ZERO,
            },
        });
    }
    runs
}

/// Cycles of runs that are repeated, as pieces.
fn pieces(runs: &[Run], pieces: &mut Vec<MapPiece>) {
    let mut from = 0;
    while from < runs.len() {
        let best = (1..=CYCLE.min(runs.len() - from))
            .map(|cycle| (cycle, repeats(&runs[from..], cycle)))
            .max_by_key(|&(cycle, repeats)| {
                let covered = if repeats > 1 { cycle * repeats } else { 1 };
                (covered, std::cmp::Reverse(cycle))
            });
        let (cycle, repeats) = best.unwrap_or((1, 1));
        let first = &runs[from];
        let step = match runs.get(from + cycle) {
            Some(next) if repeats > 1 => next.band.start - first.band.start,
            _ => Angle::ZERO,
        };
        let band = |run: &Run| Band {
            start: run.band.start - first.band.start,
            ..run.band
        };
        pieces.push(MapPiece {
            first: first.first,
            angle: first.band.start,
            cycle: runs[from..from + cycle].iter().map(band).collect(),
            repeats: repeats as u32,
            step,
        });
        from += cycle * repeats;
    }
}

/// How many times some runs come one after the other.
fn repeats(runs: &[Run], cycle: usize) -> usize {
    let Some(next) = runs.get(cycle) else {
        return 1;
    };
    let step = next.band.start - runs[0].band.start;
    let equal = |index: usize| {
        let (a, b) = (&runs[index].band, &runs[index + cycle].band);
        (a.tracks, a.blocks, a.sectors, a.skew) == (b.tracks, b.blocks, b.sectors, b.skew)
            && b.start - a.start == step
    };
    let limit = runs.len() - cycle;
    let same = (0..limit).take_while(|&index| equal(index)).count();
    1 + same / cycle
}
