//! Where a check of the map looks: at the blocks on both sides of a boundary of tracks, and beyond.
//!
//! ```text
//!   |--- track ---|--- track ---|          both are known: a, b
//!                a b
//!   |--- track ---|   unknown              x is on no line of the track, or the track does not end with b
//!    a       c   b x
//! ```
//!
//! Angles within a track would be right also if its bounds were not.

use block::Lba;
use drive::Angle;

use super::observer::width;
use crate::clock::apart;
use crate::findings::{FoundTrack, TrackMap};

/// A prediction that is not farther off came true, in revolutions: what scheduling by position
/// needs (Yu et al. 2000).
pub(super) const CLOSE: f64 = 0.01;

/// Behind a host, blocks that are not farther off than this are on their tracks, in revolutions: the check fails, and
/// the tracks stay. A choice: three times what angles are off by where delays vary by 30 us.
pub(super) const BESIDE_BY_READS: f64 = 0.016;

/// A block of a track where another begins does not end there by chance if it is as far from there as this
/// share of the skew between them. A choice: less than half.
const OF_SKEW: f64 = 0.4;

/// Where the skew at a boundary is smaller, in revolutions, a block inside the track is looked at, too. A choice: three
/// times what predictions may be off by. Tracks with a few blocks too few fit at both ends if the skew makes up for them.
const FLAT: f64 = 3.0 * CLOSE;

/// Where the skew at a boundary is smaller, in revolutions, and has no more than two sectors, nothing tells where the boundary is: tracks
/// with a sector more or fewer, and as much more or less skew, have their blocks as near. A choice: twice what predictions may
/// be off by.
const UNTOLD: f64 = 2.0 * CLOSE;

/// Where a block was found that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckedPlace {
    /// Where it should be.
    There,
    /// Farther away, but on its track: the bounds are right, and the angle is not exact.
    Beside,
    /// Elsewhere.
    Elsewhere,
}

/// What is looked at to check a track and its bounds.
#[derive(Clone, Debug)]
pub(super) struct Boundary {
    /// Blocks that should be on tracks, with the angles at which they end.
    pub(super) on: Vec<(Lba, Angle)>,
    /// Blocks beside a track, where the map has nothing, with the angles at which they would end on its line.
    pub(super) beyond: Vec<(Lba, Angle)>,
    /// A block at the boundary if nothing tells whether the bound is right: it is said to be elsewhere, or on its line without the
    /// boundary, too.
    hidden: Option<Lba>,
    /// How far off blocks may be, in revolutions.
    within: f64,
    /// How far off they are on these tracks all the same.
    beside: f64,
}

impl Boundary {
    /// Blocks that are looked at: those that should be on tracks, and those that should not.
    pub(super) fn of(on: Vec<(Lba, Angle)>, beyond: Vec<(Lba, Angle)>) -> Self {
        Boundary {
            on,
            beyond,
            hidden: None,
            within: CLOSE,
            beside: BESIDE_BY_READS,
        }
    }

    /// The blocks that are looked at.
    pub(super) fn lbas(&self) -> Vec<Lba> {
        self.on.iter().map(|(lba, _)| *lba).collect()
    }

    /// How far off a block may be that no host delays, in revolutions.
    pub(super) fn within(&self) -> f64 {
        self.within
    }

    /// Where the tracks are whose blocks were so far off, and the block that tells it. Not farther off than `close` is
    /// where they should be.
    pub(super) fn judge(&self, on: &[f64], beyond: &[f64], close: f64) -> (Lba, CheckedPlace) {
        let within = self.within.min(close);
        let first = self.on.last().map_or(Lba(0), |(lba, _)| *lba);
        if let Some(lba) = self.hidden {
            return (lba, CheckedPlace::Elsewhere);
        }
        let mut found = (first, CheckedPlace::There);
        for ((lba, _), off) in self.on.iter().zip(on) {
            let off = off.abs();
            if off > self.beside {
                return (*lba, CheckedPlace::Elsewhere);
            }
            if off > within {
                found = (*lba, CheckedPlace::Beside);
            }
        }
        match beyond.iter().any(|off| off.abs() <= within) {
            // The track goes on.
            true => (first, CheckedPlace::Elsewhere),
            false => found,
        }
    }
}

impl TrackMap {
    /// A block of a known track, spread by the golden section, and the angle at which it ends.
    pub(crate) fn fresh(&self, known: u64, number: u64) -> Option<(Lba, Angle)> {
        let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let place = ((u128::from(spread) * u128::from(known)) >> 64) as u64;
        let lba = self.known_block(place)?;
        Some((lba, self.end_angle_of(lba)?))
    }

    /// The boundary behind such a block's track, or both of its ends if nothing is known behind. The drive has so many
    /// blocks.
    pub(super) fn boundary(&self, known: u64, number: u64, blocks: u64) -> Option<Boundary> {
        self.boundary_behind(self.fresh(known, number)?, blocks)
    }

    /// The same behind the track of a block, which ends at an angle.
    pub(super) fn boundary_behind(&self, inside: (Lba, Angle), blocks: u64) -> Option<Boundary> {
        let track = self.track_of(inside.0)?;
        let behind = Lba(track.first.0 + u64::from(track.blocks));
        match self.track_of(behind) {
            Some(_) => self.between(&track, behind, inside),
            None => self.ends(&track, inside, blocks),
        }
    }

    /// The boundary of a track and the next one.
    fn between(&self, track: &FoundTrack, behind: Lba, inside: (Lba, Angle)) -> Option<Boundary> {
        let last = Lba(behind.0 - 1);
        let hidden = [last, behind]
            .into_iter()
            .find(|lba| self.is_elsewhere(*lba));
        let ends = self.end_angle_of(last).zip(self.end_angle_of(behind));
        let mut boundary = Boundary {
            hidden,
            ..Boundary::of(vec![inside], Vec::new())
        };
        let Some((end, begin)) = ends else {
            return Some(boundary);
        };
        let width = width(track.sectors);
        let skew = apart(end + width, begin).abs();
        boundary.on = vec![(last, end), (behind, begin)];
        if skew < FLAT {
            boundary.on.push(inside);
        }
        if skew <= 2.0 * width.revolutions() {
            let is_untold = skew < UNTOLD;
            boundary.hidden = hidden.or(is_untold.then_some(behind));
        } else {
            boundary.within = CLOSE.min(skew * OF_SKEW);
            boundary.beside = BESIDE_BY_READS.min(skew * OF_SKEW);
        }
        Some(boundary)
    }

    /// Both ends of a track behind which nothing is known, and what is beyond them.
    fn ends(&self, track: &FoundTrack, inside: (Lba, Angle), blocks: u64) -> Option<Boundary> {
        let behind = Lba(track.first.0 + u64::from(track.blocks));
        let last = Lba(behind.0 - 1);
        let hidden = [track.first, last];
        let hidden = hidden.into_iter().find(|lba| self.is_elsewhere(*lba));
        let mut boundary = Boundary {
            hidden,
            ..Boundary::of(vec![inside], Vec::new())
        };
        let ends = self.end_angle_of(track.first).zip(self.end_angle_of(last));
        let Some((begin, end)) = ends else {
            return Some(boundary);
        };
        boundary.on = vec![(track.first, begin), inside, (last, end)];
        let width = width(track.sectors);
        if behind.0 < blocks {
            boundary.beyond.push((behind, end + width));
        }
        let before = track.first.0.checked_sub(1).map(Lba);
        let before = before.filter(|before| self.track_of(*before).is_none());
        boundary
            .beyond
            .extend(before.map(|before| (before, begin - width)));
        Some(boundary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::forward;
    use crate::findings::{Band, Elsewhere, MapPiece};

    /// Tracks of so many blocks and sectors from a block on, each turned by a skew against the one before.
    fn piece(first: u64, tracks: u32, sectors: u32, skew: f64) -> MapPiece {
        let band = Band {
            tracks,
            blocks: sectors,
            sectors,
            start: Angle::ZERO,
            skew: forward(skew),
        };
        MapPiece {
            first: Lba(first),
            angle: forward(skew * first as f64 / f64::from(sectors)),
            cycle: vec![band],
            repeats: 1,
            step: forward(skew * f64::from(tracks)),
        }
    }

    fn map(pieces: Vec<MapPiece>) -> TrackMap {
        TrackMap {
            pieces,
            ..TrackMap::default()
        }
    }

    /// What checks of a map say on a drive that is `truth`: by all numbers up to 500.
    fn checked(map: &TrackMap, truth: &TrackMap) -> Vec<CheckedPlace> {
        let blocks = truth.known();
        let off = |(lba, end): &(Lba, Angle)| {
            let is = truth.end_angle_of(*lba);
            is.map_or(0.5, |is| apart(*end, is))
        };
        let check = |number| {
            let boundary = map.boundary(map.known(), number, blocks)?;
            let on: Vec<f64> = boundary.on.iter().map(off).collect();
            let beyond: Vec<f64> = boundary.beyond.iter().map(off).collect();
            Some(boundary.judge(&on, &beyond, CLOSE).1)
        };
        (1..=500).filter_map(check).collect()
    }

    fn failed(checks: &[CheckedPlace]) -> usize {
        let fails = |check: &&CheckedPlace| **check != CheckedPlace::There;
        checks.iter().filter(fails).count()
    }

    #[test]
    fn a_right_map_fails_no_check_wherever_it_ends() {
        for skew in [0.05, 0.2, 0.011] {
            let truth = map(vec![piece(0, 40, 192, skew)]);
            let part = map(vec![
                piece(192, 3, 192, skew),
                piece(192 * 8, 20, 192, skew),
            ]);
            for found in [&truth, &part] {
                let checks = checked(found, &truth);
                assert!(checks.len() == 500 && failed(&checks) == 0, "{skew}");
            }
        }
    }

    #[test]
    fn a_track_without_its_last_blocks_fails_before_a_gap() {
        let truth = map(vec![piece(0, 40, 192, 0.2)]);
        let mut short = piece(192, 1, 192, 0.2);
        short.cycle[0].blocks = 189;
        let checks = checked(&map(vec![short, piece(192 * 2, 1, 192, 0.2)]), &truth);
        // Half of the blocks are on it.
        assert!((200..300).contains(&failed(&checks)), "{}", failed(&checks));
    }

    #[test]
    fn tracks_that_turn_by_the_skew_that_they_lack_fail_inside() {
        // Of 243 sectors with a skew of nine: each 234 blocks take a revolution, wherever a track ends.
        let truth = map(vec![piece(0, 40, 243, 9.0 / 243.0)]);
        let found = map(vec![piece(0, 40, 234, 0.0)]);
        assert!(failed(&checked(&found, &truth)) > 150);
    }

    #[test]
    fn bounds_that_show_at_no_angle_fail_right_or_wrong() {
        // Of 58 sectors with a skew of one: 57 blocks take a revolution but for a third of a thousandth.
        let truth = map(vec![piece(0, 40, 58, 1.0 / 58.0)]);
        let found = map(vec![piece(0, 20, 57, -0.0003)]);
        for map in [&found, &truth] {
            // But for those of a last track, which is followed by none.
            let failed = failed(&checked(map, &truth));
            assert!(failed > 450, "{failed} of 500");
        }
    }

    #[test]
    fn a_bound_that_rests_on_a_block_elsewhere_fails() {
        let truth = map(vec![piece(0, 40, 95, 0.1)]);
        // One block early, and the first blocks are said to be elsewhere.
        let mut found = map(vec![piece(94, 20, 95, 0.1)]);
        let elsewhere = |track: u64| Elsewhere {
            first: Lba(94 + track * 95),
            blocks: 1,
        };
        found.elsewhere = (0..20).map(elsewhere).collect();
        let checks = checked(&found, &truth);
        assert_eq!(failed(&checks), checks.len());
    }
}
