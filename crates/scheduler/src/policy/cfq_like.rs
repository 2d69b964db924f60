//! A policy after Linux's CFQ: readers take turns, each with the disk for itself for a slice of
//! time. Within a slice the disk idles for the reader's next request.
//!
//! ```text
//!   reads     unknown owners, by 16 areas of the disk  | owner 3 | owner 8 | writes
//!   turns     area 2 ---> area 14 ---> owner 3 ---> owner 8 ---> writes ---> area 2
//!             N ms        N ms         N ms         N ms         0.4 N ms
//!             '- C-LOOK within the turn; empty: idle up to 8 ms
//! ```
//!
//! Axboe; Linux 2.6.13 to 4.20, `block/cfq-iosched.c`. Each owner has a queue of its reads, and all writes share one, as
//! CFQ's asynchronous ones do. For reads of unknown owners each sixteenth of the disk stands for a reading process. The turn
//! passes through all queues that have a request. Omitted are priorities, groups, preemption by cooperating processes,
//! expiry inside a queue, and the later treatment of seeky queues.
//!
//! The disk idles for an owner unless its reads come later than 8 ms, as CFQ decides, or idling for it has mostly failed.
//!
//! Not for random requests: an owner that always has one has the disk for its slice with one request at a time, and those of
//! unknown owners wait for sixteen slices.

use std::collections::BTreeMap;

use block::{Direction, Duration, Instant, Lba, Owner};

use crate::policy::anticipation::{IdleHistory, IdleResult};
use crate::policy::owners::{Backlog, Owners};
use crate::policy::{Choice, EligibleRequest, PieceId, Policy, Sight, View};

/// The pending requests, and the current turn.
#[derive(Clone, Debug)]
pub struct CfqLike {
    /// Reads, first those of the unknown owner.
    reads: OwnerQueues,
    writes: OwnerQueues,
    slice: Duration,
    turn: Slice,
    /// The end of the turn.
    ends: Instant,
    /// The end of the idle period, if the disk idles for the turn's reader.
    idle: Option<Instant>,
    /// The success of idling for unknown owners.
    history: IdleHistory,
    owners: Owners,
}

/// The queue that has the turn, in the order of turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slice {
    /// The reads of unknown owners in this area.
    Area(u64),
    /// The reads of this owner.
    Owner(Owner),
    /// All writes.
    Writes,
}

/// Requests by owner, first block and arrival number.
#[derive(Clone, Debug, Default)]
struct OwnerQueues {
    pending: BTreeMap<(Owner, Lba, u64), PieceId>,
    /// The first block of the last served request.
    sweep: Lba,
}

impl CfqLike {
    /// A policy with turns of `millis` milliseconds for readers.
    pub fn new(millis: u32) -> Self {
        CfqLike {
            reads: OwnerQueues::default(),
            writes: OwnerQueues::default(),
            slice: Duration::from_millis(u64::from(millis)),
            turn: Slice::Writes,
            ends: Instant::ZERO,
            idle: None,
            history: IdleHistory::default(),
            owners: Owners::default(),
        }
    }

    /// The next request of the turn, or an idle period for its reader.
    fn go_on(&mut self, view: &View) -> Choice {
        // A command that is selected now begins at the end of the previous one.
        if view.ready.max(view.now) >= self.ends {
            if self.idle.take().is_some() {
                self.learn(IdleResult::Missed);
            }
            return Choice::Nothing;
        }
        let served = self.serve(view);
        if self.turn == Slice::Writes {
            return served;
        }
        if served != Choice::Nothing {
            if self.idle.take().is_some() {
                self.learn(IdleResult::Came);
            }
            return served;
        }
        if self.idle.is_none() && self.is_worth_idling() {
            let until = view.ready.max(view.now) + SLICE_IDLE;
            self.idle = Some(until.min(self.ends));
        }
        match self.idle {
            Some(until) if until > view.now => Choice::WaitUntil(until),
            Some(_) => {
                self.learn(IdleResult::Missed);
                Choice::Nothing
            }
            None => Choice::Nothing,
        }
    }

    /// Whether to idle for the reader that has the turn.
    fn is_worth_idling(&mut self) -> bool {
        match self.turn {
            Slice::Owner(owner) => {
                let habits = self.owners.habits(owner);
                habits.comes_within(SLICE_IDLE) && habits.idling.should_idle()
            }
            Slice::Area(_) | Slice::Writes => self.history.should_idle(),
        }
    }

    fn learn(&mut self, result: IdleResult) {
        match self.turn {
            Slice::Owner(owner) => self.owners.habits(owner).idling.learn(result),
            Slice::Area(_) | Slice::Writes => self.history.learn(result),
        }
    }

    /// Serves the turn's next request upwards, or its lowest.
    fn serve(&mut self, view: &View) -> Choice {
        let all = (Lba(0), Lba(u64::MAX));
        let (queue, owner, (first, end)) = match self.turn {
            Slice::Writes => (&mut self.writes, Owner::NOBODY, all),
            Slice::Owner(owner) => (&mut self.reads, owner, all),
            Slice::Area(area) => {
                let blocks = view.belief.geometry.sectors().0;
                let area = (begin(area, blocks), begin(area + 1, blocks));
                (&mut self.reads, Owner::NOBODY, area)
            }
        };
        let sweep = queue.sweep.clamp(first, end);
        let next = queue.first(owner, sweep, end);
        let Some(key) = next.or_else(|| queue.first(owner, first, end)) else {
            return Choice::Nothing;
        };
        queue.sweep = key.1;
        let ticket = queue.pending.remove(&key);
        if let Slice::Owner(owner) = self.turn {
            self.owners.served(owner);
        }
        ticket.map_or(Choice::Nothing, Choice::Serve)
    }

    /// Gives the turn to the next queue with a request.
    fn pass_on(&mut self, view: &View) {
        let blocks = view.belief.geometry.sectors().0;
        let (owner, from) = match self.turn {
            Slice::Area(area) => (Owner::NOBODY, begin(area + 1, blocks)),
            // All of them begin before the end of the address space.
            Slice::Owner(owner) => (owner, Lba(u64::MAX)),
            Slice::Writes => (Owner::NOBODY, Lba(0)),
        };
        let next = self.reads.from(owner, from);
        let lowest = self.reads.from(Owner::NOBODY, Lba(0));
        let has_writes = !self.writes.pending.is_empty();
        self.turn = match (next, lowest) {
            (Some(key), _) => Slice::of(key, blocks),
            (None, Some(key)) if !has_writes => Slice::of(key, blocks),
            (None, _) => Slice::Writes,
        };
        let slice = match self.turn {
            Slice::Area(_) | Slice::Owner(_) => self.slice,
            Slice::Writes => Duration::from_nanos(self.slice.as_nanos() * 2 / 5),
        };
        self.ends = view.ready.max(view.now) + slice;
        self.idle = None;
    }

    /// The queues of a request's direction, and its key in them.
    fn queues_of(&mut self, pending: &EligibleRequest) -> (&mut OwnerQueues, (Owner, Lba, u64)) {
        let (queues, owner) = match pending.direction {
            Direction::Read => (&mut self.reads, pending.owner),
            Direction::Write => (&mut self.writes, Owner::NOBODY),
        };
        (queues, (owner, pending.extent.start(), pending.order))
    }
}

impl Policy for CfqLike {
    fn sight(&self) -> Sight {
        Sight::Head
    }

    fn add(&mut self, pending: &EligibleRequest) {
        let (queues, key) = self.queues_of(pending);
        let backlog = match queues.first(key.0, Lba(0), Lba(u64::MAX)) {
            None => Backlog::None,
            Some(_) => Backlog::Some,
        };
        queues.pending.insert(key, pending.ticket);
        if key.0.is_known() {
            self.owners
                .arrived(key.0, pending.extent, pending.submitted, backlog);
        }
    }

    fn withdraw(&mut self, pending: &EligibleRequest) {
        let (queues, key) = self.queues_of(pending);
        queues.pending.remove(&key);
    }

    fn select(&mut self, view: &View) -> Choice {
        self.owners.ended(view.ready);
        if self.reads.pending.is_empty() && self.writes.pending.is_empty() {
            return Choice::Nothing;
        }
        match self.go_on(view) {
            Choice::Nothing => {
                self.pass_on(view);
                self.serve(view)
            }
            choice => choice,
        }
    }
}

impl Slice {
    /// The queue of a read on a drive of `blocks` blocks.
    fn of((owner, start, _): (Owner, Lba, u64), blocks: u64) -> Slice {
        match owner.is_known() {
            true => Slice::Owner(owner),
            false => Slice::Area(area(start, blocks)),
        }
    }
}

impl OwnerQueues {
    /// The first request of an owner that begins in `first..end`.
    fn first(&self, owner: Owner, first: Lba, end: Lba) -> Option<(Owner, Lba, u64)> {
        let range = (owner, first, 0)..(owner, end, 0);
        self.pending.range(range).next().map(|(&key, _)| key)
    }

    /// The first request of an owner that begins at `first` or later, or else the first of the next owner.
    fn from(&self, owner: Owner, first: Lba) -> Option<(Owner, Lba, u64)> {
        let next = self.pending.range((owner, first, 0)..).next();
        next.map(|(&key, _)| key)
    }
}

/// The area of a block on a drive of `blocks` blocks.
fn area(block: Lba, blocks: u64) -> u64 {
    block.0 * AREAS / blocks
}

/// The first block of an area.
fn begin(area: u64, blocks: u64) -> Lba {
    Lba((area * blocks).div_ceil(AREAS))
}

/// The number of areas. A choice: about the number of readers of a busy disk.
const AREAS: u64 = 16;

/// The slice of a reader in milliseconds (Linux: `cfq_slice_sync`, a tenth of a second). That of
/// the writes is 2/5 of it (`cfq_slice_async`, a 25th).
pub const SLICE_MS: u32 = 100;

/// The longest idle period (Linux: `cfq_slice_idle`, a 125th of a second).
const SLICE_IDLE: Duration = Duration::from_millis(8);
