//! Moments and durations as integers. This module has no clock.
//!
//! One tick is a nanosecond: 2.5e-7 of a revolution at 15,000 rpm; 64 bits hold 584 years. Sums and
//! products saturate at the end of time.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// A moment, in nanoseconds since the beginning of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Instant(u64);

/// A span of time in nanoseconds; never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Duration(u64);

impl Instant {
    /// The beginning of the run.
    pub const ZERO: Instant = Instant(0);

    /// The moment `nanos` nanoseconds after the beginning.
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// Nanoseconds since the beginning.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the beginning, for reports only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// The time from `earlier` to `self`; zero if `earlier` is later.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// The moment `length` before `self`, or the beginning of the run.
    pub const fn saturating_sub(self, length: Duration) -> Instant {
        Instant(self.0.saturating_sub(length.0))
    }

    /// The moment `self + length`, or `None` past the end of time.
    pub const fn checked_add(self, length: Duration) -> Option<Instant> {
        match self.0.checked_add(length.0) {
            Some(nanos) => Some(Instant(nanos)),
            None => None,
        }
    }
}

impl Duration {
    /// The empty duration.
    pub const ZERO: Duration = Duration(0);

    /// `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Duration(nanos)
    }

    /// `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Duration(micros * 1_000)
    }

    /// `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Duration(millis * 1_000_000)
    }

    /// `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Duration(secs * 1_000_000_000)
    }

    /// The nearest whole number of nanoseconds to `millis` milliseconds.
    ///
    /// Published figures are in milliseconds with fractions. `None` if the value is negative, not
    /// finite, or longer than 292 years.
    pub fn from_millis_f64(millis: f64) -> Option<Self> {
        let nanos = (millis * 1e6).round();
        (nanos >= 0.0 && nanos < i64::MAX as f64).then_some(Duration(nanos as u64))
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Milliseconds, for reports only.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 * 1e-6
    }

    /// Seconds, for reports only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Whether the duration is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The difference `self - other`, or zero if it would be negative.
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }

    /// The duration changed by a signed number of nanoseconds, at least zero.
    pub const fn adjusted(self, nanos: i64) -> Duration {
        Duration(self.0.saturating_add_signed(nanos))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, length: Duration) -> Instant {
        Instant(self.0.saturating_add(length.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, length: Duration) {
        *self = *self + length;
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Duration;
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0 - other.0)
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, other: Duration) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, times: u64) -> Duration {
        Duration(self.0.saturating_mul(times))
    }
}

impl std::iter::Sum for Duration {
    fn sum<I: Iterator<Item = Duration>>(lengths: I) -> Duration {
        lengths.fold(Duration::ZERO, Add::add)
    }
}

impl fmt::Display for Duration {
    /// Formats milliseconds, the unit of the papers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ms", self.as_millis_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_milliseconds_become_the_nearest_nanosecond() {
        assert_eq!(
            Duration::from_millis_f64(0.0894),
            Some(Duration::from_nanos(89_400))
        );
        assert_eq!(Duration::from_millis_f64(-0.001), None);
        assert_eq!(Duration::from_millis_f64(f64::NAN), None);
        assert_eq!(Duration::from_millis_f64(f64::INFINITY), None);
    }

    #[test]
    fn adjusting_never_goes_below_zero() {
        let settle = Duration::from_micros(100);
        assert_eq!(settle.adjusted(-200_000), Duration::ZERO);
        assert_eq!(settle.adjusted(-40_000), Duration::from_micros(60));
    }

    #[test]
    fn nothing_is_later_than_the_end_of_time() {
        let end = Instant::from_nanos(u64::MAX);
        assert_eq!(end + Duration::from_nanos(1), end);
        let longest = Duration::from_nanos(u64::MAX);
        assert_eq!(longest + longest, longest);
        assert_eq!(Duration::from_secs(1) * u64::MAX, longest);
    }

    #[test]
    fn since_is_zero_for_a_later_moment() {
        let (early, late) = (Instant::from_nanos(5), Instant::from_nanos(9));
        assert_eq!(late.since(early), Duration::from_nanos(4));
        assert_eq!(early.since(late), Duration::ZERO);
    }
}
