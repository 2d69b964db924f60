//! The schedule of calibration reads, which only show the position of the platter.
//!
//! ```text
//!   anchor          anchor               anchor                          due
//!     |-- passed --->|                     |------- interval ------------>|
//!                    off by `error`: the next interval is longer the smaller it is
//! ```
//!
//! Yu et al. 2000 read every one to two minutes. A spindle with more drift, or one whose period was
//! last observed over short intervals only, needs more: the interval adapts to the errors.

use block::{Duration, Instant};

/// The schedule of calibration reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Calibration {
    /// Maximum time from the last anchor to the next.
    interval: Duration,
    /// The dispatch of the last read.
    asked: Option<Instant>,
    /// Number of reads since the last anchor.
    unanswered: u32,
}

/// Maximum interval. Yu et al. 2000: one to two minutes.
pub(super) const LONGEST: Duration = Duration::from_secs(60);

/// Minimum interval while the phase is accurate. A choice: no reads between the requests of a slow
/// client. The clock of a busy drive knows the period to some parts per million, far less than 1 %
/// of a revolution in a second.
const SHORTEST: Duration = Duration::from_secs(1);

/// Minimum interval in any case. A choice: a spindle that is 0.3 % off turns 2.5 % of a revolution
/// of 6 ms too far, below the limit at which a clock rejects an anchor.
const URGENT: Duration = Duration::from_millis(50);

/// The target error of an interval, in revolutions. A choice: less than half of the promised 1 %,
/// because half of a random error is attributed to the period.
const AIM: f64 = 0.004;

/// Maximum error of an accurate phase (Yu et al. 2000).
const GOOD: f64 = 0.01;

/// Minimum and maximum ratio of consecutive intervals. A choice: one outlier has limited effect,
/// and one small error by chance even less.
const STEPS: (f64, f64) = (0.5, 1.2);

impl Calibration {
    pub(super) fn new() -> Self {
        Calibration {
            interval: SHORTEST,
            asked: None,
            unanswered: 0,
        }
    }

    /// The time at which a read is due, if the last anchor was at `anchored`.
    ///
    /// The interval doubles after each read without an anchor: a drive with uninformative answers
    /// gets one read per minute.
    pub(super) fn due(&self, anchored: Instant) -> Instant {
        let due = anchored + self.interval;
        match self.asked {
            Some(asked) if self.unanswered > 0 => {
                let patience = URGENT * (1 << (self.unanswered - 1).min(16));
                due.max(asked + patience.min(LONGEST))
            }
            _ => due,
        }
    }

    /// Records the dispatch of a read.
    pub(super) fn ask(&mut self, now: Instant) {
        self.asked = Some(now);
        self.unanswered += 1;
    }

    /// Records an anchor `passed` after the previous one, with an error of `error` revolutions.
    pub(super) fn anchored(&mut self, passed: Duration, error: f64) {
        self.unanswered = 0;
        let times = (AIM / error.abs().max(f64::MIN_POSITIVE)).clamp(STEPS.0, STEPS.1);
        let next = Duration::from_nanos((passed.as_nanos() as f64 * times) as u64);
        let shortest = if error.abs() <= GOOD {
            SHORTEST
        } else {
            URGENT
        };
        self.interval = next.clamp(shortest, LONGEST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_follows_the_errors() {
        let mut calibration = Calibration::new();
        let mut at = Instant::ZERO;
        let mut anchored = |error: f64| {
            let due = calibration.due(at);
            let passed = due.since(at);
            at = due;
            calibration.anchored(passed, error);
            passed
        };
        let calm: Vec<Duration> = (0..30).map(|_| anchored(0.001)).collect();
        assert_eq!(calm[0], SHORTEST);
        assert_eq!(calm[29], LONGEST);
        anchored(0.012);
        assert!(anchored(0.02) < LONGEST);
        let wild: Vec<Duration> = (0..20).map(|_| anchored(0.02)).collect();
        assert_eq!(wild[19], URGENT);
    }

    #[test]
    fn a_drive_that_tells_nothing_is_asked_once_a_minute() {
        let mut calibration = Calibration::new();
        let mut reads = 0;
        let mut due = calibration.due(Instant::ZERO);
        while due < Instant::ZERO + Duration::from_secs(3600) {
            calibration.ask(due);
            let next = calibration.due(Instant::ZERO);
            assert!(next > due);
            due = next;
            reads += 1;
        }
        assert!((60..=72).contains(&reads), "{reads}");
    }
}
