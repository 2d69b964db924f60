//! The clock of a drive's event loop: real time, or stretched real time.
//!
//! With a time scale of 4 a second of the drive's time takes four real seconds. Engine and emulated drive
//! are four times as slow, so the delays of the machine are a quarter as long beside them.

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
}

impl Clock {
    /// A clock that shows zero now.
    pub fn start(scale: TimeScale) -> Self {
        Clock {
            origin: time::Instant::now(),
            scale,
        }
    }

    /// The present time of the drive.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.scale.model(self.origin.elapsed())
    }

    /// The moment of real time at which the clock shows `then`.
    pub fn moment(&self, then: Instant) -> time::Instant {
        // Rounded up, or the loop would wake up just before.
        let real = self.scale.real(then.since(Instant::ZERO)) + time::Duration::from_nanos(1);
        self.origin + real
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
