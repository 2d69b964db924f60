//! Neighbouring jobs that the disk reads with one command.

use block::Interval;

use super::jobs::{JobId, Jobs, NONE};

/// The largest command in blocks: 128 sectors, the default of Linux 2.6 and the paper's time.
pub const LARGEST: u64 = 16;

/// Jobs that are read by one command, as a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct MergedRead {
    pub(super) blocks: Interval,
    pub(super) first: JobId,
    last: JobId,
}

impl MergedRead {
    /// One job.
    pub(super) fn of(blocks: Interval, job: JobId) -> MergedRead {
        MergedRead {
            blocks,
            first: job,
            last: job,
        }
    }

    /// One command for both, if `after` begins where this one ends and it is not too large.
    pub(super) fn followed_by(&self, after: &MergedRead, jobs: &mut Jobs) -> Option<MergedRead> {
        let is_too_large = self.blocks.len() + after.blocks.len() > LARGEST;
        if self.blocks.last + 1 != after.blocks.first || is_too_large {
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

/// The job after this one in the same command.
pub(super) fn next_of(job: JobId, jobs: &Jobs) -> Option<JobId> {
    Some(jobs.get(job).next).filter(|&next| next != NONE)
}
