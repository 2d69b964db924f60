//! The status of a mirror.

use serde::{Deserialize, Serialize};

/// The condition of a mirror's legs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mirror {
    /// The legs, in the order of their superblocks.
    pub legs: Vec<Leg>,
    /// Bytes of data.
    pub data_bytes: u64,
    /// Bytes of regions that are still to be copied to a leg.
    pub to_copy_bytes: u64,
    /// Bytes of those that the leg with all data cannot read.
    pub unreadable_bytes: u64,
    /// Bytes of regions in which the legs may differ after a crash.
    pub marked_bytes: u64,
}

/// A leg of a mirror.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leg {
    /// The file or device.
    pub path: String,
    /// What it is used for: `in sync`, `in doubt`, `being filled` or `out`.
    pub state: String,
}

impl Leg {
    /// Whether it serves reads.
    pub fn is_in_sync(&self) -> bool {
        self.state == crate::mirror::superblock::LegRecord::InSync.name()
    }
}
