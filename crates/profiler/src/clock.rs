//! The angle under the heads as a function of time: a belief that every sighting of a known block
//! corrects.
//!
//! Yu et al. 2000: a read every minute or two keeps the phase within 1 % of a revolution, if the
//! period is known well. A spindle that drifts needs them more often.

mod reference;

use block::Instant;
use drive::{Angle, Spindle};

pub use reference::ReferenceSightings;

/// A believed spindle with continuous correction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlatterClock {
    spindle: Spindle,
    /// The time of the last anchor.
    at: Instant,
    /// Number of consecutive anchors that were rejected, all with about the same error.
    doubts: u8,
    /// The error of the last of them, in revolutions.
    doubtful: f64,
}

/// The fraction of an anchor's error that corrects the phase. A choice: three anchors correct 7/8
/// of it.
const PHASE_GAIN: f64 = 0.5;

/// The fraction of the period's apparent error that corrects it, at intervals of [`SETTLED_NANOS`]
/// or more. A choice: as above.
const PERIOD_GAIN: f64 = 0.5;

/// The same where a host delays sightings. A choice: their mean is over twenty of them.
const NUDGE: f64 = 0.05;

/// Over a shorter interval, an error of the phase has proportionally less weight for the period. A
/// choice: the known drift is slower than seconds.
const SETTLED_NANOS: f64 = 2e9;

/// An anchor with a larger error, in revolutions, counts only if later ones confirm it.
pub(crate) const DOUBTFUL: f64 = 0.03;

/// Number of consecutive anchors with about the same large error that are accepted. A choice.
const CONFIRMED: u8 = 3;

/// Maximum difference of errors that are about the same, in revolutions. A choice: a spindle that
/// is 0.3 % off turns this much too far in three revolutions.
const AGREEING: f64 = 0.01;

impl PlatterClock {
    /// A platter with period `period_ps` and `angle` under the heads at `at`.
    pub fn new(period_ps: u64, angle: Angle, at: Instant) -> Self {
        PlatterClock {
            spindle: anchored(period_ps, angle, at),
            at,
            doubts: 0,
            doubtful: 0.0,
        }
    }

    /// The believed spindle.
    pub fn spindle(&self) -> Spindle {
        self.spindle
    }

    /// One revolution, in nanoseconds.
    pub fn period(&self) -> f64 {
        self.spindle.period_ps() as f64 / 1e3
    }

    /// The time of the last anchor.
    pub fn anchored_at(&self) -> Instant {
        self.at
    }

    /// The angle under the heads at `at`.
    pub fn angle_at(&self, at: Instant) -> Angle {
        self.spindle.angle_at(at)
    }

    /// Turns the platter by a share of a sighting's error, up to `usual` revolutions of it, and keeps the period:
    /// where a host delays sightings, half of them are on each side. Returns the error in revolutions, positive if
    /// the platter was ahead.
    pub fn nudge(&mut self, angle: Angle, at: Instant, usual: f64) -> f64 {
        let error = apart(self.angle_at(at), angle);
        if error.abs() <= DOUBTFUL {
            let believed = error.clamp(-usual, usual) * NUDGE;
            let turned = self.angle_at(at) + forward(believed);
            self.spindle = anchored(self.spindle.period_ps(), turned, at);
            self.at = self.at.max(at);
        }
        error
    }

    /// Corrects the clock: the angle under the heads at `at` was `angle`. Returns the previous
    /// error in revolutions, positive if the platter was ahead of the belief.
    pub fn anchor(&mut self, angle: Angle, at: Instant) -> f64 {
        let error = apart(self.angle_at(at), angle);
        let is_doubtful = error.abs() > DOUBTFUL;
        if is_doubtful {
            let agrees = (error - self.doubtful).abs() < AGREEING;
            self.doubts = if agrees { self.doubts + 1 } else { 1 };
            self.doubtful = error;
            if self.doubts < CONFIRMED {
                return error;
            }
        }
        let period = self.spindle.period_ps();
        if is_doubtful {
            self.spindle = anchored(period, angle, at);
        } else {
            let passed = at.since(self.at).as_nanos() as f64;
            let weight = (passed / SETTLED_NANOS).min(1.0) * PERIOD_GAIN;
            let turns = passed / self.period();
            let slower = if turns > 0.5 { -error / turns } else { 0.0 };
            let period = period as f64 * (1.0 + weight * slower);
            let taken = self.angle_at(at) + forward(error * PHASE_GAIN);
            self.spindle = anchored(period.round() as u64, taken, at);
        }
        self.at = self.at.max(at);
        self.doubts = 0;
        error
    }
}

/// The median of some errors; 0 of none.
pub(crate) fn median(offs: &mut [f64]) -> f64 {
    offs.sort_by(f64::total_cmp);
    let (lower, upper) = (offs.len().saturating_sub(1) / 2, offs.len() / 2);
    match offs.get(lower).zip(offs.get(upper)) {
        Some((lower, upper)) => (lower + upper) / 2.0,
        None => 0.0,
    }
}

/// A spindle with `angle` under the heads at `at`.
fn anchored(period_ps: u64, angle: Angle, at: Instant) -> Spindle {
    let spindle = Spindle::from_period_ps(period_ps);
    spindle.with_phase(angle - spindle.angle_at(at))
}

/// The shorter distance from one angle to another, in revolutions; forward is positive.
pub fn apart(from: Angle, to: Angle) -> f64 {
    (to - from).raw() as i64 as f64 / 18_446_744_073_709_551_616.0
}

/// A number of revolutions as an angle.
pub fn forward(revolutions: f64) -> Angle {
    Angle::from_revolutions(revolutions).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that believes in 6 ms, on a platter that turns in `period_ps`.
    fn errors(period_ps: u64, every_nanos: u64, anchors: u64) -> Vec<f64> {
        let truth = Spindle::from_period_ps(period_ps);
        let mut clock = PlatterClock::new(6_000_000_000, Angle::ZERO, Instant::ZERO);
        let anchor = |n: u64| {
            let at = Instant::from_nanos(n * every_nanos);
            clock.anchor(truth.angle_at(at), at)
        };
        (1..=anchors).map(anchor).collect()
    }

    #[test]
    fn it_learns_the_period() {
        // 20 ppm slow: 0.7 % of a revolution in two seconds.
        let errors = errors(6_000_120_000, 2_000_000_000, 20);
        assert!(errors[0] < -0.005, "{errors:?}");
        assert!(errors[19].abs() < 1e-4, "{errors:?}");
    }

    #[test]
    fn frequent_anchors_follow_any_speed_that_spindles_have() {
        // 0.3 % fast.
        let errors = errors(5_982_000_000, 8_000_000, 2000);
        assert!(errors[1999].abs() < 1e-3, "{}", errors[1999]);
    }

    #[test]
    fn one_wrong_anchor_changes_nothing_and_three_change_the_phase() {
        let mut clock = PlatterClock::new(6_000_000_000, Angle::ZERO, Instant::ZERO);
        let before = clock;
        let at = |n: u64| Instant::from_nanos(n * 6_000_000);
        clock.anchor(Angle::fraction(1, 4), at(1));
        assert_eq!(clock.spindle(), before.spindle());
        for turn in 2..100 {
            // What is off by something else each time is no evidence.
            clock.anchor(Angle::fraction(turn * 37 % 90 + 5, 100), at(0));
            assert_eq!(clock.spindle(), before.spindle());
        }
        clock.anchor(Angle::fraction(1, 4), at(1));
        clock.anchor(Angle::fraction(1, 4), at(2));
        clock.anchor(Angle::fraction(1, 4), at(3));
        assert_eq!(clock.angle_at(at(3)), Angle::fraction(1, 4));
    }
}
