//! The status of exports whose requests are classified by I/O priority.

use serde::{Deserialize, Serialize};

/// A classified export.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Classified {
    /// The name of the export.
    pub export: String,
    /// The block devices over the export whose events are read.
    pub devices: Vec<String>,
    /// The reason for which no events are read, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Total of requests whose priority was known when they arrived.
    pub requests_total: u64,
    /// Total of requests that got the class of the export: their event was lost or late, or they did not come
    /// through one of the devices.
    pub unmatched_total: u64,
    /// Total of events that the kernel dropped, or whose requests did not arrive.
    pub lost_events_total: u64,
}
