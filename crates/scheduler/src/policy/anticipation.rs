//! The success rate of idling for a next request, which the idling policies learn.

/// The share of idle periods in which the expected request came, as a decaying average.
#[derive(Clone, Copy, Debug)]
pub struct IdleHistory {
    /// The share of successful idle periods, in parts of [`WHOLE`].
    share: u32,
    /// Opportunities without idling since the last idle period.
    skipped: u32,
}

/// The result of an idle period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleResult {
    /// The request came in time.
    Came,
    /// The request did not come.
    Missed,
}

impl Default for IdleHistory {
    fn default() -> Self {
        IdleHistory {
            share: WHOLE,
            skipped: 0,
        }
    }
}

impl IdleHistory {
    /// Whether to idle now: if at least every other idle period succeeded, and sometimes anyway to
    /// notice a change of the load.
    pub fn should_idle(&mut self) -> bool {
        let takes = self.share * 2 >= WHOLE || self.skipped >= RETRY;
        self.skipped = match takes {
            true => 0,
            false => self.skipped + 1,
        };
        takes
    }

    /// Adds a result to the average.
    pub fn learn(&mut self, result: IdleResult) {
        let new = match result {
            IdleResult::Came => WHOLE,
            IdleResult::Missed => 0,
        };
        self.share = (self.share * 7 + new) / 8;
    }
}

/// One, in the units of a share. As in Linux `as-iosched.c`, whose averages also weigh each new
/// sample by an eighth.
const WHOLE: u32 = 256;

/// Opportunities without idling before one idle period is tried. A choice.
const RETRY: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hope_is_lost_regained_and_never_given_up() {
        let mut history = IdleHistory::default();
        assert!(history.should_idle());
        // Seven eighths to the sixth power are less than a half.
        (0..6).for_each(|_| history.learn(IdleResult::Missed));
        let taken: Vec<bool> = (0..34).map(|_| history.should_idle()).collect();
        assert_eq!(taken.iter().filter(|&&taken| taken).count(), 2);
        assert!(taken[16] && taken[33]);
        (0..6).for_each(|_| history.learn(IdleResult::Came));
        assert!(history.should_idle());
    }
}
