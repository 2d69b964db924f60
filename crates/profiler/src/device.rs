//! What is known of a drive before anything was timed.

use block::Lba;

/// A drive as its identity data describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveIdentity {
    /// Blocks.
    pub blocks: u64,
    /// Bytes in a logical block: 512 or 4096.
    pub block_bytes: u32,
    /// Bytes in a sector of the medium: 512 or 4096.
    pub physical_block_bytes: u32,
    /// Commands that it holds at once; 1 if it has no queue.
    pub depth: u32,
    /// What it lets the host do.
    pub offers: Offers,
    /// Whether the profiler may write.
    pub writes: WritePermission,
}

/// Whether blocks may be overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritePermission {
    /// Nothing is written.
    Forbidden,
    /// Everything on the drive may be destroyed.
    Allowed,
}

/// How reads are kept from being answered by the drive's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offers {
    /// Reads that go to the medium in any case (FUA), and the switches of look-ahead and write
    /// cache.
    CacheControl,
    /// Nothing: what was read before may come from the buffer.
    Nothing,
}

impl DriveIdentity {
    /// The last block.
    pub fn last(&self) -> Lba {
        Lba(self.blocks - 1)
    }

    /// What a virtual drive tells of itself: its capacity, its block sizes and its queue's depth.
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
