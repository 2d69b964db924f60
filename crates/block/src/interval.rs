//! Consecutive cache blocks with both ends included, or none.
//!
//! [`Extent`](crate::Extent) counts logical blocks of a drive and is never empty. An [`Interval`]
//! counts the blocks of a cache. Prefetchers and coordinators answer with empty ones.

use std::fmt;

/// The blocks `first..=last`; empty if `last < first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    /// The first block.
    pub first: u64,
    /// The last block, itself included.
    pub last: u64,
}

impl Interval {
    /// The empty interval.
    pub const EMPTY: Self = Self { first: 1, last: 0 };

    /// The blocks `first..=last`.
    pub const fn new(first: u64, last: u64) -> Self {
        Self { first, last }
    }

    /// The `count` blocks from `first` on. The interval ends at `u64::MAX` at the latest.
    pub const fn of(first: u64, count: u64) -> Self {
        match count.checked_sub(1) {
            Some(more) => Self::new(first, first.saturating_add(more)),
            None => Self::EMPTY,
        }
    }

    /// Whether the interval has no block.
    pub const fn is_empty(self) -> bool {
        self.last < self.first
    }

    /// The number of blocks.
    pub const fn len(self) -> u64 {
        if self.is_empty() {
            0
        } else {
            (self.last - self.first).saturating_add(1)
        }
    }

    /// Whether the interval contains `block`.
    pub const fn contains(self, block: u64) -> bool {
        self.first <= block && block <= self.last
    }

    /// The part of the interval before `end`.
    pub fn before(self, end: u64) -> Self {
        match end.checked_sub(1) {
            Some(last) if !self.is_empty() => Self::new(self.first, self.last.min(last)),
            _ => Self::EMPTY,
        }
    }

    /// The blocks of both intervals; empty if there are none.
    pub const fn intersection(self, other: Self) -> Self {
        if self.is_empty() || other.is_empty() {
            return Self::EMPTY;
        }
        let first = if self.first < other.first {
            other.first
        } else {
            self.first
        };
        let last = if self.last < other.last {
            self.last
        } else {
            other.last
        };
        Self { first, last }
    }

    /// Whether the intervals have a block in common.
    pub const fn overlaps(self, other: Self) -> bool {
        !self.intersection(other).is_empty()
    }

    /// The blocks in ascending order. The iterator counts, because `first..=last` would test an
    /// exhaustion flag at each step.
    #[inline]
    pub fn blocks(self) -> impl DoubleEndedIterator<Item = u64> + use<> {
        (0..self.len()).map(move |at| self.first + at)
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return write!(to, "[]");
        }
        write!(to, "[{},{}]", self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::Interval;

    #[test]
    fn both_ends_belong_to_it() {
        let run = Interval::of(10, 5);
        assert_eq!(run, Interval::new(10, 14));
        assert_eq!(run.len(), 5);
        assert!(run.contains(10) && run.contains(14) && !run.contains(15));
        assert_eq!(run.blocks().collect::<Vec<_>>(), [10, 11, 12, 13, 14]);
        assert_eq!(run.to_string(), "[10,14]");
    }

    #[test]
    fn the_end_of_the_device_cuts_it() {
        assert_eq!(Interval::of(10, 5).before(12), Interval::new(10, 11));
        assert!(Interval::of(10, 5).before(10).is_empty());
        assert!(Interval::of(10, 5).before(0).is_empty());
        assert_eq!(Interval::of(u64::MAX, 9).len(), 1);
    }

    #[test]
    fn an_intersection_has_the_blocks_of_both() {
        let of = |first: u64, last: u64| Interval::new(first, last);
        let bounds = || (0..4u64).flat_map(|first| (0..4u64).map(move |last| of(first, last)));
        for one in bounds() {
            for other in bounds() {
                let both = one.intersection(other);
                for block in 0..5 {
                    let is_in_both = one.contains(block) && other.contains(block);
                    assert_eq!(both.contains(block), is_in_both, "{one} {other} {block}");
                }
                let is_any = (0..5).any(|block| both.contains(block));
                assert_eq!(one.overlaps(other), is_any, "{one} {other}");
            }
        }
    }

    #[test]
    fn none_is_none() {
        assert!(Interval::of(7, 0).is_empty());
        assert_eq!(Interval::EMPTY.len(), 0);
        assert_eq!(Interval::EMPTY.blocks().count(), 0);
        assert!(!Interval::EMPTY.contains(0) && !Interval::EMPTY.contains(1));
        assert_eq!(Interval::EMPTY.to_string(), "[]");
    }
}
