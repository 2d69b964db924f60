//! A drive: the engine that orders its commands, and the back end that carries them out.
//!
//! ```text
//!   volume --request--> engine --command--> back end --ring--> kernel
//!          <-finished--        <-outcome---
//! ```
//!
//! The disk moves no bytes. It holds the scratch memory of background reads, and lends it for as long
//! as their commands are at the back end.

#![allow(
    unsafe_code,
    reason = "hands memory to the back end while commands are in flight"
)]

use block::{Account, Action, Command, CommandId, Extent, Instant, Lba, Outcome, Status};
use drive::Lost;
use hdrhistogram::Histogram;
use std::io;

use self::back_end::{BackEnd, Ended, Punch, Run, Shape, Span};
use crate::arena::{Arena, Buffer, Memory};
use crate::capture::{LiveEngine, Recorder};
use crate::clock::Clock;
use crate::ring::Ring;
use block::operation::Failed;

pub mod back_end;

/// A drive in service. `now` is the time of the drive's clock at the beginning of this turn of the loop.
pub(crate) struct Disk {
    pub(crate) clock: Clock,
    pub(crate) now: Instant,
    pub(crate) engine: LiveEngine,
    pub(crate) shape: Shape,
    /// The kernel's queues. Sockets of clients are in the same ring, so that one wait sees both.
    pub(crate) ring: Ring,
    back_end: Box<dyn BackEnd>,
    /// Commands at the back end, and when they were given.
    in_flight: Vec<InFlight>,
    /// What commands at the back end hold besides the buffers of operations.
    scratch: Vec<Scratch>,
    spare: Arena,
}

/// A command at the back end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    id: CommandId,
    pub(crate) given: Instant,
    pub(crate) action: Action,
}

/// Memory of a command for blocks around those of its request.
pub(crate) struct Scratch {
    id: CommandId,
    pub(crate) start: Lba,
    buffer: Buffer,
}

impl Scratch {
    pub(crate) fn memory(&self) -> Memory {
        self.buffer.memory()
    }
}

/// Memory for background reads: two commands at a time, and the longest read in idle time has 2048
/// blocks of 4096 bytes; tracks have less.
const SPARE: usize = 4 * (2048 * 4096);

impl Disk {
    /// An idle drive.
    ///
    /// # Errors
    /// If the kernel has no memory for it.
    pub(crate) fn new(
        clock: Clock,
        ring: Ring,
        engine: engine::Engine,
        back_end: Box<dyn BackEnd>,
    ) -> io::Result<Self> {
        Ok(Disk {
            now: clock.now(),
            clock,
            engine: LiveEngine::new(engine),
            shape: back_end.shape(),
            ring,
            back_end,
            in_flight: Vec::new(),
            scratch: Vec::new(),
            spare: Arena::map(SPARE)?,
        })
    }

    /// Records every input of the engine from now on; nothing may have happened yet.
    pub(crate) fn captured(mut self, recorder: Recorder) -> Self {
        self.engine = self.engine.captured(recorder);
        self
    }

    /// Bytes in a block.
    pub(crate) fn block(&self) -> u64 {
        u64::from(self.shape.block_bytes)
    }

    /// Whether background reads are possible.
    ///
    /// # Errors
    /// Why not, and what was expected.
    pub(crate) fn check_background(&self) -> Result<(), String> {
        match self.engine.background().is_on() {
            true => Ok(()),
            false => Err(
                "free blocks need a drive that turns and takes two commands, a belief about it, and a policy that gives \
                 it one command after the other, such as sptf-sw60"
                    .to_owned(),
            ),
        }
    }

    /// Bytes of scratch memory in use.
    pub(crate) fn scratch_bytes(&self) -> usize {
        self.spare.length() - self.spare.left()
    }

    /// Scratch memory of a command for blocks from `start` on.
    pub(crate) fn scratch(&mut self, id: CommandId, start: Lba, length: usize) -> Memory {
        let buffer = self.spare.allocate(length).expect(
            "at most as many background reads at the back end as there is scratch memory for",
        );
        let memory = buffer.memory();
        self.scratch.push(Scratch { id, start, buffer });
        memory
    }

    /// Takes the next scratch memory of a command that has ended. It is given back with
    /// [`Disk::free`].
    pub(crate) fn take_scratch(&mut self, id: CommandId) -> Option<Scratch> {
        let place = self.scratch.iter().position(|scratch| scratch.id == id)?;
        Some(self.scratch.swap_remove(place))
    }

    pub(crate) fn free(&mut self, scratch: Scratch) {
        self.spare.free(scratch.buffer);
    }

    /// Starts a command whose blocks lie in the pieces of `memory`, one after the other.
    ///
    /// # Safety
    /// As for [`BackEnd::start`].
    pub(crate) unsafe fn start(&mut self, command: &Command, memory: &[Memory]) {
        self.in_flight.push(InFlight {
            id: command.id,
            given: self.now,
            action: command.action,
        });
        // SAFETY: the caller's promise.
        unsafe {
            self.back_end
                .start(self.now, command, memory, &mut self.ring);
        }
    }

    /// The next command that has ended.
    pub(crate) fn poll_ended(&mut self) -> Option<Ended> {
        self.back_end.poll(self.now)
    }

    /// Tells the engine how a command has ended. The answer is how many revolutions were lost because a
    /// plan before it failed.
    pub(crate) fn complete(
        &mut self,
        id: CommandId,
        status: Status,
        account: Option<Account>,
    ) -> u64 {
        let outcome = Outcome {
            id,
            at: self.now,
            status,
            account,
        };
        let before = self.engine.background().gaps().mispredicted;
        self.engine.complete(self.now, id, outcome);
        self.engine.background().gaps().mispredicted - before
    }

    /// Removes a command that has ended.
    pub(crate) fn take_in_flight(&mut self, id: CommandId) -> Option<InFlight> {
        let place = self.in_flight.iter().position(|command| command.id == id)?;
        Some(self.in_flight.swap_remove(place))
    }

    /// An operation of the back end has ended in the ring.
    pub(crate) fn ring_ended(&mut self, key: u32, result: i32) {
        self.back_end
            .ring_ended(self.now, key, result, &mut self.ring);
    }

    /// When the engine or the back end is to be polled next, if nothing ends before.
    pub(crate) fn next_wakeup(&self) -> Option<Instant> {
        let wakeups = [self.engine.next_wakeup(), self.back_end.next_wakeup()];
        wakeups.into_iter().flatten().min()
    }

    /// Trims or zeroes blocks without head time. The end comes by [`Disk::poll_punched`].
    pub(crate) fn punch(&mut self, key: usize, what: Punch, blocks: Extent) {
        let span = Span {
            offset: blocks.start().0 * self.block(),
            length: blocks.length().0 * self.block(),
        };
        self.back_end.punch(key as u32, what, span, &mut self.ring);
    }

    pub(crate) fn poll_punched(&mut self) -> Option<(usize, Result<(), Failed>)> {
        let (key, result) = self.back_end.poll_punched()?;
        Some((key as usize, result))
    }

    /// Holes and data of a span, as far as they are found without long work.
    pub(crate) fn runs(&mut self, span: Span) -> Vec<Run> {
        self.back_end.runs(span)
    }

    /// The same at once, or later by [`Disk::poll_runs`].
    pub(crate) fn ask_runs(&mut self, key: usize, span: Span) -> Option<Vec<Run>> {
        self.back_end.ask_runs(key as u32, span, &mut self.ring)
    }

    pub(crate) fn poll_runs(&mut self) -> Option<(usize, Vec<Run>)> {
        let (key, runs) = self.back_end.poll_runs()?;
        Some((key as usize, runs))
    }

    /// The whole device, if the back end has it in memory.
    pub(crate) fn mapped(&self) -> Option<Memory> {
        self.back_end.mapped()
    }

    /// See [`BackEnd::lateness`].
    pub(crate) fn lateness(&self) -> Option<&Histogram<u64>> {
        self.back_end.lateness()
    }

    /// See [`BackEnd::power_cut`].
    pub(crate) fn power_cut(&mut self) -> Option<Lost> {
        self.back_end.power_cut(self.now, &mut self.ring)
    }
}
