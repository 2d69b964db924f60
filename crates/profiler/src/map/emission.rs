//! How found tracks become pieces of the map.

use block::Lba;
use drive::Angle;

use super::observer::SAME;
use super::track_cycle::{KindRun, TrackKind};
use crate::clock::{apart, forward};
use crate::findings::{Band, Elsewhere, MapPiece, TrackMap};

/// Runs as bands: a run's turn leads to the next run's first track, which belongs to its band if
/// it has as many blocks.
pub(super) fn bands(runs: &[KindRun]) -> Vec<Band> {
    let mut bands: Vec<Band> = Vec::new();
    let mut start = Angle::ZERO;
    let mut taken = 0;
    for (index, run) in runs.iter().enumerate() {
        let (kind, tracks) = (run.kind, run.tracks - taken);
        let here = start + kind.turn.times(u64::from(taken));
        start = start + kind.turn.times(u64::from(run.tracks));
        taken = 0;
        if tracks == 0 {
            continue;
        }
        if let Some(next) = runs.get(index + 1) {
            let alike = (next.kind.blocks, next.kind.sectors) == (kind.blocks, kind.sectors);
            taken = u32::from(alike);
        }
        bands.push(Band {
            tracks: tracks + taken,
            blocks: kind.blocks,
            sectors: kind.sectors,
            start: here,
            skew: kind.turn,
        });
    }
    bands
}

/// Behind a host, pieces are one if that moves none of their angles by more, in revolutions. A choice: a
/// fifth of what a prediction may be off by.
const BENT: f64 = 2e-3;

impl MapPiece {
    /// Runs, repeated.
    pub(super) fn of(first: Lba, angle: Angle, runs: &[KindRun], repeats: u32) -> MapPiece {
        let mut step = Angle::ZERO;
        for run in runs {
            step = step + run.kind.turn.times(u64::from(run.tracks));
        }
        MapPiece {
            first,
            angle,
            cycle: bands(runs),
            repeats,
            step,
        }
    }

    /// Its pattern as runs, the inverse of [`MapPiece::of`]; sightings may be `late`.
    pub(super) fn runs(&self, late: Angle) -> Vec<KindRun> {
        let mut runs = Vec::new();
        let nexts = self.cycle[1..].iter().map(|next| next.start);
        let nexts = nexts.chain([self.step + self.cycle[0].start]);
        for (band, next) in self.cycle.iter().zip(nexts) {
            let kind = TrackKind {
                blocks: band.blocks,
                sectors: band.sectors,
                turn: band.skew,
                late,
            };
            let before = u64::from(band.tracks - 1);
            if before > 0 {
                let tracks = band.tracks - 1;
                runs.push(KindRun { kind, tracks });
            }
            let turn = next - (band.start + band.skew.times(before));
            let last = KindRun {
                kind: TrackKind { turn, ..kind },
                tracks: 1,
            };
            runs.push(last);
        }
        runs
    }

    /// Where the next repetition would begin.
    pub(super) fn end_angle(&self) -> Angle {
        self.angle + self.step.times(u64::from(self.repeats))
    }

    /// Whether another piece goes on with the same, where angles may be off by `late` revolutions.
    fn goes_on_with(&self, next: &MapPiece, late: f64) -> bool {
        let alike = |(one, two): (&Band, &Band)| {
            let tolerance = (SAME / f64::from(one.sectors)).max(late);
            (one.tracks, one.blocks, one.sectors) == (two.tracks, two.blocks, two.sectors)
                && apart(one.start, two.start).abs() <= tolerance
                && (one.tracks == 1 || apart(one.skew, two.skew).abs() <= tolerance)
        };
        let tolerance = (SAME / f64::from(self.cycle[0].sectors)).max(late);
        // The longer the next piece is, the more a turn between tracks counts.
        let turned = apart(self.step, next.step).abs() * f64::from(next.repeats);
        self.end() == next.first
            && self.cycle.len() == next.cycle.len()
            && self.repeats.checked_add(next.repeats).is_some()
            && apart(self.end_angle(), next.angle).abs() <= tolerance
            && turned <= tolerance
            && self.cycle.iter().zip(&next.cycle).all(alike)
    }

    /// Goes on with what another piece has; its end is what was measured.
    fn go_on_with(&mut self, next: &MapPiece) {
        if next.repeats >= self.repeats {
            self.cycle = next.cycle.clone();
        }
        self.repeats += next.repeats;
        let off = apart(self.end_angle(), next.end_angle());
        self.step = self.step + forward(off / f64::from(self.repeats));
    }
}

impl TrackMap {
    /// A block is not where its track is.
    pub(super) fn move_away(&mut self, lba: Lba) {
        if !self.is_elsewhere(lba) {
            let place = self.elsewhere.partition_point(|moved| moved.first < lba);
            let (first, blocks) = (lba, 1);
            self.elsewhere.insert(place, Elsewhere { first, blocks });
        }
    }

    /// How many blocks more the track that ends before a block has room for, if it stands for itself.
    pub(super) fn room_before(&self, end: Lba) -> u64 {
        let after = self.pieces.partition_point(|piece| piece.first < end);
        let before = after.checked_sub(1).map(|before| &self.pieces[before]);
        let alone = before.filter(|piece| piece.end() == end && piece.tracks() == 1);
        alone.map_or(0, |piece| {
            let band = &piece.cycle[0];
            u64::from(band.sectors.saturating_sub(band.blocks))
        })
    }

    /// That track has so many blocks more.
    pub(super) fn lengthen(&mut self, end: Lba, blocks: u32) {
        let after = self.pieces.partition_point(|piece| piece.first < end);
        if let Some(before) = after.checked_sub(1) {
            self.pieces[before].cycle[0].blocks += blocks;
        }
    }

    /// The tracks from one block to another are unknown again, in whole repetitions.
    pub(super) fn discard(&mut self, from: Lba, to: Lba) {
        let mut kept = Vec::with_capacity(self.pieces.len() + 1);
        for piece in self.pieces.drain(..) {
            let (blocks, repeats) = (piece.cycle_blocks(), u64::from(piece.repeats));
            let offset = |lba: Lba| lba.0.saturating_sub(piece.first.0);
            let before = (offset(from) / blocks).min(repeats);
            let after = offset(to).div_ceil(blocks).min(repeats);
            if before >= after {
                kept.push(piece);
                continue;
            }
            for (skipped, count) in [(0, before), (after, repeats - after)] {
                if count > 0 {
                    kept.push(MapPiece {
                        first: Lba(piece.first.0 + skipped * blocks),
                        angle: piece.angle + piece.step.times(skipped),
                        repeats: count as u32,
                        ..piece.clone()
                    });
                }
            }
        }
        self.pieces = kept;
        let gone = |lba: Lba| self.piece_of(lba).is_none();
        let slips = self.slips.iter().copied();
        let slips: Vec<_> = slips.filter(|slip| !gone(slip.before)).collect();
        let elsewhere = self.elsewhere.iter().copied();
        let elsewhere = elsewhere.filter(|moved| !gone(moved.first)).collect();
        (self.slips, self.elsewhere) = (slips, elsewhere);
    }

    /// More tracks are known, which were not known before; a host delays sightings by up to `late`
    /// revolutions.
    pub(super) fn insert(&mut self, piece: MapPiece, late: f64) {
        if piece.repeats == 0 || piece.cycle.is_empty() {
            return;
        }
        let place = self
            .pieces
            .partition_point(|other| other.first < piece.first);
        let is_free = |place: usize| {
            let before = place.checked_sub(1).map(|index| &self.pieces[index]);
            let after = self.pieces.get(place);
            before.is_none_or(|before| before.end() <= piece.first)
                && after.is_none_or(|after| piece.end() <= after.first)
        };
        if !is_free(place) {
            // Another explorer was there first. What is left out stays unknown.
            return;
        }
        let before = place.checked_sub(1).map(|index| &mut self.pieces[index]);
        if let Some(before) = before
            && before.goes_on_with(&piece, late.min(BENT))
        {
            before.go_on_with(&piece);
            return;
        }
        self.pieces.insert(place, piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discarded_tracks_are_unknown_and_all_others_as_before() {
        let band = |tracks, blocks| Band {
            tracks,
            blocks,
            sectors: blocks,
            start: Angle::ZERO,
            skew: Angle::fraction(1, 7),
        };
        let piece = |first, cycle: Vec<Band>, repeats| MapPiece {
            first: Lba(first),
            angle: Angle::fraction(1, 3),
            cycle,
            repeats,
            step: Angle::fraction(1, 9),
        };
        let mut whole = TrackMap::default();
        whole.insert(piece(0, vec![band(3, 10), band(1, 8)], 20), 0.0);
        whole.insert(piece(1_000, vec![band(1, 9)], 40), 0.0);
        for (from, to) in [
            (0, 1),
            (100, 101),
            (37, 500),
            (400, u64::MAX),
            (1_009, 1_027),
        ] {
            let mut map = whole.clone();
            map.discard(Lba(from), Lba(to));
            for lba in (0..1_400).map(Lba) {
                let (before, after) = (whole.track_of(lba), map.track_of(lba));
                let gone = (from..to).contains(&lba.0);
                assert!(!gone || after.is_none(), "{lba:?}");
                if let Some(after) = after {
                    let same = before.map(|track| (track.first, track.blocks, track.start));
                    assert_eq!(Some((after.first, after.blocks, after.start)), same);
                }
            }
            let lost = whole.known() - map.known();
            let asked = (from..to.min(1_360)).filter(|&lba| whole.track_of(Lba(lba)).is_some());
            // Whole repetitions, at both ends.
            assert!(lost <= asked.count() as u64 + 2 * 38, "{lost}");
        }
    }
}
