//! The observation of a block under the head.

use block::{Duration, Instant, Lba};

/// The read of one block from the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The block.
    pub lba: Lba,
    /// The end of the command: a constant time after the end of the block passed under the head.
    pub at: Instant,
    /// The time of the command at the drive.
    pub took: Duration,
}
