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

use crate::clock::ReferenceSightings;
use crate::device::{DriveIdentity, Offers};
use crate::findings::Findings;
use crate::sighting::Sighting;

mod counted;
mod rounds;
mod spares;
mod timekeeping;
mod turn_queue;
mod usual_reads;

pub(crate) use counted::{CountedTracks, TrackCount};
pub(crate) use rounds::MOST_AT_ONCE;
pub(crate) use spares::SpareSectors;
use turn_queue::TurnQueue;
use usual_reads::UsualReads;

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
    /// Number of commands that were too slow for the buffer. Each of them evicts a segment.
    medium_reads: u64,
    /// The number of such reads that evict a block, as far as is known.
    pub(crate) evicting: u64,
    /// Blocks from one read to the next that are only to evict others; zero if they are anywhere.
    pub(crate) evicting_stride: u64,
    /// The number of such reads.
    streamed: u64,
    turns: TurnQueue,
    /// First blocks of recent reads, and after how many reads of the medium they are evicted.
    recent: VecDeque<(u64, u64)>,
    /// Sightings of reference blocks behind a host that delays them.
    sightings: ReferenceSightings,
    /// What tracks tell of their spare sectors behind such a host, and of all of their sectors.
    pub(crate) spares: SpareSectors,
    pub(crate) counted: CountedTracks,
    /// The number of checks of the map that were made, and how long each of the last ones took.
    checked: u64,
    check_takes: Duration,
    /// How long reads take at most, but for a few.
    usual: UsualReads,
}

#[derive(Clone, Copy, Debug)]
struct SentProbe {
    id: CommandId,
    submitted: Option<Instant>,
    order: Continuity,
    /// The first block of a read.
    read: Option<Lba>,
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
            medium_reads: 0,
            evicting: FEW_SEGMENTS,
            evicting_stride: 0,
            streamed: 0,
            turns: TurnQueue::default(),
            recent: VecDeque::new(),
            sightings: ReferenceSightings::default(),
            spares: SpareSectors::default(),
            counted: CountedTracks::default(),
            checked: 0,
            check_takes: A_CHECK,
            usual: UsualReads::default(),
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
        let took = sent.submitted.map(|submitted| outcome.at.since(submitted));
        if let Some(took) = took.filter(|took| *took > self.findings.fast) {
            self.medium_reads += 1;
            self.usual.add(took);
        }
        if let Some(lba) = sent.read {
            let evicted = self.medium_reads + self.evicting;
            self.recent.push_back((evicted, lba.0));
            while self.recent.len() > MOST_RECENT
                || self
                    .recent
                    .front()
                    .is_some_and(|first| first.0 <= self.medium_reads)
            {
                self.recent.pop_front();
            }
        }
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

/// Number of reads that are assumed to evict a block before it is measured. A choice.
const FEW_SEGMENTS: u64 = 8;

/// How long a check of the map takes before it is measured. A choice: 20 s for 200 of them.
const A_CHECK: Duration = Duration::from_millis(100);

/// Maximum number of such reads: twice the segments of the largest known buffer.
pub(crate) const MOST_SEGMENTS: u64 = 4_096;

/// Most reads that are remembered: hits evict nothing. A choice: twice the most segments.
const MOST_RECENT: usize = 8_192;

/// Reads of so many blocks before one may have put it into the buffer, by look-ahead. A choice.
const AHEAD: u64 = 64;

/// Attempts to read a block from the medium. A choice: from the third on, each waits for twice as
/// many reads as the one before, so that any buffer is emptied that can be. Other blocks wait for a
/// quarter more.
const ATTEMPTS: u32 = 10;

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

    /// The number of the first of so many checks of the map, none of which was made before.
    pub(crate) fn fresh_checks(&self, checks: u32) -> u64 {
        let mut desk = self.desk();
        let first = desk.checked + 1;
        desk.checked += u64::from(checks);
        first
    }

    /// So many checks took so long.
    pub(crate) fn checks_took(&self, checks: u32, time: Duration) {
        let each = time.as_nanos() / u64::from(checks.max(1));
        self.desk().check_takes = Duration::from_nanos(each);
    }

    /// How long so many checks of the map take.
    pub(crate) fn time_of_checks(&self, checks: u32) -> Duration {
        Duration::from_nanos(self.desk().check_takes.as_nanos() * u64::from(checks))
    }

    /// How long reads of the medium take at most, but for a few.
    pub(crate) fn usual_read(&self) -> Duration {
        self.desk().usual.most()
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
            read: match action {
                Action::Read { extent, .. } => Some(extent.start()),
                _ => None,
            },
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
    /// medium is rejected: the block is read again once other reads have evicted it.
    ///
    /// # Errors
    /// If the block cannot be read, or every answer was too fast.
    pub async fn sight(&self, lba: Lba) -> Result<Sighting, Unseen> {
        if self.device().offers == Offers::CacheControl {
            return self.sight_now(lba).await?.ok_or(Unseen::Buffered);
        }
        let near = lba.0.saturating_sub(AHEAD)..lba.0 + 1;
        let mut after = 0;
        for attempt in 0..ATTEMPTS {
            let mut turn = self.turn(after).await;
            // Others may have read the same blocks before this turn came.
            while attempt > 0 && self.reads() < self.fresh_after(near.clone()) {
                drop(turn);
                turn = self.turn(self.fresh_after(near.clone())).await;
            }
            if attempt > 0 {
                // From far away the medium does not answer as fast as the buffer.
                self.read_far().await;
            }
            if let Some(sighting) = self.sight_now(lba).await? {
                return Ok(sighting);
            }
            drop(turn);
            after = self.evicted();
            if attempt > 1 {
                let mut desk = self.desk();
                let more = (desk.evicting << (attempt - 1)).min(MOST_SEGMENTS);
                after = desk.medium_reads + more;
                // A few odd times are no reason to wait for all blocks twice as long.
                desk.evicting = (desk.evicting + desk.evicting / 4 + 1).min(MOST_SEGMENTS);
            }
        }
        Err(Unseen::Buffered)
    }

    /// Reads one block; `None` if the buffer seems to have answered.
    ///
    /// # Errors
    /// If the block cannot be read.
    pub(crate) async fn sight_now(&self, lba: Lba) -> Result<Option<Sighting>, Unseen> {
        if lba.0 >= self.device().blocks {
            return Err(Unseen::Unreadable);
        }
        let timing = self.read_medium(Extent::block(lba)).await;
        if timing.status != Status::Good {
            return Err(Unseen::Unreadable);
        }
        let took = timing.ended.since(timing.submitted);
        let fast = self.findings(|findings| findings.fast);
        let buffered = self.device().offers == Offers::Nothing && took <= fast;
        let at = timing.ended;
        Ok((!buffered).then_some(Sighting { lba, at, took }))
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
