//! The angle under the heads as a function of time: a belief that every sighting of a known block
//! corrects.
//!
//! Yu et al. 2000: a read every minute or two keeps the phase within 1 % of a revolution, if the
//! period is known well. A spindle that drifts needs them more often.

use std::collections::VecDeque;

use block::{Duration, Instant, Lba};
use drive::{Angle, Spindle};

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

/// Sightings of a reference block that correct a clock behind a host that delays them.
///
/// ```text
///   late      .       .   .                 . = one sighting
///     |   .      .  . ______._---.__
///     | .  __.---       .         .         the line: as many sightings are above it as below, in its first
///     |__.---      .                        half and in its last
/// ```
///
/// Delays of some hosts crowd at the least one, those of others about a usual one, and a few are stalls. The median
/// is near the truth for all of them.
#[derive(Clone, Debug, Default)]
pub struct ReferenceSightings {
    /// Recent sightings: the time, and how late they were by `base`.
    seen: VecDeque<LateSighting>,
    /// A clock that was right once: all lateness is counted from it.
    base: Option<PlatterClock>,
    /// The time at which the platter was last seen to have changed its speed.
    changed: Option<Instant>,
    /// The clock as it was corrected last, and the line that it follows.
    set: Option<(PlatterClock, LateLine)>,
    /// The time of the last sighting, or of the beginning of one.
    pub at: Instant,
    /// The block that is sighted, and where it ends: one for all, so that an error of its angle is in all angles
    /// alike.
    pub reference: Option<(Lba, Angle)>,
    /// Sightings in a row that were too late or too early for any delay, all by about as much, and that much.
    doubts: u8,
    doubtful: f64,
}

/// A sighting, by a clock that is not corrected.
#[derive(Clone, Copy, Debug)]
struct LateSighting {
    at: Instant,
    /// In revolutions.
    late: f64,
}

/// How far the platter is behind a clock that is not corrected.
#[derive(Clone, Copy, Debug, Default)]
struct LateLine {
    /// A time on the line, and by how much the platter is late then, in revolutions.
    from: Instant,
    late: f64,
    /// More of it, in revolutions a nanosecond.
    slope: f64,
}

/// Most sightings that are kept. A choice: with delays that vary by 30 us, the line is off by 5 us at its end, and
/// periods that wander do not wander far in a minute.
const KEPT: usize = 120;

/// Older sightings say nothing of the present, in nanoseconds. A choice: as above, with pauses.
const KEPT_NANOS: u64 = 120_000_000_000;

/// Fewest sightings that tell the slope of the line. A choice: a third of those kept.
const SLOPING: usize = 40;

/// If so many in a row are all on one side of the line by such a share of the mean delay, the platter has changed
/// its speed: delays do that once in a hundred thousand times. A choice.
const IN_A_ROW: usize = 8;
const ASIDE: f64 = 0.7;

/// The share of the change of speed that these sightings show that is believed. A choice: they tell it to
/// 10 ppm.
const SLOPE_GAIN: f64 = 0.5;

/// Between sightings of a reference block, if the speed is steady. A choice: 2 % of the drive's time.
const INTERVAL: Duration = Duration::from_millis(500);

/// The same after a change of speed. A choice: 30 ppm come to the tenth part of a usual delay.
const WANDERING: Duration = Duration::from_millis(100);

/// A platter that has changed its speed does so again for so long, in nanoseconds. A choice.
const UNSTEADY_NANOS: u64 = 60_000_000_000;

impl ReferenceSightings {
    /// When the reference block is to be sighted again.
    pub fn due(&self) -> Instant {
        match self.is_steady(self.at) {
            true => self.at + INTERVAL,
            false => self.at + WANDERING,
        }
    }

    fn is_steady(&self, now: Instant) -> bool {
        let since = self.changed.map(|changed| now.max(changed).since(changed));
        since.is_none_or(|since| since.as_nanos() > UNSTEADY_NANOS)
    }

    /// Adds a sighting: `angle` was seen under the heads at `at`, behind a host that delays by `mean`
    /// revolutions.
    pub fn take(&mut self, clock: &mut PlatterClock, angle: Angle, at: Instant, mean: f64) {
        self.at = at;
        let late = apart(angle, clock.angle_at(at));
        if late.abs() > DOUBTFUL {
            self.doubt(clock, angle, at, late);
            return;
        }
        self.doubts = 0;
        let (base, line) = match (self.base, self.set) {
            (Some(base), Some((set, line))) if set == *clock => (base, line),
            // Another procedure has corrected the clock.
            _ => {
                self.seen.clear();
                (*clock, LateLine::default())
            }
        };
        let seen = LateSighting {
            at,
            late: line.at(at) + late,
        };
        self.seen.push_back(seen);
        let line = self.forget(at, line, mean);
        let line = self.line(line);
        let period = base.spindle.period_ps() as f64 * (1.0 + line.slope * base.period());
        let angle = base.angle_at(at) - forward(line.at(at));
        *clock = PlatterClock::new(period.round() as u64, angle, at);
        (self.base, self.set) = (Some(base), Some((*clock, line)));
    }

    /// A sighting that no usual delay explains. If some in a row agree, the clock has lost the platter: it is set again.
    fn doubt(&mut self, clock: &mut PlatterClock, angle: Angle, at: Instant, late: f64) {
        let agrees = (late - self.doubtful).abs() < AGREEING;
        self.doubts = if agrees { self.doubts + 1 } else { 1 };
        self.doubtful = late;
        if self.doubts >= CONFIRMED {
            *clock = PlatterClock::new(clock.spindle.period_ps(), angle, at);
            self.doubts = 0;
        }
    }

    /// Forgets what is old, and what the platter has done before it changed its speed; answers the line with
    /// the slope that is believed then.
    fn forget(&mut self, now: Instant, line: LateLine, mean: f64) -> LateLine {
        let old = |seen: &LateSighting| now.since(seen.at).as_nanos() > KEPT_NANOS;
        let kept = match self.is_steady(now) {
            true => KEPT,
            false => IN_A_ROW + 1,
        };
        while self.seen.len() > kept || self.seen.front().is_some_and(old) {
            self.seen.pop_front();
        }
        let off = |seen: &LateSighting| seen.late - line.at(seen.at);
        let recent = || self.seen.iter().rev().take(IN_A_ROW).map(off);
        let aside = ASIDE * mean;
        let is_aside = recent().all(|off| off > aside) || recent().all(|off| off < -aside);
        if self.seen.len() <= IN_A_ROW || !is_aside {
            return line;
        }
        self.seen.drain(..self.seen.len() - IN_A_ROW);
        self.changed = Some(now);
        let slope = slope(&self.seen).unwrap_or(line.slope);
        LateLine {
            slope: line.slope + SLOPE_GAIN * (slope - line.slope),
            ..line
        }
    }

    /// The line through the sightings; with few of them it is as steep as before.
    fn line(&self, before: LateLine) -> LateLine {
        let Some(last) = self.seen.back() else {
            return before;
        };
        let slope = match self.seen.len() >= SLOPING {
            true => slope(&self.seen).unwrap_or(before.slope),
            false => before.slope,
        };
        let line = LateLine {
            from: last.at,
            late: 0.0,
            slope,
        };
        let mut above: Vec<f64> = self
            .seen
            .iter()
            .map(|seen| seen.late - line.at(seen.at))
            .collect();
        LateLine {
            late: median(&mut above),
            ..line
        }
    }
}

/// How steep the sightings become from their first third to their last.
fn slope(seen: &VecDeque<LateSighting>) -> Option<f64> {
    let first = seen.front()?.at;
    let third = seen.len() / 3;
    let middle = |part: &mut dyn Iterator<Item = &LateSighting>| {
        let part: Vec<&LateSighting> = part.collect();
        let after = |seen: &&LateSighting| seen.at.since(first).as_nanos() as f64;
        let at = part.iter().map(after).sum::<f64>() / part.len() as f64;
        let mut late: Vec<f64> = part.iter().map(|seen| seen.late).collect();
        (at, median(&mut late))
    };
    if third == 0 {
        return None;
    }
    let one = middle(&mut seen.iter().take(third));
    let two = middle(&mut seen.iter().rev().take(third));
    Some((two.1 - one.1) / (two.0 - one.0).max(1.0))
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

impl LateLine {
    /// By how much the platter is late, in revolutions.
    fn at(&self, at: Instant) -> f64 {
        let nanos = at.as_nanos() as f64 - self.from.as_nanos() as f64;
        self.late + self.slope * nanos
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

    #[test]
    fn a_clock_that_has_lost_the_platter_is_set_by_three_sightings_that_agree() {
        let at = |turn: u64| Instant::from_nanos(turn * 6_000_000);
        let mut clock = PlatterClock::new(6_000_000_000, Angle::ZERO, Instant::ZERO);
        let mut sightings = ReferenceSightings::default();
        let before = clock;
        // One stall after the other.
        for turn in 1..50 {
            let stalled = Angle::fraction(turn * 37 % 90 + 5, 100);
            sightings.take(&mut clock, stalled, at(turn), 0.005);
            assert_eq!(clock, before);
        }
        for turn in 51..=60 {
            sightings.take(&mut clock, Angle::fraction(1, 10), at(turn), 0.005);
        }
        let off = apart(clock.angle_at(at(60)), Angle::fraction(1, 10));
        assert!(off.abs() < 1e-9, "{off}");
    }

    /// The errors of a clock in revolutions, by sightings every half second with exponentially distributed
    /// delays of 30 us in the mean, on a platter of 6 ms that turns `ppm(second)` too slowly.
    fn late_errors(seconds: u64, ppm: impl Fn(u64) -> f64) -> Vec<f64> {
        let mut clock = PlatterClock::new(6_000_000_000, Angle::ZERO, Instant::ZERO);
        let mut sightings = ReferenceSightings::default();
        let mut seed = 1_u64;
        let mut behind = 0.0;
        let step = |half: u64| {
            let at = half as f64 * 5e8;
            behind += 500.0 * ppm(half / 2);
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let delay = -(((seed >> 11) + 1) as f64 / (1_u64 << 53) as f64).ln() * 30_000.0;
            let angle = forward(((at - behind) / 6e6).fract());
            let seen = Instant::from_nanos((at + delay) as u64);
            sightings.take(&mut clock, angle, seen, 0.005);
            // The usual delay is in all angles alike: the median of an exponential distribution.
            let usual = 30_000.0 * std::f64::consts::LN_2 / 6e6;
            apart(angle, clock.angle_at(Instant::from_nanos(at as u64))) + usual
        };
        (1..=seconds * 2).map(step).collect()
    }

    #[test]
    fn sightings_of_a_reference_keep_the_clock_right() {
        let errors = late_errors(300, |_| 0.3);
        let settled = &errors[100..];
        let mean = settled.iter().map(|error| error.abs()).sum::<f64>() / settled.len() as f64;
        // 6 us: a fifth of the mean delay.
        assert!(mean < 6.0 / 6_000.0, "{mean}");
    }

    #[test]
    fn sightings_of_a_reference_follow_a_change_of_speed() {
        for ppm in [-20.0, 20.0] {
            let errors = late_errors(60, |second| if second < 30 { 0.0 } else { ppm });
            let settled = errors[100..].iter().map(|error| error.abs());
            let worst = settled.fold(0.0, f64::max);
            // One and a half times the mean delay.
            assert!(worst < 45.0 / 6_000.0, "{ppm}: {worst}");
        }
    }
}
