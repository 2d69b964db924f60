//! A block seen under the head.

use block::{Duration, Instant, Lba};

/// A block that was read from the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Which.
    pub lba: Lba,
    /// When the command ended: a constant time after the block's end passed under the head.
    pub at: Instant,
    /// For how long the command was at the drive.
    pub took: Duration,
}
