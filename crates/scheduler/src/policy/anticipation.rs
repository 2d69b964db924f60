//! Whether idling for a request that may come is worth it: what the policies that idle learn.

/// How often a request came while it was waited for, as an average that forgets.
#[derive(Clone, Copy, Debug)]
pub struct Hope {
    /// Of [`WHOLE`]: the share of occasions on which it came.
    share: u32,
    /// Occasions that were let go by since the last one that was taken.
    let_go: u32,
}

/// What came of an occasion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The request came in time.
    Came,
    /// It did not.
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
    /// Whether to idle on this occasion: if it was right at least every other time, and now and
    /// then anyway, so that a change of the load is noticed.
    pub fn takes_occasion(&mut self) -> bool {
        let takes = self.share * 2 >= WHOLE || self.let_go >= RETRY;
        self.let_go = match takes {
            true => 0,
            false => self.let_go + 1,
        };
        takes
    }

    /// Learns what came of an occasion.
    pub fn learn(&mut self, occasion: Occasion) {
        let new = match occasion {
            Occasion::Came => WHOLE,
            Occasion::Missed => 0,
        };
        self.share = (self.share * 7 + new) / 8;
    }
}

/// One, in the units of a share: as in Linux `as-iosched.c`, whose averages also take an eighth of
/// each new sample.
const WHOLE: u32 = 256;

/// After so many occasions let go by, one is taken: a choice.
const RETRY: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hope_is_lost_regained_and_never_given_up() {
        let mut hope = Hope::default();
        assert!(hope.takes_occasion());
        // Seven eighths to the sixth are less than a half.
        (0..6).for_each(|_| hope.learn(Occasion::Missed));
        let taken: Vec<bool> = (0..34).map(|_| hope.takes_occasion()).collect();
        assert_eq!(taken.iter().filter(|&&taken| taken).count(), 2);
        assert!(taken[16] && taken[33]);
        (0..6).for_each(|_| hope.learn(Occasion::Came));
        assert!(hope.takes_occasion());
    }
}
