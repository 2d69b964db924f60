//! The clock of a drive's event loop: real time, or stretched real time.
//!
//! With a time scale of 4 a second of the drive's time takes four real seconds. Engine and emulated drive
//! are four times as slow, so the delays of the machine are a quarter as long beside them.
//!
//! A simulation sets the time itself, in virtual nanoseconds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time;

use block::{Duration, Instant};

/// The ratio of real time to the drive's time, in millionths. It is exact and never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeScale(u64);

impl TimeScale {
    /// Real time.
    pub const REAL: TimeScale = TimeScale(MILLION);

    /// The scale nearest to `times`. `None` unless between a thousandth and a thousand.
    pub fn new(times: f64) -> Option<Self> {
        let is_fit = (0.001..=1000.0).contains(&times);
        is_fit.then(|| TimeScale((times * MILLION as f64).round() as u64))
    }

    /// The ratio as a number.
    pub fn times(self) -> f64 {
        self.0 as f64 / MILLION as f64
    }

    /// A duration of the drive's time, in real time.
    pub fn real(self, length: Duration) -> time::Duration {
        let nanos = u128::from(length.as_nanos()) * u128::from(self.0) / u128::from(MILLION);
        time::Duration::from_nanos(nanos.min(u128::from(u64::MAX)) as u64)
    }

    /// A duration of real time, in the drive's time.
    pub fn model(self, length: time::Duration) -> Duration {
        let nanos = length.as_nanos() * u128::from(MILLION) / u128::from(self.0);
        Duration::from_nanos(nanos.min(u128::from(u64::MAX)) as u64)
    }
}

/// The clock of one drive.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: time::Instant,
    scale: TimeScale,
    /// The nanoseconds since the origin, if a simulation sets them.
    set: Option<&'static AtomicU64>,
}

impl Clock {
    /// A clock that shows zero now.
    pub fn start(scale: TimeScale) -> Self {
        Clock {
            origin: time::Instant::now(),
            scale,
            set: None,
        }
    }

    /// A clock that shows the nanoseconds which a simulation sets.
    pub fn simulated(nanos: &'static AtomicU64) -> Self {
        Clock {
            set: Some(nanos),
            ..Clock::start(TimeScale::REAL)
        }
    }

    /// The present time of the drive.
    pub fn now(&self) -> Instant {
        let passed = match self.set {
            None => self.origin.elapsed(),
            Some(nanos) => time::Duration::from_nanos(nanos.load(Ordering::Relaxed)),
        };
        Instant::ZERO + self.scale.model(passed)
    }

    /// The moment of real time at which the clock shows `then`.
    pub fn moment(&self, then: Instant) -> time::Instant {
        // Rounded up, or the loop would wake up just before.
        let real = self.scale.real(then.since(Instant::ZERO)) + time::Duration::from_nanos(1);
        self.origin + real
    }

    /// The time of the drive at a moment of real time, as [`Clock::moment`] gives them.
    pub fn at(&self, moment: time::Instant) -> Instant {
        Instant::ZERO
            + self
                .scale
                .model(moment.saturating_duration_since(self.origin))
    }

    /// The time scale.
    pub fn scale(&self) -> TimeScale {
        self.scale
    }
}

const MILLION: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_clock_shows_what_is_set() {
        static NANOS: AtomicU64 = AtomicU64::new(0);
        let clock = Clock::simulated(&NANOS);
        assert_eq!(clock.now(), Instant::ZERO);
        NANOS.store(5_000, Ordering::Relaxed);
        let then = Instant::ZERO + Duration::from_micros(5);
        assert_eq!(clock.now(), then);
        assert!(clock.at(clock.moment(then)) >= then, "no wakeup is early");
    }

    #[test]
    fn a_scale_stretches_and_shrinks_exactly() {
        let slow = TimeScale::new(4.0).expect("a scale");
        let revolution = Duration::from_micros(8333);
        assert_eq!(slow.real(revolution), time::Duration::from_micros(33_332));
        assert_eq!(slow.model(time::Duration::from_micros(33_332)), revolution);
        let fast = TimeScale::new(0.1).expect("a scale");
        assert_eq!(fast.real(revolution), time::Duration::from_nanos(833_300));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 0.0005, 1001.0] {
            assert_eq!(TimeScale::new(bad), None, "{bad}");
        }
    }
}
