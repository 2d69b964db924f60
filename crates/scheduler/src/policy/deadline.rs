//! Linux's deadline elevator: sorted batches of one direction, with an expiry time after which the
//! oldest request goes first.
//!
//! ```text
//!   by block   reads  . . r . . r r . .        writes  w . . w . . w
//!   by age     reads  r r r                    writes  w w w
//!                     ^ expires after 0.5 s            ^ after 5 s
//!
//!   batch: at most 16 of one direction upwards | next batch: reads, unless writes have been put
//!                                              | off twice; from the oldest if it has expired,
//!                                              | otherwise from the sweep
//! ```
//!
//! Axboe; Linux, `block/deadline-iosched.c` and `block/mq-deadline.c`. Simplified: nothing is
//! merged, and the engine has the priorities. Each direction keeps its sweep across batches of the
//! other; the first Linux versions began every such batch with the oldest request. The policy is
//! blind to rotation.
//!
//! Not for a deep backlog. Once all requests have expired every batch begins elsewhere. The arm
//! then travels every 16 requests as under first come, first served.

use std::collections::{BTreeMap, BTreeSet};

use block::{Direction, Duration, Instant, Lba, Owner};

use crate::policy::{Choice, EligibleRequest, PieceId, Policy, Sight, View};

/// The constants of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The expiry time of a read.
    pub read_expire: Duration,
    /// The expiry time of a write.
    pub write_expire: Duration,
    /// The largest number of batches of reads before a waiting batch of writes.
    pub writes_starved: u32,
    /// The number of requests in a batch.
    pub fifo_batch: u32,
}

/// The constants of Linux: `HZ / 2`, `5 * HZ`, 2, 16.
impl Default for Parameters {
    fn default() -> Self {
        Parameters {
            read_expire: Duration::from_millis(500),
            write_expire: Duration::from_secs(5),
            writes_starved: 2,
            fifo_batch: 16,
        }
    }
}

/// The pending requests of each direction, and the batch.
#[derive(Clone, Debug)]
pub struct Deadline {
    parameters: Parameters,
    reads: DirectionQueue,
    writes: DirectionQueue,
    /// The direction of the batch.
    direction: Direction,
    /// The number of served requests of the batch.
    batched: u32,
    /// The number of batches of reads for which writes have waited.
    starved: u32,
    /// The last served request.
    last: (Key, Owner),
}

/// The pending requests of one direction.
#[derive(Clone, Debug, Default)]
struct DirectionQueue {
    by_block: BTreeMap<Key, WaitingRequest>,
    by_age: BTreeSet<(Instant, u64, Key)>,
    /// The end of the last served request.
    sweep: Lba,
}

/// First block and arrival number.
pub(super) type Key = (Lba, u64);

/// A pending request.
#[derive(Clone, Copy, Debug)]
struct WaitingRequest {
    ticket: PieceId,
    submitted: Instant,
    /// The block after its last.
    end: Lba,
    owner: Owner,
}

impl Default for Deadline {
    fn default() -> Self {
        let parameters = Parameters::default();
        Deadline {
            parameters,
            reads: DirectionQueue::default(),
            writes: DirectionQueue::default(),
            direction: Direction::Read,
            // Full: the first selection begins a batch.
            batched: parameters.fifo_batch,
            starved: 0,
            last: ((Lba(0), 0), Owner::NOBODY),
        }
    }
}

impl Policy for Deadline {
    fn sight(&self) -> Sight {
        Sight::Order
    }

    fn add(&mut self, pending: &EligibleRequest) {
        let key = (pending.extent.start(), pending.order);
        let waiting = WaitingRequest {
            ticket: pending.ticket,
            submitted: pending.submitted,
            end: pending.extent.end(),
            owner: pending.owner,
        };
        self.side_mut(pending.direction).insert(key, waiting);
    }

    fn withdraw(&mut self, pending: &EligibleRequest) {
        let key = (pending.extent.start(), pending.order);
        self.side_mut(pending.direction).remove(key);
    }

    fn select(&mut self, view: &View) -> Choice {
        let next = self.next(view.now);
        next.map_or(Choice::Nothing, |key| self.serve(key, self.direction))
    }
}

impl Deadline {
    /// The request after the last one, or the first of a new batch.
    fn next(&mut self, now: Instant) -> Option<Key> {
        if self.batched < self.parameters.fifo_batch
            && let Some(key) = self.side(self.direction).ahead()
        {
            return Some(key);
        }
        (self.direction, self.batched) = (self.turn()?, 0);
        let side = self.side(self.direction);
        let ahead = side.ahead().filter(|_| !self.is_late(self.direction, now));
        ahead.or_else(|| side.oldest().map(|(_, key)| key))
    }

    /// The direction of the next batch.
    fn turn(&mut self) -> Option<Direction> {
        match (
            self.reads.by_block.is_empty(),
            self.writes.by_block.is_empty(),
        ) {
            (true, true) => None,
            (false, true) => Some(Direction::Read),
            (false, false) if self.starved < self.parameters.writes_starved => {
                self.starved += 1;
                Some(Direction::Read)
            }
            (_, false) => {
                self.starved = 0;
                Some(Direction::Write)
            }
        }
    }

    /// Whether the oldest request of a direction has expired.
    pub(super) fn is_late(&self, direction: Direction, now: Instant) -> bool {
        let bound = match direction {
            Direction::Read => self.parameters.read_expire,
            Direction::Write => self.parameters.write_expire,
        };
        let oldest = self.side(direction).oldest();
        oldest.is_some_and(|(submitted, _)| submitted + bound <= now)
    }

    /// Whether no request is pending.
    pub(super) fn is_empty(&self) -> bool {
        self.reads.by_block.is_empty() && self.writes.by_block.is_empty()
    }

    /// The first read from this block on.
    pub(super) fn read_from(&self, block: Lba) -> Option<Key> {
        self.reads.first_from(block)
    }

    /// The end of the last served read.
    pub(super) fn read_sweep(&self) -> Lba {
        self.reads.sweep
    }

    /// The direction of the last served request.
    pub(super) fn direction(&self) -> Direction {
        self.direction
    }

    /// The last served request and its owner.
    pub(super) fn last_served(&self) -> (Key, Owner) {
        self.last
    }

    /// Serves a pending request, as the next of the batch or the first of another.
    pub(super) fn serve(&mut self, key: Key, direction: Direction) -> Choice {
        if self.direction != direction {
            (self.direction, self.batched) = (direction, 0);
        }
        self.batched = self.batched.saturating_add(1);
        let side = self.side_mut(direction);
        let Some(served) = side.remove(key) else {
            return Choice::Nothing;
        };
        side.sweep = served.end;
        self.last = (key, served.owner);
        Choice::Serve(served.ticket)
    }

    fn side(&self, direction: Direction) -> &DirectionQueue {
        match direction {
            Direction::Read => &self.reads,
            Direction::Write => &self.writes,
        }
    }

    fn side_mut(&mut self, direction: Direction) -> &mut DirectionQueue {
        match direction {
            Direction::Read => &mut self.reads,
            Direction::Write => &mut self.writes,
        }
    }
}

impl DirectionQueue {
    fn insert(&mut self, key: Key, waiting: WaitingRequest) {
        self.by_age.insert((waiting.submitted, key.1, key));
        self.by_block.insert(key, waiting);
    }

    fn remove(&mut self, key: Key) -> Option<WaitingRequest> {
        let removed = self.by_block.remove(&key)?;
        self.by_age.remove(&(removed.submitted, key.1, key));
        Some(removed)
    }

    /// The next request upwards from the sweep.
    fn ahead(&self) -> Option<Key> {
        self.first_from(self.sweep)
    }

    fn first_from(&self, block: Lba) -> Option<Key> {
        let (&key, _) = self.by_block.range((block, 0)..).next()?;
        Some(key)
    }

    /// The arrival and the key of the oldest request.
    fn oldest(&self) -> Option<(Instant, Key)> {
        self.by_age
            .first()
            .map(|&(submitted, _, key)| (submitted, key))
    }
}
