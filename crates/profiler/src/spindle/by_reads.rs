//! The period by reads alone, in spite of a host that delays their ends, and what the host adds.
//!
//! ```text
//!   sightings   ||||||||    |||    |||         |||                     ||| ... ||||||||||||||
//!   pauses               -      --     -------      -----------------
//! ```
//!
//! After each pause the period is the one that most sightings of all fit ([`Comb`]). A host only delays: the earliest of
//! many ends is nearly free of the host's part.

use block::{Duration, Instant, Lba};
use drive::Angle;

use super::comb::Comb;
use super::{LONG_PAUSES, LONGEST};
use crate::clock::{DOUBTFUL, PlatterClock, apart};
use crate::confidence::Confidence;
use crate::findings::Steadiness;
use crate::prober::{Prober, Unseen};

/// Sightings after a pause. A choice: a host stalls two of three once in a thousand times.
const AFTER_PAUSE: usize = 3;

/// Sightings at the end. A choice: the earliest of so many is late by a twentieth of the mean
/// delay, and their 90th percentile is one of them.
const SIGHTINGS: usize = 20;

/// If so many are not farther apart than this, in revolutions, the host adds nothing. A choice: a tenth
/// of a narrow sector.
const FEW: usize = 6;
const PUNCTUAL: f64 = 1e-4;

/// How far the period of the sightings before a pause may move the first one after it, in revolutions, and that of
/// the first second the last of them. A choice: each pause is about as long as all of the time before it, which
/// tells the period to a tenth of that.
const UNSURE: f64 = 0.2;

/// A prediction of the clock that is not farther off came true, in revolutions: what scheduling by position needs
/// (Yu et al. 2000). Ends may be later by what a host adds to nine of ten.
const CLOSE: f64 = 0.01;

/// The share of the delays that count: those beyond are stalls.
const USUAL: f64 = 0.9;

/// The mean of the delays that count, as a share of the mean of all: `1 - 0.1 ln 10 / 0.9`, if they are
/// exponentially distributed.
const OF_MEAN: f64 = 0.744;

/// Follows the spindle over growing pauses, from a first second's sightings and their period on.
pub(super) async fn follow(
    prober: &Prober,
    lba: Lba,
    mut times: Vec<Instant>,
    period: f64,
) -> Result<(PlatterClock, Steadiness), Unseen> {
    let mut comb = Comb::fit(&times, period, UNSURE);
    // How far each sighting was from where those before predicted it.
    let mut offs: Vec<f64> = Vec::new();
    let mut pause = Duration::from_millis(100);
    let (mut long, mut wander) = (0, 0.0_f64);
    while long < LONG_PAUSES {
        prober.pause(pause).await;
        let turns = pause.as_nanos() as f64 / comb.period;
        for _ in 0..AFTER_PAUSE {
            let at = prober.sight(lba).await?.at;
            offs.push(comb.off(at));
            times.push(at);
            if is_exact(&offs) {
                break;
            }
        }
        let least = offs.iter().rev().take(AFTER_PAUSE).map(|off| off.abs());
        wander = least.fold(f64::INFINITY, f64::min) / turns * 1e6;
        comb = Comb::fit(&times, comb.period, UNSURE);
        match pause >= LONGEST {
            true => long += 1,
            false => pause = pause + pause,
        }
    }
    let before = times.len();
    for sightings in 1..=SIGHTINGS {
        let at = prober.sight(lba).await?.at;
        offs.push(comb.off(at));
        times.push(at);
        if sightings == FEW && is_exact(&offs[offs.len() - FEW..]) {
            break;
        }
    }
    comb = Comb::fit(&times, comb.period, UNSURE);
    let delays = Delays::of(&comb, &times[before..]);
    let nanos = |turns: f64| Duration::from_nanos((turns * comb.period) as u64);
    prober.findings(|findings| {
        findings.host.late = nanos(delays.late);
        findings.host.mean = nanos(delays.mean);
    });
    let close = (CLOSE + delays.late).min(DOUBTFUL);
    let came_true = offs.iter().filter(|off| off.abs() <= close).count();
    let period_ps = (comb.period * 1e3).round() as u64;
    let clock = PlatterClock::new(period_ps, Angle::ZERO, delays.earliest);
    let steadiness = Steadiness {
        confidence: Confidence::of(came_true as u32, offs.len() as u32),
        period_ps,
        wander_ppm: wander,
    };
    Ok((clock, steadiness))
}

/// Sightings of one block that show whether a clock is right, and the pause before each. A choice: as long as the last
/// pauses of finding it.
const LOOKS: usize = 8;
const BETWEEN: Duration = Duration::from_millis(500);

/// Whether the sightings of a block agree by the clock: most of them are at about one angle.
pub async fn keeps_time(prober: &Prober, lba: Lba) -> bool {
    let mut ends = Vec::with_capacity(LOOKS);
    for _ in 0..LOOKS {
        prober.pause(BETWEEN).await;
        let sighting = prober.sight(lba).await.ok();
        let clock = prober.findings(|findings| findings.clock);
        let seen = sighting.zip(clock);
        ends.extend(seen.map(|(sighting, clock)| clock.angle_at(sighting.at)));
    }
    let near = |one: &Angle| {
        let agrees = |other: &&Angle| apart(*one, **other).abs() < DOUBTFUL;
        ends.iter().filter(agrees).count()
    };
    ends.iter().map(near).max().unwrap_or(0) * 2 > LOOKS
}

/// Whether the last predictions came true but for nothing.
fn is_exact(offs: &[f64]) -> bool {
    let most = offs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = offs.iter().copied().fold(f64::INFINITY, f64::min);
    most - least < PUNCTUAL
}

/// What a host adds to ends of reads.
struct Delays {
    /// The earliest end.
    earliest: Instant,
    /// What it adds to nine of ten, and the mean, in revolutions.
    late: f64,
    mean: f64,
}

impl Delays {
    /// What it has added to some sightings.
    fn of(comb: &Comb, times: &[Instant]) -> Self {
        let there = || times.iter().filter(|at| comb.has(**at));
        let last = times.last().copied().unwrap_or(Instant::ZERO);
        let earliest = there().min_by(|one, other| comb.off(**one).total_cmp(&comb.off(**other)));
        let earliest = earliest.copied().unwrap_or(last);
        let late = |at: &Instant| comb.off(*at) - comb.off(earliest);
        let mut delays: Vec<f64> = there().map(late).collect();
        delays.sort_by(f64::total_cmp);
        // Those far from all teeth are the latest.
        delays.truncate((times.len() as f64 * USUAL) as usize);
        let count = delays.len().max(1) as f64;
        Delays {
            earliest,
            late: delays.last().copied().unwrap_or(0.0),
            mean: delays.iter().sum::<f64>() / count / OF_MEAN,
        }
    }
}
