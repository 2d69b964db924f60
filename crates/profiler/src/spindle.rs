//! The period of the spindle, from repeated sightings of one block.
//!
//! All intervals between sightings of one block are whole revolutions. The period is the longest
//! one of which all intervals of a first second are multiples. Growing intervals then determine it
//! with growing precision (Worthington et al. 1995).

use block::{Duration, Extent, Instant, Lba};
use drive::Angle;

use crate::clock::{PlatterClock, apart};
use crate::confidence::Confidence;
use crate::device::Offers;
use crate::findings::Steadiness;
use crate::prober::{Prober, Unseen};

mod by_reads;
mod comb;
mod eviction;

pub use by_reads::keeps_time;

/// The range of periods, in nanoseconds: 3,000 to 20,000 rpm with a margin, all drives ever sold.
const PERIODS: (f64, f64) = (2.9e6, 20.1e6);

/// Number of sightings for an estimate.
const FIRST: usize = 16;

/// How often as many more are made, if not all of them fit the period. A choice: twice the period fits
/// all but one of sixteen in one run of a thousand, and never so many.
const MORE: usize = 2;

/// The longest pause between sightings.
const LONGEST: Duration = Duration::from_secs(4);

/// Number of pauses of that length: their span determines the mean period.
const LONG_PAUSES: u32 = 2;

/// Finds the period and starts the clock: angle zero is the end of the sighted block.
///
/// # Errors
/// If the block cannot be read from the medium, or the intervals between its sightings have no
/// common measure.
pub async fn find(prober: &Prober, lba: Lba) -> Result<(), NotFound> {
    measure_hits(prober, lba).await;
    if prober.device().offers == Offers::Nothing {
        eviction::measure(prober, lba).await;
    }
    let mut times: Vec<Instant> = Vec::new();
    let mut found = None;
    for _ in 0..=MORE {
        sight_often(prober, lba, &mut times).await?;
        found = common_measure(&times);
        // Retries and stalls spoil some moments; or it is a multiple that most moments fit by chance.
        if found.as_ref().is_some_and(|fit| fit.moments == times.len()) {
            break;
        }
    }
    let period = found.ok_or(NotFound::NoCommonMeasure)?.period;
    let (clock, steadiness) = match prober.device().offers {
        Offers::Nothing => by_reads::follow(prober, lba, times, period).await?,
        Offers::CacheControl => {
            let (first, last) = steady(&times, period);
            let mut clock = PlatterClock::new((period * 1e3).round() as u64, Angle::ZERO, last);
            let steadiness = follow(prober, lba, &mut clock, first).await?;
            (clock, steadiness)
        }
    };
    prober.findings(|findings| {
        findings.clock = Some(clock);
        findings.spindle = steadiness;
    });
    Ok(())
}

/// Sights a block some times more.
async fn sight_often(prober: &Prober, lba: Lba, times: &mut Vec<Instant>) -> Result<(), Unseen> {
    for step in times.len()..times.len() + FIRST {
        times.push(prober.sight(lba).await?.at);
        // Other reads in between, now one, now two, now none, so that the intervals differ.
        for other in 0..(step * step + step / 3) % 4 {
            let blocks = prober.device().blocks;
            let far = (lba.0 + blocks / 2 + (step * 7919 + other * 104_729) as u64) % blocks;
            prober.read(Extent::block(Lba(far))).await;
        }
    }
    Ok(())
}

/// The reason why the period of a spindle was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// The block could not be sighted.
    Unseen(Unseen),
    /// The intervals are multiples of no plausible period.
    NoCommonMeasure,
}

impl From<Unseen> for NotFound {
    fn from(unseen: Unseen) -> Self {
        NotFound::Unseen(unseen)
    }
}

/// Reads of one block that tell how long an answer of the buffer takes. A choice: the host stalls some
/// of them, their 90th percentile should not be a stall, and their 99th should be known.
const HITS: usize = 100;

/// The same with cache control, where reads of the medium are asked for and the bound decides nothing.
const FEW_HITS: usize = 4;

/// Measures how long an answer of the buffer takes, if there is one, by reading a block again and
/// again. Hosts delay answers, most of them a little and some by milliseconds: the bound lies beyond
/// the usual delay. A read of the medium that is as short is repeated later.
async fn measure_hits(prober: &Prober, lba: Lba) {
    let extent = Extent::block(lba);
    prober.read(extent).await;
    let hits = match prober.device().offers {
        Offers::CacheControl => FEW_HITS,
        Offers::Nothing => HITS,
    };
    let mut took = Vec::with_capacity(hits);
    for _ in 0..hits {
        let timing = prober.read(extent).await;
        took.push(timing.ended.since(timing.submitted).as_nanos());
    }
    took.sort_unstable();
    let (shortest, late) = (took[0], took[hits * 9 / 10 - 1]);
    // Answers of the buffer vary by microseconds of the bus, and by what the host adds: twice what it
    // adds to nine of ten. A choice.
    let usual = shortest * 5 / 4 + 100_000;
    let bound = (PERIODS.0 * 0.8) as u64;
    // A whole revolution is no hit.
    if usual < bound {
        let fast = (usual + (late - shortest) * 2).min(bound);
        let most = took[(hits * 99).div_ceil(100) - 1] - shortest;
        prober.findings(|findings| {
            findings.fast = Duration::from_nanos(fast);
            findings.host.floor = Duration::from_nanos(shortest);
            findings.host.p99 = Duration::from_nanos(most);
        });
    }
}

/// The first and the last moment that are whole revolutions from the most others: a host may have stalled
/// any of them.
fn steady(times: &[Instant], period: f64) -> (Instant, Instant) {
    let fitting = |one: &Instant| {
        let whole = |other: &&Instant| {
            let apart = one.since(**other).max(other.since(*one)).as_nanos() as f64;
            let turns = apart / period;
            (turns - turns.round()).abs() < NEAR[1]
        };
        times.iter().filter(whole).count()
    };
    let most = times.iter().map(fitting).max().unwrap_or(0);
    // Short delays make one or two of those that fit more or less.
    let mut steady = times.iter().filter(|time| fitting(time) * 4 >= most * 3);
    let first = steady.next().unwrap_or(&times[0]);
    (*first, *steady.next_back().unwrap_or(first))
}

/// Moments from which intervals are counted. A choice: a host stalls the first of them once in a hundred times, and
/// three of three never.
const ORIGINS: usize = 3;

/// The longest period of which nearly all intervals are multiples, in nanoseconds: from the first moment, or from another
/// one if few moments are whole revolutions from that.
fn common_measure(times: &[Instant]) -> Option<PeriodFit> {
    let mut found: Option<PeriodFit> = None;
    for origin in times.iter().take(ORIGINS) {
        let most = found.as_ref().map_or(0, |fit| fit.moments);
        if most * 8 >= times.len() * 7 {
            break;
        }
        let fit = measure_from(*origin, times);
        found = fit.filter(|fit| fit.moments > most).or(found);
    }
    found
}

/// The longest period of which nearly all intervals from a moment are multiples, in nanoseconds.
///
/// Halves and thirds of it fit as well, and others nearly, where the intervals are similar. The
/// result is the longest period that fits about as well as the best, and as many of the moments.
fn measure_from(origin: Instant, times: &[Instant]) -> Option<PeriodFit> {
    let span = times[times.len() - 1].since(origin).as_nanos() as f64;
    let after: Vec<f64> = times
        .iter()
        .map(|at| at.as_nanos() as f64 - origin.as_nanos() as f64)
        .collect();
    let mut period = PERIODS.1;
    let mut fits: Vec<PeriodFit> = Vec::new();
    while period > PERIODS.0 {
        fits.extend(fitted(&after, period));
        // A step that moves the last moment by 2 % of a revolution.
        period -= 0.02 * period * period / span.max(period);
    }
    let best = fits.iter().map(|fit| fit.off).reduce(f64::min)?;
    let good = |fit: &&PeriodFit| fit.off <= (2.0 * best).max(FITTING);
    let most = fits.iter().filter(good).map(|fit| fit.moments).max()?;
    // Twice the period fits every other interval; one moment more or less is an accident.
    let full = |fit: &&PeriodFit| good(fit) && fit.moments + 1 >= most;
    let found = fits.iter().position(|fit| full(&fit))?;
    Some(fits.swap_remove(found))
}

/// A median distance of moments from whole revolutions that always counts as a fit, in revolutions:
/// a tenth of the width of a sector on the drives of 1990.
const FITTING: f64 = 0.001;

/// A period, and the median distance of the moments from whole revolutions. The median excludes
/// moments that retries of the drive have spoilt.
struct PeriodFit {
    period: f64,
    off: f64,
    /// Number of moments that fit.
    moments: usize,
}

/// Maximum distance of a moment from whole revolutions to count: at first, and after the fit. A
/// retry of the drive costs at least some tens of microseconds besides its revolutions.
const NEAR: [f64; 2] = [0.05, 0.015];

/// The best fit near `period`, if the moments fit it: `after` has the nanoseconds from the origin to each of them.
fn fitted(after: &[f64], mut period: f64) -> Option<PeriodFit> {
    let off = |after: &f64, period: f64| {
        let turns = after / period;
        (turns - turns.round()).abs()
    };
    let mut moments = 0;
    for near in NEAR {
        let (mut sum_kk, mut sum_kt, mut count) = (0.0, 0.0, 0);
        for after in after.iter().filter(|after| off(after, period) < near) {
            let whole = (after / period).round();
            sum_kk += whole * whole;
            sum_kt += whole * after;
            count += 1;
        }
        // A third of them may be spoilt: of so many the rest do not agree by chance.
        if (after.len() - count) * 3 > after.len() || sum_kk == 0.0 {
            return None;
        }
        (period, moments) = (sum_kt / sum_kk, count);
    }
    let mut offs: Vec<f64> = after.iter().map(|after| off(after, period)).collect();
    offs.sort_by(f64::total_cmp);
    Some(PeriodFit {
        period,
        off: offs[offs.len() / 2],
        moments,
    })
}

/// Tracks the spindle over growing pauses: pauses, sights the block, and corrects the clock. `first` is
/// one of the sightings before.
async fn follow(
    prober: &Prober,
    lba: Lba,
    clock: &mut PlatterClock,
    first: Instant,
) -> Result<Steadiness, Unseen> {
    let mut pause = Duration::from_millis(100);
    let (mut close, mut checks) = (0, 0);
    let mut wander: f64 = 0.0;
    let mut long = 0;
    let mut turns = (clock.anchored_at().since(first).as_nanos() as f64 / clock.period()).round();
    let mut from = clock.anchored_at();
    let mut span = (first, from);
    while long < LONG_PAUSES {
        prober.pause(pause).await;
        let error = middle_error(prober, lba, clock).await?;
        checks += 1;
        close += u32::from(error.abs() < 0.01);
        let at = clock.anchored_at();
        let passed = at.since(from).as_nanos() as f64 / clock.period();
        // An anchor that was not believed has moved nothing.
        if passed > 0.5 {
            wander = wander.max(error.abs() / passed * 1e6);
        }
        turns += passed.round();
        (from, span.1) = (at, at);
        if pause >= LONGEST || error.abs() > 0.1 {
            long += 1;
        } else {
            pause = pause + pause;
            wander = 0.0;
        }
    }
    // How well the last sightings fit the count of turns limits the mean.
    let mean = span.1.since(span.0).as_nanos() as f64 / turns;
    Ok(Steadiness {
        confidence: Confidence::of(close, checks),
        period_ps: (mean * 1e3).round() as u64,
        wander_ppm: wander,
    })
}

/// Sights a block three times and corrects the clock. Returns the previous error, the median of three.
async fn middle_error(prober: &Prober, lba: Lba, clock: &mut PlatterClock) -> Result<f64, Unseen> {
    let mut seen = [(0.0, Instant::ZERO); 3];
    for sighted in &mut seen {
        let at = prober.sight(lba).await?.at;
        *sighted = (apart(clock.angle_at(at), Angle::ZERO), at);
    }
    for (_, at) in &seen {
        clock.anchor(Angle::ZERO, *at);
    }
    seen.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(seen[1].0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_common_measure() {
        let period = 8_333_333.0;
        let turns = [0u64, 2, 3, 7, 12, 13, 17, 20, 21, 26];
        let at = |turn: &u64| Instant::from_nanos((*turn as f64 * period) as u64 + 5_000_000);
        let times: Vec<Instant> = turns.iter().map(at).collect();
        let found = common_measure(&times).expect("a measure").period;
        assert!((found / period - 1.0).abs() < 1e-6, "{found}");
    }

    #[test]
    fn a_retry_does_not_halve_the_measure() {
        // Seen on a virtual HP C3323A: the ninth was read at the second attempt.
        let nanos = [
            28_217_779,
            39_348_690,
            83_872_336,
            95_003_248,
            150_657_805,
            195_181_450,
            261_966_919,
            317_621_476,
            395_837_856,
            451_192_413,
            462_323_325,
            551_370_616,
            562_501_527,
            573_632_439,
            618_156_085,
            629_286_996,
        ];
        let times: Vec<Instant> = nanos.map(Instant::from_nanos).into();
        let found = common_measure(&times).expect("a measure").period;
        assert!((found / 11_130_911.4 - 1.0).abs() < 1e-6, "{found}");
    }

    #[test]
    fn stalled_moments_are_neither_first_nor_last() {
        let turns = [0u64, 3, 7, 12, 13, 17, 20, 26];
        let mut nanos = turns.map(|turn| turn * 6_000_000 + 1_000_000);
        nanos[0] += 700_000;
        nanos[7] += 2_500_000;
        let times = nanos.map(Instant::from_nanos);
        assert_eq!(steady(&times, 6e6), (times[1], times[6]));
    }

    /// The first sighting of all was stalled by 3 ms: no other was whole revolutions from it, and there was no period.
    #[test]
    fn a_stalled_first_moment_hides_no_measure() {
        let turns = [
            0u64, 2, 3, 7, 12, 13, 17, 20, 21, 26, 31, 33, 40, 41, 47, 50,
        ];
        for (first, second) in [(3_000_000, 0), (700_000, 2_500_000)] {
            let mut nanos = turns.map(|turn| turn * 8_333_333 + 5_000_000);
            nanos[0] += first;
            nanos[1] += second;
            let times = nanos.map(Instant::from_nanos);
            let found = common_measure(&times).expect("a measure").period;
            assert!((found / 8_333_333.0 - 1.0).abs() < 1e-6, "{found}");
        }
    }

    #[test]
    fn moments_without_measure_are_refused() {
        let times: Vec<Instant> = (0..16u64)
            .map(|n| Instant::from_nanos(n * n * 1_234_567 + n * 7_654_321 + n * n * n * 1013))
            .collect();
        assert!(common_measure(&times).is_none());
    }
}
