//! Whether the map is right, by blocks that were not used to make it.

use std::collections::BTreeMap;
use std::ops::Range;

use block::Lba;
use drive::Angle;

use super::observer::{Care, Observer};
use super::sector_line::NoTrack;
use super::shared_delay::{SharedDelay, TimedOff};
use crate::clock::apart;
use crate::confidence::Confidence;
use crate::device::Offers;
use crate::prober::{Prober, TrackCount};

/// A prediction that is not farther off came true, in revolutions: what scheduling by position
/// needs (Yu et al. 2000).
const CLOSE: f64 = 0.01;

/// Looks at so many blocks of known tracks, spread by the golden section from one that `seed`
/// says, and sets the map's confidence.
///
/// # Errors
/// If a block could not be sighted.
pub async fn verify(prober: &Prober, checks: u32, seed: u64) -> Result<Confidence, NoTrack> {
    if prober.device().offers == Offers::Nothing {
        return Ok(verify_in_rounds(prober, checks, seed, Doubtful::Stay).await);
    }
    let mut observer = Observer::new(prober);
    let known = prober.findings(|findings| findings.map.known());
    let (mut close, mut made) = (0, 0);
    for check in 0..u64::from(checks) {
        let expected = prober.findings(|findings| findings.map.fresh(known, seed + check));
        let Some((lba, end)) = expected else {
            continue;
        };
        let off = observer.off(lba, end, CLOSE, Care::Sure).await?;
        made += 1;
        close += u32::from(off.abs() <= CLOSE);
    }
    let confidence = Confidence::of(close, made);
    prober.findings(|findings| findings.map_confidence = confidence);
    Ok(confidence)
}

/// What happens to tracks that are on the map a little beside their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubtful {
    /// They stay: their angles are to be sighted again.
    Stay,
    /// They are unknown again.
    Leave,
}

/// The same by reads alone for a map that is as exact as it becomes: tracks that are not where they should be are unknown
/// again.
pub async fn verify_settled(prober: &Prober, checks: u32, seed: u64) -> Confidence {
    verify_in_rounds(prober, checks, seed, Doubtful::Leave).await
}

/// The same by reads alone and without a host's delays, in revolutions: what is found has to stay below it in service. A
/// choice.
const CLOSE_BY_READS: f64 = 0.008;

/// Behind a host, blocks that are not farther off than this are on their tracks, in revolutions: the check fails, and
/// the tracks stay. A choice: three times what angles are off by where delays vary by 30 us.
const BESIDE_BY_READS: f64 = 0.016;

/// Sightings of a block behind a host, of which the median tells where it is. A choice: the median of five is off by half
/// of what one sighting is.
const SIGHTINGS: usize = 5;

/// Sightings of a block that is not where it should be by the first ones: whether a host's stalls were the reason. A
/// choice: the median of ten more is off by a third of what one sighting is, and stalls of a tenth of them do not move it.
const SIGHTINGS_AGAIN: usize = 10;

/// So many boundaries that are where they should be are sighted again with those that are not. A choice: 300 sightings
/// tell what they have in common.
const CONTROLS: usize = 15;

/// Sightings of a block without a host's delays before it is believed not to be where it should. A choice.
const ATTEMPTS: u32 = 6;

/// A block of a track where another begins does not end there by chance if it is as far from there as this
/// share of the skew between them. A choice: less than half.
const OF_SKEW: f64 = 0.4;

/// How often a map is checked again after the tracks that were wrong have been discarded. A choice.
const AGAIN: u64 = 2;

/// A map of which not more than one of so many checks failed is right. A choice: retries of the drive and
/// stalls of the host fail some.
const FAILING: usize = 100;

/// As how many a track counts without a host's delays that is beside its place, and stays on the map, and one that is
/// elsewhere. A choice: where a sixteenth of the tracks are beside, positions are not what scheduling needs, and the map
/// gets half of its confidence.
const COSTS_AT_ONCE: (usize, usize) = (8, 1);

/// Behind a host a check that fails though its block was sighted often counts as so many. A choice: on a map that is
/// believed, at three quarters, not more than one track of fifty is wrong.
const FAILURE_COSTS: usize = 12;

/// A map of a smaller part of the blocks has no confidence: few gaps are between known blocks. A choice: one of a
/// hundred.
const LEAST_KNOWN: u64 = 100;

/// The same where reads in between have to evict the blocks, and where a host delays some sightings. The
/// blocks are those on both sides of a boundary of two tracks: angles within a track would be right also
/// if its bounds were not. Where checks fail, the tracks up to the next checks that came true are unknown
/// again, and the rest of the map is checked by others.
async fn verify_in_rounds(
    prober: &Prober,
    checks: u32,
    seed: u64,
    doubtful: Doubtful,
) -> Confidence {
    let costs = match Observer::new(prober).late() == 0.0 {
        true => COSTS_AT_ONCE,
        false => (FAILURE_COSTS, FAILURE_COSTS),
    };
    let mut confidence = Confidence::NONE;
    for again in 0..=AGAIN {
        let first = seed + again * u64::from(checks);
        let mut made = check_all(prober, first..first + u64::from(checks)).await;
        let count = |found| made.iter().filter(|check| check.found == found).count();
        let (beside, elsewhere) = (count(CheckedPlace::Beside), count(CheckedPlace::Elsewhere));
        let uncounted = made
            .iter()
            .filter(|check| check.is_uncounted(prober))
            .count();
        let failed = beside * costs.0 + (elsewhere + uncounted) * costs.1;
        confidence = Confidence::of(made.len().saturating_sub(failed) as u32, made.len() as u32);
        made.sort_unstable_by_key(|check| check.lba);
        let lasting = match doubtful {
            Doubtful::Stay => elsewhere,
            Doubtful::Leave => beside + elsewhere,
        };
        let is_right = lasting * FAILING <= made.len();
        if !is_right || doubtful == Doubtful::Leave {
            prober.findings(|findings| findings.map.discard_failed(&made, doubtful));
        }
        if is_right {
            break;
        }
    }
    let blocks = prober.device().blocks;
    prober.findings(|findings| {
        if findings.map.known() < blocks / LEAST_KNOWN {
            confidence = Confidence::NONE;
        }
        findings.map_confidence = confidence;
    });
    confidence
}

/// A check of the tracks at a block.
#[derive(Clone, Copy, Debug)]
struct Check {
    lba: Lba,
    found: CheckedPlace,
}

impl Check {
    /// Whether the tracks are where they should be, but the number of their sectors is open.
    fn is_uncounted(&self, prober: &Prober) -> bool {
        let mut desk = prober.desk();
        let desk = &mut *desk;
        let track = desk.findings.map.track_of(self.lba);
        let open = track.is_some_and(|track| {
            desk.counted.is_open(TrackCount {
                sectors: track.sectors,
                blocks: track.blocks,
            })
        });
        open && self.found == CheckedPlace::There
    }
}

/// Where a block was found that was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckedPlace {
    /// Where it should be.
    There,
    /// Farther away, but on its track: the bounds are right, and the angle is not exact.
    Beside,
    /// Elsewhere.
    Elsewhere,
}

async fn check_all(prober: &Prober, seeds: Range<u64>) -> Vec<Check> {
    let boundaries = prober.findings(|findings| {
        let known = findings.map.known();
        let boundaries = seeds.map(|seed| findings.map.boundary(known, seed));
        boundaries.flatten().collect::<Vec<_>>()
    });
    let made = sight_all(prober, boundaries, SIGHTINGS).await;
    let is_delayed = Observer::new(prober).late() > 0.0;
    let mut checks = judge_all(&made, is_delayed);
    let is_right = |check: &Check| check.found == CheckedPlace::There;
    if !is_delayed || checks.iter().all(is_right) {
        return checks;
    }
    // What sightings of one time have in common is told by those of blocks that are where they should be.
    let every = checks.iter().filter(|check| is_right(check)).count() / CONTROLS + 1;
    let right = (0..checks.len()).filter(|place| is_right(&checks[*place]));
    let wrong = (0..checks.len()).filter(|place| !is_right(&checks[*place]));
    let again: Vec<Boundary> = wrong
        .chain(right.step_by(every))
        .map(|place| made[place].0)
        .collect();
    let again = sight_all(prober, again, SIGHTINGS_AGAIN).await;
    let judged: BTreeMap<[Lba; 2], Check> = again
        .iter()
        .map(|(boundary, _)| boundary.lbas())
        .zip(judge_all(&again, is_delayed))
        .collect();
    for (check, (boundary, _)) in checks.iter_mut().zip(&made) {
        if let Some(again) = judged.get(&boundary.lbas()).filter(|_| !is_right(check)) {
            *check = *again;
        }
    }
    checks
}

/// Sights both blocks of boundaries so often, those without a host's delays until they are where they should be.
async fn sight_all(
    prober: &Prober,
    boundaries: Vec<Boundary>,
    sightings: usize,
) -> Vec<SightedBoundary> {
    let work = boundaries.into_iter().map(|boundary| async move {
        let mut offs = [Vec::new(), Vec::new()];
        for (offs, block) in offs.iter_mut().zip(boundary.blocks) {
            *offs = offs_of(prober, block, &boundary, sightings).await?;
        }
        Some((boundary, offs))
    });
    let made = prober.rounds(work.collect()).await;
    made.into_iter().flatten().collect()
}

/// The sightings of the blocks of a boundary.
type SightedBoundary = (Boundary, [Vec<TimedOff>; 2]);

/// Judges checks. What all have in common behind a host is the clock's or the host's, and says nothing about the map.
fn judge_all(made: &[SightedBoundary], is_delayed: bool) -> Vec<Check> {
    let (close, common) = match is_delayed {
        true => {
            let offs = made.iter().flat_map(|(_, offs)| offs).flatten();
            (CLOSE, SharedDelay::of(offs.copied().collect()))
        }
        false => (CLOSE_BY_READS, SharedDelay::default()),
    };
    let judge = |(boundary, offs): &SightedBoundary| {
        let offs = [0, 1].map(|side| common.rest(&offs[side]));
        boundary.judge(offs, close)
    };
    made.iter().map(judge).collect()
}

/// How far off a block is that should end at an angle, by some sightings.
async fn offs_of(
    prober: &Prober,
    block: (Lba, Angle),
    boundary: &Boundary,
    sightings: usize,
) -> Option<Vec<TimedOff>> {
    let mut observer = Observer::new(prober);
    match observer.late() == 0.0 {
        true => Some(vec![off_at_once(prober, block, boundary).await?]),
        false => observer.offs(block, sightings).await.ok(),
    }
}

/// How far off a block is that no host delays, by the best of some sightings: the drive may need a second attempt. One
/// that is where it should be keeps the time: the checks may take longer than a spindle that drifts keeps it.
async fn off_at_once(
    prober: &Prober,
    (lba, end): (Lba, Angle),
    boundary: &Boundary,
) -> Option<TimedOff> {
    let mut least: Option<TimedOff> = None;
    for _ in 0..ATTEMPTS {
        let sighting = prober.sight(lba).await.ok()?;
        let clock = prober.findings(|findings| findings.clock)?;
        let off = apart(end, clock.angle_at(sighting.at)).abs();
        if least.is_none_or(|least| off < least.off) {
            let at = sighting.at;
            least = Some(TimedOff { at, off });
        }
        if off <= boundary.within.min(CLOSE_BY_READS) {
            prober.anchor(end, sighting.at);
            break;
        }
    }
    least
}

/// The blocks on both sides of a boundary of tracks, with the angles at which they end.
#[derive(Clone, Copy)]
struct Boundary {
    blocks: [(Lba, Angle); 2],
    /// How far off they may be, in revolutions.
    within: f64,
    /// How far off they are on these tracks all the same.
    beside: f64,
}

impl Boundary {
    fn lbas(&self) -> [Lba; 2] {
        self.blocks.map(|(lba, _)| lba)
    }

    /// Where the tracks are whose blocks were so far off. Not farther off than `close` is where they should be.
    fn judge(&self, offs: [f64; 2], close: f64) -> Check {
        let within = self.within.min(close);
        let mut check = Check {
            lba: self.blocks[1].0,
            found: CheckedPlace::There,
        };
        for ((lba, _), off) in self.blocks.iter().zip(offs) {
            let off = off.abs();
            if off > self.beside {
                return Check {
                    lba: *lba,
                    found: CheckedPlace::Elsewhere,
                };
            }
            if off > within {
                (check.lba, check.found) = (*lba, CheckedPlace::Beside);
            }
        }
        check
    }
}

impl crate::findings::TrackMap {
    /// A block of a known track, spread by the golden section, and the angle at which it ends.
    pub(crate) fn fresh(&self, known: u64, number: u64) -> Option<(Lba, Angle)> {
        let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let place = ((u128::from(spread) * u128::from(known)) >> 64) as u64;
        let lba = self.known_block(place)?;
        Some((lba, self.end_angle_of(lba)?))
    }

    /// The boundary behind such a block's track, or before it if nothing is known behind.
    fn boundary(&self, known: u64, number: u64) -> Option<Boundary> {
        let (lba, end) = self.fresh(known, number)?;
        let track = self.track_of(lba)?;
        let behind = Lba(track.first.0 + u64::from(track.blocks));
        let first = match self.track_of(behind) {
            Some(_) => behind,
            None => track.first,
        };
        let last = first.0.checked_sub(1).map(Lba);
        let ends = last.and_then(|last| Some((last, self.end_angle_of(last)?)));
        let begins = self.end_angle_of(first).map(|angle| (first, angle));
        let Some((last, first)) = ends.zip(begins) else {
            // A track that stands alone.
            return Some(Boundary {
                blocks: [(lba, end); 2],
                within: CLOSE,
                beside: BESIDE_BY_READS,
            });
        };
        let width = Angle::fraction(1, u64::from(track.sectors));
        let skew = apart(last.1 + width, first.1).abs();
        let most = match skew > 2.0 * width.revolutions() {
            true => skew * OF_SKEW,
            // The boundary shows at no angle.
            false => f64::INFINITY,
        };
        Some(Boundary {
            blocks: [last, first],
            within: CLOSE.min(most),
            beside: BESIDE_BY_READS.min(most),
        })
    }

    /// Discards the tracks between checks that came true, where others failed; `checks` ascend. If only an angle is wrong,
    /// it is that of a piece: what is on other pieces stays.
    fn discard_failed(&mut self, checks: &[Check], doubtful: Doubtful) {
        let came_true = |check: &&Check| check.found == CheckedPlace::There;
        for (place, check) in checks.iter().enumerate() {
            let is_gone = match check.found {
                CheckedPlace::There => false,
                CheckedPlace::Beside => doubtful == Doubtful::Leave,
                CheckedPlace::Elsewhere => true,
            };
            if !is_gone {
                continue;
            }
            let before = checks[..place].iter().rev().find(came_true);
            let behind = checks[place..].iter().find(came_true);
            let mut from = before.map_or(Lba(0), |check| check.lba);
            let mut to = behind.map_or(Lba(u64::MAX), |check| check.lba);
            if check.found == CheckedPlace::Beside {
                let Some((_, piece)) = self.piece_of(check.lba) else {
                    continue;
                };
                (from, to) = (from.max(piece.first), to.min(piece.end()));
            }
            self.discard(from, to);
        }
    }

    /// The known block with so many known blocks before it.
    fn known_block(&self, mut place: u64) -> Option<Lba> {
        for piece in &self.pieces {
            if place < piece.blocks() {
                return Some(Lba(piece.first.0 + place));
            }
            place -= piece.blocks();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use block::Instant;

    /// A check whose blocks were sighted so far off, five times each, in turns with others.
    fn check(number: u64, off: impl Fn(f64) -> f64) -> SightedBoundary {
        let boundary = Boundary {
            blocks: [0, 1].map(|side| (Lba(number * 100 + side), Angle::ZERO)),
            within: CLOSE,
            beside: BESIDE_BY_READS,
        };
        let sightings = |side: u64| {
            let sighting = |again: u64| {
                let seconds = (number * 2 + side + again * 20) as f64 * 0.05;
                let at = Instant::from_nanos((seconds * 1e9) as u64);
                let off = off(seconds);
                TimedOff { at, off }
            };
            (0..5).map(sighting).collect()
        };
        (boundary, [0, 1].map(sightings))
    }

    #[test]
    fn a_clock_that_is_off_and_a_host_whose_load_changes_fail_no_check_and_hide_no_track() {
        use CheckedPlace::{Beside, Elsewhere, There};
        let commons: [fn(f64) -> f64; 4] = [
            |_| 0.0,
            |_| -0.02,
            |_| 0.1,
            |at| {
                if ((at / 4.0) as u64).is_multiple_of(2) {
                    0.01
                } else {
                    -0.01
                }
            },
        ];
        for (place, common) in commons.into_iter().enumerate() {
            let of_map = |number: u64| match number % 10 {
                0 => 0.013,
                1 => -0.03,
                _ => 0.0,
            };
            let check = |number: u64| check(number, |at| common(at) + of_map(number));
            let made: Vec<_> = (0..200).map(check).collect();
            for (number, check) in judge_all(&made, true).iter().enumerate() {
                let is = match number % 10 {
                    0 => Beside,
                    1 => Elsewhere,
                    _ => There,
                };
                assert_eq!(check.found, is, "{number} with {place}");
            }
        }
        // A few may be of one piece, which is off itself.
        let few: Vec<_> = (0..5).map(|number| check(number, |_| 0.02)).collect();
        assert!(
            judge_all(&few, true)
                .iter()
                .all(|check| check.found == Elsewhere)
        );
    }
}
