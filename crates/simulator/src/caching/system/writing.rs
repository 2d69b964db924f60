//! Writes that go through all levels to the disk.
//!
//! ```text
//!   client   write --> L1 keeps the blocks --> L2 keeps them --> commands of the disk
//!              ^                                                      |
//!              '------ reply of the link <------ the last one ends ---'
//! ```
//!
//! A block that is in flight stays so: its frame gets the older bytes first, which no figure sees.

use block::{Direction, Interval};
use cache::coordinator::UpperRequest;

use super::super::jobs::{Asker, JobId, NONE};
use super::super::merging::LARGEST;
use super::System;

impl System {
    /// A client's write.
    pub(super) fn write_client(&mut self, asked: UpperRequest) {
        let job = self.jobs.add(asked, asked.client, Asker::Client, self.now);
        self.jobs.get_mut(job).transfer = Direction::Write;
        self.write(job);
        self.serve_all();
        self.settle();
    }

    /// The job's node keeps its blocks, and passes them on.
    pub(super) fn write(&mut self, id: JobId) {
        let job = self.jobs.get(id);
        let (asked, server) = (job.asked, job.server);
        let node = &mut self.nodes[server as usize];
        node.requests += 1;
        for block in asked.blocks.blocks() {
            // Without a frame the block is absent here, and only passed on.
            let _ = node.level.store(block);
        }
        let below = node.below;
        let most = match below {
            NONE => LARGEST,
            _ => asked.blocks.len(),
        };
        let mut first = asked.blocks.first;
        while first <= asked.blocks.last {
            let blocks = Interval::new(first, asked.blocks.last.min(first + most - 1));
            let part = UpperRequest { blocks, ..asked };
            let job = self.jobs.add(part, below, Asker::Write(id), self.now);
            self.jobs.get_mut(job).transfer = Direction::Write;
            self.jobs.get_mut(id).parts += 1;
            self.to_serve.push(job);
            first = blocks.last + 1;
        }
    }

    /// A part of the write `above` has ended below.
    pub(super) fn written(&mut self, part: JobId, above: JobId) {
        self.jobs.end(part);
        let job = self.jobs.get_mut(above);
        job.parts -= 1;
        if job.parts == 0 {
            self.answer(above);
        }
    }
}
