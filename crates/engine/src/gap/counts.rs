//! The counts of gaps, for reports.

use block::{Direction, Duration, Extent};
use scheduler::freeblock::Kind;

/// What came of the gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// Foreground commands before which there could have been a plan.
    pub seen: u64,
    /// Their latency, in all.
    pub latency: Duration,
    /// Gaps that were left alone because the seek might just make it.
    pub near_miss: u64,
    /// Plans that did not bring their price.
    pub unworthy: u64,
    /// Plans that were withheld, so that their requests tell what those without plans are like.
    pub withheld: u64,
    /// Free and paid reads that were carried out, by kind: merged, detour, source, destination.
    pub planned: [u64; 4],
    /// Background requests that were served in gaps.
    pub requests: u64,
    /// The blocks of these, by direction: read, written.
    pub request_blocks: [u64; 2],
    /// For how long background commands of their own held arm and medium, if the drive is a
    /// simulated one: for reports only.
    pub head_time: Duration,
    /// Foreground commands that ended at least half a revolution later than without their plan.
    pub mispredicted: u64,
}

impl Gaps {
    /// The sum of two counts, of two actuators.
    pub(crate) fn and(self, other: Gaps) -> Gaps {
        Gaps {
            seen: self.seen + other.seen,
            latency: self.latency + other.latency,
            near_miss: self.near_miss + other.near_miss,
            unworthy: self.unworthy + other.unworthy,
            withheld: self.withheld + other.withheld,
            planned: std::array::from_fn(|kind| self.planned[kind] + other.planned[kind]),
            requests: self.requests + other.requests,
            request_blocks: std::array::from_fn(|direction| {
                self.request_blocks[direction] + other.request_blocks[direction]
            }),
            head_time: self.head_time + other.head_time,
            mispredicted: self.mispredicted + other.mispredicted,
        }
    }
}

impl Gaps {
    /// Counts a background request.
    pub(crate) fn count_request(&mut self, (direction, extent): (Direction, Extent)) {
        self.requests += 1;
        self.request_blocks[direction as usize] += extent.length().0;
    }
}

/// Where a kind is counted.
pub(crate) fn counted(kind: Kind) -> usize {
    match kind {
        Kind::Merged => 0,
        Kind::Detour => 1,
        Kind::Source => 2,
        Kind::Destination => 3,
    }
}
