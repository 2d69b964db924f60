//! The status of a mirror.

use serde::{Deserialize, Serialize};

/// The condition of a mirror's legs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// How a leg is being filled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuild: Option<Rebuild>,
}

/// How a leg is being filled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rebuild {
    /// Where the bytes come from now.
    pub means: RebuildMeans,
    /// Bytes that reads in gaps and in idle time have brought.
    pub gap_bytes: u64,
    /// Bytes that were copied in a share of the time.
    pub paid_bytes: u64,
    /// The share of the time until now that these took, in per cent.
    pub paid_percent: f64,
    /// The rate of the last ten seconds.
    pub mb_per_s: f64,
    /// The time until the end at this rate.
    pub eta_s: Option<f64>,
    /// The time until the deadline, if there is one. It is zero if it has passed.
    pub deadline_s: Option<f64>,
}

/// Where the bytes come from that a leg is filled with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RebuildMeans {
    /// Gaps and idle time.
    Gaps,
    /// A share of the time, because there are no gaps.
    #[default]
    Share,
    /// Gaps and a share of the time, because the deadline would be missed.
    Deadline,
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
