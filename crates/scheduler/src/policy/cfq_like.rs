//! A policy after Linux's CFQ: readers take turns, each with the disk for itself for a slice of
//! time. Within a slice the disk idles for the reader's next request.
//!
//! ```text
//!   the disk in 16 areas   | 0   | 1   | 2   |  ...  | 15  |
//!   turns                  area 2 ---> area 5 ---> area 14 ---> writes ---> area 2
//!                          N ms        N ms         N ms        0.4 N ms
//!                          '- C-LOOK within the area; empty: idle up to 8 ms
//! ```
//!
//! Axboe; Linux 2.6.13 to 4.20, `block/cfq-iosched.c`. Requests carry no client, so the policy is
//! simplified. Each sixteenth of the disk stands for a reading process, and all writes for one
//! more, as in CFQ. Omitted are priorities, groups, preemption by cooperating processes, expiry
//! inside a queue, and the later treatment of seeky queues. Whether to idle depends on the success
//! rate.
//!
//! Not for random requests all over the disk: a slice serves a few near each other, and the others
//! wait for sixteen slices.

use std::collections::BTreeMap;

use block::{Direction, Duration, Instant, Lba};

use crate::policy::anticipation::{IdleHistory, IdleResult};
use crate::policy::{Choice, EligibleRequest, PieceId, Policy, Sight, View};

/// The pending requests, and the current turn.
#[derive(Clone, Debug)]
pub struct CfqLike {
    reads: BlockQueue,
    writes: BlockQueue,
    slice: Duration,
    turn: Slice,
    /// The end of the turn.
    ends: Instant,
    /// The end of the idle period, if the disk idles for the turn's reader.
    idle: Option<Instant>,
    history: IdleHistory,
}

/// The owner of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slice {
    /// The reader of this area.
    Area(u64),
    /// All writes.
    Writes,
}

/// Requests by first block and arrival number.
#[derive(Clone, Debug, Default)]
struct BlockQueue {
    pending: BTreeMap<(Lba, u64), PieceId>,
    /// The first block of the last served request.
    sweep: Lba,
}

impl CfqLike {
    /// A policy with turns of `millis` milliseconds for readers.
    pub fn new(millis: u32) -> Self {
        CfqLike {
            reads: BlockQueue::default(),
            writes: BlockQueue::default(),
            slice: Duration::from_millis(u64::from(millis)),
            turn: Slice::Writes,
            ends: Instant::ZERO,
            idle: None,
            history: IdleHistory::default(),
        }
    }

    /// The next request of the turn, or an idle period for its reader.
    fn go_on(&mut self, view: &View) -> Choice {
        // A command that is selected now begins at the end of the previous one.
        if view.ready.max(view.now) >= self.ends {
            if self.idle.take().is_some() {
                self.history.learn(IdleResult::Missed);
            }
            return Choice::Nothing;
        }
        let served = self.serve(view);
        let Slice::Area(_) = self.turn else {
            return served;
        };
        if served != Choice::Nothing {
            if self.idle.take().is_some() {
                self.history.learn(IdleResult::Came);
            }
            return served;
        }
        if self.idle.is_none() && self.history.should_idle() {
            let until = view.ready.max(view.now) + SLICE_IDLE;
            self.idle = Some(until.min(self.ends));
        }
        match self.idle {
            Some(until) if until > view.now => Choice::WaitUntil(until),
            Some(_) => {
                self.history.learn(IdleResult::Missed);
                Choice::Nothing
            }
            None => Choice::Nothing,
        }
    }

    /// Serves the turn's next request upwards, or its lowest.
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

    /// Gives the turn to the next owner with a request.
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
    /// The first request that begins in `first..end`.
    fn first(&self, first: Lba, end: Lba) -> Option<(Lba, u64)> {
        let (&key, _) = self.pending.range((first, 0)..(end, 0)).next()?;
        Some(key)
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
