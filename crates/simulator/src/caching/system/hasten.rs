//! Promotion of prefetches: a demand that waits for a prefetch raises it to its own class.
//!
//! ```text
//!   L1   demand ----waits for----> fetch ahead
//!                                     |  a message, long answered for by L2's fetches
//!   L2                             fetch ahead    fetch ahead
//!                                     |              |
//!   disk                           request        request       both are raised to the class of demands
//! ```
//!
//! The service does the same with the pieces that it fetches (`server::cached`, `hasten`).

use block::Interval;
use cache::coordinator::Purpose;

use super::super::jobs::{Asker, JobId, NONE, overlap};
use super::System;

/// Outstanding prefetches, if they are less urgent than demands.
#[derive(Debug, Default)]
pub(super) struct FetchesAhead {
    /// The outstanding prefetches.
    jobs: Vec<JobId>,
    /// Nodes, and their blocks that a demand waits for. Reused.
    wanted: Vec<(u32, Interval)>,
}

impl FetchesAhead {
    /// Records the job if it is a prefetch.
    pub(super) fn add(&mut self, job: JobId, purpose: Purpose) {
        if purpose == Purpose::Prefetch {
            self.jobs.push(job);
        }
    }

    /// Whether no prefetch is outstanding.
    pub(super) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Removes a job that has ended.
    pub(super) fn end(&mut self, job: JobId) {
        if let Some(place) = self.jobs.iter().position(|&other| other == job) {
            self.jobs.swap_remove(place);
        }
    }
}

impl System {
    /// A demand waits for these blocks of a node: raises the prefetches that fetch them.
    pub(super) fn hasten(&mut self, node: u32, blocks: Interval) {
        let Some(ahead) = &mut self.ahead else {
            return;
        };
        ahead.wanted.push((node, blocks));
        while let Some((node, blocks)) = ahead.wanted.pop() {
            let mut place = 0;
            while let Some(&id) = ahead.jobs.get(place) {
                let job = self.jobs.get(id);
                let fetched = job.asked.blocks;
                if !overlap(fetched, blocks)
                    || !matches!(job.asker, Asker::Node(asker, _) if asker == node)
                {
                    place += 1;
                    continue;
                }
                ahead.jobs.swap_remove(place);
                match job.server {
                    NONE => self.disk.hasten(self.now, fetched),
                    server => ahead.wanted.push((server, fetched)),
                }
            }
        }
    }
}
