//! Whether far more requests wait than usual: a burst.
//!
//! ```text
//!   waiting    1  2  1  3  2  9  40 180 ..     octaves of it, not requests: a burst of thousands
//!   usual      . . . . . . . . . . . . . .     moves their mean by one or two
//!   a crowd                 no    yes yes ..   four times as many as usual
//! ```
//!
//! What is done in a burst is felt by all that stand behind it, and whose turn it was is chance: a burst says
//! nothing of the arms, and a trial in it may cost more than all others together. So nothing is tried in a crowd;
//! what lasts becomes usual, and is none. (That nobody coordinates in a crowd was tried: it cost WebSearch
//! two points.) An answer comes too late to tell: a burst is asked before it is answered, so requests are
//! counted as they come.

/// Counts who waits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crowd {
    /// Requests that came and were not answered.
    open: u32,
    /// The mean of its octaves, when a request came, in parts of [`FINE`].
    usual: i64,
    /// Requests that came, as far as they count.
    came: i64,
}

/// Octaves above the usual that are a crowd. A choice: four times as many.
const OCTAVES: i64 = 2;

/// Fewer than so many are no crowd. A choice: half a queue of SATA.
const FEW: u32 = 16;

/// What is usual follows the last so many. A choice: longer than most bursts.
const REQUESTS: i64 = 4096;

const FINE: i64 = 1 << 16;

impl Crowd {
    /// A request comes.
    pub(super) fn comes(&mut self) {
        let away = self.octaves() - self.usual;
        self.usual += match self.came < REQUESTS {
            true => {
                self.came += 1;
                away / self.came
            }
            false => away / REQUESTS,
        };
        self.open = self.open.saturating_add(1);
    }

    /// A request was answered.
    pub(super) fn goes(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// Whether there is a crowd.
    pub(super) fn is_here(&self) -> bool {
        self.open >= FEW && self.octaves() > self.usual + OCTAVES * FINE
    }

    fn octaves(&self) -> i64 {
        i64::from(self.open.saturating_add(1).ilog2()) * FINE
    }
}

#[cfg(test)]
mod tests {
    use super::{Crowd, FEW};

    /// So many come and go, while so many wait.
    fn usually(crowd: &mut Crowd, waiting: u32, requests: u32) {
        (0..waiting).for_each(|_| crowd.comes());
        for _ in 0..requests {
            crowd.comes();
            crowd.goes();
        }
        (0..waiting).for_each(|_| crowd.goes());
    }

    #[test]
    fn a_burst_is_a_crowd_from_its_first_requests_to_its_last() {
        let mut crowd = Crowd::default();
        usually(&mut crowd, 3, 10_000);
        let mut first = None;
        for waiting in 0..5_000 {
            first = first.or(crowd.is_here().then_some(waiting));
            assert_eq!(crowd.is_here(), first.is_some(), "{waiting}");
            crowd.comes();
        }
        assert_eq!(first, Some(FEW));
        (0..1_000).for_each(|_| crowd.goes());
        assert!(crowd.is_here());
        (0..3_990).for_each(|_| crowd.goes());
        assert!(!crowd.is_here());
    }

    #[test]
    fn who_always_waits_in_a_long_queue_is_no_crowd() {
        let mut crowd = Crowd::default();
        usually(&mut crowd, 200, 10_000);
        (0..400).for_each(|_| crowd.comes());
        assert!(!crowd.is_here());
        (0..2000).for_each(|_| crowd.comes());
        assert!(crowd.is_here());
        // What lasts becomes usual.
        usually(&mut crowd, 0, 10_000);
        assert!(!crowd.is_here());
    }

    #[test]
    fn answers_too_many_are_survived() {
        let mut crowd = Crowd::default();
        crowd.goes();
        crowd.comes();
        assert!(!crowd.is_here());
    }
}
