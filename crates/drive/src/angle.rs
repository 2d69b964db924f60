//! Angles as 64-bit fractions of a revolution, and the spindle that converts time to angle.
//!
//! An angle is a `u64`: 2^64 is a revolution. Addition wraps by itself, and rounding errors do not
//! accumulate.
//!
//! ```text
//!        0 = 2^64
//!           |
//!  3/4 -----+----- 1/4 = 2^62          the platter turns so that the angle under the head grows
//!           |
//!       1/2 = 2^63
//! ```

use std::ops::{Add, Sub};

use block::{Duration, Instant};

/// A position on a circle, or the angle between two positions, as a fraction of a revolution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Angle(u64);

impl Angle {
    /// The index mark.
    pub const ZERO: Angle = Angle(0);

    /// The angle `raw / 2^64` of a revolution.
    pub const fn from_raw(raw: u64) -> Self {
        Angle(raw)
    }

    /// The raw fraction: 2^64 is a revolution.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The angle `part / whole` of a revolution, rounded down, without whole revolutions.
    ///
    /// # Panics
    /// If `whole` is zero.
    pub const fn fraction(part: u64, whole: u64) -> Self {
        Angle((((part % whole) as u128) << 64).div_euclid(whole as u128) as u64)
    }

    /// The nearest angle to a published number of revolutions, without whole revolutions.
    ///
    /// `None` if the number is not finite.
    pub fn from_revolutions(revolutions: f64) -> Option<Self> {
        if !revolutions.is_finite() {
            return None;
        }
        // 2^64 as f64 is exact; a fraction that rounds up to one revolution is zero again.
        let scaled = revolutions.rem_euclid(1.0) * 18_446_744_073_709_551_616.0;
        Some(Angle(if scaled >= 18_446_744_073_709_551_616.0 {
            0
        } else {
            scaled as u64
        }))
    }

    /// The fraction of a revolution in 0..1, for reports and comparisons with published tables.
    pub fn revolutions(self) -> f64 {
        self.0 as f64 / 18_446_744_073_709_551_616.0
    }

    /// The angle multiplied by `times`, modulo a revolution.
    pub const fn times(self, times: u64) -> Angle {
        Angle(self.0.wrapping_mul(times))
    }
}

impl Add for Angle {
    type Output = Angle;
    fn add(self, way: Angle) -> Angle {
        Angle(self.0.wrapping_add(way.0))
    }
}

impl Sub for Angle {
    type Output = Angle;
    /// The angle from `from` forward to `self`.
    fn sub(self, from: Angle) -> Angle {
        Angle(self.0.wrapping_sub(from.0))
    }
}

/// A spindle of constant speed: the angle under the heads at each moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spindle {
    /// One revolution, in picoseconds: 1e-12 s is 2.5e-10 of a 15,000 rpm revolution.
    period_ps: u64,
    /// The angle per nanosecond; products wrap, which removes whole revolutions.
    per_nano: u64,
    /// The angle under the heads at `Instant::ZERO`.
    phase: Angle,
}

impl Spindle {
    /// A spindle with revolutions of `period_ps` picoseconds, at angle zero at the beginning.
    ///
    /// # Panics
    /// If a revolution takes less than a microsecond or more than 100 seconds. Profiles are checked
    /// before.
    pub const fn from_period_ps(period_ps: u64) -> Self {
        assert!(period_ps >= 1_000_000 && period_ps <= 100_000_000_000_000);
        let per_nano = ((1_000u128 << 64) + period_ps as u128 / 2) / period_ps as u128;
        Spindle {
            period_ps,
            per_nano: per_nano as u64,
            phase: Angle::ZERO,
        }
    }

    /// The spindle with `phase` under the heads at `Instant::ZERO`.
    pub const fn with_phase(self, phase: Angle) -> Self {
        Spindle { phase, ..self }
    }

    /// One revolution in picoseconds.
    pub const fn period_ps(&self) -> u64 {
        self.period_ps
    }

    /// One revolution, to the nearest nanosecond.
    pub const fn period(&self) -> Duration {
        Duration::from_nanos((self.period_ps + 500) / 1_000)
    }

    /// The angle under the heads at `Instant::ZERO`.
    pub const fn phase(&self) -> Angle {
        self.phase
    }

    /// The angle under the heads.
    pub fn angle_at(&self, now: Instant) -> Angle {
        self.phase + Angle(now.as_nanos().wrapping_mul(self.per_nano))
    }

    /// The time for a rotation by `way`, rounded up to nanoseconds, so that no sector is believed
    /// under the head too early.
    pub fn time_of(&self, way: Angle) -> Duration {
        self.time_of_wide(u128::from(way.0))
    }

    /// The time from `now` until the angle `target` is under the heads; zero if it is, or was a
    /// moment ago (`LATE_NANOS`).
    pub fn wait(&self, now: Instant, target: Angle) -> Duration {
        let there = self.angle_at(now);
        if self.is_just_past(there, target) {
            return Duration::ZERO;
        }
        self.time_of(target - there)
    }

    /// The wait for `start`, and the time in which `way` passes. Together they are rounded once, so
    /// that roundings of successive passes do not add up.
    pub fn sweep(&self, now: Instant, start: Angle, way: Angle) -> (Duration, Duration) {
        let there = self.angle_at(now);
        if self.is_just_past(there, start) {
            let late = (there - start).raw();
            return (
                Duration::ZERO,
                self.time_of(Angle(way.0.saturating_sub(late))),
            );
        }
        let wait = start - there;
        let waits = self.time_of(wait);
        let both = self.time_of_wide(u128::from(wait.0) + u128::from(way.0));
        (waits, both.saturating_sub(waits))
    }

    /// Whether a head at `there` can still read or write from `start` on.
    pub(crate) fn is_just_past(&self, there: Angle, start: Angle) -> bool {
        (there - start).raw() <= self.per_nano * LATE_NANOS
    }

    /// [`Spindle::time_of`] for more than a revolution.
    fn time_of_wide(&self, way: u128) -> Duration {
        let ps = (way * u128::from(self.period_ps)) >> 64;
        Duration::from_nanos((ps as u64).div_ceil(1_000))
    }
}

/// The lateness in nanoseconds at which a head can still read a sector. Times are rounded up, so
/// that a head is up to a nanosecond late at each sector of a track. The gap and preamble before a
/// sector last microseconds.
const LATE_NANOS: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_is_a_quarter() {
        assert_eq!(Angle::fraction(1, 4).raw(), 1 << 62);
        assert_eq!(Angle::fraction(5, 4).raw(), 1 << 62);
        assert_eq!(
            Angle::from_revolutions(-0.75).map(Angle::raw),
            Some(1 << 62)
        );
        assert_eq!(Angle::from_revolutions(f64::NAN), None);
    }

    #[test]
    fn an_hour_of_revolutions_does_not_drift() {
        // 10,000 rpm: 6 ms a revolution, so every whole number of them is at angle zero.
        let spindle = Spindle::from_period_ps(6_000_000_000);
        let hour = Instant::from_nanos(600_000 * 6_000_000);
        let off = spindle.angle_at(hour).revolutions();
        assert!(
            off.min(1.0 - off) < 1e-6,
            "after an hour {off} revolutions off"
        );
    }

    #[test]
    fn waiting_arrives_at_the_target_and_never_early() {
        let spindle = Spindle::from_period_ps(3_994_674_000).with_phase(Angle::fraction(1, 3));
        let mut now = Instant::from_nanos(12_345);
        for step in 1..1000 {
            let target = Angle::fraction(step * 37, 1000);
            now += spindle.wait(now, target);
            let past = spindle.angle_at(now) - target;
            // At most the nanosecond of rounding, 2.5e-7 of a revolution.
            assert!(past.revolutions() < 6e-7 || past.revolutions() > 1.0 - 1e-7);
        }
    }
}
