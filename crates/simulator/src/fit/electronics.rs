//! Overheads and bus times, by coordinate descent.

use std::sync::Arc;

use block::{Direction, Duration};
use drive::Profile;
use drive::firmware::{BufferRules, LookAhead, WriteBack};

use crate::validate::clock::{COHERENT, phase, with_phase};
use crate::validate::score::demerit;
use crate::validate::{Clock, Sample, replay};

/// One constant: how to reach it in a profile.
type Constant = fn(&mut Profile) -> &mut Duration;

/// The times that are fitted, by their keys in a profile: the electronics and the bus. Nothing
/// mechanical.
pub const TIMES: &[(&str, Constant)] = &[
    ("read_hit_after_read_ms", |p| &mut p.overheads.read_hit.read),
    ("read_hit_after_write_ms", |p| &mut p.overheads.read_hit.write),
    ("read_miss_after_read_ms", |p| &mut p.overheads.read_miss.read),
    ("read_miss_after_write_ms", |p| &mut p.overheads.read_miss.write),
    ("write_hit_after_read_ms", |p| &mut p.overheads.write_hit.read),
    ("write_hit_after_write_ms", |p| &mut p.overheads.write_hit.write),
    ("write_miss_after_read_ms", |p| &mut p.overheads.write_miss.read),
    ("write_miss_after_write_ms", |p| &mut p.overheads.write_miss.write),
    ("read_completion_ms", |p| &mut p.overheads.read_completion),
    ("write_completion_ms", |p| &mut p.overheads.write_completion),
    ("read_reselect_ms", |p| &mut p.overheads.read_reselect),
    ("write_reselect_ms", |p| &mut p.overheads.write_reselect),
    ("read_block_ms", |p| &mut p.bus.read_block),
    ("write_block_ms", |p| &mut p.bus.write_block),
];

/// One setting of a rule of the buffer.
type Setting = fn(&mut BufferRules);

/// The rules of the buffer that are fitted, by their keys in a profile, with the settings that
/// are tried and their values there.
pub const RULES: &[(&str, &[(&str, Setting)])] = &[
    (
        "look_ahead",
        &[
            ("\"none\"", |b| b.look_ahead = LookAhead::None),
            ("\"segment\"", |b| b.look_ahead = LookAhead::Segment),
            ("\"track\"", |b| b.look_ahead = LookAhead::Track),
            ("\"cylinder\"", |b| b.look_ahead = LookAhead::Cylinder),
            ("\"track-if-sequential\"", |b| b.look_ahead = LookAhead::TrackIfSequential),
        ],
    ),
    (
        "look_ahead_on_hit",
        &[
            ("false", |b| b.look_ahead_on_hit = false),
            ("true", |b| b.look_ahead_on_hit = true),
        ],
    ),
    (
        "read_on_arrival",
        &[("false", |b| b.read_on_arrival = false), ("true", |b| b.read_on_arrival = true)],
    ),
    (
        "zero_latency_read",
        &[("false", |b| b.zero_latency_read = false), ("true", |b| b.zero_latency_read = true)],
    ),
    (
        "zero_latency_write",
        &[("false", |b| b.zero_latency_write = false), ("true", |b| b.zero_latency_write = true)],
    ),
    (
        "read_written",
        &[("false", |b| b.read_written = false), ("true", |b| b.read_written = true)],
    ),
    (
        "write_back",
        &[
            ("\"none\"", |b| b.write_back = WriteBack::None),
            ("\"all\"", |b| b.write_back = WriteBack::All),
        ],
    ),
    (
        "read_watermark_permille",
        &[
            ("0", |b| b.read_watermark = 0),
            ("250", |b| b.read_watermark = 250),
            ("500", |b| b.read_watermark = 500),
            ("750", |b| b.read_watermark = 750),
            ("1000", |b| b.read_watermark = 1000),
        ],
    ),
    (
        "write_watermark_permille",
        &[
            ("0", |b| b.write_watermark = 0),
            ("250", |b| b.write_watermark = 250),
            ("500", |b| b.write_watermark = 500),
            ("750", |b| b.write_watermark = 750),
            ("1000", |b| b.write_watermark = 1000),
        ],
    ),
];

/// A rule is changed only if that takes this share off the cost: a published rule stands until
/// the measurements clearly say otherwise. A choice.
const CLEARLY: f64 = 0.05;

/// The first step of the search: overheads of that time's electronics are of this order.
const FIRST_STEP: Duration = Duration::from_micros(256);

/// The last step: the traces' clocks tick in microseconds.
const LAST_STEP: Duration = Duration::from_micros(2);

/// Changes the rules that measurements clearly contradict.
pub(super) fn fit_rules(profile: &mut Profile, train: &[Sample], count: &mut impl FnMut()) {
    let mut best = cost(profile, train);
    count();
    for (_, settings) in RULES {
        for (_, setting) in *settings {
            let mut tried = profile.clone();
            setting(&mut tried.buffer);
            if tried.buffer == profile.buffer {
                continue;
            }
            let cost = cost(&tried, train);
            count();
            if cost < best * (1.0 - CLEARLY) {
                best = cost;
                *profile = tried;
            }
        }
    }
}

/// Improves the times of `profile` until no step helps.
pub(super) fn fit_times(profile: &mut Profile, train: &[Sample], count: &mut impl FnMut()) {
    let mut best = cost(profile, train);
    count();
    let mut step = FIRST_STEP;
    while step >= LAST_STEP {
        let mut improved = false;
        for &(name, constant) in TIMES {
            // A block's bus time acts on every block of a request, so that its steps are finer.
            let step = if name.ends_with("_block_ms") { finer(step) } else { step };
            for direction in [1, -1] {
                while let Some(cost) = step_if_better(profile, constant, step, direction, |tried| {
                    count();
                    let cost = cost(tried, train);
                    (cost < best).then_some(cost)
                }) {
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

/// Moves one constant a step, and back again unless `better` says by how much it helped.
fn step_if_better(
    profile: &mut Profile,
    constant: Constant,
    step: Duration,
    direction: i64,
    mut better: impl FnMut(&Profile) -> Option<f64>,
) -> Option<f64> {
    let before = *constant(profile);
    let after = before.adjusted(direction * step.as_nanos() as i64);
    if after == before {
        return None;
    }
    *constant(profile) = after;
    let cost = better(profile);
    if cost.is_none() {
        *constant(profile) = before;
    }
    cost
}

fn finer(step: Duration) -> Duration {
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
    squares.sum::<f64>() / train.len().max(1) as f64
}
