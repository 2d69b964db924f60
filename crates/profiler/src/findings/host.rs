//! The delays of the path between the profiler and the drive.

use block::Duration;

use crate::clock::PlatterClock;

/// What a path adds to a drive's times: a host delays commands and outcomes, and never hastens them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostDelays {
    /// The shortest answer of the buffer: no mechanics are in it.
    pub floor: Duration,
    /// The 99th percentile of the buffer's answers, above the floor: commands and outcomes together.
    pub p99: Duration,
    /// The 90th percentile of the delay of ends of reads from the medium, above the earliest.
    pub late: Duration,
    /// The mean delay, by those up to there: stalls beyond are not in it.
    pub mean: Duration,
}

impl HostDelays {
    /// The delay that all but a tenth of the ends stay below, in revolutions.
    pub(crate) fn late_turns(&self, clock: &PlatterClock) -> f64 {
        self.late.as_nanos() as f64 / clock.period()
    }

    /// The mean delay, in revolutions.
    pub(crate) fn mean_turns(&self, clock: &PlatterClock) -> f64 {
        self.mean.as_nanos() as f64 / clock.period()
    }
}
