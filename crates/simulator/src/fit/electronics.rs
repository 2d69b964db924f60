//! Overheads and bus times, by coordinate descent.

use std::sync::Arc;

use block::{Direction, Duration};
use drive::Profile;

use crate::validate::clock::{COHERENT, phase, residual, with_phase};
use crate::validate::score::demerit;
use crate::validate::{Clock, Sample, replay};

/// One constant: how to reach it in a profile.
type Constant = fn(&mut Profile) -> &mut Duration;

/// What is fitted: the times of the electronics and of the bus. Nothing mechanical.
pub const ALL: &[(&str, Constant)] = &[
    ("read_hit.after_read", |p| &mut p.overheads.read_hit.read),
    ("read_hit.after_write", |p| &mut p.overheads.read_hit.write),
    ("read_miss.after_read", |p| &mut p.overheads.read_miss.read),
    ("read_miss.after_write", |p| &mut p.overheads.read_miss.write),
    ("write_hit.after_read", |p| &mut p.overheads.write_hit.read),
    ("write_hit.after_write", |p| &mut p.overheads.write_hit.write),
    ("write_miss.after_read", |p| &mut p.overheads.write_miss.read),
    ("write_miss.after_write", |p| &mut p.overheads.write_miss.write),
    ("read_completion", |p| &mut p.overheads.read_completion),
    ("write_completion", |p| &mut p.overheads.write_completion),
    ("read_block", |p| &mut p.bus.read_block),
    ("write_block", |p| &mut p.bus.write_block),
];

/// The first step of the search: overheads of that time's electronics are of this order.
const FIRST_STEP: Duration = Duration::from_micros(128);

/// The last step: the traces' clocks tick in microseconds.
const LAST_STEP: Duration = Duration::from_micros(1);

/// Improves the constants of `profile` until no step of at least a microsecond helps.
pub(super) fn fit(profile: &mut Profile, train: &[Sample], count: &mut impl FnMut()) {
    let mut best = cost(profile, train);
    count();
    let mut step = FIRST_STEP;
    while step >= LAST_STEP {
        let mut improved = false;
        for &(name, constant) in ALL {
            // A block's bus time acts on every block of a request, so that its steps are finer.
            let step = if name.ends_with("_block") { shorter(step) } else { step };
            for longer in [true, false] {
                loop {
                    let before = *constant(profile);
                    let after = if longer { before + step } else { before.saturating_sub(step) };
                    *constant(profile) = after;
                    let cost = cost(profile, train);
                    count();
                    if cost >= best || after == before {
                        *constant(profile) = before;
                        break;
                    }
                    best = cost;
                    improved = true;
                }
            }
        }
        if !improved {
            step = Duration::from_nanos(step.as_nanos() / 2);
        }
    }
}

fn shorter(step: Duration) -> Duration {
    Duration::from_nanos((step.as_nanos() / 16).max(100))
}

/// What is minimised: the squares of the demerits of all, reads and writes (in ms^2), and where
/// the clock is coherent the mean square of the per-request errors, each at most half a
/// revolution, so that a missed revolution does not count more than it tells.
fn cost(profile: &Profile, train: &[Sample]) -> f64 {
    let shared = Arc::new(profile.clone());
    let own = replay(&shared, train, Clock::Own);
    let squared = |wanted: Option<Direction>| {
        let chosen = |sample: &Sample| wanted.is_none_or(|d| d == sample.direction);
        let pairs = train.iter().zip(&own).filter(|(sample, _)| chosen(sample));
        let (measured, simulated) = pairs.map(|(s, r)| (s.service, r.service)).unzip();
        demerit(measured, simulated).powi(2)
    };
    let distribution =
        squared(None) + squared(Some(Direction::Read)) + squared(Some(Direction::Write));
    distribution + request_errors(profile, train)
}

fn request_errors(profile: &Profile, train: &[Sample]) -> f64 {
    let begun = replay(&Arc::new(profile.clone()), train, Clock::Measured);
    let found = phase(&profile.spindle, train, &begun);
    if found.concentration < COHERENT {
        return 0.0;
    }
    let mut in_phase = profile.clone();
    in_phase.spindle = with_phase(profile.spindle, found.angle);
    let half = profile.spindle.period().as_millis_f64() / 2.0;
    let replayed = replay(&Arc::new(in_phase), train, Clock::Measured);
    let squares = train.iter().zip(&replayed).map(|(sample, replayed)| {
        let error = sample.service.as_millis_f64() - replayed.service.as_millis_f64();
        error.abs().min(half).powi(2)
    });
    let _ = residual;
    squares.sum::<f64>() / train.len().max(1) as f64
}
