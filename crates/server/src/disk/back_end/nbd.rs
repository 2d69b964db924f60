//! An export of another NBD server as a back end: commands are its requests.
//!
//! ```text
//!   command -> job -> requests -> line -> server
//!                 ^                 | gone
//!                 '-- from the front, when the dialer has it back: everything under way is repeated
//! ```
//!
//! Every command may be repeated: reads, and writes of the same bytes to the same place. A lost server may
//! lose writes that it had answered and not flushed. Only clients know whether that matters, so the next
//! flush fails, once. No command waits longer than the patience.

#![allow(
    unsafe_code,
    reason = "passes on memory by address to the line, as its caller promised it"
)]

use std::collections::VecDeque;
use std::io;

use block::{Action, Command, CommandId, Durability, Duration, Instant};
use slab::Slab;
use tracing::error;

use super::{BackEnd, Ended, Punch, Run, Shape, Span};
use crate::arena::Memory;
use crate::ring::{Owner, Ring, Ticket};
use block::operation::{Ask, OperationError, Space};
use nbd::offer::Offer;
use nbd::request::Asked;

mod dialing;
mod found;
mod job;
mod line;
mod runs;

use dialing::{Agreement, Dialer};
pub use found::Found;
use job::{For, Job, Pieces};
use line::{Line, RECEIVE, SEND};
use runs::{unknown, whole_blocks};

/// An export of another server.
pub struct Remote {
    shape: Shape,
    /// The server's first offer.
    offer: Offer,
    /// The connection, also while the kernel still uses its memory.
    line: Option<Line>,
    dialer: Dialer,
    /// The time since which there is no connection.
    gone: Option<Instant>,
    patience: Duration,
    /// The time of the last receive, or of the begin of the wait for it.
    moved: Instant,
    now: Instant,
    jobs: Slab<Job>,
    /// Jobs with requests to submit.
    queue: VecDeque<usize>,
    number: u64,
    /// The number of block status requests in flight.
    questions: usize,
    /// The number of answered volatile writes, and of those that a flush has covered.
    written: u64,
    flushed: u64,
    /// Whether writes may be lost. The next flush fails.
    is_lossy: bool,
    ended: VecDeque<Ended>,
    punched: VecDeque<(u32, Result<(), OperationError>)>,
    told: VecDeque<(u32, Vec<Run>)>,
    bell: Box<[u8; 8]>,
}

/// The key of the read of the dialer's bell in the ring.
const BELL: u32 = 2;

/// The largest number of block status requests in flight. Others are answered with data, which is always
/// correct. A choice.
const QUESTIONS: usize = 64;

impl Remote {
    fn new(found: Found) -> io::Result<Self> {
        let offer = found.offer().clone();
        Ok(Remote {
            shape: found.shape,
            dialer: Dialer::begin(found.target, offer.clone())?,
            offer,
            line: Some(Line::new(found.agreement)),
            gone: None,
            patience: found.patience,
            moved: Instant::ZERO,
            now: Instant::ZERO,
            jobs: Slab::new(),
            queue: VecDeque::new(),
            number: 0,
            questions: 0,
            written: 0,
            flushed: 0,
            is_lossy: false,
            ended: VecDeque::new(),
            punched: VecDeque::new(),
            told: VecDeque::new(),
            bell: Box::new([0; 8]),
        })
    }

    fn begin(&mut self, mut job: Job, ring: &mut Ring) {
        job.interrupted = self.gone;
        job.number = self.number;
        self.number += 1;
        let place = self.jobs.insert(job);
        self.queue.push_back(place);
        self.go_on(ring);
    }

    /// Makes requests of what waits, as far as the server may have more.
    fn go_on(&mut self, ring: &mut Ring) {
        while let Some(line) = self.line.as_mut().filter(|line| !line.is_closing()) {
            let Some(&place) = self.queue.front().filter(|_| !line.is_full()) else {
                break;
            };
            let job = &mut self.jobs[place];
            let Some(request) = job.next(line.bounds()) else {
                self.queue.pop_front();
                continue;
            };
            if line.under_way() == 0 {
                self.moved = self.now;
            }
            job.covers = self.written;
            if let Err(failed) = line.submit(place, request) {
                error!(offset = request.offset, length = request.length, %failed,
                    "the server behind would refuse this request");
                self.part_ended(place, Err(failed));
            }
        }
        if let Some(line) = &mut self.line {
            line.go_on(ring);
        }
    }

    /// Takes what the line has.
    fn take_ends(&mut self) {
        while let Some(part) = self.line.as_mut().and_then(Line::next_end) {
            if part.result == Err(OperationError::ShuttingDown) {
                // What is under way is repeated when it is back.
                if let Some(line) = &mut self.line {
                    line.cut("the server goes down");
                }
                return;
            }
            if let Err(failed) = part.result {
                let offset = self.jobs[part.job].offset;
                error!(uri = self.dialer.uri(), offset, %failed,
                    "the server behind has failed: see what its own log says");
            }
            self.jobs[part.job].runs.extend(part.runs);
            self.part_ended(part.job, part.result);
        }
    }

    fn part_ended(&mut self, place: usize, result: Result<(), OperationError>) {
        let job = &mut self.jobs[place];
        if job.ended(result) {
            self.finish(place);
        } else if job.has_more() && !self.queue.contains(&place) {
            self.queue.push_back(place);
        }
    }

    fn finish(&mut self, place: usize) {
        let job = self.jobs.remove(place);
        self.queue.retain(|&other| other != place);
        let mut result = job.result();
        if result.is_ok() && job.is_volatile() {
            self.written += 1;
        }
        if result.is_ok() && job.is_flush() {
            self.flushed = self.flushed.max(job.covers);
            if std::mem::take(&mut self.is_lossy) {
                result = Err(OperationError::Io);
            }
        }
        match job.whom {
            For::Command(id) => self.end(id, result),
            For::Punch(key) => self.punched.push_back((key, result)),
            For::Runs(key) => {
                self.questions -= 1;
                let block = u64::from(self.shape.block_bytes);
                let runs = match result {
                    Ok(()) => whole_blocks(&job.runs, job.length, block),
                    Err(_) => unknown(job.length),
                };
                self.told.push_back((key, runs));
            }
        }
    }

    fn end(&mut self, id: CommandId, result: Result<(), OperationError>) {
        self.ended.push_back(Ended {
            id,
            result,
            account: None,
        });
    }

    /// The kernel has given back a line that is of no use any more.
    fn lose(&mut self, ring: &mut Ring) {
        // A server that was asked, and has said nothing for long, has been gone for as long.
        let was_asked = self.line.take().is_some_and(|line| line.under_way() > 0);
        let since = if was_asked { self.moved } else { self.now };
        self.gone = Some(since);
        let mut again: Vec<usize> = self.jobs.iter().map(|(place, _)| place).collect();
        again.sort_unstable_by_key(|&place| self.jobs[place].number);
        for &place in &again {
            self.jobs[place].begin_again(since);
        }
        self.queue = again.into();
        if self.written > self.flushed && self.offer.features.flush {
            error!(
                uri = self.dialer.uri(),
                writes = self.written - self.flushed,
                "the server behind has gone with writes that it had answered and not flushed: they \
                 may be lost, and the next flush fails; check what is on it if it was not only begun \
                 again"
            );
            self.flushed = self.written;
            self.is_lossy = true;
        }
        self.dialer.want();
        let memory = Memory {
            at: self.bell.as_mut_ptr(),
            length: self.bell.len(),
        };
        let ticket = Ticket {
            owner: Owner::BackEnd,
            key: BELL,
        };
        // SAFETY: the box is kept until the operation has ended or the ring is gone.
        unsafe { ring.read(ticket, self.dialer.bell(), memory, 0) };
    }

    fn found(&mut self, agreement: Agreement) {
        self.line = Some(Line::new(agreement));
        self.gone = None;
        self.moved = self.now;
    }

    /// Who has waited too long is told so.
    fn lose_patience(&mut self) {
        let patience = self.patience;
        match &mut self.line {
            Some(line) => {
                let is_stuck = line.under_way() > 0 && self.now >= self.moved + patience;
                if is_stuck && !line.is_closing() {
                    line.cut("the server has answered nothing for as long as our patience");
                }
            }
            None => {
                let now = self.now;
                let over = self.jobs.iter().filter(|(_, job)| {
                    job.interrupted.is_some_and(|since| now >= since + patience)
                });
                let over: Vec<usize> = over.map(|(place, _)| place).collect();
                if !over.is_empty() {
                    error!(
                        uri = self.dialer.uri(),
                        requests = over.len(),
                        "the server behind has not come back in time, and what waited for it fails: \
                         begin it again, or give it more patience (patience_s)"
                    );
                }
                for &place in &over {
                    self.jobs[place].give_up();
                    self.finish(place);
                }
            }
        }
    }
}

impl BackEnd for Remote {
    fn shape(&self) -> Shape {
        self.shape
    }

    unsafe fn start(
        &mut self,
        now: Instant,
        command: &Command,
        memory: &[Memory],
        ring: &mut Ring,
    ) {
        self.now = now;
        let block = u64::from(self.shape.block_bytes);
        let (ask, span) = match command.action {
            Action::Read { extent, .. } => (Ask::Read, extent),
            Action::Write { extent, durability } => (Ask::Write { durability }, extent),
            Action::Flush if self.offer.features.flush => {
                let whom = For::Command(command.id);
                let flush = Job::new(whom, Asked::Of(Ask::Flush), (0, 0), Pieces::NONE);
                return self.begin(flush, ring);
            }
            // A server has no arm and no switches.
            Action::Flush
            | Action::Seek { .. }
            | Action::SetLookAhead(_)
            | Action::SetWriteCache(_) => return self.end(command.id, Ok(())),
        };
        let span = (span.start().0 * block, span.length().0 * block);
        let whom = For::Command(command.id);
        let job = Job::new(whom, Asked::Of(ask), span, Pieces::of(memory));
        self.begin(job, ring);
    }

    fn ring_ended(&mut self, now: Instant, key: u32, result: i32, ring: &mut Ring) {
        self.now = now;
        if key == BELL
            && let Some(agreement) = self.dialer.answer()
        {
            self.found(agreement);
        }
        if let Some(line) = &mut self.line {
            match key {
                RECEIVE => {
                    line.received(result);
                    if result > 0 {
                        self.moved = now;
                    }
                }
                SEND => line.sent(result, ring),
                _ => (),
            }
        }
        self.take_ends();
        if self.line.as_ref().is_some_and(Line::is_over) {
            return self.lose(ring);
        }
        self.go_on(ring);
    }

    fn poll(&mut self, now: Instant) -> Option<Ended> {
        self.now = now;
        self.lose_patience();
        self.ended.pop_front()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        match &self.line {
            Some(line) if line.is_closing() || line.under_way() == 0 => None,
            Some(_) => Some(self.moved + self.patience),
            None => {
                let waiting = self.jobs.iter().filter_map(|(_, job)| job.interrupted);
                Some(waiting.min()? + self.patience)
            }
        }
    }

    fn punch(&mut self, key: u32, what: Punch, span: Span, ring: &mut Ring) {
        let features = self.offer.features;
        let zero = |space, pace| Ask::Zero {
            durability: Durability::Volatile,
            space,
            pace,
        };
        let ask = match what {
            Punch::Trim => Ask::Trim {
                durability: Durability::Volatile,
            },
            Punch::Free(pace) => zero(Space::MayBeFreed, pace),
            Punch::Zero(pace) => zero(Space::Kept, pace),
        };
        if let Ask::Zero {
            pace: block::operation::ZeroingPace::Fast,
            ..
        } = ask
            && !features.fast_zero
        {
            return self
                .punched
                .push_back((key, Err(OperationError::Unsupported)));
        }
        let whole = (span.offset, span.length);
        let job = Job::new(For::Punch(key), Asked::Of(ask), whole, Pieces::NONE);
        self.begin(job, ring);
    }

    fn poll_punched(&mut self) -> Option<(u32, Result<(), OperationError>)> {
        self.punched.pop_front()
    }

    fn ask_runs(&mut self, key: u32, span: Span, ring: &mut Ring) -> Option<Vec<Run>> {
        let has_status = self.line.as_ref().is_some_and(Line::has_status);
        if !has_status || self.questions >= QUESTIONS {
            return Some(unknown(span.length));
        }
        self.questions += 1;
        let whole = (span.offset, span.length);
        self.begin(
            Job::new(For::Runs(key), job::STATUS, whole, Pieces::NONE),
            ring,
        );
        None
    }

    fn poll_runs(&mut self) -> Option<(u32, Vec<Run>)> {
        self.told.pop_front()
    }
}
