//! The status of background requests that go in gaps.

use serde::{Deserialize, Serialize};

/// Requests of the background class that were served in gaps of more urgent ones, as a whole or in parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapRequests {
    /// Commands.
    pub commands_total: u64,
    /// Bytes that they read.
    pub read_bytes_total: u64,
    /// Bytes that they wrote.
    pub written_bytes_total: u64,
}

impl GapRequests {
    /// Its bytes by direction.
    pub fn bytes(&self) -> [(&'static str, u64); 2] {
        [
            ("read", self.read_bytes_total),
            ("write", self.written_bytes_total),
        ]
    }
}
