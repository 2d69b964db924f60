//! One request of a trace.

use super::MAX_REQUEST_BYTES;
use block::{Direction, Duration, Extent, Instant, Lba, Owner, Sectors};
use std::num::NonZeroU64;

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The time of arrival since the start of the trace.
    pub at: Instant,
    /// The device; the reader has its name.
    pub device: DeviceIndex,
    /// Read or write.
    pub direction: Direction,
    /// The bytes of the device.
    pub bytes: ByteRange,
    /// The process, if the format has it. Formats that are written have none.
    pub owner: Owner,
    /// Measurements on a real drive, if the format has them.
    pub measured: Option<MeasuredService>,
}

/// A device of one trace: its index in order of first appearance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceIndex(pub(super) u16);

impl DeviceIndex {
    /// The index, from zero.
    pub fn place(self) -> usize {
        usize::from(self.0)
    }
}

/// A byte range of a device: never empty, not longer than [`MAX_REQUEST_BYTES`], with a 64-bit end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteRange {
    offset: u64,
    length: u64,
}

/// The error of an invalid byte range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// The range is empty.
    #[error("a request of zero bytes")]
    Empty,
    /// The range is longer than [`MAX_REQUEST_BYTES`].
    #[error("a request of more than {MAX_REQUEST_BYTES} bytes")]
    TooLong,
    /// The end exceeds 64 bits.
    #[error("a request past the last 64-bit address")]
    PastEnd,
}

impl ByteRange {
    /// The `length` bytes from `offset`.
    ///
    /// # Errors
    /// If the range is empty, too long, or ends past the last 64-bit address.
    pub const fn new(offset: u64, length: u64) -> Result<Self, RangeError> {
        if length == 0 {
            return Err(RangeError::Empty);
        }
        if length > MAX_REQUEST_BYTES {
            return Err(RangeError::TooLong);
        }
        if offset.checked_add(length).is_none() {
            return Err(RangeError::PastEnd);
        }
        Ok(ByteRange { offset, length })
    }

    /// The first byte.
    pub const fn offset(self) -> u64 {
        self.offset
    }

    /// Number of bytes.
    pub const fn length(self) -> u64 {
        self.length
    }

    /// The byte after the last one.
    pub const fn end(self) -> u64 {
        self.offset + self.length
    }

    /// The smallest extent of blocks of `block_bytes` bytes that contains the range.
    pub fn blocks(self, block_bytes: NonZeroU64) -> Extent {
        let first = self.offset / block_bytes;
        let last = (self.end() - 1) / block_bytes;
        Extent::new(Lba(first), Sectors(last - first + 1))
            .expect("the end of the range is a 64-bit number, so the end of its blocks is one")
    }
}

/// Measurements on the real drive that served the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredService {
    /// Time from issue to completion.
    pub service: Duration,
    /// Time from completion to the issue of the next request.
    pub think: Duration,
    /// The action of the drive's buffer, as seen on the bus.
    pub cache: CacheAction,
}

/// The action of the buffer of a measured drive. Meaningful for the HP C2247A; always `Hit` for
/// other drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheAction {
    /// Written `Hit`.
    Hit,
    /// Written `Miss`.
    Miss,
    /// Written `Doub`.
    Double,
    /// Written `Trip`.
    Triple,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_neither_empty_nor_endless() {
        assert_eq!(ByteRange::new(9, 0), Err(RangeError::Empty));
        assert_eq!(
            ByteRange::new(0, MAX_REQUEST_BYTES + 1),
            Err(RangeError::TooLong)
        );
        assert_eq!(ByteRange::new(u64::MAX, 1), Err(RangeError::PastEnd));
        assert!(ByteRange::new(u64::MAX - 1, 1).is_ok());
    }

    #[test]
    fn blocks_cover_the_bytes() {
        let block = NonZeroU64::new(512).expect("not zero");
        for (offset, length, first, count) in [
            (0, 1, 0, 1),
            (0, 512, 0, 1),
            (511, 2, 0, 2),
            (1024, 1025, 2, 3),
        ] {
            let extent = ByteRange::new(offset, length).expect("valid").blocks(block);
            assert_eq!(
                (extent.start(), extent.length()),
                (Lba(first), Sectors(count))
            );
        }
        let one = NonZeroU64::new(1).expect("not zero");
        let last = ByteRange::new(u64::MAX - 1, 1).expect("valid").blocks(one);
        assert_eq!(last.start(), Lba(u64::MAX - 1));
    }
}
