//! The interface of procedures to the drive: they issue commands and await their ends.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use block::{
    Action, Command, CommandId, Durability, Duration, Extent, Instant, Lba, Outcome, Sectors,
    Status,
};

use crate::device::{DriveIdentity, Offers};
use crate::findings::Findings;
use crate::sighting::Sighting;

/// The timing of one command, as observed by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The time of submission.
    pub submitted: Instant,
    /// The time of the end.
    pub ended: Instant,
    /// The status of the command.
    pub status: Status,
    /// Whether the drive received other commands since the profiler's previous one.
    pub order: Continuity,
}

/// Other commands between a command and the profiler's previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuity {
    /// None.
    Direct,
    /// Commands of other clients: the initial position of the head is unknown.
    Interrupted,
}

/// A submitted command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeTicket(CommandId);

/// The reason why a block could not be sighted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// The block cannot be read.
    Unreadable,
    /// Every answer seems to have come from the buffer.
    Buffered,
    /// No two sightings agreed on the angle of the block.
    Unsteady,
}

/// The state that the procedures share with the owner of the profiler.
#[derive(Debug)]
pub(crate) struct ProbeQueue {
    pub(crate) device: DriveIdentity,
    pub(crate) now: Instant,
    /// Commands to submit to the drive.
    pub(crate) outbox: VecDeque<Command>,
    /// Submitted commands whose end no procedure has received yet.
    sent: Vec<SentProbe>,
    /// The time at which a pausing procedure continues.
    pub(crate) wakeup: Option<Instant>,
    /// Number of commands of other clients since the profiler's last one.
    pub(crate) others: u64,
    next: u64,
    /// Number of commands of the profiler.
    pub(crate) probes: u64,
    pub(crate) findings: Findings,
    /// The position of the last far read for emptying the buffer.
    displaced: u64,
    /// The number of far reads that empty the buffer, as far as is known.
    segments: u64,
}

#[derive(Clone, Copy, Debug)]
struct SentProbe {
    id: CommandId,
    submitted: Option<Instant>,
    order: Continuity,
    outcome: Option<Outcome>,
}

impl ProbeQueue {
    pub(crate) fn new(device: DriveIdentity, findings: Findings) -> Self {
        ProbeQueue {
            device,
            now: Instant::ZERO,
            outbox: VecDeque::new(),
            sent: Vec::new(),
            wakeup: None,
            others: 0,
            next: 0,
            probes: 0,
            findings,
            displaced: 0,
            segments: FEW_SEGMENTS,
        }
    }

    /// The next command for the drive, which the caller submits now.
    pub(crate) fn send(&mut self) -> Option<Command> {
        let command = self.outbox.pop_front()?;
        let order = match self.others {
            0 => Continuity::Direct,
            _ => Continuity::Interrupted,
        };
        self.others = 0;
        self.probes += 1;
        let now = self.now;
        if let Some(sent) = self.sent.iter_mut().find(|sent| sent.id == command.id) {
            sent.submitted = Some(now);
            sent.order = order;
        }
        Some(command)
    }

    /// Records the end of a command. Returns whether it was one of the profiler's.
    pub(crate) fn answer(&mut self, outcome: Outcome) -> bool {
        let mut sent = self.sent.iter_mut();
        let Some(sent) = sent.find(|sent| sent.id == outcome.id) else {
            return false;
        };
        sent.outcome = Some(outcome);
        true
    }

    /// Number of commands at the drive.
    pub(crate) fn pending(&self) -> usize {
        let mut sent = self.sent.iter();
        sent.by_ref()
            .filter(|sent| sent.submitted.is_some() && sent.outcome.is_none())
            .count()
    }
}

/// The procedures' access to the probe queue.
#[derive(Clone, Debug)]
pub struct Prober {
    desk: Arc<Mutex<ProbeQueue>>,
}

/// Initial number of far reads that are assumed to empty a buffer. It doubles whenever the buffer
/// still answers. A choice.
const FEW_SEGMENTS: u64 = 8;

/// Maximum number of far reads: the largest known buffer has 2,048 segments.
const MOST_SEGMENTS: u64 = 2_048;

impl Prober {
    pub(crate) fn new(desk: Arc<Mutex<ProbeQueue>>) -> Self {
        Prober { desk }
    }

    pub(crate) fn desk(&self) -> MutexGuard<'_, ProbeQueue> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The identity of the drive.
    pub fn device(&self) -> DriveIdentity {
        self.desk().device
    }

    /// The current time.
    pub fn now(&self) -> Instant {
        self.desk().now
    }

    /// Reads or changes the findings.
    pub fn findings<T>(&self, look: impl FnOnce(&mut Findings) -> T) -> T {
        look(&mut self.desk().findings)
    }

    /// Submits a command without awaiting its end.
    pub fn give(&self, action: Action) -> ProbeTicket {
        let mut desk = self.desk();
        let id = CommandId(desk.next);
        desk.next += 1;
        desk.outbox.push_back(Command::new(id, action));
        desk.sent.push(SentProbe {
            id,
            submitted: None,
            order: Continuity::Direct,
            outcome: None,
        });
        ProbeTicket(id)
    }

    /// Awaits the end of a command.
    pub async fn ended(&self, ticket: ProbeTicket) -> Timing {
        CommandEnd {
            prober: self,
            ticket,
        }
        .await
    }

    /// Submits a command and awaits its end.
    pub async fn ask(&self, action: Action) -> Timing {
        let ticket = self.give(action);
        self.ended(ticket).await
    }

    /// Runs `work` until `until` at most, then cancels it and awaits the ends of its commands.
    /// `None` if it was cancelled.
    pub async fn within<F: Future>(&self, until: Instant, work: F) -> Option<F::Output> {
        let mut work = pin!(work);
        let done = poll_fn(|context| match self.now() >= until {
            true => Poll::Ready(None),
            false => work.as_mut().poll(context).map(Some),
        });
        let done = done.await;
        if done.is_none() {
            self.settle().await;
        }
        done
    }

    /// Withdraws unsubmitted commands, and awaits the ends of the submitted ones.
    async fn settle(&self) {
        poll_fn(|_| {
            let mut desk = self.desk();
            desk.outbox.clear();
            desk.wakeup = None;
            desk.sent
                .retain(|sent| sent.submitted.is_some() && sent.outcome.is_none());
            match desk.sent.is_empty() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    /// Waits for `length`.
    pub async fn pause(&self, length: Duration) {
        let until = self.now() + length;
        Pause {
            prober: self,
            until,
        }
        .await;
    }

    /// Reads blocks like any other client.
    pub async fn read(&self, extent: Extent) -> Timing {
        self.ask(plain(extent)).await
    }

    /// Reads blocks from the medium, if the drive supports that.
    pub async fn read_medium(&self, extent: Extent) -> Timing {
        self.ask(self.from_medium(extent)).await
    }

    /// A read from the medium, if the drive supports that.
    pub fn from_medium(&self, extent: Extent) -> Action {
        match self.device().offers {
            Offers::CacheControl => Action::Read {
                extent,
                durability: Durability::Durable,
            },
            Offers::Nothing => plain(extent),
        }
    }

    /// Reads one block from the medium. Without cache control, an answer that is too fast for the
    /// medium is rejected: the buffer is emptied by reads elsewhere, and the block is read again.
    ///
    /// # Errors
    /// If the block cannot be read, or every answer was too fast.
    pub async fn sight(&self, lba: Lba) -> Result<Sighting, Unseen> {
        let mut attempts = 0..;
        loop {
            let timing = self.read_medium(Extent::block(lba)).await;
            if timing.status != Status::Good {
                return Err(Unseen::Unreadable);
            }
            let took = timing.ended.since(timing.submitted);
            let device = self.device();
            let fast = self.findings(|findings| findings.fast);
            if device.offers == Offers::CacheControl || took > fast {
                let at = timing.ended;
                return Ok(Sighting { lba, at, took });
            }
            if attempts.next() != Some(0) {
                let mut desk = self.desk();
                if desk.segments == MOST_SEGMENTS {
                    return Err(Unseen::Buffered);
                }
                desk.segments *= 2;
            }
            self.displace(lba).await;
        }
    }

    /// Reads blocks far from `lba` and from each other, so that the buffer discards its contents.
    pub async fn displace(&self, lba: Lba) {
        let blocks = self.device().blocks;
        let segments = self.desk().segments;
        for _ in 0..segments {
            let step = {
                let mut desk = self.desk();
                desk.displaced += 1;
                desk.displaced
            };
            // The golden section spreads them over the disk.
            let far = (u128::from(step) * 0x9E37_79B9_7F4A_7C15) & u128::from(u64::MAX);
            let far = ((far * u128::from(blocks)) >> 64) as u64;
            let near = far.abs_diff(lba.0) < blocks / 64;
            let far = if near {
                (far + blocks / 2) % blocks
            } else {
                far
            };
            self.read(Extent::block(Lba(far))).await;
        }
    }

    /// Up to `blocks` blocks from `lba` on, limited by the end of the drive.
    ///
    /// # Panics
    /// If `lba` is past the end of the drive.
    pub fn extent(&self, lba: Lba, blocks: u64) -> Extent {
        let blocks = blocks
            .min(self.device().blocks.saturating_sub(lba.0))
            .max(1);
        Extent::new(lba, Sectors(blocks)).expect("blocks of the drive")
    }
}

/// A read that the buffer may answer.
fn plain(extent: Extent) -> Action {
    Action::Read {
        extent,
        durability: Durability::Volatile,
    }
}

/// The future end of a command.
struct CommandEnd<'a> {
    prober: &'a Prober,
    ticket: ProbeTicket,
}

impl Future for CommandEnd<'_> {
    type Output = Timing;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Timing> {
        let mut desk = self.prober.desk();
        let mut sent = desk.sent.iter();
        let place = sent.position(|sent| sent.id == self.ticket.0 && sent.outcome.is_some());
        let Some(place) = place else {
            return Poll::Pending;
        };
        let sent = desk.sent.swap_remove(place);
        match (sent.submitted, sent.outcome) {
            (Some(submitted), Some(outcome)) => Poll::Ready(Timing {
                submitted,
                ended: outcome.at,
                status: outcome.status,
                order: sent.order,
            }),
            _ => Poll::Pending,
        }
    }
}

/// A future time.
struct Pause<'a> {
    prober: &'a Prober,
    until: Instant,
}

impl Future for Pause<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let mut desk = self.prober.desk();
        if desk.now >= self.until {
            desk.wakeup = None;
            return Poll::Ready(());
        }
        desk.wakeup = Some(self.until);
        Poll::Pending
    }
}
