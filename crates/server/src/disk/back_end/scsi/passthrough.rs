//! A drive that gets SCSI commands only. Durable writes and flushes do not depend on the kernel's view of
//! the drive, and errors have their causes.
//!
//! ```text
//!   command --> a piece of work for each piece of memory --> pool's threads --> all ended: Ended
//! ```

#![allow(
    unsafe_code,
    reason = "hands the memory of commands to the pool's threads while these are under way"
)]

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;

use block::{Action, Command, CommandId, Instant};
use slab::Slab;

use super::pool::{BELL, Pool, Work};
use super::switched::Switched;
use crate::arena::Memory;
use crate::disk::back_end::{BackEnd, Ended, Punch, Shape, Span};
use crate::ring::Ring;
use block::operation::OperationError;

/// A drive that gets SCSI commands only.
pub struct Passthrough {
    pool: Pool,
    shape: Shape,
    jobs: Slab<ScsiJob>,
    ended: VecDeque<Ended>,
    /// Ended pieces of another back end's commands.
    pieces: VecDeque<(u32, Result<(), OperationError>)>,
    punched: VecDeque<(u32, Result<(), OperationError>)>,
    /// The claim on the disk.
    _claim: Option<File>,
}

/// A command in flight.
enum ScsiJob {
    Command {
        id: CommandId,
        /// The number of pieces in flight.
        left: u32,
        result: Result<(), OperationError>,
    },
    /// A piece of another back end's command.
    Piece,
}

/// How many commands at once: the sg driver takes 16 on a file (`SG_MAX_QUEUE` in `drivers/scsi/sg.c`).
const THREADS: usize = 16;

impl Passthrough {
    /// A drive that nobody else uses as long as `claim` is open.
    ///
    /// # Errors
    /// If there are no more threads or file descriptors.
    pub fn new(
        drive: Arc<Switched>,
        shape: Shape,
        most_bytes: usize,
        claim: Option<File>,
    ) -> io::Result<Self> {
        Ok(Passthrough {
            pool: Pool::start(drive, THREADS, most_bytes)?,
            shape,
            jobs: Slab::new(),
            ended: VecDeque::new(),
            pieces: VecDeque::new(),
            punched: VecDeque::new(),
            _claim: claim,
        })
    }

    /// Does a piece of a command that is another's; its end comes from [`Passthrough::poll_piece`]
    /// under the key that is the answer.
    ///
    /// # Safety
    /// As for [`BackEnd::start`].
    pub unsafe fn piece(&mut self, work: Work, ring: &mut Ring) -> u32 {
        let job = self.jobs.insert(ScsiJob::Piece) as u32;
        // SAFETY: the caller's promise.
        unsafe { self.pool.submit(job, work, ring) };
        job
    }

    /// The next end of those.
    pub fn poll_piece(&mut self) -> Option<(u32, Result<(), OperationError>)> {
        self.pieces.pop_front()
    }

    fn ended(&mut self, job: u32, end: Result<(), OperationError>) {
        let entry = &mut self.jobs[job as usize];
        if let ScsiJob::Command { id, left, result } = entry {
            *result = result.and(end);
            *left -= 1;
            if *left > 0 {
                return;
            }
            self.ended.push_back(Ended {
                id: *id,
                result: *result,
                account: None,
            });
        } else {
            self.pieces.push_back((job, end));
        }
        self.jobs.remove(job as usize);
    }
}

impl BackEnd for Passthrough {
    fn shape(&self) -> Shape {
        self.shape
    }

    unsafe fn start(&mut self, _: Instant, command: &Command, memory: &[Memory], ring: &mut Ring) {
        let pieces = match command.action.extent() {
            Some(_) => memory,
            None => &[Memory::NONE],
        };
        let job = self.jobs.insert(ScsiJob::Command {
            id: command.id,
            left: pieces.len() as u32,
            result: Ok(()),
        });
        let mut before = 0;
        for &memory in pieces {
            let work = work(command.action, before, memory);
            before += memory.length as u64 / u64::from(self.shape.block_bytes);
            // SAFETY: the caller's promise.
            unsafe { self.pool.submit(job as u32, work, ring) };
        }
    }

    fn ring_ended(&mut self, _: Instant, key: u32, _: i32, ring: &mut Ring) {
        if key == BELL {
            for (job, result) in self.pool.rang(ring) {
                self.ended(job, result);
            }
        }
    }

    fn poll(&mut self, _: Instant) -> Option<Ended> {
        self.ended.pop_front()
    }

    fn punch(&mut self, key: u32, _: Punch, _: Span, _: &mut Ring) {
        // The shape says so, too.
        self.punched
            .push_back((key, Err(OperationError::Unsupported)));
    }

    fn poll_punched(&mut self) -> Option<(u32, Result<(), OperationError>)> {
        self.punched.pop_front()
    }
}

/// The part of a command that is about a piece of memory, with so many blocks before it.
fn work(action: Action, before: u64, memory: Memory) -> Work {
    match action {
        Action::Read { extent, durability } => Work::Read {
            first: extent.start().0 + before,
            memory,
            durability,
        },
        Action::Write { extent, durability } => Work::Write {
            first: extent.start().0 + before,
            memory,
            durability,
        },
        Action::Flush => Work::Flush,
        Action::Seek { to } => Work::Seek { to: to.0 },
        Action::SetLookAhead(to) => Work::SetLookAhead(to),
        Action::SetWriteCache(to) => Work::SetWriteCache(to),
    }
}
