//! A back end whose volumes have checksums.
//!
//! ```text
//!   write --> intents durable? --yes--> back end --ended--> keeper
//!                '---no: it waits ^
//!   region's thread --report---------'      an eventfd wakes the loop
//! ```
//!
//! Every write, trim and read of a drive passes here, whichever door it came through. The files of the regions are
//! read and written by a thread for each volume, so the loop never waits for them.
//!
//! A region that fails is emptied: the volume is then served without checksums. If it cannot be emptied either, writes
//! fail, because a later scrub would report them as damage.

#![allow(
    unsafe_code,
    reason = "reads the memory of commands: of writes before they begin, of reads when they have ended"
)]

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use block::operation::OperationError;
use block::{Action, Command, CommandId, Extent, Instant};
use drive::Lost;
use hdrhistogram::Histogram;
use rustix::event::{EventfdFlags, eventfd};

use super::pieces::{Pieces, held, in_a_row};
use super::{BackEnd, Ended, Punch, Run, Shape, Span};
use crate::arena::Memory;
use crate::checksums::keeper::{Ending, Keeper, Readiness, Trimmed};
use crate::checksums::orders::Report;
use crate::checksums::region::Region;
use crate::ring::{Owner, Ring, Ticket};

mod checks;
mod thread;

pub use checks::Checks;
use checks::Kept;
use thread::RegionThread;
pub use thread::{Answer, CheckState, MakeWorker, RegionWorker, carry_out};

/// A volume with checksums, before its drive begins.
pub struct CheckedVolume {
    /// The name of the volume.
    pub name: String,
    /// The first byte of the volume on the drive.
    pub offset: u64,
    /// The open region.
    pub region: Region<File>,
    /// The intents of the region: chunks and their pages with writes that may have been interrupted.
    pub intents: Vec<(u64, u16)>,
    /// How trimmed bytes read.
    pub trimmed: Trimmed,
}

/// A back end whose volumes have checksums.
pub struct Checked {
    inner: Box<dyn BackEnd>,
    checks: Checks,
    /// Commands that wait for their intents.
    waiting: VecDeque<Waiting>,
    in_flight: Vec<InFlight>,
    /// Trims that wait for their regions, and the number of those.
    punches: Vec<(PunchOrder, usize)>,
    /// Trims in flight.
    punching: Vec<PunchOrder>,
    ended: VecDeque<Ended>,
    /// Trims of volumes whose checksums are stuck.
    refused: VecDeque<u32>,
    bell: Arc<OwnedFd>,
    is_listening: bool,
}

struct Waiting {
    command: Command,
    memory: Pieces,
}

struct InFlight {
    id: CommandId,
    action: Action,
    memory: Pieces,
}

#[derive(Clone, Copy)]
struct PunchOrder {
    key: u32,
    what: Punch,
    span: Span,
}

/// The key of the eventfd in the ring. Back ends count theirs from zero.
const BELL: u32 = u32::MAX;

impl Checked {
    /// A back end of these volumes over another one, with a thread for each region.
    ///
    /// # Errors
    /// If there is no thread or eventfd.
    pub fn new(inner: Box<dyn BackEnd>, volumes: Vec<CheckedVolume>) -> io::Result<Self> {
        Checked::with_workers(inner, volumes, &|region, volume, bell| {
            Ok(Box::new(RegionThread::begin(region, volume, bell)?))
        })
    }

    /// A back end of these volumes over another one, whose regions have these workers.
    ///
    /// # Errors
    /// If there is no worker or eventfd.
    pub fn with_workers(
        inner: Box<dyn BackEnd>,
        volumes: Vec<CheckedVolume>,
        make: MakeWorker<'_>,
    ) -> io::Result<Self> {
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let kept = volumes.into_iter().map(|volume| {
            let length = volume.region.length();
            Ok(Kept {
                keeper: Keeper::new(length, volume.trimmed, &volume.intents),
                state: CheckState::On,
                worker: Some(make(volume.region, &volume.name, &bell)?),
                name: volume.name,
                offset: volume.offset,
            })
        });
        Ok(Checked {
            inner,
            checks: Checks {
                volumes: kept.collect::<io::Result<_>>()?,
            },
            waiting: VecDeque::new(),
            in_flight: Vec::new(),
            punches: Vec::new(),
            punching: Vec::new(),
            ended: VecDeque::new(),
            refused: VecDeque::new(),
            bell,
            is_listening: false,
        })
    }

    fn listen(&mut self, ring: &mut Ring) {
        if !self.is_listening {
            self.is_listening = true;
            let owner = Owner::BackEnd;
            ring.poll_readable(Ticket { owner, key: BELL }, self.bell.as_fd().as_raw_fd());
        }
    }

    fn bytes(&self, extent: Extent) -> Range<u64> {
        let block = u64::from(self.inner.shape().block_bytes);
        extent.start().0 * block..extent.end().0 * block
    }

    /// Begins a command that need not wait.
    ///
    /// # Safety
    /// As for [`BackEnd::start`].
    unsafe fn begin(&mut self, now: Instant, command: &Command, memory: Pieces, ring: &mut Ring) {
        let key = command.id.0;
        match command.action {
            Action::Write { extent, .. } => {
                let bytes = self.bytes(extent);
                for kept in self.checks.of(&bytes) {
                    let own = kept.own(&bytes);
                    // SAFETY: the bytes of a write do not change until the command has ended.
                    let all = unsafe { kept.pieces(&bytes, &memory) };
                    kept.keeper.write_begun(key, own, all);
                }
            }
            Action::Read { extent, .. } => {
                let bytes = self.bytes(extent);
                self.checks
                    .of(&bytes)
                    .for_each(|kept| kept.keeper.read_begun(key));
            }
            Action::Flush => {
                (self.checks.volumes.iter_mut()).for_each(|kept| kept.keeper.flush_begun(key))
            }
            _ => (),
        }
        self.in_flight.push(InFlight {
            id: command.id,
            action: command.action,
            memory,
        });
        let (all, count) = in_a_row(&memory);
        // SAFETY: the caller's promise.
        unsafe { self.inner.start(now, command, &all[..count], ring) };
    }

    /// Whether a write may begin.
    fn readiness(&mut self, action: &Action) -> Readiness {
        let Action::Write { extent, .. } = *action else {
            return Readiness::Ready;
        };
        let bytes = self.bytes(extent);
        let mut all = Readiness::Ready;
        for kept in self.checks.of(&bytes) {
            let own = kept.own(&bytes);
            if kept.keeper.readiness(&own) == Readiness::Waiting {
                all = Readiness::Waiting;
            }
        }
        all
    }

    /// The region of a volume with some of these bytes is stuck.
    fn is_stuck(&self, bytes: &Range<u64>) -> bool {
        self.checks.volumes.iter().any(|kept| {
            let until = kept.offset + kept.keeper.length();
            let is_inside = bytes.start < until && kept.offset < bytes.end;
            is_inside && matches!(kept.state, CheckState::Stuck(_))
        })
    }

    /// Begins the commands that have waited long enough.
    fn release(&mut self, now: Instant, ring: &mut Ring) {
        for _ in 0..self.waiting.len() {
            let Some(Waiting { command, memory }) = self.waiting.pop_front() else {
                break;
            };
            // SAFETY: the command was started and has not ended: its memory is there.
            unsafe { self.start_or_wait(now, command, memory, ring) };
        }
        self.checks.send();
    }

    /// # Safety
    /// As for [`BackEnd::start`].
    unsafe fn start_or_wait(
        &mut self,
        now: Instant,
        command: Command,
        memory: Pieces,
        ring: &mut Ring,
    ) {
        let written = match command.action {
            Action::Write { extent, .. } => Some(self.bytes(extent)),
            _ => None,
        };
        if written.is_some_and(|bytes| self.is_stuck(&bytes)) {
            self.ended.push_back(Ended {
                id: command.id,
                result: Err(OperationError::Io),
                account: None,
            });
            return;
        }
        match self.readiness(&command.action) {
            // SAFETY: the caller's promise.
            Readiness::Ready => unsafe { self.begin(now, &command, memory, ring) },
            Readiness::Waiting => self.waiting.push_back(Waiting { command, memory }),
        }
    }

    /// Regions have answered.
    fn answered(&mut self, now: Instant, ring: &mut Ring) {
        let mut count = [0; 8];
        // It is readable, or another look has reset it.
        let _ = rustix::io::read(&*self.bell, &mut count);
        for kept in &mut self.checks.volumes {
            let Some(worker) = &kept.worker else {
                continue;
            };
            for answer in worker.take_answers() {
                match answer {
                    Answer::Report(report) => {
                        kept.keeper.answer(now, &report);
                        if let Report::Voided(key) = report {
                            voided(&mut self.punches, key as u32);
                        }
                    }
                    Answer::Failed(state) => {
                        kept.state = state;
                        // No region holds a trim up any more.
                        kept.worker = None;
                        self.punches.iter_mut().for_each(|(_, left)| *left = 0);
                        break;
                    }
                }
            }
        }
        let ready: Vec<PunchOrder> = (self.punches.extract_if(.., |(_, left)| *left == 0))
            .map(|(order, _)| order)
            .collect();
        ready
            .into_iter()
            .for_each(|order| self.begin_punch(order, ring));
        self.release(now, ring);
    }

    /// Begins a trim whose checksums are gone.
    fn begin_punch(&mut self, order: PunchOrder, ring: &mut Ring) {
        let PunchOrder { key, what, span } = order;
        self.punching.push(order);
        match self.is_stuck(&(span.offset..span.offset + span.length)) {
            true => self.refused.push_back(key),
            false => self.inner.punch(key, what, span, ring),
        }
    }

    fn command_ended(&mut self, now: Instant, ended: &Ended) {
        let place = self.in_flight.iter().position(|one| one.id == ended.id);
        let Some(InFlight { action, memory, .. }) =
            place.map(|place| self.in_flight.swap_remove(place))
        else {
            return;
        };
        let ending = match ended.result {
            Ok(()) => Ending::Good,
            Err(_) => Ending::Failed,
        };
        let key = ended.id.0;
        match action {
            Action::Write { extent, .. } => {
                let bytes = self.bytes(extent);
                (self.checks.of(&bytes))
                    .for_each(|kept| kept.keeper.change_ended(now, key, ending));
            }
            Action::Read { extent, .. } => {
                let bytes = self.bytes(extent);
                for kept in self.checks.of(&bytes) {
                    let own = kept.own(&bytes);
                    if !kept.keeper.wants_reads() {
                        kept.keeper.read_dropped(key);
                        continue;
                    }
                    // SAFETY: the read has ended, and its caller has not got its memory back yet.
                    let all =
                        (ending == Ending::Good).then(|| unsafe { kept.pieces(&bytes, &memory) });
                    kept.keeper.read_ended(key, &own, all.map(Vec::into_iter));
                }
            }
            Action::Flush => {
                (self.checks.volumes.iter_mut())
                    .for_each(|kept| kept.keeper.flush_ended(key, ending));
            }
            _ => (),
        }
    }
}

fn voided(punches: &mut [(PunchOrder, usize)], key: u32) {
    let mut all = punches.iter_mut();
    if let Some((_, left)) = all.find(|(order, _)| order.key == key) {
        *left = left.saturating_sub(1);
    }
}

impl BackEnd for Checked {
    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    unsafe fn start(
        &mut self,
        now: Instant,
        command: &Command,
        memory: &[Memory],
        ring: &mut Ring,
    ) {
        self.listen(ring);
        // SAFETY: the caller's promise, passed on.
        unsafe { self.start_or_wait(now, *command, held(memory), ring) };
        self.checks.send();
    }

    fn ring_ended(&mut self, now: Instant, key: u32, result: i32, ring: &mut Ring) {
        if key != BELL {
            return self.inner.ring_ended(now, key, result, ring);
        }
        self.is_listening = false;
        self.answered(now, ring);
        self.listen(ring);
    }

    fn poll(&mut self, now: Instant) -> Option<Ended> {
        if let Some(ended) = self.ended.pop_front() {
            return Some(ended);
        }
        let ended = self.inner.poll(now)?;
        self.command_ended(now, &ended);
        self.checks.send();
        Some(ended)
    }

    fn depth(&self) -> u32 {
        self.inner.depth()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let on = self.checks.volumes.iter().filter(|kept| kept.is_on());
        let own = on.filter_map(|kept| kept.keeper.next_wakeup());
        own.chain(self.inner.next_wakeup()).min()
    }

    fn punch(&mut self, key: u32, what: Punch, span: Span, ring: &mut Ring) {
        self.listen(ring);
        let bytes = span.offset..span.offset + span.length;
        let order = PunchOrder { key, what, span };
        let mut regions = 0;
        for kept in self.checks.of(&bytes) {
            let own = kept.own(&bytes);
            kept.keeper.punch_begun(PUNCH | u64::from(key), own);
            regions += usize::from(kept.worker.is_some());
        }
        match regions {
            0 => self.begin_punch(order, ring),
            _ => self.punches.push((order, regions)),
        }
        self.checks.send();
    }

    fn poll_punched(&mut self) -> Option<(u32, Result<(), OperationError>)> {
        let refused = self.refused.pop_front();
        let (key, result) = match refused {
            Some(key) => (key, Err(OperationError::Io)),
            None => self.inner.poll_punched()?,
        };
        if let Some(place) = self.punching.iter().position(|order| order.key == key) {
            let PunchOrder { span, .. } = self.punching.swap_remove(place);
            let bytes = span.offset..span.offset + span.length;
            for kept in self.checks.of(&bytes) {
                let key = PUNCH | u64::from(key);
                kept.keeper.change_ended(Instant::ZERO, key, Ending::Good);
            }
        }
        Some((key, result))
    }

    fn runs(&mut self, span: Span) -> Vec<Run> {
        self.inner.runs(span)
    }

    fn ask_runs(&mut self, key: u32, span: Span, ring: &mut Ring) -> Option<Vec<Run>> {
        self.inner.ask_runs(key, span, ring)
    }

    fn poll_runs(&mut self) -> Option<(u32, Vec<Run>)> {
        self.inner.poll_runs()
    }

    fn lateness(&self) -> Option<&Histogram<u64>> {
        self.inner.lateness()
    }

    fn power_cut(&mut self, now: Instant, ring: &mut Ring) -> Option<Lost> {
        let lost = self.inner.power_cut(now, ring)?;
        self.checks
            .volumes
            .iter_mut()
            .for_each(|kept| kept.keeper.power_cut());
        Some(lost)
    }

    fn checks(&mut self) -> Option<&mut Checks> {
        Some(&mut self.checks)
    }
}

/// Keys of trims among those of commands.
const PUNCH: u64 = 1 << 63;

impl Drop for Checked {
    fn drop(&mut self) {
        for kept in &mut self.checks.volumes {
            if kept.is_on() {
                // The last flush has ended: nothing is in doubt after a clean end.
                kept.keeper.settle_all();
                kept.send();
            }
        }
    }
}
