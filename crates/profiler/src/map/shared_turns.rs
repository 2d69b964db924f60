//! Turns from track to track that many pieces of a map have in common: each piece tells them by a few sightings, which a
//! host delays, and all pieces of a zone together tell them better.

use std::collections::BTreeMap;

use drive::Angle;

use super::track_cycle::KindRun;
use crate::clock::{apart, forward};
use crate::findings::{MapPiece, TrackMap};

/// Fewest runs whose turns are alike by more than chance. A choice: the median of so many is off by a third of what one
/// is.
const FEWEST: usize = 9;

/// Most tracks of a run that its turn's weight is of. A choice: the turn of a run is as exact as its last track, over all
/// of its tracks.
const MOST_WEIGHT: u32 = 16;

/// Turns of tracks of one kind, with their weights.
type Turns = Vec<(Angle, u32)>;

impl TrackMap {
    /// Makes turns alike that are not farther apart than sightings may be `late`, in revolutions, between tracks that have
    /// equally many blocks and sectors. Whole repetitions turn as far as before: long leaps told that better.
    pub(super) fn share_turns(&mut self, late: f64) {
        let mut kinds: BTreeMap<(u32, u32), Turns> = BTreeMap::new();
        for piece in self.pieces.iter().filter(|piece| piece.repeats > 1) {
            for run in piece.runs(Angle::ZERO) {
                let turns = kinds.entry(key(&run)).or_default();
                turns.push((run.kind.turn, run.tracks.min(MOST_WEIGHT)));
            }
        }
        let usual: BTreeMap<(u32, u32), Vec<Angle>> = kinds
            .into_iter()
            .map(|(kind, turns)| (kind, usual(turns, late)))
            .collect();
        for piece in &mut self.pieces {
            let mut runs = piece.runs(Angle::ZERO);
            let mut turned = 0.0;
            for run in &mut runs {
                let near = usual.get(&key(run)).into_iter().flatten();
                let near = near.map(|usual| apart(run.kind.turn, *usual));
                let off = near.min_by(|one, other| one.abs().total_cmp(&other.abs()));
                if let Some(off) = off.filter(|off| off.abs() <= late) {
                    run.kind.turn = run.kind.turn + forward(off);
                    turned += off * f64::from(run.tracks);
                }
            }
            let back = forward(-turned / piece.cycle_tracks() as f64);
            for run in &mut runs {
                run.kind.turn = run.kind.turn + back;
            }
            let step = piece.step;
            *piece = MapPiece {
                step,
                ..MapPiece::of(piece.first, piece.angle, &runs, piece.repeats)
            };
        }
    }
}

fn key(run: &KindRun) -> (u32, u32) {
    (run.kind.blocks, run.kind.sectors)
}

/// The turns near which most are: the medians of those that are near each other.
fn usual(mut turns: Turns, late: f64) -> Vec<Angle> {
    let mut usual = Vec::new();
    while turns.len() >= FEWEST {
        let near = |turn: Angle| {
            let near = turns
                .iter()
                .filter(move |other| apart(turn, other.0).abs() <= late / 2.0);
            near.map(|other| other.1).sum::<u32>()
        };
        let Some(&(middle, _)) = turns.iter().max_by_key(|turn| near(turn.0)) else {
            break;
        };
        let (mut alike, others): (Turns, Turns) = turns
            .iter()
            .partition(|turn| apart(middle, turn.0).abs() <= late);
        if alike.len() < FEWEST {
            break;
        }
        alike.sort_by(|one, other| apart(middle, one.0).total_cmp(&apart(middle, other.0)));
        let half = alike.iter().map(|turn| turn.1).sum::<u32>() / 2;
        let mut sum = 0;
        let median = alike.iter().find(|turn| {
            sum += turn.1;
            sum > half
        });
        usual.extend(median.map(|turn| turn.0));
        turns = others;
    }
    usual
}

#[cfg(test)]
mod tests {
    use block::Lba;

    use super::*;
    use crate::findings::Band;

    /// Cylinders of six tracks, of which each piece tells the turns by `noise` revolutions wrong.
    fn pieces(noise: &mut impl FnMut() -> f64) -> Vec<MapPiece> {
        let mut piece = |number: u64| MapPiece {
            first: Lba(number * 60_000),
            angle: Angle::ZERO,
            cycle: vec![Band {
                tracks: 6,
                blocks: 100,
                sectors: 100,
                start: Angle::ZERO,
                skew: forward(0.1 + noise() / 5.0),
            }],
            repeats: 100,
            // The last track is turned to the next cylinder.
            step: forward(5.0 * 0.1 + 0.25),
        };
        (0..40).map(&mut piece).collect()
    }

    #[test]
    fn turns_that_are_alike_become_more_exact_and_repetitions_turn_as_before() {
        let mut seed = 1_u64;
        let mut noise = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((seed >> 40) as f64 / f64::from(1 << 24) - 0.5) * 0.02
        };
        let before = TrackMap {
            pieces: pieces(&mut noise),
            ..TrackMap::default()
        };
        let mut after = before.clone();
        after.share_turns(0.02);
        let off = |map: &TrackMap| {
            let track = |piece: &MapPiece| {
                let fifth = Lba(piece.first.0 + 500);
                let start = map.track_of(fifth).expect("a track").start;
                apart(forward(0.5), start).abs()
            };
            map.pieces.iter().map(track).sum::<f64>()
        };
        assert!(off(&after) < off(&before) / 3.0, "{}", off(&after));
        for (one, other) in before.pieces.iter().zip(&after.pieces) {
            assert_eq!(
                (one.step, one.repeats, one.blocks()),
                (other.step, other.repeats, other.blocks())
            );
        }
        // Few turns are no common ones.
        let mut few = TrackMap {
            pieces: before.pieces[..4].to_vec(),
            ..TrackMap::default()
        };
        let alone = few.clone();
        few.share_turns(0.02);
        for lba in (0..240_000).step_by(50).map(Lba) {
            assert_eq!(
                few.track_of(lba).map(|track| track.first),
                alone.track_of(lba).map(|track| track.first)
            );
            let off = few.track_of(lba).zip(alone.track_of(lba));
            assert!(off.is_none_or(|(one, other)| apart(one.start, other.start).abs() < 1e-9));
        }
    }
}
