//! The event loop of one drive, on one thread: clients' operations in, commands to the back end, replies
//! out.
//!
//! ```text
//!                    .------------------ one turn -------------------.
//!   ring ---ends---> |                                               |
//!   mailbox -------> | clients -operation-> volumes -request-> disk  | --commands--> back end
//!                    |         <-answer----         <-finished-      |
//!                    |             tasks <-blocks-------'            |
//!                    '------ replies, then wait for the next end ----'
//! ```
//!
//! `EventLoop::turn` is the whole loop, in order. Each owner has its own state, and lends it by its methods
//! only:
//!
//! | owner | state |
//! |---|---|
//! | `Clients` | connections, fairness, shares of memory |
//! | `Volumes` | operations and their bytes: partial blocks, caches, streams |
//! | `Disk` | engine, commands in flight, back end, ring |
//! | `Tasks` | background tasks and their sinks |
//!
//! The loop blocks only in the wait at the end of a turn. Engine, arena and shares of connections bound
//! everything that it holds. At a bound an operation waits at its source, and the loop stops reading from
//! there.

use std::{io, time};

use block::Instant;
use drive::Lost;
use engine::Engine;
use hdrhistogram::Histogram;

use crate::accounts::slowest::Accounts;
use crate::accounts::tally::Tally;
use crate::arena::Arena;
use crate::capture::LiveEngine;
use crate::clients::{Awaited, Bounds, Clients, Counts};
use crate::clock::Clock;
use crate::cpu_latency::LatencyInGaps;
use crate::disk::Disk;
use crate::disk::back_end::checked::Checks;
use crate::disk::back_end::{BackEnd, Run};
use crate::ring::{Owner, Ring, Ticket};
use crate::status;
use crate::tasks::Tasks;
use crate::volume::exports::Exports;
use crate::volume::{Export, Resize, Volumes, ZEROES};
use crate::why::{Query, Slow};

#[cfg(test)]
pub(crate) mod by_hand;
mod commands;
mod controls;
pub mod mailbox;
mod picture;
mod setup;
pub use controls::{CheckpointControl, ClassControl, StreamControl, TaskControl};
use mailbox::{Bell, Letter, Mailbox};
pub(crate) use picture::NO_BELIEF;
use picture::Picture;

/// The event loop of a drive. It is built and run on one thread. Other threads use its [`Mailbox`].
pub struct EventLoop {
    disk: Disk,
    clients: Clients,
    tasks: Tasks,
    tally: Tally,
    accounts: Accounts,
    bell: Bell,
    is_stopping: bool,
    latency: LatencyInGaps,
    /// Last: what is above may point into its memory.
    volumes: Volumes,
}

/// The state that a loop holds for its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holds {
    /// The number of connections.
    pub connections: usize,
    /// The number of operations that were accepted and not answered.
    pub operations: usize,
    /// Bytes of memory for requests and background reads.
    pub bytes: usize,
}

/// The time without receives after `replies` replies to each client that got any.
///
/// A client processes its replies for a while. Each of its next requests would wake this thread, at the
/// cost of the client's time. So the loop waits until many of them have arrived, like the interrupt
/// moderation of network cards. At depth 1 to 3 a request is never delayed.
fn rest(replies: Option<usize>) -> time::Duration {
    match replies {
        Some(count @ MANY_REPLIES..) => {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            REST_PER_REPLY.saturating_mul(count).min(LONGEST_REST)
        }
        _ => time::Duration::ZERO,
    }
}

/// A choice: fewer replies are processed before a timer of the kernel expires.
const MANY_REPLIES: usize = 4;
/// A choice: libnbd processes a reply of 4 KiB and sends the next request in 6 microseconds.
const REST_PER_REPLY: time::Duration = time::Duration::from_micros(2);
/// A choice: no disk has so short a latency.
const LONGEST_REST: time::Duration = time::Duration::from_micros(40);

/// Construction and the turns of a loop.
impl EventLoop {
    /// A loop without clients.
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
        EventLoop::over(clock, Ring::new, engine, back_end, exports, mailbox, bounds)
    }

    /// A loop without clients, over the ring that `ring` makes for the loop's memory.
    ///
    /// # Errors
    /// If there is no memory or no ring for it.
    pub fn over(
        clock: Clock,
        ring: impl FnOnce(&Arena) -> io::Result<Ring>,
        engine: Engine,
        back_end: Box<dyn BackEnd>,
        exports: Vec<Export>,
        mailbox: Mailbox,
        bounds: Bounds,
    ) -> io::Result<Self> {
        let arena = Arena::map(ZEROES + bounds.memory / 2 + bounds.common())?;
        let disk = Disk::new(clock, ring(&arena)?, engine, back_end)?;
        let exports = Exports::new(exports, disk.block());
        let mut this = EventLoop {
            volumes: Volumes::new(exports, arena, bounds.longest)?,
            disk,
            clients: Clients::new(bounds),
            tasks: Tasks::default(),
            tally: Tally::default(),
            accounts: Accounts::default(),
            bell: Bell::new(mailbox),
            is_stopping: false,
            latency: LatencyInGaps::at_most(None),
        };
        this.bell.listen(&mut this.disk.ring);
        Ok(this)
    }

    /// Serves until the loop is stopped and all operations have ended.
    ///
    /// # Errors
    /// If the ring fails as a whole, or acknowledged data could not be written.
    pub fn run(&mut self) -> io::Result<()> {
        while !self.is_over() {
            self.turn()?;
        }
        // What clients were told is written is on the medium when the service is gone.
        let flushes = self.volumes.flush_at_the_end(&mut self.disk);
        while !self.is_over() {
            self.turn()?;
        }
        self.disk.sweep_marks();
        while !self.is_over() {
            self.turn()?;
        }
        self.volumes.check_end(&flushes)
    }

    /// Refuses new clients and operations. The loop ends when the pending operations have ended.
    pub fn stop(&mut self) {
        self.is_stopping = true;
        // A connection that comes now is closed.
        let letters = self.bell.mailbox.close().into_iter();
        self.volumes
            .posted
            .stop(letters.filter_map(|letter| match letter {
                Letter::Operation(posted) => Some(posted),
                Letter::Connection(_) | Letter::Call(_) => None,
            }));
        self.tasks.leave(&mut self.disk);
        self.disk.stop_learning();
        self.disk.stop_filling();
        let reason = "the service is stopping";
        self.volumes.streams.stop(&mut self.disk, reason);
        self.volumes.poll_streams(&mut self.disk);
        self.clients.close(&mut self.volumes, &mut self.disk);
    }

    fn is_over(&self) -> bool {
        self.is_stopping
            && self.clients.count() == 0
            && self.volumes.is_idle()
            && self.disk.engine.at_drive() == 0
            && !self.disk.is_probing()
            && !self.disk.is_busy()
    }

    /// One turn: work, replies, one wait, completions.
    fn turn(&mut self) -> io::Result<()> {
        self.work();
        let fewest = self.clients.send_all(&mut self.volumes, &mut self.disk);
        if self.is_over() {
            return Ok(());
        }
        self.clients.patrol(&mut self.volumes, &mut self.disk);
        self.wait(rest(fewest))?;
        while let Some((ticket, result)) = self.disk.ring.next_end() {
            self.ended(ticket, result);
        }
        Ok(())
    }

    /// Does everything that needs no wait, until nothing changes.
    fn work(&mut self) {
        loop {
            // Commands that have ended: their bytes go to caches, streams and tasks.
            let mut is_any = self.end_commands();
            // What has waited for room in the engine, before others take it.
            is_any |= self.volumes.give_waiting(&mut self.disk);
            // Requests of caches, and what they wish for.
            is_any |= self.volumes.submit_for_caches(&mut self.disk);
            // The engine's next commands.
            is_any |= self.give_commands();
            is_any |= self.disk.probe();
            // Requests that have ended: their operations go on, or are answered.
            is_any |= self.answer_finished();
            let EventLoop {
                clients,
                volumes,
                disk,
                ..
            } = self;
            // Operations that wait in a volume, the oldest reasons first.
            is_any |= volumes.begin_copies(disk);
            is_any |= volumes.begin_redirected(disk);
            is_any |= volumes.begin_waiting(disk);
            is_any |= volumes.begin_held(disk);
            // Operations of other front ends, and those that wait in connections.
            is_any |= clients.take_turns(volumes, disk);
            is_any |= clients.resume(volumes, disk, Awaited::Memory);
            // Pages for which an operation has just begun to wait.
            is_any |= volumes.caches.take_hastened();
            // An engine that nothing holds may be replaced.
            is_any |= disk.replace_engine();
            if !is_any {
                return;
            }
        }
    }

    /// Waits for the next completion, or for the wakeup of an owner.
    fn wait(&mut self, mut rest: time::Duration) -> io::Result<()> {
        let disk = &mut self.disk;
        let wakeups = [
            disk.next_wakeup(),
            self.volumes.caches.next_wakeup(disk.now),
            self.clients.next_wakeup(),
            self.latency.next_wakeup(disk.now),
        ];
        let next = wakeups.into_iter().flatten().min();
        let until = next.map(|then| disk.clock.moment(then));
        if let Some(until) = until {
            rest = rest.min(until.saturating_duration_since(time::Instant::now()));
        }
        disk.ring.submit_and_wait(rest, until)?;
        disk.now = disk.clock.now();
        disk.settle_checksums();
        if self.tally.advance(disk.now) {
            self.tasks.company.advance(disk.now);
            self.latency.follow(disk.fills_gaps());
        }
        Ok(())
    }

    fn ended(&mut self, ticket: Ticket, result: i32) {
        let EventLoop {
            clients,
            volumes,
            disk,
            ..
        } = self;
        let place = ticket.key as usize;
        match ticket.owner {
            Owner::Receive => clients.received(volumes, disk, place, result),
            Owner::Send => clients.sent(volumes, disk, place, result),
            Owner::BackEnd => disk.ring_ended(ticket.key, result),
            Owner::Marks => volumes.checkpoints.bitmaps.answered(&mut disk.ring),
            Owner::SecondLeg => disk.second_ring_ended(ticket.key, result),
            Owner::Mailbox => {
                for letter in self.bell.mailbox.take() {
                    self.open(letter);
                }
                self.bell.listen(&mut self.disk.ring);
            }
        }
    }

    fn open(&mut self, letter: Letter) {
        match letter {
            Letter::Connection(accepted) => {
                self.clients
                    .accept(&mut self.volumes, &mut self.disk, *accepted);
            }
            Letter::Operation(posted) => {
                let bytes = (posted.offset, posted.length);
                let class = self.volumes.classify(posted.export, bytes);
                self.volumes.posted.push(posted, class);
            }
            Letter::Call(call) => call(self),
        }
    }
}

/// Calls of the control plane, through the mailbox.
impl EventLoop {
    /// The engine, for its settings.
    pub fn engine(&mut self) -> &mut LiveEngine {
        &mut self.disk.engine
    }

    /// The present time of the drive.
    pub fn now(&self) -> Instant {
        self.disk.now
    }

    /// The clock of the drive.
    pub fn clock(&self) -> Clock {
        self.disk.clock
    }

    /// Requests, head time and failures since the start.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Connections since the start.
    pub fn connections(&self) -> Counts {
        self.clients.counts()
    }

    /// The lateness of commands of an emulated drive against the model, in nanoseconds of the drive's time.
    pub fn lateness(&self) -> Option<&Histogram<u64>> {
        self.disk.lateness()
    }

    /// Cuts the power of an emulated drive and switches it on again. The answer is what was lost. All
    /// connections are dropped, because a flush sent before the cut must not succeed after it.
    pub fn power_cut(&mut self) -> Option<Lost> {
        let lost = self.disk.power_cut()?;
        self.volumes.forget();
        self.clients.cut_all(&mut self.volumes, &mut self.disk);
        Some(lost)
    }

    /// The state that is held now. It is empty when all operations have ended and every client has left.
    pub fn holds(&self) -> Holds {
        Holds {
            connections: self.clients.count(),
            operations: self.volumes.pending(),
            bytes: self.volumes.operations.bytes() + self.disk.scratch_bytes(),
        }
    }

    /// The exports.
    pub fn exports(&self) -> &[Export] {
        self.volumes.operations.exports.all()
    }

    /// Adds an export. The answer is its index. The other exports stay, for the clients that use them.
    pub fn add_export(&mut self, export: Export) -> usize {
        self.volumes.add_export(export)
    }

    /// Changes the lengths of volumes: all or none. A client keeps the size of its handshake. A later
    /// connection with an older and larger size is refused.
    ///
    /// # Errors
    /// If a client uses a volume that shrinks, or one does not fit the drive: what the user can do.
    pub fn resize(&mut self, all: &[Resize]) -> Result<(), String> {
        for resize in all {
            self.may_resize(resize)?;
        }
        for resize in all {
            self.volumes.resize(resize);
            if let Some(checks) = self.disk.checks() {
                checks.resize(resize.offset, resize.to);
            }
        }
        Ok(())
    }

    /// Checks a new length of a volume.
    ///
    /// # Errors
    /// As [`EventLoop::resize`].
    pub fn may_resize(&self, resize: &Resize) -> Result<(), String> {
        let connections = self
            .clients
            .using(&self.volumes, |export| resize.is_of(export));
        self.volumes.may_resize(&self.disk, resize, connections)
    }

    /// Holes and data of an export from byte `offset` on, as many runs as are found quickly. The list is
    /// empty only past the end.
    pub fn runs(&mut self, export: usize, offset: u64) -> Vec<Run> {
        self.volumes.runs(&mut self.disk, export, offset)
    }

    /// The loop's part of a drive's status. The service adds the configuration's part.
    pub fn picture(&self) -> status::DriveStatus {
        let picture = Picture {
            disk: &self.disk,
            volumes: &self.volumes,
            tasks: &self.tasks,
            tally: &self.tally,
        };
        picture.drive()
    }

    /// The connections in the status.
    pub fn clients(&self) -> Vec<status::Connection> {
        self.clients.listed(&self.volumes, &self.disk)
    }

    /// The slowest requests that match, the slowest first, without the name of the drive.
    pub fn slowest(&mut self, query: &Query) -> Vec<Slow> {
        let volumes = (
            self.volumes.operations.exports.all(),
            self.disk.shape.block_bytes,
        );
        self.accounts.slowest(self.disk.now, volumes, query)
    }

    /// The volumes with checksums, if the drive has any.
    pub fn checks(&mut self) -> Option<&mut Checks> {
        self.disk.checks()
    }

    /// The background tasks.
    pub fn tasks(&mut self) -> TaskControl<'_> {
        TaskControl {
            tasks: &mut self.tasks,
            disk: &mut self.disk,
        }
    }

    /// The classified exports.
    pub fn classes(&mut self) -> ClassControl<'_> {
        let volumes = &mut self.volumes;
        ClassControl { volumes }
    }

    /// The checkpoints.
    pub fn checkpoints(&mut self) -> CheckpointControl<'_> {
        CheckpointControl {
            clients: &mut self.clients,
            volumes: &mut self.volumes,
            disk: &mut self.disk,
        }
    }

    /// The guaranteed streams.
    pub fn streams(&mut self) -> StreamControl<'_> {
        StreamControl {
            volumes: &mut self.volumes,
            disk: &mut self.disk,
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
