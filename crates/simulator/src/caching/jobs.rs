//! Requests under way between the levels.
//!
//! ```text
//!   a client's request   --fetch-->   a message to L2   --fetch-->   a run of blocks at the disk
//! ```
//!
//! A job is served by one node, for a fetch of another one; the levels know who waits for which fetch. Jobs are
//! kept in a slab: nothing is allocated once as many were under way as ever will be.

use block::{Instant, Interval};
use cache::coordinator::UpperRequest;
use cache::level::FetchId;

/// Names a job while it is under way.
pub(super) type JobId = u32;

/// No job, or nobody.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct LevelJob {
    pub(super) asked: UpperRequest,
    /// The node that serves it; [`NONE`] is the disk.
    pub(super) server: u32,
    /// Whose it is.
    pub(super) asker: Asker,
    /// When it was asked.
    pub(super) at: Instant,
    /// The next job of the same disk command; of a free job: the next free one.
    pub(super) next: JobId,
}

/// Who waits for a job.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asker {
    /// The client.
    Client,
    /// A node, for one of its level's fetches.
    Node(u32, FetchId),
}

/// All jobs that are under way.
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

    /// How many there are.
    pub(super) fn under_way(&self) -> usize {
        self.under_way
    }

    /// Which the next one will be.
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

    /// The job is over.
    pub(super) fn end(&mut self, id: JobId) {
        self.jobs[id as usize].next = self.free;
        self.free = id;
        self.under_way -= 1;
    }
}

/// Whether two runs of blocks have one in common.
pub(super) fn overlap(one: Interval, other: Interval) -> bool {
    one.first <= other.last && other.first <= one.last
}
