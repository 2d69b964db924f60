//! The angles of the pieces of a map, sighted again behind a host that delays: explorations tell where tracks end by
//! few sightings, and each piece begins as far off as the last sighting before it was.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use block::Lba;

use super::observer::Observer;
use super::shared_delay::{SharedDelay, TimedOff};
use crate::clock::forward;
use crate::findings::{MapPiece, TrackMap};
use crate::prober::Prober;

/// Most pieces whose angles are sighted again, those with most blocks. A choice: a minute of a drive of 7,200 rpm.
const MOST: usize = 500;

/// Sightings of each end of a piece. A choice: the median of five is half as far off as one.
const SIGHTINGS: usize = 5;

/// Pieces that are sighted in turns, and corrected together. A choice: eight seconds of a drive of 7,200 rpm, so that
/// little is lost if time ends.
const BATCH: usize = 100;

/// The share of what is seen that is believed. A choice: pieces are off by 25 us and the median by 16 where delays
/// vary by 30 us, so that this leaves least.
const GAIN: f64 = 0.7;

/// Ends that are farther off are not where the map says, in revolutions: checks tell. A choice: twice what angles are to
/// be right to.
const FAR: f64 = 0.02;

/// Whether a host's delays make this necessary.
pub fn needs_settling(prober: &Prober) -> bool {
    Observer::new(prober).late() > 0.0
}

/// The pieces whose angles were sighted again, as their first blocks and lengths.
#[derive(Debug, Default)]
pub struct SettledPieces(BTreeSet<(Lba, u64)>);

impl SettledPieces {
    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// Sights both ends of the largest pieces again that are new, and corrects their angles.
pub async fn settle(prober: &Prober, settled: &mut SettledPieces) {
    let mut pieces = prober.findings(|findings| {
        let pieces = findings.map.pieces.iter();
        pieces
            .map(|piece| (piece.blocks(), piece.first))
            .filter(|(blocks, first)| !settled.0.contains(&(*first, *blocks)))
            .collect::<Vec<_>>()
    });
    pieces.sort_unstable_by_key(|piece| Reverse(*piece));
    pieces.truncate(MOST);
    pieces.sort_unstable_by_key(|(_, first)| *first);
    let batches = pieces.len().div_ceil(BATCH).max(1);
    for batch in 0..batches {
        // Pieces beside each other were explored one after the other, and may be off alike.
        let some = || pieces.iter().skip(batch).step_by(batches);
        let work = some().map(|(_, first)| sight_piece(prober, *first));
        let sighted = prober.rounds(work.collect()).await;
        let sighted: Vec<SightedPiece> = sighted.into_iter().flatten().collect();
        let all = sighted.iter().flat_map(|piece| &piece.offs).flatten();
        let common = SharedDelay::of(all.copied().collect());
        prober.findings(|findings| {
            for piece in &sighted {
                let offs = [0, 1].map(|end| common.rest(&piece.offs[end]));
                if offs.iter().all(|off| off.abs() <= FAR) {
                    let offs = offs.map(|off| off * GAIN);
                    findings.map.turn_piece(piece.first, offs);
                }
            }
        });
        let some = some().map(|(blocks, first)| (*first, *blocks));
        settled.0.extend(some);
    }
}

/// How far off the first and the last track of a piece were.
struct SightedPiece {
    first: Lba,
    offs: [Vec<TimedOff>; 2],
}

/// Sights the first and the last track of a piece; nothing if a block cannot be sighted.
async fn sight_piece(prober: &Prober, first: Lba) -> Option<SightedPiece> {
    let last = prober.findings(|findings| Some(last_track(findings.map.piece_at(first)?)))?;
    let mut offs = [Vec::new(), Vec::new()];
    let mut observer = Observer::new(prober);
    for (offs, lba) in offs.iter_mut().zip([first, last]) {
        let expected = prober.findings(|findings| findings.map.end_angle_of(lba))?;
        *offs = observer.offs((lba, expected), SIGHTINGS).await.ok()?;
    }
    Some(SightedPiece { first, offs })
}

/// The first block of a piece's last track.
fn last_track(piece: &MapPiece) -> Lba {
    let blocks = piece.cycle.last().map_or(0, |band| band.blocks);
    Lba(piece.end().0 - u64::from(blocks))
}

impl TrackMap {
    /// The piece that begins with a block.
    fn piece_at(&self, first: Lba) -> Option<&MapPiece> {
        let place = self
            .pieces
            .binary_search_by_key(&first, |piece| piece.first);
        self.pieces.get(place.ok()?)
    }

    /// Turns a piece by how far its first and its last track are off, in revolutions: repetitions in between by parts
    /// of it.
    fn turn_piece(&mut self, first: Lba, [begin, end]: [f64; 2]) {
        let place = self
            .pieces
            .binary_search_by_key(&first, |piece| piece.first);
        let Some(piece) = place.ok().and_then(|place| self.pieces.get_mut(place)) else {
            return;
        };
        if piece.repeats == 1 {
            piece.angle = piece.angle + forward((begin + end) / 2.0);
            return;
        }
        piece.angle = piece.angle + forward(begin);
        let step = (end - begin) / f64::from(piece.repeats - 1);
        piece.step = piece.step + forward(step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drive::Angle;

    use crate::clock::apart;
    use crate::findings::Band;

    #[test]
    fn both_ends_of_a_turned_piece_are_where_they_were_seen() {
        let band = Band {
            tracks: 3,
            blocks: 100,
            sectors: 100,
            start: Angle::ZERO,
            skew: Angle::fraction(1, 10),
        };
        for repeats in [1, 2, 50] {
            let mut map = TrackMap::default();
            map.pieces.push(MapPiece {
                first: Lba(1000),
                angle: Angle::fraction(1, 4),
                cycle: vec![band],
                repeats,
                step: Angle::fraction(1, 3),
            });
            let last = last_track(&map.pieces[0]);
            let ends = |map: &TrackMap| [Lba(1000), last].map(|lba| map.end_angle_of(lba).unwrap());
            let before = ends(&map);
            let off = match repeats {
                1 => [0.002, 0.002],
                _ => [0.002, -0.005],
            };
            map.turn_piece(Lba(1000), off);
            for ((before, after), off) in before.into_iter().zip(ends(&map)).zip(off) {
                assert!(
                    (apart(before, after) - off).abs() < 1e-9,
                    "{repeats}: {off}"
                );
            }
            map.turn_piece(Lba(1001), [0.1, 0.1]);
            assert_eq!(map.piece_at(Lba(1001)), None);
        }
    }
}
