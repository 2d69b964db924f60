//! How long the arm takes over which distance.

use block::Duration;

use crate::confidence::Confidence;

/// The arm, as its times were measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arm {
    /// For reads, by ascending distance.
    pub read: Vec<SeekPoint>,
    /// For writes, without what settling adds; empty if nothing was written.
    pub write: Vec<SeekPoint>,
    /// Another surface of the same cylinder.
    pub head_switch: Duration,
    /// Added to a write's positioning, in nanoseconds.
    pub write_settle_nanos: i64,
    /// How often a fresh seek took as long as the table says.
    pub confidence: Confidence,
}

/// Seeks over one distance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeekPoint {
    /// In cylinders.
    pub distance: u32,
    /// The mean time.
    pub mean: Duration,
    /// The standard deviation of single seeks.
    pub deviation: Duration,
    /// The mean time towards higher cylinders.
    pub inward: Duration,
    /// The mean time towards lower cylinders.
    pub outward: Duration,
}
