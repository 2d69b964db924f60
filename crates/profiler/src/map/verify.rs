//! Whether the map is right, by blocks that were not used to make it.

use std::collections::BTreeMap;
use std::ops::{AddAssign, Range};

use block::{Instant, Lba};
use drive::Angle;

use super::boundary::{Boundary, CLOSE, CheckedPlace};
use super::observer::{Care, Observer};
use super::sector_line::NoTrack;
use super::shared_delay::{SharedDelay, TimedOff};
use crate::clock::apart;
use crate::confidence::Confidence;
use crate::device::Offers;
use crate::findings::TrackMap;
use crate::prober::{Prober, TrackCount};

/// Looks at so many blocks of known tracks, spread by the golden section from one that `seed`
/// says, and sets the map's confidence.
///
/// # Errors
/// If a block could not be sighted.
pub async fn verify(prober: &Prober, checks: u32, seed: u64) -> Result<Confidence, NoTrack> {
    if prober.device().offers == Offers::Nothing {
        return Ok(verify_in_rounds(prober, checks, Doubtful::Stay, prober.now()).await);
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
/// again. Further checks that a few failures ask for are made if they end before `end`.
pub async fn verify_settled(prober: &Prober, checks: u32, end: Instant) -> Confidence {
    verify_in_rounds(prober, checks, Doubtful::Leave, end).await
}

/// The same by reads alone and without a host's delays, in revolutions: what is found has to stay below it in service. A
/// choice.
const CLOSE_BY_READS: f64 = 0.008;

/// As many times as the first sightings of a block are further ones of one that is not where it should be by them: whether a host's
/// stalls were the reason. A choice: stalls of a tenth of them do not move their median.
const AGAIN_AS_MANY: usize = 2;

/// So many boundaries that are where they should be are sighted again with those that are not. A choice: 300 sightings
/// tell what they have in common.
const CONTROLS: usize = 15;

/// Sightings of a block without a host's delays before it is believed not to be where it should. A choice.
const ATTEMPTS: u32 = 6;

/// How often a map is checked again after the tracks that were wrong have been discarded. A choice.
const AGAIN: u32 = 2;

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

/// The same of a block that is beside its place, on a map that is as exact as it becomes. A choice: on a map that is
/// believed, positions are wrong on not more than one track of a hundred.
const BESIDE_COSTS: usize = 25;

/// Further checks, as often, of such a map of which any failed. A choice: whether one track of a hundred is wrong is
/// told by six hundred, and by two hundred it is not.
const MORE: u32 = 2;

/// A map of a smaller part of the blocks has no confidence: few gaps are between known blocks. A choice: one of a
/// hundred.
const LEAST_KNOWN: u64 = 100;

/// The same where reads in between have to evict the blocks, and where a host delays some sightings. The
/// blocks are those at boundaries of tracks. Where checks fail, the tracks up to the next checks that came true are
/// unknown again, and the rest of the map is checked by others.
async fn verify_in_rounds(
    prober: &Prober,
    checks: u32,
    doubtful: Doubtful,
    end: Instant,
) -> Confidence {
    let mut tally = Tally::default();
    let (mut rounds, mut more) = (0, 0);
    loop {
        let round = check_once(prober, checks, doubtful).await;
        rounds += 1;
        match more {
            0 => tally = round,
            _ => tally += round,
        }
        believe(prober, &tally, doubtful);
        let failed = tally.lasting(doubtful);
        let is_right = more > 0 || rounds > AGAIN || failed * FAILING <= tally.made;
        if is_right {
            let is_sure = doubtful == Doubtful::Stay || failed == 0 || more == MORE;
            let takes = prober.time_of_checks(checks);
            if is_sure || prober.now() + takes > end {
                break;
            }
            more += 1;
        }
    }
    prober.findings(|findings| findings.map_confidence)
}

/// The most that is believed of a map behind a host before its tracks are counted and its angles are sighted again: a check
/// of positions does not see a sector too many. It may be used, as by one check that came true, and is not relied on: random
/// drives of which the end of the map was never checked were believed wrongly (404:16, 12001:2).
fn unsettled() -> Confidence {
    Confidence::of(1, 1)
}

/// The map's confidence is by these checks.
fn believe(prober: &Prober, tally: &Tally, doubtful: Doubtful) {
    let costs = match (Observer::new(prober).late() == 0.0, doubtful) {
        (true, _) => COSTS_AT_ONCE,
        (false, Doubtful::Stay) => (FAILURE_COSTS, FAILURE_COSTS),
        (false, Doubtful::Leave) => (BESIDE_COSTS, FAILURE_COSTS),
    };
    let blocks = prober.device().blocks;
    let is_settled = costs == COSTS_AT_ONCE || doubtful == Doubtful::Leave;
    prober.findings(|findings| {
        findings.map_confidence = match findings.map.known() < blocks / LEAST_KNOWN {
            true => Confidence::NONE,
            false if is_settled => tally.confidence(costs),
            false => tally.confidence(costs).min(unsettled()),
        };
    });
}

/// Makes so many fresh checks, and discards what failed: without a host's delays only if many did.
async fn check_once(prober: &Prober, checks: u32, doubtful: Doubtful) -> Tally {
    let first = prober.fresh_checks(checks);
    let begun = prober.now();
    let boundaries = boundaries(prober, first..first + u64::from(checks));
    let mut made = check_all(prober, boundaries).await;
    prober.checks_took(checks, prober.now().since(begun));
    let count = |found| made.iter().filter(|check| check.found == found).count();
    let uncounted = made.iter().filter(|check| check.is_uncounted(prober));
    let tally = Tally {
        made: made.len(),
        beside: count(CheckedPlace::Beside),
        elsewhere: count(CheckedPlace::Elsewhere),
        uncounted: uncounted.count(),
    };
    made.sort_unstable_by_key(|check| check.lba);
    // Behind a host a failure stands on many sightings.
    let is_sure = Observer::new(prober).late() > 0.0;
    if is_sure || tally.lasting(doubtful) * FAILING > tally.made {
        prober.findings(|findings| findings.map.discard_failed(&made, doubtful));
    }
    tally
}

/// How checks ended.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    made: usize,
    beside: usize,
    elsewhere: usize,
    /// Those of tracks whose number of sectors is open.
    uncounted: usize,
}

impl Tally {
    /// Failures that discard tracks.
    fn lasting(&self, doubtful: Doubtful) -> usize {
        match doubtful {
            Doubtful::Stay => self.elsewhere,
            Doubtful::Leave => self.beside + self.elsewhere,
        }
    }

    /// The confidence, where checks that are beside and others that failed cost so much.
    fn confidence(&self, costs: (usize, usize)) -> Confidence {
        let failed = self.beside * costs.0 + (self.elsewhere + self.uncounted) * costs.1;
        Confidence::of(self.made.saturating_sub(failed) as u32, self.made as u32)
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.made += other.made;
        self.beside += other.beside;
        self.elsewhere += other.elsewhere;
        self.uncounted += other.uncounted;
    }
}

/// A check of the tracks at a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    pub(super) lba: Lba,
    pub(super) found: CheckedPlace,
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

/// Boundaries on the map, by numbers.
fn boundaries(prober: &Prober, numbers: Range<u64>) -> Vec<Boundary> {
    let blocks = prober.device().blocks;
    prober.findings(|findings| {
        let known = findings.map.known();
        let boundaries = numbers.map(|number| findings.map.boundary(known, number, blocks));
        boundaries.flatten().collect()
    })
}

/// Checks what is at boundaries.
pub(super) async fn check_all(prober: &Prober, boundaries: Vec<Boundary>) -> Vec<Check> {
    let observer = Observer::new(prober);
    let sightings = observer.exact_sightings();
    let made = sight_all(prober, boundaries, sightings).await;
    let is_delayed = observer.late() > 0.0;
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
        .map(|place| made[place].boundary.clone())
        .collect();
    let again = sight_all(prober, again, AGAIN_AS_MANY * sightings).await;
    let judged: BTreeMap<Vec<Lba>, Check> = again
        .iter()
        .map(|sighted| sighted.boundary.lbas())
        .zip(judge_all(&again, is_delayed))
        .collect();
    for (check, sighted) in checks.iter_mut().zip(&made) {
        let lbas = sighted.boundary.lbas();
        if let Some(again) = judged.get(&lbas).filter(|_| !is_right(check)) {
            *check = *again;
        }
    }
    checks
}

/// Sights all blocks of boundaries so often, those without a host's delays until they are where they should be.
async fn sight_all(
    prober: &Prober,
    boundaries: Vec<Boundary>,
    sightings: usize,
) -> Vec<SightedBoundary> {
    let work = boundaries.into_iter().map(|boundary| async move {
        let mut sighted = SightedBoundary {
            on: Vec::new(),
            beyond: Vec::new(),
            boundary,
        };
        for block in &sighted.boundary.on {
            let offs = offs_of(prober, *block, &sighted.boundary, sightings).await?;
            sighted.on.push(offs);
        }
        for (lba, end) in &sighted.boundary.beyond {
            // A block that cannot be read is none of the track's.
            let offs = Observer::new(prober).offs((*lba, *end), sightings).await;
            sighted.beyond.extend(offs);
        }
        Some(sighted)
    });
    let made = prober.rounds(work.collect()).await;
    made.into_iter().flatten().collect()
}

/// A boundary whose blocks were sighted.
struct SightedBoundary {
    boundary: Boundary,
    /// How far off each block was that should be on a track.
    on: Vec<Vec<TimedOff>>,
    /// How far the blocks beyond were from the line of the track.
    beyond: Vec<Vec<TimedOff>>,
}

/// Judges checks. What all have in common behind a host is the clock's or the host's, and says nothing about the map.
fn judge_all(made: &[SightedBoundary], is_delayed: bool) -> Vec<Check> {
    let (close, common) = match is_delayed {
        true => {
            let offs = made.iter().flat_map(|sighted| &sighted.on).flatten();
            (CLOSE, SharedDelay::of(offs.copied().collect()))
        }
        false => (CLOSE_BY_READS, SharedDelay::default()),
    };
    let judge = |sighted: &SightedBoundary| {
        let rest = |offs: &Vec<TimedOff>| common.rest(offs);
        let on: Vec<f64> = sighted.on.iter().map(rest).collect();
        let beyond: Vec<f64> = sighted.beyond.iter().map(rest).collect();
        let (lba, found) = sighted.boundary.judge(&on, &beyond, close);
        Check { lba, found }
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
        if off <= boundary.within().min(CLOSE_BY_READS) {
            prober.anchor(end, sighting.at);
            break;
        }
    }
    least
}

impl TrackMap {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    use block::Instant;

    /// A check whose blocks were sighted so far off, five times each, in turns with others.
    fn check(number: u64, off: impl Fn(f64) -> f64) -> SightedBoundary {
        let on = [0, 1].map(|side| (Lba(number * 100 + side), Angle::ZERO));
        let boundary = Boundary::of(on.to_vec(), Vec::new());
        let sightings = |side: u64| {
            let sighting = |again: u64| {
                let seconds = (number * 2 + side + again * 20) as f64 * 0.05;
                let at = Instant::from_nanos((seconds * 1e9) as u64);
                let off = off(seconds);
                TimedOff { at, off }
            };
            (0..5).map(sighting).collect()
        };
        SightedBoundary {
            boundary,
            on: [0, 1].map(sightings).to_vec(),
            beyond: Vec::new(),
        }
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
