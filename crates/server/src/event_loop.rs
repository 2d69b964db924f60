//! One drive, one thread: clients' operations in, the engine's commands to the back end, replies
//! out.
//!
//! ```text
//!            .--------------------- one turn ----------------------.
//!   ring's ends, letters -> operations -> engine <-> back end -> replies -> wait for the next end
//! ```
//!
//! Nothing here blocks but the one wait at the end of a turn, and everything that is held has a
//! bound: the engine's limits, the arena, and what a connection may hold of both. At a bound an
//! operation waits where it came from, and nothing more is read from there.

use std::collections::VecDeque;
use std::{io, time};

use block::{Action, Class, CommandId, Extent, Instant, Lba};
use drive::Lost;
use engine::Engine;
use hdrhistogram::Histogram;
use slab::Slab;

use crate::arena::{Arena, Buffer, Memory};
use crate::back_end::{self, BackEnd, Run, Shape, Span};
use crate::capture::{LiveEngine, Recorder};
use crate::clock::Clock;
use crate::mailbox::{Letter, Mailbox, Posted};
use crate::nbd::request::Header;
use crate::operation::Failed;
use crate::ring::{Owner, Ring, Ticket};

mod caching;
mod commands;
pub mod connection;
mod operations;
pub(crate) mod outbox;
pub mod picture;
pub mod resize;
pub mod slowest;
pub mod streams;
pub mod tally;
pub mod tasks;

use caching::Caches;
use connection::Connection;
pub use operations::LONGEST;
use operations::Pending;
use slowest::Accounts;
use streams::Streams;
use tally::Tally;
use tasks::Ongoing;

/// What clients can connect to: a part of the drive, and how urgent what they ask is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// Where its volume begins, in bytes of the drive; a multiple of a block.
    pub offset: u64,
    /// How many bytes it has; a multiple of a block.
    pub length: u64,
    /// How urgent.
    pub class: Class,
}

/// The loop. It is made and run on one thread, and reached from others by its [`Mailbox`].
pub struct EventLoop {
    clock: Clock,
    now: Instant,
    ring: Ring,
    engine: LiveEngine,
    back_end: Box<dyn BackEnd>,
    shape: Shape,
    exports: Vec<Export>,
    /// Operations that have begun and not been answered. The engine knows them by their place.
    pending: Slab<Pending>,
    /// What commands at the back end hold besides the buffers of operations.
    scratch: Vec<(CommandId, Lba, Buffer)>,
    /// Commands at the back end, when they were given, and what they do.
    given: Vec<(CommandId, Instant, Action)>,
    connections: Slab<Box<Connection>>,
    /// What connections asked about their blocks that the back end has to ask somebody else.
    questions: Slab<(usize, Header)>,
    /// Connections whose next operation waits for room of a kind, in the order in which they began
    /// to.
    stalled: [VecDeque<usize>; 2],
    /// The connection that is the next to have common memory.
    first_in_line: Option<usize>,
    /// Bytes that connections hold beyond their own.
    common: usize,
    /// Blocks of which a pending operation changes a part, and its key.
    edges: Vec<(usize, Extent)>,
    /// Pending operations that wait for others on those blocks.
    waiting: Vec<usize>,
    /// Connections with something to send.
    answered: Vec<usize>,
    /// Posted operations that wait for room.
    posted: VecDeque<Posted>,
    /// Background tasks, those that have ended, too.
    tasks: Vec<Ongoing>,
    streams: Streams,
    zeroes: Buffer,
    /// When to look next for clients that take none of their replies.
    patrol: Instant,
    mailbox: Mailbox,
    bell: Box<[u8; 8]>,
    tally: Tally,
    accounts: Accounts,
    /// Before volumes; most loops have none.
    caches: Caches,
    stopping: Stopping,
    bounds: Bounds,
    /// For what commands read besides what was asked for.
    spare: Arena,
    /// Last: what is above may point into it.
    arena: Arena,
}

/// What a loop holds for its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holds {
    /// Connections.
    pub connections: usize,
    /// Operations that were taken and not answered.
    pub operations: usize,
    /// Bytes of the memory for requests and background reads.
    pub bytes: usize,
}

/// How far the end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopping {
    No,
    /// Nothing new is taken; what is held ends first.
    Draining,
}

/// The bounds of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of all requests together. There is room for one of the longest in any case.
    pub memory: usize,
    /// Connections at once: who comes beyond is refused.
    pub connections: usize,
    /// Requests of one connection at once: beyond it nothing is read from it.
    pub requests: usize,
    /// Bytes of the longest read or write.
    pub longest: usize,
}

impl Bounds {
    /// The bytes of requests and replies that one connection may hold: an eighth of all, so that
    /// it takes many to keep everybody else waiting, but one of the longest requests.
    fn share(&self) -> usize {
        (self.memory / 8).max(self.longest)
    }

    /// The bytes that are there for each connection, whatever the others hold.
    fn own(&self) -> usize {
        self.memory / 2 / self.connections.max(1)
    }

    /// The bytes for which all compete.
    fn common(&self) -> usize {
        (self.memory / 2).max(self.longest)
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            // Choice: eight of the longest requests that NBD clients make.
            memory: 256 << 20,
            // Choices: more than a machine has clients of one disk; twice the depth of a deep queue.
            connections: 256,
            requests: 256,
            longest: LONGEST as usize,
        }
    }
}

/// Memory for background reads: two commands at a time, and the longest read in idle time has 2048
/// blocks of 4096 bytes; tracks have less.
const SPARE: usize = 4 * (2048 * 4096);

/// Zeroes are written in pieces of so many bytes. A choice: a piece holds the head for a few
/// milliseconds.
const ZEROES: usize = 1 << 20;

/// For how long nothing is received after so many replies to each client that got any.
///
/// A client is busy with its replies for a while, and each of its next requests would wake this
/// thread: the client pays for that, in time that it has not. So nobody is woken until a good part
/// of those requests has gathered, as network cards do with their interrupts. A single request more
/// or less (depth 1 to 3) is never delayed.
fn rest(replies: Option<usize>) -> time::Duration {
    match replies {
        Some(count @ MANY_REPLIES..) => {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            REST_PER_REPLY.saturating_mul(count).min(LONGEST_REST)
        }
        _ => time::Duration::ZERO,
    }
}

/// A choice: fewer are taken up before a timer of the kernel's has gone off.
const MANY_REPLIES: usize = 4;
/// A choice: libnbd takes up a reply of 4 KiB and sends the next request in 6 microseconds.
const REST_PER_REPLY: time::Duration = time::Duration::from_micros(2);
/// A choice: nothing that disks do is so short.
const LONGEST_REST: time::Duration = time::Duration::from_micros(40);

impl EventLoop {
    /// A loop with nothing to do.
    ///
    /// # Errors
    /// If the kernel has no memory or no io_uring for it.
    pub fn new(
        clock: Clock,
        engine: Engine,
        back_end: Box<dyn BackEnd>,
        exports: Vec<Export>,
        mailbox: Mailbox,
        bounds: Bounds,
    ) -> io::Result<Self> {
        let mut arena = Arena::map(ZEROES + bounds.memory / 2 + bounds.common())?;
        let ring = Ring::new(&arena)?;
        let zeroes = arena.allocate(ZEROES).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut this = EventLoop {
            now: clock.now(),
            clock,
            ring,
            engine: LiveEngine::new(engine),
            shape: back_end.shape(),
            back_end,
            exports,
            pending: Slab::new(),
            scratch: Vec::new(),
            given: Vec::new(),
            connections: Slab::new(),
            questions: Slab::new(),
            stalled: [VecDeque::new(), VecDeque::new()],
            first_in_line: None,
            common: 0,
            edges: Vec::new(),
            waiting: Vec::new(),
            answered: Vec::new(),
            posted: VecDeque::new(),
            tasks: Vec::new(),
            streams: Streams::default(),
            zeroes,
            patrol: Instant::ZERO,
            mailbox,
            bell: Box::new([0; 8]),
            tally: Tally::default(),
            accounts: Accounts::default(),
            caches: Caches::default(),
            stopping: Stopping::No,
            bounds,
            spare: Arena::map(SPARE)?,
            arena,
        };
        this.listen_to_bell();
        Ok(this)
    }

    /// Serves until it is stopped and everything has ended.
    ///
    /// # Errors
    /// If the ring fails as a whole.
    pub fn run(&mut self) -> io::Result<()> {
        while !self.is_over() {
            self.turn()?;
        }
        // What clients were told is written is on the medium when the service is gone.
        self.flush_at_the_end();
        while !self.is_over() {
            self.turn()?;
        }
        Ok(())
    }

    /// The loop, whose engine is captured; nothing may have happened yet.
    #[must_use]
    pub fn captured(mut self, recorder: Recorder) -> Self {
        self.engine = self.engine.captured(recorder);
        self
    }

    /// Takes nothing more, and ends when all that is held has ended.
    pub fn stop(&mut self) {
        self.stopping = Stopping::Draining;
        // Who comes now is told so by a closed connection.
        for letter in self.mailbox.close() {
            if let Letter::Operation(posted) = letter {
                (posted.reply)(Err(Failed::ShuttingDown));
            }
        }
        self.leave_tasks();
        self.end_streams("the service is stopping");
        let places: Vec<usize> = self.connections.iter().map(|(place, _)| place).collect();
        for place in places {
            self.end(place);
        }
    }

    /// The engine, for those who ask how it is, and for background tasks.
    pub fn engine(&mut self) -> &mut LiveEngine {
        &mut self.engine
    }

    /// The drive's time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// What was counted.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// How much later than the model says commands of an emulated drive ended, in nanoseconds of
    /// the drive's time.
    pub fn lateness(&self) -> Option<&Histogram<u64>> {
        self.back_end.lateness()
    }

    /// Cuts the drive's power and switches it on again, if it is an emulated one; what was lost.
    /// Its clients lose their connections: a flush that they sent before must not end well after
    /// it.
    pub fn power_cut(&mut self) -> Option<Lost> {
        let lost = self.back_end.power_cut(self.now, &mut self.ring)?;
        self.forget_played();
        self.caches.forget();
        let places: Vec<usize> = self.connections.iter().map(|(place, _)| place).collect();
        for place in places {
            self.cut_off(place);
        }
        Some(lost)
    }

    /// What is held at present: nothing, when everything has ended and every client has left.
    pub fn holds(&self) -> Holds {
        let used = |arena: &Arena| arena.length() - arena.left();
        Holds {
            connections: self.connections.len(),
            operations: self.pending.len() + self.posted.len(),
            bytes: used(&self.arena) + used(&self.spare) - self.zeroes.length(),
        }
    }

    /// The clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The exports.
    pub fn exports(&self) -> &[Export] {
        &self.exports
    }

    /// What the bytes of an export from `offset` on hold, as many runs as are found without long
    /// work: none only past the end.
    pub fn runs(&mut self, export: usize, offset: u64) -> Vec<Run> {
        let Some(Export {
            offset: start,
            length,
            ..
        }) = self.exports.get(export)
        else {
            return Vec::new();
        };
        match length.saturating_sub(offset) {
            0 => Vec::new(),
            length => {
                let span = Span {
                    offset: start + offset,
                    length,
                };
                match (self.recorded_in(span), self.is_written(export)) {
                    (Some(run), _) => vec![run],
                    (None, true) => self.back_end.runs(span),
                    (None, false) => vec![Run {
                        length,
                        holds: back_end::Holds::Bytes,
                    }],
                }
            }
        }
    }

    /// Another export; the answer is its place. Those that are there stay, for whoever is connected.
    pub fn add_export(&mut self, export: Export) -> usize {
        let same = self.exports.iter().position(|other| *other == export);
        same.unwrap_or_else(|| {
            self.exports.push(export);
            self.exports.len() - 1
        })
    }

    fn is_over(&self) -> bool {
        self.stopping == Stopping::Draining
            && self.pending.is_empty()
            && self.posted.is_empty()
            && self.connections.is_empty()
            && self.streams.is_empty()
            && self.caches.are_at_rest()
            && self.engine.dispatch().at_drive() == 0
    }

    fn turn(&mut self) -> io::Result<()> {
        self.work();
        let fewest = self.send_all();
        if self.is_over() {
            return Ok(());
        }
        if self.now >= self.patrol {
            self.patrol();
            self.patrol = self.now + self.clock.scale().model(connection::PATROL);
        }
        let patrol = (!self.connections.is_empty()).then_some(self.patrol);
        let wakeups = [
            self.engine.next_wakeup(),
            self.back_end.next_wakeup(),
            self.caches.next_wakeup(self.now),
            patrol,
        ];
        let next = wakeups.into_iter().flatten().min();
        let until = next.map(|then| self.clock.moment(then));
        let mut rest = rest(fewest);
        if let Some(until) = until {
            rest = rest.min(until.saturating_duration_since(time::Instant::now()));
        }
        self.ring.submit_and_wait(rest, until)?;
        self.now = self.clock.now();
        self.tally.reach(self.now);
        while let Some((ticket, result)) = self.ring.next_end() {
            self.ended(ticket, result);
        }
        Ok(())
    }

    /// Whatever can be done without waiting.
    fn work(&mut self) {
        loop {
            let mut is_done = !self.end_commands();
            is_done &= !self.ask_for_caches();
            is_done &= !self.give_commands();
            is_done &= !self.answer_finished();
            is_done &= !self.begin_copies();
            is_done &= !self.begin_again();
            is_done &= !self.resume_stalled();
            if is_done {
                return;
            }
        }
    }

    fn ended(&mut self, ticket: Ticket, result: i32) {
        match ticket.owner {
            Owner::Mailbox => {
                for letter in self.mailbox.take() {
                    self.open(letter);
                }
                self.listen_to_bell();
            }
            Owner::Receive => self.received(ticket.key as usize, result),
            Owner::Send => self.sent(ticket.key as usize, result),
            Owner::BackEnd => {
                self.back_end
                    .ring_ended(self.now, ticket.key, result, &mut self.ring);
            }
        }
    }

    #[allow(unsafe_code, reason = "the kernel writes to the bell's box")]
    fn listen_to_bell(&mut self) {
        let memory = Memory {
            at: self.bell.as_mut_ptr(),
            length: self.bell.len(),
        };
        let ticket = Ticket {
            owner: Owner::Mailbox,
            key: 0,
        };
        // SAFETY: the box is the loop's, which outlives its ring's operations.
        unsafe { self.ring.read(ticket, self.mailbox.bell(), memory, 0) };
    }

    fn open(&mut self, letter: Letter) {
        match letter {
            Letter::Connection(newcomer) => self.welcome(*newcomer),
            Letter::Operation(posted) => self.posted.push_back(posted),
            Letter::Call(call) => call(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clients_that_are_busy_with_replies_are_let_alone() {
        for few in [None, Some(0), Some(1), Some(MANY_REPLIES - 1)] {
            assert_eq!(rest(few), time::Duration::ZERO, "{few:?}");
        }
        assert_eq!(rest(Some(5)), REST_PER_REPLY * 5);
        for many in [20, 1000, usize::MAX] {
            assert_eq!(rest(Some(many)), LONGEST_REST, "{many}");
        }
    }
}
