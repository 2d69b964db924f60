//! The report of a drive that is profiled in service.

use serde::{Deserialize, Serialize};

/// The findings about a drive that is profiled behind its load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LearningReport {
    /// The name of the drive.
    pub drive: String,
    /// Whether more may be found: time is left, and questions.
    pub active: bool,
    /// The time since the beginning, in seconds of the drive's time.
    pub seconds: f64,
    /// The stage of the procedure, for people.
    pub stage: String,
    /// The share of blocks whose tracks are known, 0 to 1.
    pub known: f64,
    /// The time of a revolution in milliseconds, if it is known.
    pub period_ms: Option<f64>,
    /// Ended reads of the profiler.
    pub probes: u64,
    /// The share of the time for which these occupied the drive, 0 to 1.
    pub probing: f64,
    /// Failed stages with their reasons, for people.
    pub failed: Vec<String>,
    /// The reason for which a service would refuse the profile. It is `null` while profiling is active, and for
    /// a usable profile.
    pub doubt: Option<String>,
    /// The text of a usable profile after the end.
    pub profile: Option<String>,
}
