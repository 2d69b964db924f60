//! The complete memory of a coordinator.

use std::ops::Add;

/// The memory of a coordinator in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// The rule's own data: block numbers of eight bytes, as many as its queues hold.
    pub rule: usize,
    /// The index, the order, and everything else.
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
