//! Neighbouring jobs that one command of the disk reads or writes.

use block::{Direction, Interval};

use super::jobs::{JobId, Jobs, NONE};

/// The largest command in blocks: 128 sectors, the default of Linux 2.6 at the paper's time.
pub const LARGEST: u64 = 16;

/// A list of jobs that one command reads or writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct MergedTransfer {
    pub(super) blocks: Interval,
    pub(super) direction: Direction,
    pub(super) first: JobId,
    last: JobId,
}

impl MergedTransfer {
    /// The transfer of one job.
    pub(super) fn of(blocks: Interval, direction: Direction, job: JobId) -> MergedTransfer {
        MergedTransfer {
            blocks,
            direction,
            first: job,
            last: job,
        }
    }

    /// One transfer for both, if `after` starts at the end of this one, has its direction, and the sum is within
    /// the limit. A fetch of readmore alone joins only its like.
    pub(super) fn followed_by(
        &self,
        after: &MergedTransfer,
        jobs: &mut Jobs,
    ) -> Option<MergedTransfer> {
        let is_too_large = self.blocks.len() + after.blocks.len() > LARGEST;
        let is_other = self.direction != after.direction;
        if self.blocks.last + 1 != after.blocks.first || is_too_large || is_other {
            return None;
        }
        if jobs.get(self.last).readmore != jobs.get(after.first).readmore {
            return None;
        }
        jobs.get_mut(self.last).next = after.first;
        Some(MergedTransfer {
            blocks: Interval::new(self.blocks.first, after.blocks.last),
            direction: self.direction,
            first: self.first,
            last: after.last,
        })
    }
}

/// The next job of the same command.
pub(super) fn next_of(job: JobId, jobs: &Jobs) -> Option<JobId> {
    Some(jobs.get(job).next).filter(|&next| next != NONE)
}
