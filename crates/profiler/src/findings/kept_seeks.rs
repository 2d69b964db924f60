//! Whether seeks that were measured by one layout hold by the next one.
//!
//! ```text
//!   before   [ known ]....gap....[ known ]     200 cylinders from block to block: the table has their time
//!   now      [ known ]..gap..[ known ]         150 cylinders: another time of the same table
//! ```
//!
//! A seek table is by cylinders. Where a map grows, guesses at its gaps change, and with them the distances over which
//! seeks were measured.

use block::Lba;
use drive::Geometry;

use super::{ArmTimings, NEAR_NANOS, TrackLayout};
use crate::confidence::Confidence;

/// Pairs of blocks that are compared: as many as a thorough check of the arm measures. A choice.
const PAIRS: u64 = 40;

/// Half of the pairs are at most so many parts of the known blocks apart, as half of the arm's checks are short. A choice.
const NEAR_PARTS: u64 = 100;

impl TrackLayout {
    /// The share of pairs of known blocks between which a seek takes as long by this layout as by the one before. Two thirds
    /// where the two have no known blocks in common.
    pub(super) fn keeps_seeks_of(&self, before: &TrackLayout, arm: &ArmTimings) -> Confidence {
        let doubt = Confidence::of(1, 1);
        let geometries = [before, self].map(|layout| Geometry::indexed(&layout.description));
        let [Ok(then), Ok(now)] = geometries else {
            return doubt;
        };
        let Ok(table) = arm.read_table(then.cylinders().max(now.cylinders())) else {
            return doubt;
        };
        let time = |geometry: &Geometry, [from, to]: [Lba; 2]| {
            let (from, to) = (geometry.locate(from)?, geometry.locate(to)?);
            let distance = from.cylinder.abs_diff(to.cylinder);
            Some(table.time(distance).as_nanos())
        };
        let (mut same, mut pairs) = (0, 0);
        for number in 0..PAIRS {
            let pair = self.pair(number);
            let pair = pair.filter(|pair| pair.iter().all(|lba| before.knows(*lba)));
            let times = pair.and_then(|pair| Some((time(&then, pair)?, time(&now, pair)?)));
            if let Some((then, now)) = times {
                pairs += 1;
                same += u32::from(then.abs_diff(now) <= NEAR_NANOS);
            }
        }
        match pairs {
            0 => doubt,
            _ => Confidence::of(same, pairs),
        }
    }

    /// The `number`th pair of known blocks.
    fn pair(&self, number: u64) -> Option<[Lba; 2]> {
        let blocks = self.known_blocks();
        let from = share(2 * number, blocks);
        let to = match number % 2 {
            0 => share(2 * number + 1, blocks),
            _ => from + share(2 * number + 1, (blocks / NEAR_PARTS).min(blocks - from)),
        };
        Some([self.known_block(from)?, self.known_block(to)?])
    }
}

/// A number below `below`, by the golden section; 0 if there is none.
fn share(number: u64, below: u64) -> u64 {
    let spread = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((u128::from(spread) * u128::from(below)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use block::{Duration, Extent, Sectors};
    use drive::Angle;

    use super::*;
    use crate::findings::{
        Band, Findings, Heading, MapPiece, Pattern, SeekPoint, TrackMap, Turning,
    };
    use crate::layout::{Skipped, layout};

    /// Two known pieces of 100 tracks, with a gap of 100 tracks between them; so many cylinders of it hold no blocks.
    fn laid(skipped: u32) -> TrackLayout {
        let piece = |first: u64| MapPiece {
            first: Lba(first),
            angle: Angle::ZERO,
            cycle: vec![Band {
                tracks: 1,
                blocks: 100,
                sectors: 100,
                start: Angle::ZERO,
                skew: Angle::fraction(1, 7),
            }],
            repeats: 100,
            step: Angle::fraction(1, 7),
        };
        let map = TrackMap {
            pieces: vec![piece(0), piece(20_000)],
            ..TrackMap::default()
        };
        let alone = Pattern {
            surfaces: 1,
            band: 1,
            turning: Turning::Alternating,
            begins: Heading::Onward,
        };
        let skipped = [Skipped {
            before: Lba(20_000),
            cylinders: skipped,
        }];
        let skipped = &skipped[..usize::from(skipped[0].cylinders > 0)];
        layout(&map, alone, &[], skipped, 30_000)
    }

    /// 1 ms, and 1 us for each cylinder.
    fn arm() -> ArmTimings {
        let point = |distance: u32| SeekPoint {
            distance,
            mean: Duration::from_micros(1_000 + u64::from(distance)),
            ..SeekPoint::default()
        };
        ArmTimings {
            read: vec![point(1), point(299)],
            ..ArmTimings::default()
        }
    }

    #[test]
    fn seeks_hold_while_distances_do() {
        let all = laid(0).keeps_seeks_of(&laid(0), &arm());
        assert_eq!(all, Confidence::of(40, 40));
        // 90 us longer over the gap: as good as the table is.
        let nearly = laid(90).keeps_seeks_of(&laid(0), &arm());
        assert!(nearly >= Confidence::of(30, 30), "{nearly:?}");
    }

    #[test]
    fn seeks_over_a_gap_of_which_the_guess_changes_are_doubted() {
        let known = laid(2_000).keeps_seeks_of(&laid(0), &arm());
        // Those inside either piece hold: three quarters of all, half of which are near.
        assert!(known.share() > 0.5 && known.share() < 0.9, "{known:?}");
    }

    #[test]
    fn a_new_layout_doubts_the_seeks_that_it_changes() {
        let all = Confidence::of(40, 40);
        for (skipped, are_kept) in [(0, true), (2_000, false)] {
            let mut found = Findings::default();
            found.lay_out(laid(0), None);
            found.arm = Some(ArmTimings {
                confidence: all,
                ..arm()
            });
            found.lay_out(laid(skipped), None);
            let seeks = found.arm.expect("seeks").confidence;
            assert_eq!(seeks == all, are_kept, "{skipped}: {seeks:?}");
        }
    }

    #[test]
    fn where_nothing_known_is_left_seeks_are_doubted() {
        let mut before = laid(0);
        before.known = vec![Extent::new(Lba(12_000), Sectors(100)).expect("blocks")];
        let kept = laid(1).keeps_seeks_of(&before, &arm());
        assert_eq!(kept, Confidence::of(1, 1));
    }
}
