//! How found tracks become pieces of the map.

use block::Lba;
use drive::Angle;

use super::observer::SAME;
use super::track_cycle::KindRun;
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
        self.end() == next.first
            && self.cycle.len() == next.cycle.len()
            && self.repeats.checked_add(next.repeats).is_some()
            && apart(self.end_angle(), next.angle).abs() <= tolerance
            && apart(self.step, next.step).abs() <= tolerance
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

    /// More tracks are known, which were not known before; their angles may be off by `late`
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
            && before.goes_on_with(&piece, late)
        {
            before.go_on_with(&piece);
            return;
        }
        self.pieces.insert(place, piece);
    }
}
