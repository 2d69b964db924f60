//! The properties of a drive that are known before any timing.

use block::Lba;

/// A drive as its identity data describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveIdentity {
    /// Number of blocks.
    pub blocks: u64,
    /// Bytes per logical block: 512 or 4096.
    pub block_bytes: u32,
    /// Bytes per sector of the medium: 512 or 4096.
    pub physical_block_bytes: u32,
    /// Queue depth; 1 without a queue.
    pub depth: u32,
    /// The drive's means to bypass its buffer.
    pub offers: Offers,
    /// Whether the profiler may write.
    pub writes: WritePermission,
}

/// Whether the profiler may overwrite blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritePermission {
    /// The profiler writes nothing.
    Forbidden,
    /// The profiler may destroy all data on the drive.
    Allowed,
}

/// The drive's means to bypass its buffer on reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offers {
    /// Reads that always access the medium (FUA), and switches for look-ahead and write cache.
    CacheControl,
    /// None: recently read blocks may come from the buffer.
    Nothing,
}

impl DriveIdentity {
    /// The last block.
    pub fn last(&self) -> Lba {
        Lba(self.blocks - 1)
    }

    /// The identity of a virtual drive: its capacity, block sizes and queue depth.
    pub fn of(drive: &drive::VirtualDrive, offers: Offers, writes: WritePermission) -> Self {
        let truth = drive.truth();
        DriveIdentity {
            blocks: truth.geometry.sectors().0,
            block_bytes: truth.block_bytes,
            physical_block_bytes: truth.physical_block_bytes,
            depth: truth.queue.depth,
            offers,
            writes,
        }
    }
}
