//! The exchange rate between waiting time and head time.
//!
//! A request that arrives during a command of length `T` waits `T / 2` in the mean, and arrives
//! then with probability `rate * T`. The command costs `rate * T^2 / 2` of others' waiting time.
//! Dividing or delaying it saves some of that and may cost head time. The exchange rate is the
//! constant [`WEIGHT`].

use block::{Duration, Instant};

use crate::ordering::PriorityLevel;

/// The arrival rates of all levels, and the costs that follow from them.
#[derive(Clone, Debug)]
pub struct Worth {
    /// Arrivals by level, halved at the end of each window.
    arrived: [u64; PriorityLevel::COUNT],
    /// The beginning of the window.
    began: Instant,
}

impl Worth {
    /// No arrivals.
    pub fn new() -> Self {
        Worth {
            arrived: [0; PriorityLevel::COUNT],
            began: Instant::ZERO,
        }
    }

    /// Notes the arrival of a request at this level.
    pub fn arrived(&mut self, now: Instant, level: PriorityLevel) {
        let windows = now.since(self.began).as_nanos() / WINDOW.as_nanos();
        if windows > 0 {
            self.began += WINDOW * windows;
            let shift = windows.min(63);
            self.arrived.iter_mut().for_each(|count| *count >>= shift);
        }
        self.arrived[level.index()] += 1;
    }

    /// Requests a second that were more urgent than this level, as a mean over the last windows.
    fn seen(&self, level: PriorityLevel) -> u64 {
        let before: u64 = self.arrived[..level.index()].iter().sum();
        // The sum of halved windows is less than two windows.
        before * NANOS / (2 * WINDOW.as_nanos())
    }

    /// Requests a second that are more urgent than this level; at least [`FORESEEN`] for all but
    /// the two most urgent levels.
    pub fn rate(&self, level: PriorityLevel) -> u64 {
        let seen = self.seen(level);
        match level.index() {
            0 | 1 => seen,
            _ => seen.max(FORESEEN),
        }
    }

    /// The mean waiting time of more urgent requests for a command of this level that holds the
    /// drive for `held`. Only observed arrivals count. The unit is the nanosecond, with fractions.
    pub fn waiting(&self, level: PriorityLevel, held: Duration) -> f64 {
        let held = held.as_nanos() as f64 / NANOS as f64;
        self.seen(level) as f64 * held * held / 2.0 * NANOS as f64
    }

    /// The cost to more urgent requests of a command that holds the drive for `held`, in
    /// nanoseconds of head time.
    pub fn cost(&self, level: PriorityLevel, held: Duration) -> u64 {
        let held = u128::from(held.as_nanos());
        let waited = u128::from(self.rate(level)) * held * held / (2 * u128::from(NANOS));
        u64::try_from(waited)
            .unwrap_or(u64::MAX)
            .saturating_mul(WEIGHT)
    }

    /// The cost of another nanosecond of such a command, in billionths of a nanosecond of head
    /// time.
    pub fn slope(&self, level: PriorityLevel, held: Duration) -> u64 {
        self.rate(level)
            .saturating_mul(held.as_nanos())
            .saturating_mul(WEIGHT)
    }

    /// Whether saving an urgent request the wait `left` is worth the way back `back`.
    pub fn is_worth_stepping_aside(left: Duration, back: Duration) -> bool {
        left.as_nanos().saturating_mul(WEIGHT) > back.as_nanos()
    }
}

impl Default for Worth {
    fn default() -> Self {
        Worth::new()
    }
}

/// The worth of a nanosecond of an urgent request's wait, in nanoseconds of head time. A choice: a
/// transfer steps aside if more than a third of the way back is left of it. That is 4 ms on the
/// paper's drive. A prototype found no gain below 6 ms (../shared/specs/scheduling.md, 7), but did
/// not fill the rotational latency.
pub const WEIGHT: u64 = 3;

/// The least expected rate of urgent requests, per second. A choice: the largest rate that the
/// paper measures; a request that is marked less urgent expects others.
pub const FORESEEN: u64 = 20;

/// A choice: some seconds, so that tens of arrivals count at the least rate.
const WINDOW: Duration = Duration::from_secs(4);

/// Nanoseconds in a second.
const NANOS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use block::Class;

    fn level(priority: u8) -> PriorityLevel {
        PriorityLevel::of(Class::BestEffort(priority)).expect("a level")
    }

    #[test]
    fn the_rate_is_that_of_what_is_more_urgent() {
        let mut worth = Worth::new();
        for milli in (0..60_000).step_by(20) {
            worth.arrived(Instant::from_nanos(milli * 1_000_000), level(0));
            worth.arrived(Instant::from_nanos(milli * 1_000_000), level(3));
        }
        let rates = [0, 1, 3, 4].map(|priority| worth.rate(level(priority)));
        assert_eq!(rates[0], 0);
        assert!((40..=55).contains(&rates[1]), "{rates:?}");
        assert_eq!(rates[1], rates[2]);
        assert!((80..=110).contains(&rates[3]), "{rates:?}");
    }

    #[test]
    fn what_no_longer_comes_is_forgotten() {
        let mut worth = Worth::new();
        for _ in 0..1000 {
            worth.arrived(Instant::ZERO, level(0));
        }
        worth.arrived(Instant::ZERO + Duration::from_secs(60), level(6));
        assert_eq!(worth.rate(level(3)), FORESEEN);
    }

    #[test]
    fn only_those_that_come_wait() {
        let mut worth = Worth::new();
        let held = Duration::from_millis(20);
        assert_eq!(worth.waiting(level(3), held), 0.0);
        for milli in (0..60_000).step_by(20) {
            worth.arrived(Instant::from_nanos(milli * 1_000_000), level(0));
        }
        // About 50 a second arrive in 20 ms with probability 1, and wait 10 ms.
        let waiting = worth.waiting(level(3), held);
        assert!((8e6..=11e6).contains(&waiting), "{waiting}");
        assert_eq!(worth.waiting(level(0), held), 0.0);
    }

    #[test]
    fn two_halves_cost_half_of_the_whole() {
        let worth = Worth::new();
        let whole = worth.cost(level(3), Duration::from_millis(20));
        let half = worth.cost(level(3), Duration::from_millis(10));
        // 20 a second arrive in 20 ms with probability 0.4, wait 10 ms, and count threefold.
        assert_eq!(whole, 12_000_000);
        assert_eq!(half * 4, whole);
        let slope = worth.slope(level(3), Duration::from_millis(20));
        assert_eq!(slope, 1_200_000_000);
    }
}
