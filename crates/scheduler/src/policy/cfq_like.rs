//! In the manner of Linux's CFQ: readers take turns, each with the disk for itself for a slice of
//! time, and the disk idles within a slice for the next request of its reader.
//!
//! ```text
//!   the disk in 16 areas   | 0   | 1   | 2   |  ...  | 15  |
//!   turns                  area 2 ---> area 5 ---> area 14 ---> writes ---> area 2
//!                          N ms        N ms         N ms        0.4 N ms
//!                          '- C-LOOK within the area; empty: idle up to 8 ms
//! ```
//!
//! Axboe; Linux 2.6.13 to 4.20, `block/cfq-iosched.c`. Simplified, because a request does not say
//! whose it is: each sixteenth of the disk stands for a process that reads, and all writes, as in
//! CFQ, for one more. Priorities, groups, preemption by cooperating processes, expiry inside a
//! queue and CFQ's later ways of serving seeky queues together are left out; whether to idle is
//! learned from how often it was of use. Not for random requests all over the disk: a slice there
//! serves a few near each other, and others wait for sixteen slices.

use std::collections::BTreeMap;

use block::{Direction, Duration, Instant, Lba};

use crate::policy::anticipation::{Hope, Occasion};
use crate::policy::{Choice, EligibleRequest, PieceId, Policy, Sight, View};

/// The requests, and whose turn it is.
#[derive(Clone, Debug)]
pub struct CfqLike {
    reads: BlockQueue,
    writes: BlockQueue,
    slice: Duration,
    turn: Slice,
    /// The end of the turn.
    ends: Instant,
    /// Until when the disk idles for the reader whose turn it is.
    idle: Option<Instant>,
    hope: Hope,
}

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slice {
    /// That of the reader in this area.
    Area(u64),
    /// That of all writes.
    Writes,
}

/// Requests by first block and number by arrival.
#[derive(Clone, Debug, Default)]
struct BlockQueue {
    pending: BTreeMap<(Lba, u64), PieceId>,
    /// The first block of the request that was served last.
    sweep: Lba,
}

impl CfqLike {
    /// One whose readers have the disk for `millis` milliseconds by turns.
    pub fn new(millis: u32) -> Self {
        CfqLike {
            reads: BlockQueue::default(),
            writes: BlockQueue::default(),
            slice: Duration::from_millis(u64::from(millis)),
            turn: Slice::Writes,
            ends: Instant::ZERO,
            idle: None,
            hope: Hope::default(),
        }
    }

    /// The next request of the turn; the reader's, if it is a reader's, or a wait for one.
    fn go_on(&mut self, view: &View) -> Choice {
        // A command that is chosen now begins when the one before has ended.
        if view.ready.max(view.now) >= self.ends {
            if self.idle.take().is_some() {
                self.hope.learn(Occasion::Missed);
            }
            return Choice::Nothing;
        }
        let served = self.serve(view);
        let Slice::Area(_) = self.turn else {
            return served;
        };
        if served != Choice::Nothing {
            if self.idle.take().is_some() {
                self.hope.learn(Occasion::Came);
            }
            return served;
        }
        if self.idle.is_none() && self.hope.takes_occasion() {
            let until = view.ready.max(view.now) + SLICE_IDLE;
            self.idle = Some(until.min(self.ends));
        }
        match self.idle {
            Some(until) if until > view.now => Choice::WaitUntil(until),
            Some(_) => {
                self.hope.learn(Occasion::Missed);
                Choice::Nothing
            }
            None => Choice::Nothing,
        }
    }

    /// Serves the request of the turn that is next upwards, or its lowest.
    fn serve(&mut self, view: &View) -> Choice {
        let (queue, first, end) = match self.turn {
            Slice::Writes => (&mut self.writes, Lba(0), Lba(u64::MAX)),
            Slice::Area(area) => {
                let blocks = view.belief.geometry.sectors().0;
                (
                    &mut self.reads,
                    begin(area, blocks),
                    begin(area + 1, blocks),
                )
            }
        };
        let sweep = queue.sweep.clamp(first, end);
        let next = queue.first(sweep, end).or_else(|| queue.first(first, end));
        match next {
            None => Choice::Nothing,
            Some((start, order)) => {
                queue.sweep = start;
                let ticket = queue.pending.remove(&(start, order));
                ticket.map_or(Choice::Nothing, Choice::Serve)
            }
        }
    }

    /// Gives the turn to the next who wants something.
    fn pass_on(&mut self, view: &View) {
        let blocks = view.belief.geometry.sectors().0;
        let higher = match self.turn {
            Slice::Area(area) => self.reads.first(begin(area + 1, blocks), Lba(u64::MAX)),
            Slice::Writes => self.reads.first(Lba(0), Lba(u64::MAX)),
        };
        let lowest = self.reads.first(Lba(0), Lba(u64::MAX));
        let writes = !self.writes.pending.is_empty();
        self.turn = match (higher, lowest) {
            (Some((start, _)), _) => Slice::Area(area(start, blocks)),
            (None, Some((start, _))) if !writes => Slice::Area(area(start, blocks)),
            (None, _) => Slice::Writes,
        };
        let slice = match self.turn {
            Slice::Area(_) => self.slice,
            Slice::Writes => Duration::from_nanos(self.slice.as_nanos() * 2 / 5),
        };
        self.ends = view.ready.max(view.now) + slice;
        self.idle = None;
    }

    fn queue_mut(&mut self, direction: Direction) -> &mut BlockQueue {
        match direction {
            Direction::Read => &mut self.reads,
            Direction::Write => &mut self.writes,
        }
    }
}

impl Policy for CfqLike {
    fn sight(&self) -> Sight {
        Sight::Head
    }

    fn add(&mut self, pending: &EligibleRequest) {
        let key = (pending.extent.start(), pending.order);
        let queue = self.queue_mut(pending.direction);
        queue.pending.insert(key, pending.ticket);
    }

    fn withdraw(&mut self, pending: &EligibleRequest) {
        let key = (pending.extent.start(), pending.order);
        self.queue_mut(pending.direction).pending.remove(&key);
    }

    fn select(&mut self, view: &View) -> Choice {
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

impl BlockQueue {
    /// The first request that begins from `first` on and before `end`.
    fn first(&self, first: Lba, end: Lba) -> Option<(Lba, u64)> {
        let (&key, _) = self.pending.range((first, 0)..(end, 0)).next()?;
        Some(key)
    }
}

/// In which area of a drive with so many blocks a block is.
fn area(block: Lba, blocks: u64) -> u64 {
    block.0 * AREAS / blocks
}

/// The first block of an area.
fn begin(area: u64, blocks: u64) -> Lba {
    Lba((area * blocks).div_ceil(AREAS))
}

/// How many readers the disk is divided among: a choice, about as many as a busy disk has.
const AREAS: u64 = 16;

/// The slice of a reader in milliseconds (Linux: `cfq_slice_sync`, a tenth of a second). That of
/// the writes is 2/5 of it (`cfq_slice_async`, a 25th).
pub const SLICE_MS: u32 = 100;

/// How long the disk idles for a reader (Linux: `cfq_slice_idle`, a 125th of a second).
const SLICE_IDLE: Duration = Duration::from_millis(8);
