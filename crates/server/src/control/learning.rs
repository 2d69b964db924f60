//! The order to profile a drive in service. [`crate::status::LearningReport`] is the report.

use serde::{Deserialize, Serialize};

/// An order to profile a drive behind its load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learn {
    /// The name of the drive.
    pub drive: String,
    /// The end of profiling after its beginning, in seconds.
    pub seconds: u32,
    /// The share of the time for probes between foreground requests, in parts per million. Idle time is used
    /// besides.
    pub granted_ppm: u32,
}

/// The largest share of the time for probes, in parts per million. Half of the time is no background any more.
pub const MOST_GRANTED_PPM: u32 = 500_000;
