//! The memory that a coordinator occupies, counted honestly.

use std::ops::Add;

/// Bytes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// What the rule itself is about: block numbers of eight bytes, as many as its queues hold.
    pub rule: usize,
    /// What finds them and keeps them in order, and everything else.
    pub beyond: usize,
}

impl Add for Footprint {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Footprint {
            rule: self.rule + other.rule,
            beyond: self.beyond + other.beyond,
        }
    }
}
