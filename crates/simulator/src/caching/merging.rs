//! Neighbouring jobs that one command of the disk reads.

use block::Interval;

use super::jobs::{JobId, Jobs, NONE};

/// The largest command in blocks: 128 sectors, the default of Linux 2.6 at the paper's time.
pub const LARGEST: u64 = 16;

/// A list of jobs that one command reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct MergedRead {
    pub(super) blocks: Interval,
    pub(super) first: JobId,
    last: JobId,
}

impl MergedRead {
    /// A read of one job.
    pub(super) fn of(blocks: Interval, job: JobId) -> MergedRead {
        MergedRead {
            blocks,
            first: job,
            last: job,
        }
    }

    /// One read for both, if `after` starts at the end of this one and the sum is within the limit.
    /// A fetch of readmore alone joins only its like.
    pub(super) fn followed_by(&self, after: &MergedRead, jobs: &mut Jobs) -> Option<MergedRead> {
        let is_too_large = self.blocks.len() + after.blocks.len() > LARGEST;
        if self.blocks.last + 1 != after.blocks.first || is_too_large {
            return None;
        }
        if jobs.get(self.last).readmore != jobs.get(after.first).readmore {
            return None;
        }
        jobs.get_mut(self.last).next = after.first;
        Some(MergedRead {
            blocks: Interval::new(self.blocks.first, after.blocks.last),
            first: self.first,
            last: after.last,
        })
    }
}

/// The next job of the same command.
pub(super) fn next_of(job: JobId, jobs: &Jobs) -> Option<JobId> {
    Some(jobs.get(job).next).filter(|&next| next != NONE)
}
