//! What a host adds to the ends of reads, and the period in spite of it.
//!
//! ```text
//!   delay of an end                     . = one sighting, modulo the believed period
//!     |   .      .          .    .
//!     | .    . .    .    .    . .   .
//!     |____.______________________._     the earliest ends lie on the platter's own line
//! ```
//!
//! A host only delays. The earliest of many ends is therefore nearly free of the host's part, and the
//! line through the earliest ends of two groups has the platter's period.

use block::{Duration, Instant, Lba};
use drive::Angle;

use super::steady;
use crate::clock::{PlatterClock, apart};
use crate::findings::Steadiness;
use crate::prober::{Prober, Unseen};

/// Sightings in the second group. A choice: the earliest of so many is late by a twentieth of the mean
/// delay, and their 90th percentile is one of them.
const SIGHTINGS: usize = 20;

/// If so many are not farther apart than this, in revolutions, the host adds nothing. A choice: a tenth
/// of a narrow sector.
const FEW: usize = 6;
const PUNCTUAL: f64 = 1e-4;

/// Sightings that are later, in revolutions, say nothing about the period: the host was stalled.
const STALLED: f64 = 0.1;

/// The share of the delays that count: those beyond are stalls.
const USUAL: f64 = 0.9;

/// The mean of the delays that count, as a share of the mean of all: `1 - 0.1 ln 10 / 0.9`, if they are
/// exponentially distributed.
const OF_MEAN: f64 = 0.744;

/// Sights a block often, and finds the usual delay; corrects clock and period by the earliest ends of
/// these sightings and of `before`.
pub(super) async fn measure(
    prober: &Prober,
    lba: Lba,
    before: &[Instant],
    (clock, steadiness): (&mut PlatterClock, &mut Steadiness),
) -> Result<(), Unseen> {
    let mut now = Vec::with_capacity(SIGHTINGS);
    for sightings in 1..=SIGHTINGS {
        now.push(prober.sight(lba).await?.at);
        if sightings == FEW && is_punctual(clock, &now) {
            break;
        }
    }
    // By the clock's phase: the first of them may have been stalled.
    let mut believed = PlatterClock::new(steadiness.period_ps, clock.angle_at(now[0]), now[0]);
    if earliest(&believed, &now).is_none() {
        // The clock has lost the platter: by what most of them agree on.
        let (first, _) = steady(&now, steadiness.period_ps as f64 / 1e3);
        believed = PlatterClock::new(steadiness.period_ps, Angle::ZERO, first);
    }
    let Some(last) = earliest(&believed, &now) else {
        return Ok(());
    };
    if let Some(first) = earliest(&believed, before) {
        let passed = last.at.since(first.at).as_nanos() as f64;
        let slower = (last.late - first.late) * believed.period() / passed;
        steadiness.period_ps = (steadiness.period_ps as f64 * (1.0 + slower)).round() as u64;
    }
    *clock = PlatterClock::new(steadiness.period_ps, Angle::ZERO, last.at);
    let mut delays: Vec<f64> = now.iter().map(|at| late(clock, *at).max(0.0)).collect();
    delays.sort_by(f64::total_cmp);
    delays.truncate((delays.len() as f64 * USUAL) as usize);
    let mean = delays.iter().sum::<f64>() / delays.len() as f64 / OF_MEAN;
    let most = delays[delays.len() - 1];
    let nanos = |turns: f64| Duration::from_nanos((turns * clock.period()) as u64);
    prober.findings(|findings| {
        findings.host.late = nanos(most);
        findings.host.mean = nanos(mean);
    });
    Ok(())
}

/// Whether a host adds nothing to some ends.
fn is_punctual(clock: &PlatterClock, ends: &[Instant]) -> bool {
    let late: Vec<f64> = ends.iter().map(|&at| late(clock, at)).collect();
    let least = late.iter().copied().fold(f64::INFINITY, f64::min);
    late.iter().all(|late| late - least < PUNCTUAL)
}

/// The end of a sighting, and by how much it is later than believed, in revolutions.
struct End {
    at: Instant,
    late: f64,
}

/// How much later than the block passes a sighting of it ended, in revolutions.
fn late(clock: &PlatterClock, at: Instant) -> f64 {
    apart(Angle::ZERO, clock.angle_at(at))
}

/// The earliest of some ends.
fn earliest(clock: &PlatterClock, ends: &[Instant]) -> Option<End> {
    let ends = ends.iter().map(|&at| {
        let late = late(clock, at);
        End { at, late }
    });
    let near = ends.filter(|end| end.late.abs() < STALLED);
    near.min_by(|one, other| one.late.total_cmp(&other.late))
}
