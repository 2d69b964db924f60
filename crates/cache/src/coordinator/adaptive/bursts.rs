//! Detection of bursts: far more requests are outstanding than usual.
//!
//! ```text
//!   outstanding  1  2  1  3  2  9  40 180 ..   the mean is of octaves, not of requests: a burst
//!   usual        . . . . . . . . . . . . . .   of thousands moves it by one or two
//!   burst                     no   yes yes ..  four times as many as usual
//! ```
//!
//! A decision in a burst affects all requests behind it, and the arm in turn is chance. A burst therefore says
//! nothing about the arms, and one trial in it may cost more than all others. There are no trials in a burst. A
//! longer queue that persists becomes usual. (No coordination at all in bursts was tried: it cost WebSearch two
//! points.) Requests are counted at their arrival, because a burst arrives before its first completion.

/// The number of outstanding requests, and its usual value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BurstDetector {
    /// The number of outstanding requests.
    open: u32,
    /// The mean octave at arrivals, in units of 1 / [`FINE`].
    usual: i64,
    /// The number of arrivals, at most [`REQUESTS`].
    arrivals: i64,
}

/// Octaves above the usual at which a burst begins. A choice: four times as many.
const OCTAVES: i64 = 2;

/// The least number of requests in a burst. A choice: half a queue of SATA.
const FEW: u32 = 16;

/// Arrivals in the usual value's average. A choice: longer than most bursts.
const REQUESTS: i64 = 4096;

const FINE: i64 = 1 << 16;

impl BurstDetector {
    /// Notes an arrival.
    pub(super) fn arrive(&mut self) {
        let away = self.octaves() - self.usual;
        self.usual += match self.arrivals < REQUESTS {
            true => {
                self.arrivals += 1;
                away / self.arrivals
            }
            false => away / REQUESTS,
        };
        self.open = self.open.saturating_add(1);
    }

    /// Notes a completion.
    pub(super) fn complete(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// Whether there is a burst.
    pub(super) fn is_burst(&self) -> bool {
        self.open >= FEW && self.octaves() > self.usual + OCTAVES * FINE
    }

    fn octaves(&self) -> i64 {
        i64::from(self.open.saturating_add(1).ilog2()) * FINE
    }
}

#[cfg(test)]
mod tests {
    use super::{BurstDetector, FEW};

    /// So many come and go, while so many wait.
    fn usually(bursts: &mut BurstDetector, waiting: u32, requests: u32) {
        (0..waiting).for_each(|_| bursts.arrive());
        for _ in 0..requests {
            bursts.arrive();
            bursts.complete();
        }
        (0..waiting).for_each(|_| bursts.complete());
    }

    #[test]
    fn a_burst_is_a_crowd_from_its_first_requests_to_its_last() {
        let mut bursts = BurstDetector::default();
        usually(&mut bursts, 3, 10_000);
        let mut first = None;
        for waiting in 0..5_000 {
            first = first.or(bursts.is_burst().then_some(waiting));
            assert_eq!(bursts.is_burst(), first.is_some(), "{waiting}");
            bursts.arrive();
        }
        assert_eq!(first, Some(FEW));
        (0..1_000).for_each(|_| bursts.complete());
        assert!(bursts.is_burst());
        (0..3_990).for_each(|_| bursts.complete());
        assert!(!bursts.is_burst());
    }

    #[test]
    fn who_always_waits_in_a_long_queue_is_no_crowd() {
        let mut bursts = BurstDetector::default();
        usually(&mut bursts, 200, 10_000);
        (0..400).for_each(|_| bursts.arrive());
        assert!(!bursts.is_burst());
        (0..2000).for_each(|_| bursts.arrive());
        assert!(bursts.is_burst());
        // What lasts becomes usual.
        usually(&mut bursts, 0, 10_000);
        assert!(!bursts.is_burst());
    }

    #[test]
    fn answers_too_many_are_survived() {
        let mut bursts = BurstDetector::default();
        bursts.complete();
        bursts.arrive();
        assert!(!bursts.is_burst());
    }
}
