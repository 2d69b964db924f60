//! When a block has to be read only to see where the platter is.
//!
//! ```text
//!   anchor          anchor               anchor                          due
//!     |-- passed --->|                     |------- interval ------------>|
//!                    off by `error`: the next interval is longer the smaller it is
//! ```
//!
//! Yu et al. 2000 read every one to two minutes. A spindle that wanders more than theirs, or whose
//! period was last seen over short intervals only, needs it more often: the interval follows the
//! errors.

use block::{Duration, Instant};

/// How often the platter is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Calibration {
    /// From the last anchor to the next, at most.
    interval: Duration,
    /// When a read was last given.
    asked: Option<Instant>,
    /// Reads since the last anchor.
    unanswered: u32,
}

/// No longer than that. Yu et al. 2000: one to two minutes.
pub(super) const LONGEST: Duration = Duration::from_secs(60);

/// No shorter while the phase is as good as it should be. A choice: between the requests of a slow
/// client there is no read. The period of a clock that follows a busy drive is good to some parts
/// per million, which is far less than 1 % of a revolution in a second.
const SHORTEST: Duration = Duration::from_secs(1);

/// No shorter in any case. A choice: a spindle that has come to be 0.3 % off turns 2.5 % of a
/// revolution of 6 ms too far, which is less than a clock doubts.
const URGENT: Duration = Duration::from_millis(50);

/// The error that an interval aims at, in revolutions. A choice: less than half of the 1 % that is
/// promised, because half of an error that came by chance is taken for the period's.
const AIM: f64 = 0.004;

/// The error up to which the phase is as good as it should be (Yu et al. 2000).
const GOOD: f64 = 0.01;

/// An interval is at least and at most so many times the one before. A choice: one odd error does not
/// decide, and one small error by chance less.
const STEPS: (f64, f64) = (0.5, 1.2);

impl Calibration {
    pub(super) fn new() -> Self {
        Calibration {
            interval: SHORTEST,
            asked: None,
            unanswered: 0,
        }
    }

    /// When a read is due, if the last anchor was at `anchored`.
    ///
    /// What brought no anchor is repeated after twice as long each time: a drive whose answers tell
    /// nothing is asked once a minute.
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

    /// A read is given to the drive.
    pub(super) fn ask(&mut self, now: Instant) {
        self.asked = Some(now);
        self.unanswered += 1;
    }

    /// `passed` after the anchor before there was another one, which was off by `error`.
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
