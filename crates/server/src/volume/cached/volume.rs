//! The place of a cached volume on its drive: blocks of the cache as extents and requests, and back.
//!
//! ```text
//!   drive    | ......... |  block 0  |  block 1  |  ...  | ......... |
//!                      offset           PAGE bytes    offset + length
//! ```

use block::{CommandId, Extent, Interval, Lba, RequestId, Sectors};

use crate::arena::Memory;
use crate::cache_setting::PAGE;

/// The place of a cached volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedVolume {
    /// The first byte on the drive.
    pub offset: u64,
    /// The number of bytes, a multiple of [`PAGE`].
    pub length: u64,
    /// Bytes of the drive's blocks, which divide [`PAGE`].
    pub block_bytes: u32,
    /// The index of the cache in the loop.
    pub number: usize,
    /// An export of the volume, for the accounts of late writes.
    pub export: usize,
}

/// A background read at the drive. A command may have background blocks on both sides of a request: these
/// are two reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackgroundReadId {
    /// The command.
    pub command: CommandId,
    /// The first byte on the drive.
    pub start: u64,
}

/// The reason of a background read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundReadKind {
    /// A task wants the blocks. The cache keeps those that its coordinator wished.
    Task,
    /// They follow a request, and were read in slack that nothing else wanted. The cache keeps them.
    Ahead,
}

/// The bit that marks request ids of caches. Those of operations are indices, and much smaller.
const CACHE_REQUEST: u64 = 1 << 63;

/// The first bit of the cache's index in a request id. A choice: the piece has the lower half.
const NUMBER_SHIFT: u32 = 32;

/// The cache and the piece of a request, if it is a cache's.
pub fn owner(id: RequestId) -> Option<(usize, usize)> {
    let piece = id.0 & ((1 << NUMBER_SHIFT) - 1);
    let number = (id.0 & !CACHE_REQUEST) >> NUMBER_SHIFT;
    (id.0 & CACHE_REQUEST != 0).then_some((number as usize, piece as usize))
}

/// The blocks of the cache that have any of these bytes of the volume.
pub(super) fn blocks_of(start: u64, length: u64) -> Interval {
    match length {
        0 => Interval::EMPTY,
        _ => Interval::new(start / PAGE, (start + length - 1) / PAGE),
    }
}

impl CachedVolume {
    /// The number of blocks.
    pub(super) fn blocks(&self) -> u64 {
        self.length / PAGE
    }

    /// The id of a piece's request.
    pub(super) fn request_id(&self, piece: usize) -> RequestId {
        RequestId(CACHE_REQUEST | (self.number as u64) << NUMBER_SHIFT | piece as u64)
    }

    /// These blocks on the drive.
    pub(super) fn extent_of(&self, blocks: Interval) -> Extent {
        let block = u64::from(self.block_bytes);
        let start = (self.offset + blocks.first * PAGE) / block;
        let length = Sectors(blocks.len() * PAGE / block);
        Extent::new(Lba(start), length).expect("at least one block")
    }

    /// The blocks that lie entirely in `length` bytes from byte `start` of the drive on.
    pub(super) fn whole_blocks(&self, start: u64, length: u64) -> Interval {
        let end = (start + length).min(self.offset + self.length);
        let start = start.max(self.offset);
        if end <= start {
            return Interval::EMPTY;
        }
        let (start, end) = (start - self.offset, end - self.offset);
        let first = start.div_ceil(PAGE);
        Interval::of(first, (end / PAGE).saturating_sub(first))
    }

    /// The memory of these blocks in the bytes of a background read, which has them all.
    pub(super) fn part_of_read(
        &self,
        read: BackgroundReadId,
        memory: Memory,
        blocks: Interval,
    ) -> Memory {
        let before = (self.offset + blocks.first * PAGE - read.start) as usize;
        memory.part(before, (blocks.len() * PAGE) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOLUME: CachedVolume = CachedVolume {
        offset: 8 * PAGE,
        length: 4 * PAGE,
        block_bytes: 512,
        number: 3,
        export: 0,
    };

    #[test]
    fn a_request_id_has_the_cache_and_the_piece() {
        assert_eq!(owner(VOLUME.request_id(77)), Some((3, 77)));
        assert_eq!(owner(RequestId(77)), None);
    }

    /// Every range of sectors, beside a look at each byte's block.
    #[test]
    fn a_whole_block_has_all_its_bytes_in_the_range() {
        let sectors = 12 * PAGE / 512 + 20;
        for first in 0..sectors {
            for end in first..sectors {
                let (from, to) = (first * 512, end * 512);
                let found = VOLUME.whole_blocks(from, to - from);
                for block in 0..6 {
                    let start = VOLUME.offset + block * PAGE;
                    let is_whole = block < 4 && from <= start && start + PAGE <= to;
                    assert_eq!(found.contains(block), is_whole, "{from} {to} {block}");
                }
            }
        }
    }

    #[test]
    fn blocks_of_bytes_are_those_of_the_first_and_the_last() {
        assert_eq!(blocks_of(PAGE - 1, 2), Interval::new(0, 1));
        assert_eq!(blocks_of(PAGE, PAGE), Interval::new(1, 1));
        assert!(blocks_of(PAGE, 0).is_empty());
    }
}
