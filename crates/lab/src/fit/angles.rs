//! Fits angles to completion times.
//!
//! The error of a zone's start angle is the residual phase of every request that the medium served
//! there. A repeating track pattern adds its error once per repetition, so that the residual grows
//! along a line:
//!
//! ```text
//!   residual
//!     |        .  '          start + step * repetition, modulo a revolution
//!     |   .  '
//!     | '________________ repetition
//! ```

use std::sync::Arc;

use block::Instant;
use drive::geometry::{PatternStep, Turn};
use drive::{Angle, Profile, Spindle};

use crate::validate::clock::{ClockPhase, is_medium, mean_angle, residual, with_phase};
use crate::validate::{ReplayClock, Replayed, Sample, replay};

/// Smallest number of requests for an angle. A choice.
const ENOUGH: usize = 8;

/// Largest part that a line may leave of the residual of a constant (one less the mean vector's
/// length). Two parameters always explain a little more than one. A choice.
const BETTER: f64 = 0.5;

/// Required significance of an angle or a line. For n random residuals, a constant has n R^2 above
/// x with probability e^-x (Rayleigh's test; R is the mean vector's length). The best of m lines
/// has at most m times that probability. So x must exceed ln m by this value: a chance of one in a
/// thousand.
const SURE: f64 = 7.0;

/// Shortest mean vector of residuals that determines an angle. Their standard deviation is then a
/// sixth of a revolution (e^-(2 pi / 6)^2 / 2 is 0.58). A choice.
const CONCENTRATED: f64 = 0.5;

/// Largest deviation of a spindle's period, in steps of a part per million. Data sheets of the
/// 1990s specify 0.5 % at worst. The drives of the collection are within 400 ppm.
const PERIOD_PPM: i64 = 500;

/// The residual of one request, and the place of its last block in the layout.
struct Observed {
    residual: Angle,
    /// From the outermost pattern to the track; for zones the zone's number alone.
    path: Vec<PatternStep>,
}

/// Fits period and angles, if the clock has a phase.
pub(super) fn fit(profile: &mut Profile, train: &[Sample], count: &mut impl FnMut()) {
    let mut replayed = |profile: &Profile| {
        count();
        replay(&Arc::new(profile.clone()), train, ReplayClock::Measured)
    };
    let begun = replayed(profile);
    if !fit_period(profile, train, &begun) {
        return;
    }
    let levels = observe(profile, train, &begun)
        .iter()
        .map(|o| o.path.len())
        .max()
        .unwrap_or(0);
    for level in 0..levels {
        let observed = observe(profile, train, &replayed(profile));
        fit_level(profile, &observed, level);
    }
}

/// Observes the angles of the last blocks of a replay's medium requests.
fn observe(profile: &Profile, train: &[Sample], replayed: &[Replayed]) -> Vec<Observed> {
    let pairs = train
        .iter()
        .zip(replayed)
        .filter(|(_, replayed)| is_medium(replayed));
    pairs
        .filter_map(|(sample, replayed)| {
            Some(Observed {
                residual: residual(&profile.spindle, sample, replayed),
                path: profile.geometry.path_of(sample.extent.last())?,
            })
        })
        .collect()
}

/// Finds the period at which the residuals of each outermost pattern agree best. Keeps the nominal
/// period, and returns no, if they agree at none.
///
/// The agreement is the sum of n R^2 over the patterns, less its value without a phase: 1 each.
fn fit_period(profile: &mut Profile, train: &[Sample], replayed: &[Replayed]) -> bool {
    let nominal = profile.spindle.period_ps();
    let ends: Vec<(u64, Angle, u32)> = train
        .iter()
        .zip(replayed)
        .filter(|(_, replayed)| is_medium(replayed))
        .filter_map(|(sample, replayed)| {
            let completed = sample.issued + sample.service;
            let simulated = profile.spindle.angle_at(replayed.completed);
            let path = profile.geometry.path_of(sample.extent.last())?;
            Some((completed.as_nanos(), simulated, path.first()?.run))
        })
        .collect();
    let mut runs: Vec<u32> = ends.iter().map(|&(_, _, run)| run).collect();
    runs.sort_unstable();
    runs.dedup();
    let agreement = |ppm: i64| {
        let period = nominal.saturating_add_signed(nominal as i64 * ppm / 1_000_000);
        let spindle = Spindle::from_period_ps(period);
        let sum: f64 = runs
            .iter()
            .map(|&run| {
                let of_run = ends.iter().filter(|&&(_, _, r)| r == run);
                let n = of_run.clone().count() as f64;
                let residuals = of_run.map(|&(completed, simulated, _)| {
                    spindle.angle_at(Instant::from_nanos(completed)) - simulated
                });
                mean_angle(residuals).concentration.powi(2) * n - 1.0
            })
            .sum();
        (sum, period)
    };
    let spare = ends.len().saturating_sub(runs.len()) as f64;
    let chance = 4.0 * (runs.len() as f64).sqrt() + 2.0 * SURE;
    let best = (-PERIOD_PPM..=PERIOD_PPM)
        .map(agreement)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|&(agreement, _)| agreement > chance && agreement > MEANINGFUL * spare);
    let Some((_, period)) = best else {
        return false;
    };
    profile.spindle = Spindle::from_period_ps(period);
    true
}

/// Smallest mean square of the concentration, beyond chance, for which angles are fitted. Less
/// would not predict a single request. A choice. Chance is excluded separately: the sum of k
/// exponentials has a standard deviation of sqrt(k), and the best of a thousand periods exceeds k +
/// 4 sqrt(k) + 14 less than once in a thousand traces.
const MEANINGFUL: f64 = 0.1;

/// Turns one level of the layout.
fn fit_level(profile: &mut Profile, observed: &[Observed], level: usize) {
    let mut groups: Vec<(PatternStep, Vec<(u64, Angle)>)> = Vec::new();
    for one in observed {
        let Some(&step) = one.path.get(level) else {
            continue;
        };
        let same = |(other, _): &&mut (PatternStep, Vec<(u64, Angle)>)| {
            (other.group, other.run) == (step.group, step.run)
        };
        match groups.iter_mut().find(same) {
            Some((_, points)) => points.push((step.repetition, one.residual)),
            None => groups.push((step, vec![(step.repetition, one.residual)])),
        }
    }
    groups.sort_by_key(|(step, _)| (step.group, step.run));
    groups.retain(|(_, points)| points.len() >= ENOUGH);
    let lines: Vec<(PatternStep, PhaseLine)> = groups
        .iter()
        .filter_map(|(step, points)| Some((*step, line(points)?)))
        .collect();
    // The first pattern keeps its angle. The platter's phase absorbs its error.
    let mut reference = Angle::ZERO;
    if let (0, Some((_, first))) = (level, lines.first()) {
        reference = first.start;
        profile.spindle = with_phase(profile.spindle, reference);
    }
    let turns: Vec<Turn> = lines
        .iter()
        .map(|(at, line)| Turn {
            group: at.group,
            run: at.run,
            start: line.start - reference,
            step: line.step,
        })
        .filter(|turn| turn.step != Angle::ZERO || is_noticeable(turn.start))
        .collect();
    profile.geometry = Arc::new(profile.geometry.turned(&turns));
}

/// Whether an angle exceeds a thousandth of a revolution, the resolution of a few dozen
/// completions.
fn is_noticeable(angle: Angle) -> bool {
    let raw = angle.raw();
    raw.min(raw.wrapping_neg()) > u64::MAX / 1000
}

/// A line through residuals on the circle; a step of zero makes it a constant.
struct PhaseLine {
    start: Angle,
    step: Angle,
}

/// The line through most residuals, if it is significant. The search tries every slope, in steps
/// that move the far end by an eighth of a revolution, then finer ones around the best.
fn line(points: &[(u64, Angle)]) -> Option<PhaseLine> {
    let agreement =
        |step: Angle| mean_angle(points.iter().map(|&(x, residual)| residual - step.times(x)));
    let low = points.iter().map(|&(x, _)| x).min()?;
    let high = points.iter().map(|&(x, _)| x).max()?;
    let slopes = 8 * (high - low);
    // Before a line counts as the best, at most equally steep ones were tried: gentle lines need
    // less proof.
    let is_sure = |phase: &ClockPhase, step: Angle| {
        let steepness = step.raw().min(step.raw().wrapping_neg()) as f64 / u64::MAX as f64;
        let tried = 1.0 + 2.0 * steepness * slopes as f64;
        let square = phase.concentration.powi(2) * points.len() as f64;
        phase.concentration > CONCENTRATED && square > tried.ln() + SURE
    };
    let flat = agreement(Angle::ZERO);
    let constant = is_sure(&flat, Angle::ZERO).then_some(PhaseLine {
        start: flat.angle,
        step: Angle::ZERO,
    });
    let mut best = (flat, Angle::ZERO);
    for slope in 0..slopes {
        let step = Angle::fraction(slope, slopes);
        let found = agreement(step);
        if found.concentration >= best.0.concentration {
            best = (found, step);
        }
    }
    let mut finer = Angle::fraction(1, 2 * slopes.max(1));
    for _ in 0..8 {
        for step in [best.1 + finer, best.1 - finer] {
            let found = agreement(step);
            if found.concentration > best.0.concentration {
                best = (found, step);
            }
        }
        finer = Angle::from_raw(finer.raw() / 2);
    }
    let is_better = 1.0 - best.0.concentration <= BETTER * (1.0 - flat.concentration);
    if slopes == 0 || !is_better || !is_sure(&best.0, best.1) {
        return constant;
    }
    Some(PhaseLine {
        start: best.0.angle,
        step: best.1,
    })
}
