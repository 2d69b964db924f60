//! Whether what one leap has claimed is right, leap by leap, where a host delays sightings.
//!
//! ```text
//!   map       |-- piece --|- - - - - piece - - - - -|-- piece --|        each is one claim: a pattern, so often
//!   blind     x        x         x       x         x        x            checks of all blocks find one of a hundred seldom
//!   inquiry   x  x  x     x      x       x             x x x             as many of each claim
//! ```
//!
//! Errors are those of whole pieces: a pattern with the mean turn of tracks whose turns differ, tracks with too few blocks for
//! which their skew makes up, a leap that has landed by chance. On such a piece half of the blocks may be where they should
//! be, so that checks that came true say little about the blocks between them.

use std::collections::BTreeMap;

use block::{Instant, Lba};

use super::boundary::{Boundary, CheckedPlace};
use super::verify::{Check, check_all};
use crate::findings::{Band, MapPiece, TrackMap};
use crate::prober::Prober;

/// Claims about fewer known blocks than one of so many are left to the checks of all blocks. A choice: half of what may be
/// wrong on a map that is believed.
const LEAST: u64 = 200;

/// Checks of each claim. A choice: three of four claims of which half of the blocks are wrong fail one of two, and seven of
/// eight one of three.
const FIRST: u64 = 3;

/// Further checks of a claim that has failed one. A choice: whether a quarter of it is wrong is told by as many.
const MORE: u64 = 9;

/// Most checks of all claims for the first time: what a check of the map takes at most. The largest come first.
pub(crate) const MOST_INQUIRED: u32 = 150;

/// A claim of which one of so many checks failed is wrong. A choice: stalls of a host and blocks of its own that are
/// elsewhere fail fewer.
const FAILING: usize = 4;

/// Checks each large claim of the map, and discards those that are wrong, until `until` at most.
pub(crate) async fn inquire(prober: &Prober, until: Instant) {
    let most = u64::from(MOST_INQUIRED) / FIRST;
    let mut claims = prober.findings(|findings| findings.map.claims());
    claims.truncate(most as usize);
    let Some(first) = check(prober, &claims, FIRST, until).await else {
        return;
    };
    let failed =
        |(claim, checks): (Claim, Vec<Check>)| has_failed(&checks).then_some((claim, checks));
    let doubted: Vec<_> = claims.into_iter().zip(first).filter_map(failed).collect();
    let (claims, first): (Vec<Claim>, Vec<Vec<Check>>) = doubted.into_iter().unzip();
    let Some(more) = check(prober, &claims, MORE, until).await else {
        return;
    };
    for ((claim, first), more) in claims.iter().zip(first).zip(more) {
        let all = first.iter().chain(&more);
        let failed = all
            .clone()
            .filter(|check| check.found != CheckedPlace::There);
        if failed.count() * FAILING >= all.count() {
            prober.findings(|findings| findings.map.discard_claim(claim));
        }
    }
}

fn has_failed(checks: &[Check]) -> bool {
    checks
        .iter()
        .any(|check| check.found != CheckedPlace::There)
}

/// So many checks of each claim, in their order; nothing if time is over before.
async fn check(
    prober: &Prober,
    claims: &[Claim],
    checks: u64,
    until: Instant,
) -> Option<Vec<Vec<Check>>> {
    let all = checks * claims.len() as u64;
    let first = prober.fresh_checks(all as u32);
    let blocks = prober.device().blocks;
    let boundaries: Vec<Boundary> = prober.findings(|findings| {
        let of = |place: usize| {
            let numbers =
                (0..checks).map(move |check| first + check * claims.len() as u64 + place as u64);
            numbers.filter_map(move |number| claims[place].block(number))
        };
        let wanted = (0..claims.len()).flat_map(of);
        let map = &findings.map;
        let boundary = |lba| map.boundary_behind((lba, map.end_angle_of(lba)?), blocks);
        wanted.filter_map(boundary).collect()
    });
    let made = prober.within(until, check_all(prober, boundaries)).await?;
    let of = |claim: &Claim| {
        let made = made.iter().filter(|check| claim.holds(check.lba));
        made.copied().collect()
    };
    Some(claims.iter().map(of).collect())
}

/// A part of the map that is right or wrong as a whole: a large piece, or all small ones with the same pattern.
#[derive(Clone, Debug)]
struct Claim {
    /// The first block of each piece, and the block behind it, ascending.
    pieces: Vec<(Lba, Lba)>,
}

impl Claim {
    fn blocks(&self) -> u64 {
        self.pieces.iter().map(|(from, to)| to.0 - from.0).sum()
    }

    /// A block, by the golden section.
    fn block(&self, number: u64) -> Option<Lba> {
        let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut place = ((u128::from(spread) * u128::from(self.blocks())) >> 64) as u64;
        for (from, to) in &self.pieces {
            if place < to.0 - from.0 {
                return Some(Lba(from.0 + place));
            }
            place -= to.0 - from.0;
        }
        None
    }

    fn holds(&self, lba: Lba) -> bool {
        let behind = self.pieces.partition_point(|(from, _)| *from <= lba);
        behind > 0 && lba < self.pieces[behind - 1].1
    }
}

/// What pieces are alike in: whether they were leapt over, and the tracks, blocks and sectors of their pattern.
type ClaimPattern = (bool, Vec<[u32; 3]>);

impl TrackMap {
    /// The large claims of the map, those with most blocks first.
    fn claims(&self) -> Vec<Claim> {
        let least = self.known() / LEAST;
        let mut alike: BTreeMap<ClaimPattern, Vec<(Lba, Lba)>> = BTreeMap::new();
        let mut claims = Vec::new();
        for piece in &self.pieces {
            let range = (piece.first, piece.end());
            match piece.blocks() > least {
                true => claims.push(Claim {
                    pieces: vec![range],
                }),
                false => alike.entry(pattern(piece)).or_default().push(range),
            }
        }
        let alike = alike.into_values().map(|pieces| Claim { pieces });
        claims.extend(alike.filter(|claim| claim.blocks() > least));
        claims.sort_by_key(|claim| std::cmp::Reverse(claim.blocks()));
        claims
    }

    fn discard_claim(&mut self, claim: &Claim) {
        for (from, to) in &claim.pieces {
            self.discard(*from, *to);
        }
    }
}

fn pattern(piece: &MapPiece) -> ClaimPattern {
    let band = |band: &Band| [band.tracks, band.blocks, band.sectors];
    (piece.repeats > 1, piece.cycle.iter().map(band).collect())
}

#[cfg(test)]
mod tests {
    use drive::Angle;

    use super::*;

    fn piece(first: u64, tracks: u32, blocks: u32, repeats: u32) -> MapPiece {
        let band = Band {
            tracks,
            blocks,
            sectors: blocks,
            start: Angle::ZERO,
            skew: Angle::fraction(1, 7),
        };
        MapPiece {
            first: Lba(first),
            angle: Angle::ZERO,
            cycle: vec![band],
            repeats,
            step: Angle::fraction(1, 9),
        }
    }

    /// Two leaps over 40 and 30 cylinders of ten tracks, nine over two tracks with their mean turn, and one walked track.
    fn map() -> TrackMap {
        let leaps = [piece(0, 10, 100, 40), piece(40_000, 10, 100, 30)];
        let small = (0..9).map(|number| piece(70_000 + number * 1_000, 1, 100, 2));
        let walked = piece(80_000, 1, 100, 1);
        let pieces = leaps.into_iter().chain(small).chain([walked]).collect();
        TrackMap {
            pieces,
            ..TrackMap::default()
        }
    }

    #[test]
    fn large_pieces_are_claims_and_small_ones_with_one_pattern_together() {
        let claims = map().claims();
        let blocks: Vec<u64> = claims.iter().map(Claim::blocks).collect();
        // The walked track is less than one block of two hundred.
        assert_eq!(blocks, [40_000, 30_000, 1_800]);
        for claim in &claims {
            let mut seen: Vec<u64> = (0..4_000)
                .filter_map(|number| claim.block(number))
                .map(|lba| {
                    assert!(claim.holds(lba));
                    lba.0 / 1_000
                })
                .collect();
            seen.sort_unstable();
            seen.dedup();
            let thousands = claim
                .pieces
                .iter()
                .map(|(from, to)| (to.0 - from.0).div_ceil(1_000));
            assert_eq!(seen.len() as u64, thousands.sum::<u64>());
        }
        assert!(!claims[2].holds(Lba(70_200)) && !claims[2].holds(Lba(80_000)));
    }

    #[test]
    fn a_claim_that_is_wrong_goes_with_all_of_its_pieces_and_no_other() {
        let mut map = map();
        let claims = map.claims();
        map.discard_claim(&claims[2]);
        let firsts: Vec<u64> = map.pieces.iter().map(|piece| piece.first.0).collect();
        assert_eq!(firsts, [0, 40_000, 80_000]);
    }
}
