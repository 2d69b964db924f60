//! A drive: the engine that orders its commands, and the back end that executes them.
//!
//! ```text
//!   volume --request--> engine --command--> back end --ring--> kernel
//!          <-finished--        <-outcome---
//! ```
//!
//! The disk moves no bytes. It owns the scratch memory of background reads, in use while their commands are
//! in flight.

#![allow(
    unsafe_code,
    reason = "hands memory to the back end while commands are in flight"
)]

use block::{
    Account, Command, CommandId, Direction, Extent, Instant, Lba, Outcome, Refused, Request,
    RequestId, Status,
};
use drive::Lost;
use hdrhistogram::Histogram;
use std::io;

use self::back_end::checked::Checks;
use self::back_end::{BackEnd, Ended, Punch, Run, Shape, Span};
use self::learning::{Learning, LearningGrant};
use self::taking_up::NextEngine;
use crate::arena::{Arena, Buffer, Memory};
use crate::capture::{LiveEngine, Recorder};
use crate::clock::Clock;
use crate::ring::Ring;
use block::operation::OperationError;
use profiler::{DriveIdentity, Offers, WritePermission};

pub mod back_end;
pub mod learning;
mod legs;
mod rebuilding;
pub mod taking_up;

/// A drive in service. `now` is the drive's time at the begin of this turn of the loop.
pub(crate) struct Disk {
    pub(crate) clock: Clock,
    pub(crate) now: Instant,
    pub(crate) engine: LiveEngine,
    pub(crate) shape: Shape,
    /// The kernel's queues. Clients' sockets use the same ring, so one wait covers both.
    pub(crate) ring: Ring,
    back_end: Box<dyn BackEnd>,
    /// The commands at the back end, and the time at which each was dispatched.
    in_flight: Vec<(Command, Instant)>,
    /// The scratch memory of commands at the back end.
    scratch: Vec<Scratch>,
    spare: Arena,
    /// The profiler behind the load, if there is or was one.
    learning: Option<Box<Learning>>,
    /// Reads of the profiler that have failed.
    failed_probes: u64,
    /// The engine that takes the place of the present one when that is idle.
    next: Option<NextEngine>,
    /// The flush of checksums that has not ended yet.
    checksum_flush: Option<RequestId>,
    /// The engine's reads for a leg of a mirror that is being filled.
    rounds: rebuilding::Rounds,
}

/// The memory of a command's blocks outside of its request.
pub(crate) struct Scratch {
    id: CommandId,
    /// When the command began.
    pub(crate) begun: Instant,
    pub(crate) start: Lba,
    buffer: Buffer,
}

impl Scratch {
    pub(crate) fn memory(&self) -> Memory {
        self.buffer.memory()
    }
}

/// Bytes of memory for background reads: two commands at a time. The longest read in idle time has 2048
/// blocks of 4096 bytes; tracks have less.
const SPARE: usize = 4 * (2048 * 4096);

/// The flush that checksums ask for. Operations have small numbers.
const CHECKSUM_FLUSH: RequestId = RequestId(u64::MAX);

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
            learning: None,
            failed_probes: 0,
            next: None,
            checksum_flush: None,
            rounds: rebuilding::Rounds::default(),
        })
    }

    /// Records every input of the engine. It is called before the first one.
    pub(crate) fn with_capture(mut self, recorder: Recorder) -> Self {
        self.engine = self.engine.with_capture(recorder);
        self
    }

    /// Bytes of a block.
    pub(crate) fn block(&self) -> u64 {
        u64::from(self.shape.block_bytes)
    }

    /// Checks whether the drive can have background reads.
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

    /// Allocates scratch memory of a command for `length` bytes from block `start` on.
    pub(crate) fn scratch(&mut self, id: CommandId, start: Lba, length: usize) -> Memory {
        let buffer = self.spare.allocate(length).expect(
            "at most as many background reads at the back end as there is scratch memory for",
        );
        let memory = buffer.memory();
        let begun = self.now;
        self.scratch.push(Scratch {
            id,
            begun,
            start,
            buffer,
        });
        memory
    }

    /// Takes the next scratch memory of an ended command. The caller frees it with [`Disk::free`].
    pub(crate) fn take_scratch(&mut self, id: CommandId) -> Option<Scratch> {
        let place = self.scratch.iter().position(|scratch| scratch.id == id)?;
        Some(self.scratch.swap_remove(place))
    }

    pub(crate) fn free(&mut self, scratch: Scratch) {
        self.spare.free(scratch.buffer);
    }

    /// Starts a command whose blocks lie in the pieces of `memory`, in their order.
    ///
    /// # Safety
    /// As for [`BackEnd::start`].
    pub(crate) unsafe fn start(&mut self, command: &Command, memory: &[Memory]) {
        self.in_flight.push((*command, self.now));
        if let Some(learning) = &mut self.learning {
            learning.began();
        }
        if let Some(mirror) = self.back_end.mirror() {
            let request = self.engine.request_of(command.id);
            mirror.starts_next(request.map(|request| request.extent));
        }
        // SAFETY: the caller's promise.
        unsafe {
            self.back_end
                .start(self.now, command, memory, &mut self.ring);
        }
    }

    /// The next command that has ended.
    pub(crate) fn poll_ended(&mut self) -> Option<Ended> {
        loop {
            self.back_end.advance(self.now, &mut self.ring);
            self.follow_legs();
            self.follow_rebuild();
            let ended = self.back_end.poll(self.now)?;
            let Some(learning) = &mut self.learning else {
                return Some(ended);
            };
            if !learning.took(self.now, &ended) {
                return Some(ended);
            }
            self.failed_probes += u64::from(ended.result.is_err());
        }
    }

    /// Profiles the drive in idle time and within a granted share of the time, continuing from what was
    /// found before.
    ///
    /// # Errors
    /// Why not, and what was expected.
    pub(crate) fn learn(&mut self, name: &str, grant: &LearningGrant) -> Result<(), String> {
        if self.engine.tallies().is_some() {
            return Err(format!(
                "drive {name} has a belief that it follows: expected a drive without one"
            ));
        }
        if self.next.is_some() {
            return Err(format!(
                "a belief of drive {name} is being taken up: expected a drive without one"
            ));
        }
        if self.engine.is_mirrored() {
            return Err(format!(
                "drive {name} is a mirror: expected one disk, which `headtime adopt` learns by itself"
            ));
        }
        if self
            .learning
            .as_ref()
            .is_some_and(|one| one.is_active(self.now))
        {
            return Err(format!("drive {name} is being profiled already"));
        }
        let identity = DriveIdentity {
            blocks: self.shape.blocks,
            block_bytes: self.shape.block_bytes,
            physical_block_bytes: self.shape.block_bytes,
            depth: self.back_end.depth(),
            offers: Offers::Nothing,
            writes: WritePermission::Forbidden,
        };
        let earlier = self
            .learning
            .take()
            .map(|one| one.learned(self.now).findings);
        let begun = Learning::begin(
            self.now,
            identity,
            grant,
            earlier.unwrap_or_default(),
            self.in_flight.len(),
        );
        self.learning = Some(Box::new(begun.map_err(|error| error.to_string())?));
        Ok(())
    }

    /// The profiler behind the load, if there is or was one.
    pub(crate) fn learning(&self) -> Option<&Learning> {
        self.learning.as_deref()
    }

    /// Whether something waits for gaps, or a profiler measures: then it matters how late this machine sees an end.
    pub(crate) fn fills_gaps(&self) -> bool {
        let learning = self.learning.as_ref();
        self.engine.fills_gaps() || learning.is_some_and(|one| one.is_active(self.now))
    }

    /// Reads of the profiler that have failed.
    pub(crate) fn failed_probes(&self) -> u64 {
        self.failed_probes
    }

    /// Whether a probe is at the back end.
    pub(crate) fn is_probing(&self) -> bool {
        self.learning.as_ref().is_some_and(|one| one.is_probing())
    }

    /// Dispatches no more probes.
    pub(crate) fn stop_learning(&mut self) {
        if let Some(learning) = &mut self.learning {
            learning.stop();
        }
    }

    /// Dispatches the probes that are due. The answer is whether there was one.
    pub(crate) fn probe(&mut self) -> bool {
        let Some(learning) = &mut self.learning else {
            return false;
        };
        let mut is_any = false;
        while let Some((command, memory)) = learning.next(self.now) {
            is_any = true;
            // SAFETY: the learning keeps the memory until the command has ended.
            unsafe {
                self.back_end
                    .start(self.now, &command, &[memory], &mut self.ring);
            }
        }
        is_any
    }

    /// Notifies the engine of the end of a command. The answer is the number of revolutions that a failed
    /// plan before it has lost.
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
        let before = self.engine.gaps().mispredicted;
        self.engine.complete(self.now, id, outcome);
        self.engine.gaps().mispredicted - before
    }

    /// Removes a command that has ended. The answer is the command and the time of its dispatch.
    pub(crate) fn take_in_flight(&mut self, id: CommandId) -> Option<(Command, Instant)> {
        let place = self
            .in_flight
            .iter()
            .position(|(command, _)| command.id == id)?;
        Some(self.in_flight.swap_remove(place))
    }

    /// An operation of the back end in the ring has completed.
    pub(crate) fn ring_ended(&mut self, key: u32, result: i32) {
        self.back_end
            .ring_ended(self.now, key, result, &mut self.ring);
    }

    /// As [`Disk::ring_ended`], of a mirror's second leg.
    pub(crate) fn second_ring_ended(&mut self, key: u32, result: i32) {
        self.back_end
            .second_ring_ended(self.now, key, result, &mut self.ring);
    }

    /// The time of the next poll of engine or back end, if nothing completes before.
    pub(crate) fn next_wakeup(&mut self) -> Option<Instant> {
        let round = self.next_round();
        let learning = self.learning.as_ref();
        let wakeups = [
            round,
            self.engine.next_wakeup(),
            self.back_end.next_wakeup(),
            learning.and_then(|learning| learning.next_wakeup()),
        ];
        wakeups.into_iter().flatten().min()
    }

    /// Trims or zeroes blocks without head time. The result comes by [`Disk::poll_punched`].
    pub(crate) fn punch(&mut self, key: usize, what: Punch, blocks: Extent) {
        let span = Span {
            offset: blocks.start().0 * self.block(),
            length: blocks.length().0 * self.block(),
        };
        self.back_end.punch(key as u32, what, span, &mut self.ring);
    }

    pub(crate) fn poll_punched(&mut self) -> Option<(usize, Result<(), OperationError>)> {
        let (key, result) = self.back_end.poll_punched()?;
        Some((key as usize, result))
    }

    /// Holes and data of a span, as far as the back end finds them quickly.
    pub(crate) fn runs(&mut self, span: Span) -> Vec<Run> {
        self.back_end.runs(span)
    }

    /// Holes and data of a span. Without an answer now, [`Disk::poll_runs`] has one later.
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

    /// Submits a request to the engine. The intents of a write become durable while it waits there.
    ///
    /// # Errors
    /// The engine's.
    pub(crate) fn submit(&mut self, request: Request) -> Result<(), Refused> {
        match self.back_end.mirror() {
            None => self.engine.submit(self.now, request)?,
            Some(mirror) => {
                let legs = mirror.written_legs(&request);
                self.engine.submit_to(self.now, request, legs)?;
                mirror.submitted(&request, legs);
            }
        }
        if let (Direction::Write, Some(checks)) = (request.direction, self.back_end.checks()) {
            let block = u64::from(self.shape.block_bytes);
            checks.foresee(&(request.extent.start().0 * block..request.extent.end().0 * block));
        }
        Ok(())
    }

    /// The checksums of volumes.
    pub(crate) fn checks(&mut self) -> Option<&mut Checks> {
        self.back_end.checks()
    }

    /// Writes checksums of what is durable, and flushes the drive if that makes more of it durable.
    pub(crate) fn settle_checksums(&mut self) {
        let now = self.now;
        let Some(checks) = self.back_end.checks() else {
            return;
        };
        if checks.settle(now) && self.checksum_flush.is_none() {
            // Without room now it is asked again.
            let asked = self.engine.flush(now, CHECKSUM_FLUSH);
            self.checksum_flush = asked.ok().map(|()| CHECKSUM_FLUSH);
        }
    }

    /// Whether a flush that has ended is the one of the checksums.
    pub(crate) fn take_checksum_flush(&mut self, id: RequestId) -> bool {
        self.checksum_flush.take_if(|flush| *flush == id).is_some()
    }

    /// See [`BackEnd::lateness`].
    pub(crate) fn lateness(&self) -> Option<&Histogram<u64>> {
        self.back_end.lateness()
    }

    /// See [`BackEnd::power_cut`].
    pub(crate) fn power_cut(&mut self) -> Option<Lost> {
        let lost = self.back_end.power_cut(self.now, &mut self.ring);
        self.follow_legs();
        lost
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use block::{Class, Direction, Durability, Request, Sectors};
    use drive::Profile;
    use engine::{Engine, Limits};
    use scheduler::policy::find;

    use super::back_end::memory::Ram;
    use super::*;
    use crate::clock::TimeScale;
    use crate::disk::back_end::Holds;

    /// A drive in memory under an engine that `adapt` completes.
    pub(crate) fn in_memory(
        policy: &str,
        belief: Profile,
        adapt: impl FnOnce(Engine) -> Engine,
    ) -> Disk {
        let policy = find(policy).expect("a policy");
        let belief = Arc::new(belief);
        let limits = Limits::suited_to(policy, &belief);
        let bytes = belief.geometry.sectors().0 * u64::from(belief.block_bytes);
        let engine = adapt(Engine::new(belief, &|| policy.make(), limits));
        let arena = Arena::map(1).expect("memory");
        let ring = Ring::new(&arena).expect("a ring");
        let back_end = Box::new(Ram::new(bytes).expect("memory"));
        let clock = Clock::start(TimeScale::REAL);
        Disk::new(clock, ring, engine, back_end).expect("a drive")
    }

    /// A drive of 1 MiB without a belief.
    pub(crate) fn plain() -> Disk {
        let belief = crate::featureless::profile("a-test", 2048, 512).expect("a profile");
        in_memory("c-look", belief, |engine| engine)
    }

    /// Executes a request, whose blocks are in `memory`, from its submission to its end.
    fn execute(disk: &mut Disk, direction: Direction, extent: Extent, memory: Memory) -> Status {
        let request = Request {
            id: RequestId(7),
            direction,
            extent,
            class: Class::default(),
            durability: Durability::Volatile,
            owner: block::Owner::NOBODY,
        };
        disk.engine.submit(disk.now, request).expect("accepted");
        while let Some(command) = disk.engine.poll(disk.now) {
            let extent = command.action.extent().expect("it transfers");
            let before = (extent.start().0 - request.extent.start().0) * disk.block();
            let part = memory.part(before as usize, (extent.length().0 * disk.block()) as usize);
            // SAFETY: the memory is the test's, which waits for the end.
            unsafe { disk.start(&command, &[part]) };
            let ended = disk.poll_ended().expect("memory is quick");
            assert_eq!((ended.id, ended.result), (command.id, Ok(())));
            disk.complete(ended.id, Status::Good, ended.account);
            let (_, given) = disk.take_in_flight(ended.id).expect("it was in flight");
            assert_eq!(given, disk.now);
            assert!(disk.take_in_flight(ended.id).is_none(), "it was removed");
        }
        disk.engine.poll_finished().expect("it has ended").status
    }

    #[test]
    fn requests_go_from_the_engine_to_the_back_end_and_end_once() {
        let mut disk = plain();
        let extent = Extent::new(Lba(8), Sectors(16)).expect("blocks");
        let mut arena = Arena::map(1 << 14).expect("memory");
        let mut buffer = arena.allocate(16 * 512).expect("memory");
        buffer.bytes_mut().fill(9);
        let written = execute(&mut disk, Direction::Write, extent, buffer.memory());
        buffer.bytes_mut().fill(0);
        let read = execute(&mut disk, Direction::Read, extent, buffer.memory());
        assert_eq!((written, read), (Status::Good, Status::Good));
        assert!(buffer.bytes().iter().all(|&byte| byte == 9));
        assert!(disk.poll_ended().is_none() && disk.engine.poll_finished().is_none());
        arena.free(buffer);
    }

    #[test]
    fn scratch_memory_is_its_commands_until_it_is_freed() {
        let mut disk = plain();
        let (one, other) = (CommandId(1), CommandId(2));
        disk.scratch(one, Lba(0), 4096);
        disk.scratch(other, Lba(8), 8192);
        disk.scratch(one, Lba(32), 4096);
        assert_eq!(disk.scratch_bytes(), 16384);
        let mut starts = Vec::new();
        while let Some(scratch) = disk.take_scratch(one) {
            starts.push(scratch.start);
            disk.free(scratch);
        }
        starts.sort_unstable();
        assert_eq!(starts, [Lba(0), Lba(32)]);
        assert_eq!(disk.scratch_bytes(), 8192, "the other command's");
        let last = disk.take_scratch(other).expect("it has some");
        assert_eq!((last.start, last.memory().length), (Lba(8), 8192));
        disk.free(last);
        assert_eq!(disk.scratch_bytes(), 0);
    }

    #[test]
    fn trims_come_back_under_their_keys_and_become_holes() {
        let mut disk = plain();
        let whole = Extent::new(Lba(0), Sectors(2048)).expect("blocks");
        disk.punch(3, Punch::Trim, whole);
        assert_eq!(disk.poll_punched(), Some((3, Ok(()))));
        assert_eq!(disk.poll_punched(), None);
        let span = Span {
            offset: 0,
            length: 1 << 20,
        };
        let runs = disk.runs(span);
        assert!(!runs.is_empty() && runs.iter().all(|run| run.length > 0));
        assert!(
            runs.iter()
                .all(|run| matches!(run.holds, Holds::Hole | Holds::Bytes))
        );
        assert!(disk.check_background().is_err(), "it does not turn");
    }
}
