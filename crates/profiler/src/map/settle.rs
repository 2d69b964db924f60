//! The angles of the pieces of a map, sighted again behind a host that delays: explorations tell where tracks end by
//! few sightings, and each piece begins as far off as the last sighting before it was.

use std::cmp::Reverse;

use block::Lba;

use super::observer::Observer;
use crate::clock::{apart, forward};
use crate::findings::{MapPiece, TrackMap};
use crate::prober::Prober;

/// Most pieces whose angles are sighted again, those with most blocks. A choice: a minute of a drive of 7,200 rpm.
const MOST: usize = 500;

/// Sightings of each end of a piece. A choice: the median of five is half as far off as one.
const SIGHTINGS: usize = 5;

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

/// Sights both ends of the largest pieces again, and corrects their angles.
pub async fn settle(prober: &Prober) {
    let mut pieces = prober.findings(|findings| {
        let pieces = findings.map.pieces.iter();
        pieces
            .map(|piece| (piece.blocks(), piece.first))
            .collect::<Vec<_>>()
    });
    pieces.sort_unstable_by_key(|piece| Reverse(*piece));
    pieces.truncate(MOST);
    pieces.sort_unstable_by_key(|(_, first)| *first);
    let work = pieces
        .into_iter()
        .map(|(_, first)| settle_piece(prober, first));
    prober.rounds(work.collect()).await;
}

/// Sights the first and the last track of a piece, and corrects it; nothing if a block cannot be sighted.
async fn settle_piece(prober: &Prober, first: Lba) -> Option<()> {
    let last = prober.findings(|findings| Some(last_track(findings.map.piece_at(first)?)))?;
    let mut off = [0.0; 2];
    let mut observer = Observer::new(prober);
    for (off, lba) in off.iter_mut().zip([first, last]) {
        let expected = prober.findings(|findings| findings.map.end_angle_of(lba))?;
        let seen = observer.typical(lba, SIGHTINGS).await.ok()?;
        *off = apart(expected, seen);
        if off.abs() > FAR {
            return None;
        }
    }
    prober.findings(|findings| findings.map.turn_piece(first, off.map(|off| off * GAIN)));
    Some(())
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
