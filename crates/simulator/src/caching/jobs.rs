//! Outstanding requests between the levels.
//!
//! ```text
//!   a client's request   --fetch-->   a message to L2   --fetch-->   a run of blocks at the disk
//! ```
//!
//! A node serves a job for a fetch of another node; the levels know which request waits for which
//! fetch. Jobs live in a slab, which stops allocating at its maximum size.

use block::{Direction, Instant, Interval};
use cache::coordinator::{ReadmoreFetch, UpperRequest};
use cache::level::FetchId;

/// The index of an outstanding job.
pub(super) type JobId = u32;

/// No job, or no node.
pub(super) const NONE: u32 = u32::MAX;

/// One outstanding job.
#[derive(Clone, Copy, Debug)]
pub(super) struct LevelJob {
    pub(super) asked: UpperRequest,
    /// The node that serves the job; [`NONE`] is the disk.
    pub(super) server: u32,
    /// The recipient of the reply.
    pub(super) asker: Asker,
    /// The time of the request.
    pub(super) at: Instant,
    /// What the disk does with the blocks.
    pub(super) transfer: Direction,
    /// The number of outstanding jobs that this one passed its blocks on to.
    pub(super) parts: u32,
    /// Whether the job is a fetch of readmore alone.
    pub(super) readmore: ReadmoreFetch,
    /// The next job of the same disk command; for a free slot, the next free slot.
    pub(super) next: JobId,
}

/// The recipient of a job's reply.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asker {
    /// The client.
    Client,
    /// A node, for one of its level's fetches.
    Node(u32, FetchId),
    /// A write of the level above, which passed its blocks on.
    Write(JobId),
}

/// All outstanding jobs.
#[derive(Debug)]
pub(super) struct Jobs {
    jobs: Vec<LevelJob>,
    free: JobId,
    under_way: usize,
}

impl Jobs {
    pub(super) fn new() -> Self {
        Jobs {
            jobs: Vec::new(),
            free: NONE,
            under_way: 0,
        }
    }

    /// Number of outstanding jobs.
    pub(super) fn under_way(&self) -> usize {
        self.under_way
    }

    /// The id of the next job.
    pub(super) fn next(&self) -> JobId {
        match self.free {
            NONE => self.jobs.len() as JobId,
            free => free,
        }
    }

    pub(super) fn add(
        &mut self,
        asked: UpperRequest,
        server: u32,
        asker: Asker,
        at: Instant,
    ) -> JobId {
        let job = LevelJob {
            asked,
            server,
            asker,
            at,
            transfer: Direction::Read,
            parts: 0,
            readmore: ReadmoreFetch::Joined,
            next: NONE,
        };
        self.under_way += 1;
        match self.jobs.get_mut(self.free as usize) {
            Some(free) => {
                let id = std::mem::replace(&mut self.free, free.next);
                *free = job;
                id
            }
            None => {
                self.jobs.push(job);
                (self.jobs.len() - 1) as JobId
            }
        }
    }

    pub(super) fn get(&self, id: JobId) -> &LevelJob {
        &self.jobs[id as usize]
    }

    pub(super) fn get_mut(&mut self, id: JobId) -> &mut LevelJob {
        &mut self.jobs[id as usize]
    }

    /// Ends the job.
    pub(super) fn end(&mut self, id: JobId) {
        self.jobs[id as usize].next = self.free;
        self.free = id;
        self.under_way -= 1;
    }
}

/// Whether two intervals of blocks have a block in common.
pub(super) fn overlap(one: Interval, other: Interval) -> bool {
    one.first <= other.last && other.first <= one.last
}
