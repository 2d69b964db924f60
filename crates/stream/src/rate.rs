//! A rate: bytes in a second, never zero.

use std::fmt;
use std::num::NonZeroU64;

use block::Duration;

/// Bytes in a second. Products are rounded the way that their name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(NonZeroU64);

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;

impl Rate {
    /// One byte in a second.
    pub const MIN: Rate = Rate(NonZeroU64::MIN);

    /// So many bytes in a second; `None` for no bytes at all.
    pub const fn new(bytes: u64) -> Option<Rate> {
        match NonZeroU64::new(bytes) {
            Some(bytes) => Some(Rate(bytes)),
            None => None,
        }
    }

    /// Bytes in a second.
    pub const fn bytes(self) -> u64 {
        self.0.get()
    }

    /// Whole bytes that pass in `length`: what has surely passed.
    pub fn bytes_within(self, length: Duration) -> u64 {
        let bytes = u128::from(self.bytes()) * u128::from(length.as_nanos()) / u128::from(SECOND);
        narrow(bytes)
    }

    /// Bytes of which none is left over after `length`: the next whole number above.
    pub fn bytes_until(self, length: Duration) -> u64 {
        let passed = u128::from(self.bytes()) * u128::from(length.as_nanos());
        narrow(passed.div_ceil(u128::from(SECOND)))
    }

    /// How long `bytes` take at least: rounded down.
    pub fn at_least(self, bytes: u64) -> Duration {
        let nanos = u128::from(bytes) * u128::from(SECOND) / u128::from(self.bytes());
        Duration::from_nanos(narrow(nanos))
    }

    /// How long `bytes` take at most: rounded up.
    pub fn at_most(self, bytes: u64) -> Duration {
        let nanos = u128::from(bytes) * u128::from(SECOND);
        Duration::from_nanos(narrow(nanos.div_ceil(u128::from(self.bytes()))))
    }

    /// The share of a medium of rate `of` that this takes, in billionths, rounded up.
    pub fn share_of(self, of: Rate) -> u64 {
        let share = u128::from(self.bytes()) * u128::from(SECOND);
        narrow(share.div_ceil(u128::from(of.bytes())))
    }
}

impl fmt::Display for Rate {
    /// Megabytes (10^6 bytes) in a second, as the field writes them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} MB/s", self.bytes() as f64 * 1e-6)
    }
}

/// The number, or the largest one of 64 bits.
fn narrow(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_rounded_as_they_say() {
        let third = Rate::new(3).expect("not zero");
        assert_eq!(third.bytes_within(Duration::from_millis(500)), 1);
        assert_eq!(third.bytes_until(Duration::from_millis(500)), 2);
        assert_eq!(third.at_least(1), Duration::from_nanos(333_333_333));
        assert_eq!(third.at_most(1), Duration::from_nanos(333_333_334));
        assert_eq!(Rate::new(0), None);
    }

    #[test]
    fn nothing_overflows() {
        let fastest = Rate::new(u64::MAX).expect("not zero");
        let slowest = Rate::new(1).expect("not zero");
        let always = Duration::from_nanos(u64::MAX);
        assert_eq!(fastest.bytes_until(always), u64::MAX);
        assert_eq!(slowest.at_most(u64::MAX), always);
        assert_eq!(fastest.share_of(slowest), u64::MAX);
    }
}
