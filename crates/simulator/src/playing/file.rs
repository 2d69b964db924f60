//! A file that lies in one piece.

use block::{Extent, Lba, Sectors};

/// A file of whole pages in one piece of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayedFile {
    first: Lba,
    bytes: u64,
    /// Bytes of a block.
    block: u64,
}

impl PlayedFile {
    /// So many bytes from a block on, on a drive of `block` bytes a block; `None` if they are no whole
    /// blocks, or none at all.
    pub fn new(first: Lba, bytes: u64, block: u64) -> Option<PlayedFile> {
        let is_whole = bytes.checked_rem(block) == Some(0);
        (is_whole && bytes > 0).then_some(PlayedFile {
            first,
            bytes,
            block,
        })
    }

    /// How long it is, in bytes.
    pub fn bytes(self) -> u64 {
        self.bytes
    }

    /// All of its blocks.
    pub fn extent(self) -> Option<Extent> {
        self.blocks(0, self.bytes)
    }

    /// The block after its last one.
    pub fn end(self) -> Lba {
        Lba(self.first.0 + self.bytes / self.block)
    }

    /// The blocks of the bytes from `from` to `to`.
    pub(super) fn blocks(self, from: u64, to: u64) -> Option<Extent> {
        let first = from / self.block;
        let blocks = to.min(self.bytes).div_ceil(self.block).checked_sub(first)?;
        Extent::new(Lba(self.first.0 + first), Sectors(blocks)).ok()
    }
}
