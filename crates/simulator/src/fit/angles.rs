//! Angles, read off the completions.
//!
//! What a zone's start angle is wrong by shows as the residual phase of every request in it that
//! the medium served. A track pattern that repeats adds its error once per repetition, so that
//! there the residual grows along a line:
//!
//! ```text
//!   residual
//!     |        .  '          start + step * repetition, modulo a revolution
//!     |   .  '
//!     | '________________ repetition
//! ```

use std::sync::Arc;

use drive::geometry::{PatternStep, Turn};
use drive::{Angle, Profile, Spindle};

use crate::validate::clock::{Phase, is_medium, mean_angle, residual, with_phase};
use crate::validate::{Clock, Replayed, Sample, replay};

/// Fewer requests than this say nothing about a line's two numbers.
const ENOUGH: usize = 8;

/// A line must leave at most this part of what a constant leaves unexplained (one less the mean
/// vector's length). The best of many lines through forty random residuals leaves 0.7 of it.
const BETTER: f64 = 0.5;

/// How far off the nominal period a spindle may be, in steps of a part per million. Drives are
/// specified to 0.5 % at worst (1990s data sheets); those of the collection are within 400 ppm.
const PERIOD_PPM: i64 = 500;

/// One request's residual and where its last block is in the layout.
struct Observed {
    residual: Angle,
    /// From the outermost pattern to the track; for zones the zone's number alone.
    path: Vec<PatternStep>,
}

/// Fits period and angles, if the clock has a phase.
pub(super) fn fit(profile: &mut Profile, train: &[Sample], count: &mut impl FnMut()) {
    let mut replayed = |profile: &Profile| {
        count();
        replay(&Arc::new(profile.clone()), train, Clock::Measured)
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

/// What the medium requests of a replay say about the angle of their last blocks.
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

/// Finds the period at which the residuals of each outermost pattern agree best; keeps the
/// nominal one, and says no, if they agree at none.
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
    let outermost = ends.iter().map(|&(_, _, run)| run).max().unwrap_or(0);
    let agreement = |ppm: i64| {
        let period = nominal.saturating_add_signed(nominal as i64 * ppm / 1_000_000);
        let spindle = Spindle::from_period_ps(period);
        let sum: f64 = (0..=outermost)
            .map(|run| {
                let of_run = ends.iter().filter(|&&(_, _, r)| r == run);
                let n = of_run.clone().count() as f64;
                let residuals = of_run.map(|&(completed, simulated, _)| {
                    spindle.angle_at(block::Instant::from_nanos(completed)) - simulated
                });
                // Squares, so that runs that agree well count more than noise.
                mean_angle(residuals).concentration.powi(2) * n
            })
            .sum();
        (sum / ends.len().max(1) as f64, period)
    };
    let best = (-PERIOD_PPM..=PERIOD_PPM)
        .map(agreement)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|&(agreement, _)| agreement > MEANINGFUL);
    let Some((_, period)) = best else {
        return false;
    };
    profile.spindle = Spindle::from_period_ps(period);
    true
}

/// The least mean squared concentration that shows a phase. Without one it is about the number
/// of runs over that of requests, at most 0.02 here; the most of a thousand periods is within
/// 0.05 of that.
const MEANINGFUL: f64 = 0.1;

/// Turns what one level of the layout says.
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
    let lines: Vec<(PatternStep, Line)> = groups
        .iter()
        .map(|(step, points)| (*step, line(points)))
        .collect();
    // The first pattern keeps its angle, the platter's phase takes up what it is off by.
    if level == 0
        && let Some((_, first)) = lines.first()
    {
        profile.spindle = with_phase(profile.spindle, first.start);
    }
    let reference = match lines.first() {
        Some((_, first)) if level == 0 => first.start,
        _ => Angle::ZERO,
    };
    let turns: Vec<Turn> = lines
        .iter()
        .filter(|(_, line)| line.agreement.concentration > 0.5)
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

/// Whether an angle is more than a thousandth of a revolution, which is what a few dozen
/// completions can tell.
fn is_noticeable(angle: Angle) -> bool {
    let raw = angle.raw();
    raw.min(raw.wrapping_neg()) > u64::MAX / 1000
}

/// A line through residuals on the circle.
struct Line {
    start: Angle,
    step: Angle,
    agreement: Phase,
}

/// The line that most residuals lie on: every slope is tried, in steps that move the far end by
/// an eighth of a revolution, then ever finer ones around the best.
fn line(points: &[(u64, Angle)]) -> Line {
    let agreement =
        |step: Angle| mean_angle(points.iter().map(|&(x, residual)| residual - step.times(x)));
    let flat = agreement(Angle::ZERO);
    let span = match (
        points.iter().map(|p| p.0).min(),
        points.iter().map(|p| p.0).max(),
    ) {
        (Some(low), Some(high)) => high - low,
        _ => 0,
    };
    if span == 0 {
        return Line {
            start: flat.angle,
            step: Angle::ZERO,
            agreement: flat,
        };
    }
    let slopes = 8 * span;
    let mut best = (0..slopes)
        .map(|slope| Angle::fraction(slope, slopes))
        .map(|step| (agreement(step), step))
        .max_by(|a, b| a.0.concentration.total_cmp(&b.0.concentration))
        .unwrap_or((flat, Angle::ZERO));
    let mut finer = Angle::fraction(1, 2 * slopes);
    for _ in 0..8 {
        for step in [best.1 + finer, best.1 - finer] {
            let found = agreement(step);
            if found.concentration > best.0.concentration {
                best = (found, step);
            }
        }
        finer = Angle::from_raw(finer.raw() / 2);
    }
    if 1.0 - best.0.concentration > BETTER * (1.0 - flat.concentration) {
        return Line {
            start: flat.angle,
            step: Angle::ZERO,
            agreement: flat,
        };
    }
    Line {
        start: best.0.angle,
        step: best.1,
        agreement: best.0,
    }
}
