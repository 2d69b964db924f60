//! A contiguous file.

use block::{Extent, Lba, Sectors};

/// A file of whole blocks in one extent of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayedFile {
    first: Lba,
    bytes: u64,
    /// Bytes per block.
    block: u64,
}

impl PlayedFile {
    /// A file of `bytes` bytes from block `first` on; `None` if it is empty or not whole blocks of
    /// `block` bytes.
    pub fn new(first: Lba, bytes: u64, block: u64) -> Option<PlayedFile> {
        let is_whole = bytes.checked_rem(block) == Some(0);
        (is_whole && bytes > 0).then_some(PlayedFile {
            first,
            bytes,
            block,
        })
    }

    /// The length in bytes.
    pub fn bytes(self) -> u64 {
        self.bytes
    }

    /// The extent of the whole file.
    pub fn extent(self) -> Option<Extent> {
        self.blocks(0, self.bytes)
    }

    /// The block after the last one.
    pub fn end(self) -> Lba {
        Lba(self.first.0 + self.bytes / self.block)
    }

    /// The blocks that contain the bytes from `from` to `to`.
    pub(super) fn blocks(self, from: u64, to: u64) -> Option<Extent> {
        let first = from / self.block;
        let blocks = to.min(self.bytes).div_ceil(self.block).checked_sub(first)?;
        Extent::new(Lba(self.first.0 + first), Sectors(blocks)).ok()
    }
}
