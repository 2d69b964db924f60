//! What waiting and head time are worth to each other.
//!
//! Whoever arrives while the drive holds a command that takes `T` waits half of it in the mean, and
//! arrives in it with the chance `rate * T`: the command costs `rate * T^2 / 2` of others' waiting.
//! Cutting it, or beginning it later, saves some of that, and may cost head time. The exchange rate
//! between the two is a constant, [`WEIGHT`].

use block::{Duration, Instant};

use crate::ordering::PriorityLevel;

/// How often requests of each level come, and what follows from it.
#[derive(Clone, Debug)]
pub struct Worth {
    /// Arrivals by level; all are halved at the end of each window.
    arrived: [u64; PriorityLevel::COUNT],
    /// When the window began.
    began: Instant,
}

impl Worth {
    /// Nothing has arrived yet.
    pub fn new() -> Self {
        Worth {
            arrived: [0; PriorityLevel::COUNT],
            began: Instant::ZERO,
        }
    }

    /// A request of this level has arrived.
    pub fn arrived(&mut self, now: Instant, level: PriorityLevel) {
        let windows = now.since(self.began).as_nanos() / WINDOW.as_nanos();
        if windows > 0 {
            self.began += WINDOW * windows;
            let shift = windows.min(63);
            self.arrived.iter_mut().for_each(|count| *count >>= shift);
        }
        self.arrived[level.index()] += 1;
    }

    /// How many requests a second were more urgent than those of this level, in the mean over the last
    /// windows.
    fn seen(&self, level: PriorityLevel) -> u64 {
        let before: u64 = self.arrived[..level.index()].iter().sum();
        // Halved windows add up to less than two of them.
        before * NANOS / (2 * WINDOW.as_nanos())
    }

    /// The same; at least [`FORESEEN`] for all but the two most urgent levels.
    pub fn rate(&self, level: PriorityLevel) -> u64 {
        let seen = self.seen(level);
        match level.index() {
            0 | 1 => seen,
            _ => seen.max(FORESEEN),
        }
    }

    /// For how long those that are more urgent wait, in the mean, for a command of this level that holds
    /// the drive for `held`: of those that come, not of those that are foreseen. In nanoseconds, as a
    /// fraction.
    pub fn waiting(&self, level: PriorityLevel, held: Duration) -> f64 {
        let held = held.as_nanos() as f64 / NANOS as f64;
        self.seen(level) as f64 * held * held / 2.0 * NANOS as f64
    }

    /// What a command of this level that holds the drive for `held` costs those that are more urgent,
    /// in nanoseconds of head time.
    pub fn cost(&self, level: PriorityLevel, held: Duration) -> u64 {
        let held = u128::from(held.as_nanos());
        let waited = u128::from(self.rate(level)) * held * held / (2 * u128::from(NANOS));
        u64::try_from(waited)
            .unwrap_or(u64::MAX)
            .saturating_mul(WEIGHT)
    }

    /// What another nanosecond of such a command costs, in billionths of a nanosecond of head time.
    pub fn slope(&self, level: PriorityLevel, held: Duration) -> u64 {
        self.rate(level)
            .saturating_mul(held.as_nanos())
            .saturating_mul(WEIGHT)
    }

    /// Whether it is worth a way back of `back` that something more urgent need not wait for `left`.
    pub fn is_worth_stepping_aside(left: Duration, back: Duration) -> bool {
        left.as_nanos().saturating_mul(WEIGHT) > back.as_nanos()
    }
}

impl Default for Worth {
    fn default() -> Self {
        Worth::new()
    }
}

/// What a nanosecond of waiting of something urgent is worth, in nanoseconds of head time. A choice: with
/// it a transfer steps aside if more than a third of the extra way is left of it; 4 ms on the drive of
/// the paper, where a prototype found that it does not pay below 6 (../shared/specs/scheduling.md, 7),
/// but did not go on while the urgent one waits for its sector.
pub const WEIGHT: u64 = 3;

/// Urgent requests a second that are reckoned with where fewer came. A choice: the most that the paper
/// measures with; whoever marks a request as less urgent expects others.
pub const FORESEEN: u64 = 20;

/// A choice: some seconds, so that tens of arrivals at the least rate count.
const WINDOW: Duration = Duration::from_secs(4);

/// In a second.
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
        // About 50 a second arrive in 20 ms with a chance of 1, and wait 10 ms.
        let waiting = worth.waiting(level(3), held);
        assert!((8e6..=11e6).contains(&waiting), "{waiting}");
        assert_eq!(worth.waiting(level(0), held), 0.0);
    }

    #[test]
    fn two_halves_cost_half_of_the_whole() {
        let worth = Worth::new();
        let whole = worth.cost(level(3), Duration::from_millis(20));
        let half = worth.cost(level(3), Duration::from_millis(10));
        // 20 a second arrive in 20 ms with a chance of 0.4, wait 10 ms, and count thrice.
        assert_eq!(whole, 12_000_000);
        assert_eq!(half * 4, whole);
        let slope = worth.slope(level(3), Duration::from_millis(20));
        assert_eq!(slope, 1_200_000_000);
    }
}
