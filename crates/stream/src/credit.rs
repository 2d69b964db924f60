//! Credit: by how much the scheduler's playout point may move.
//!
//! It accrues at the stream's rate and is spent when a batch is frozen. What is not spent is kept
//! only up to what the host may notice late and the part of a page that was
//! due, so that a stream that paused is never owed more than
//! a round and that: no burst of real-time reads surprises the others (ABISS, 3.3).

use block::{Duration, Instant};

use crate::rate::{Rate, SECOND};

/// The credit of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    rate: Rate,
    /// Billionths of a byte, so that nothing is rounded away.
    owed: u128,
    /// What may be kept.
    kept: u128,
    /// When it accrued last.
    at: Instant,
}

impl Credit {
    /// None at `now`; kept up to what passes within `latency`, and a page of so many bytes, of which
    /// only whole ones are spent.
    pub fn new(now: Instant, rate: Rate, latency: Duration, page: u64) -> Self {
        Credit {
            rate,
            owed: 0,
            kept: u128::from(rate.bytes()) * u128::from(latency.as_nanos())
                + u128::from(page) * u128::from(SECOND),
            at: now,
        }
    }

    /// The same with so many bytes that may be spent at once: the part of its first page that a
    /// playout point has behind it.
    pub fn owing(self, bytes: u64) -> Self {
        Credit {
            owed: u128::from(bytes) * u128::from(SECOND),
            ..self
        }
    }

    /// Whole bytes that may be spent at `now`.
    pub fn accrue(&mut self, now: Instant) -> u64 {
        let passed = now.since(self.at);
        self.owed += u128::from(self.rate.bytes()) * u128::from(passed.as_nanos());
        self.at = self.at.max(now);
        u64::try_from(self.owed / u128::from(SECOND)).unwrap_or(u64::MAX)
    }

    /// Spends `bytes` of them and forgets what may not be kept.
    pub fn spend(&mut self, bytes: u64) {
        let spent = u128::from(bytes) * u128::from(SECOND);
        self.owed = self.owed.saturating_sub(spent).min(self.kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_not_saved_up_and_nothing_is_rounded_away() {
        let rate = Rate::new(3).expect("not zero");
        let second = |s: u64| Instant::ZERO + Duration::from_millis(s * 500);
        let mut credit = Credit::new(Instant::ZERO, rate, Duration::from_secs(1), 2);
        assert_eq!(credit.accrue(second(1)), 1);
        credit.spend(1);
        assert_eq!(credit.accrue(second(2)), 2, "half a byte was kept");
        credit.spend(2);
        assert_eq!(credit.accrue(second(20)), 27);
        credit.spend(0);
        assert_eq!(credit.accrue(second(20)), 5, "a second's and a page");
    }
}
