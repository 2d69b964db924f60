//! Addresses of logical blocks, counts of blocks, and extents.

use std::fmt;

/// The number of a logical block of a drive (LBN). The drive sets the block's size: 512 or 4096
/// bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Lba(pub u64);

/// A number of logical blocks. The type differs from [`Lba`], so that the two cannot be swapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Sectors(pub u64);

/// Consecutive logical blocks. An extent is never empty and ends within 64-bit block numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "(Lba, Sectors)", into = "(Lba, Sectors)")
)]
pub struct Extent {
    start: Lba,
    length: Sectors,
}

/// The reason that a start and a length are no extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtentError {
    /// The length is zero.
    #[error("an extent of zero blocks at {0}: expected at least one")]
    Empty(Lba),
    /// The end is not a 64-bit number.
    #[error("{1} blocks from {0} run past the largest block number")]
    Overflow(Lba, u64),
}

impl Extent {
    /// The extent of `length` blocks from `start` on.
    ///
    /// # Errors
    /// If the extent would be empty, or its end is not a 64-bit number.
    pub const fn new(start: Lba, length: Sectors) -> Result<Self, ExtentError> {
        if length.0 == 0 {
            return Err(ExtentError::Empty(start));
        }
        if start.0.checked_add(length.0).is_none() {
            return Err(ExtentError::Overflow(start, length.0));
        }
        Ok(Extent { start, length })
    }

    /// The extent of the one block at `lba`.
    pub const fn block(lba: Lba) -> Self {
        Extent {
            start: lba,
            length: Sectors(1),
        }
    }

    /// The first block.
    pub const fn start(self) -> Lba {
        self.start
    }

    /// The number of blocks.
    pub const fn length(self) -> Sectors {
        self.length
    }

    /// The block after the last block.
    pub const fn end(self) -> Lba {
        Lba(self.start.0.saturating_add(self.length.0))
    }

    /// The last block.
    pub const fn last(self) -> Lba {
        Lba(self.start.0 + (self.length.0 - 1))
    }

    /// Whether the extent contains `lba`.
    pub const fn contains(self, lba: Lba) -> bool {
        self.start.0 <= lba.0 && lba.0 < self.end().0
    }

    /// Whether the two extents have a block in common.
    pub const fn overlaps(self, other: Extent) -> bool {
        // Without a branch for each: which of two places is first is not predictable.
        (self.start.0 < other.end().0) & (other.start.0 < self.end().0)
    }

    /// The blocks that both extents have, if any.
    pub fn intersection(self, other: Extent) -> Option<Extent> {
        let start = self.start.max(other.start);
        let end = self.end().min(other.end());
        (start < end).then(|| Extent {
            start,
            length: Sectors(end.0 - start.0),
        })
    }
}

impl fmt::Display for Lba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}", self.0)
    }
}

impl TryFrom<(Lba, Sectors)> for Extent {
    type Error = ExtentError;

    fn try_from((start, length): (Lba, Sectors)) -> Result<Self, ExtentError> {
        Extent::new(start, length)
    }
}

impl From<Extent> for (Lba, Sectors) {
    fn from(extent: Extent) -> Self {
        (extent.start, extent.length)
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blocks {}..{}", self.start.0, self.end().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(start: u64, length: u64) -> Extent {
        Extent::new(Lba(start), Sectors(length)).expect("a valid extent")
    }

    #[test]
    fn an_extent_is_never_empty_and_never_overflows() {
        assert_eq!(
            Extent::new(Lba(7), Sectors(0)),
            Err(ExtentError::Empty(Lba(7)))
        );
        assert_eq!(
            Extent::new(Lba(u64::MAX), Sectors(1)),
            Err(ExtentError::Overflow(Lba(u64::MAX), 1))
        );
        assert!(Extent::new(Lba(u64::MAX - 1), Sectors(1)).is_ok());
    }

    #[test]
    fn overlap_is_having_a_block_in_common() {
        for (a, b, common) in [
            (extent(0, 8), extent(8, 8), None),
            (extent(0, 8), extent(7, 8), Some(extent(7, 1))),
            (extent(2, 3), extent(0, 9), Some(extent(2, 3))),
        ] {
            assert_eq!(a.overlaps(b), common.is_some());
            assert_eq!(b.overlaps(a), common.is_some());
            assert_eq!(a.intersection(b), common);
        }
    }
}
