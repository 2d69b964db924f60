//! Requests under way between the levels, and who waits for which of them.
//!
//! ```text
//!   a client's request   <--waits--  a message to L2   <--waits--  a run of blocks at the disk
//! ```
//!
//! A job is served by one node and asked for by another; jobs of the node that asked for it wait for it.
//! Both are kept in slabs: nothing is allocated once as many were under way as ever will be.

use cache::coordinator::{Asked, Plan};
use cache::{FrameId, Interval};

/// Names a job while it is under way.
pub(super) type JobId = u32;

/// No job, or nobody.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) asked: Asked,
    /// The node that serves it; [`NONE`] is the disk.
    pub(super) server: u32,
    /// The node whose cache asked for it; [`NONE`] is a client.
    pub(super) asker: u32,
    /// The part that the asker's prefetcher wanted; empty if none did.
    pub(super) ahead: Interval,
    /// Whether somebody waits for the first block of `ahead`.
    pub(super) is_ahead_awaited: bool,
    /// The first of the frames of the asker's cache into which blocks come; the others follow there.
    pub(super) frames: Option<FrameId>,
    /// When it was asked.
    pub(super) at: u64,
    /// How it is served.
    pub(super) plan: Plan,
    /// Jobs that it waits for.
    pub(super) pending: u32,
    /// Those that wait for it: a list of waits.
    waits: u32,
    /// The next job of the same disk command; of a free job: the next free one.
    pub(super) next: JobId,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    job: JobId,
    next: u32,
}

/// All jobs that are under way.
#[derive(Debug)]
pub(super) struct Jobs {
    jobs: Vec<Job>,
    free_job: JobId,
    waits: Vec<Wait>,
    free_wait: u32,
    under_way: usize,
}

impl Jobs {
    pub(super) fn new() -> Self {
        Jobs {
            jobs: Vec::new(),
            free_job: NONE,
            waits: Vec::new(),
            free_wait: NONE,
            under_way: 0,
        }
    }

    /// How many there are.
    pub(super) fn under_way(&self) -> usize {
        self.under_way
    }

    pub(super) fn add(&mut self, asked: Asked, server: u32, asker: u32, at: u64) -> JobId {
        let job = Job {
            asked,
            server,
            asker,
            ahead: Interval::EMPTY,
            is_ahead_awaited: false,
            frames: None,
            at,
            plan: Plan::default(),
            pending: 0,
            waits: NONE,
            next: NONE,
        };
        self.under_way += 1;
        match self.jobs.get_mut(self.free_job as usize) {
            Some(free) => {
                let id = std::mem::replace(&mut self.free_job, free.next);
                *free = job;
                id
            }
            None => {
                self.jobs.push(job);
                (self.jobs.len() - 1) as JobId
            }
        }
    }

    pub(super) fn get(&self, id: JobId) -> &Job {
        &self.jobs[id as usize]
    }

    pub(super) fn get_mut(&mut self, id: JobId) -> &mut Job {
        &mut self.jobs[id as usize]
    }

    /// `waiter` waits for `awaited`.
    pub(super) fn wait(&mut self, waiter: JobId, awaited: JobId) {
        let wait = Wait {
            job: waiter,
            next: self.get(awaited).waits,
        };
        let place = match self.waits.get_mut(self.free_wait as usize) {
            Some(free) => {
                let place = std::mem::replace(&mut self.free_wait, free.next);
                *free = wait;
                place
            }
            None => {
                self.waits.push(wait);
                (self.waits.len() - 1) as u32
            }
        };
        self.get_mut(awaited).waits = place;
        self.get_mut(waiter).pending += 1;
    }

    /// One of those that wait for the job: it waits for one less.
    pub(super) fn wake(&mut self, id: JobId) -> Option<JobId> {
        let place = self.get(id).waits;
        let wait = self.waits.get_mut(place as usize)?;
        let (waiter, next) = (wait.job, wait.next);
        wait.next = self.free_wait;
        self.free_wait = place;
        self.get_mut(id).waits = next;
        self.get_mut(waiter).pending -= 1;
        Some(waiter)
    }

    /// The job is over.
    pub(super) fn end(&mut self, id: JobId) {
        let free = self.free_job;
        let job = self.get_mut(id);
        assert!(
            job.pending == 0 && job.waits == NONE,
            "job {id} is not over"
        );
        job.next = free;
        self.free_job = id;
        self.under_way -= 1;
    }
}
