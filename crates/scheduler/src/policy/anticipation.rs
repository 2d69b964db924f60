//! The success rate of idling for a next request, which the idling policies learn.

/// The share of idle periods in which the expected request came, as a decaying average.
#[derive(Clone, Copy, Debug)]
pub struct Hope {
    /// The share of successful idle periods, in parts of [`WHOLE`].
    share: u32,
    /// Opportunities without idling since the last idle period.
    let_go: u32,
}

/// The result of an idle period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The request came in time.
    Came,
    /// The request did not come.
    Missed,
}

impl Default for Hope {
    fn default() -> Self {
        Hope {
            share: WHOLE,
            let_go: 0,
        }
    }
}

impl Hope {
    /// Whether to idle now: if at least every other idle period succeeded, and sometimes anyway to
    /// notice a change of the load.
    pub fn takes_occasion(&mut self) -> bool {
        let takes = self.share * 2 >= WHOLE || self.let_go >= RETRY;
        self.let_go = match takes {
            true => 0,
            false => self.let_go + 1,
        };
        takes
    }

    /// Adds a result to the average.
    pub fn learn(&mut self, occasion: Occasion) {
        let new = match occasion {
            Occasion::Came => WHOLE,
            Occasion::Missed => 0,
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
        let mut hope = Hope::default();
        assert!(hope.takes_occasion());
        // Seven eighths to the sixth power are less than a half.
        (0..6).for_each(|_| hope.learn(Occasion::Missed));
        let taken: Vec<bool> = (0..34).map(|_| hope.takes_occasion()).collect();
        assert_eq!(taken.iter().filter(|&&taken| taken).count(), 2);
        assert!(taken[16] && taken[33]);
        (0..6).for_each(|_| hope.learn(Occasion::Came));
        assert!(hope.takes_occasion());
    }
}
