//! One stream: its playout buffer, what is under way for it, who waits.
//!
//! ```text
//!   reading          base       point            edge    base + memory
//!     file  ...........[=========|===============]........|..............
//!                      scheduler's  application's  asked for   asked for when base moves
//!
//!   writing          drained     edge    base    point    drained + memory
//!     file  ===========[~~~~~~~~~~|-------|========|........|............
//!                      being written   due  dirty    may be written
//! ```
//!
//! The scheduler's playout point (`base`) moves only when a batch is frozen: towards the
//! application's, by its credit at most. What it has moved is the next batch.

mod accesses;
mod frozen;

use std::collections::VecDeque;

use block::{Direction, Duration, Extent, Instant, StreamMode};

use crate::admission::Demand;
use crate::credit::Credit;
use crate::location::{LocationMap, Piece};
use crate::rounds::Slot;

/// What holds for one stream: the demand that was admitted, and how its buffer fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contract {
    /// Purpose of the stream.
    pub mode: StreamMode,
    /// Demand that was admitted.
    pub demand: Demand,
    /// Longest delay with which the host notices anything.
    pub latency: Duration,
    /// Bytes of one best-effort read while the buffer fills.
    pub fill: u64,
    /// Best-effort priority of the file.
    pub priority: u8,
}

impl Contract {
    /// Direction of the transfers.
    pub fn direction(&self) -> Direction {
        self.mode.direction()
    }
}

/// Names an access of an application; given by the caller.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct AccessId(pub u64);

/// What becomes of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// At once, from memory.
    Memory,
    /// From memory after waiting for the disk since then.
    Waited(Instant),
    /// The disk could not.
    Failed,
    /// Nothing of it is in the file.
    PastEnd,
    /// The buffer has left for another place: it is to be read as an ordinary request.
    Elsewhere,
    /// The stream was closed.
    Closed,
}

/// How a stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its buffer fills at best effort: nothing is promised yet, or any more.
    Filling,
    /// The guarantee holds.
    Serving,
    /// A writer has been faster than its terms: it waits for room, and is drained at its rate.
    Behind,
}

/// Why an access is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// Larger than the buffer.
    #[error("{length} bytes at once, of a buffer of {buffer}: read or write less at a time")]
    LargerThanBuffer {
        /// What was asked for.
        length: u64,
        /// The buffer.
        buffer: u64,
    },
    /// Writes are sequential, from each position that was told.
    #[error("a write at {offset}: expected the next one at {expected}, or its position before")]
    NotSequential {
        /// Where it is.
        offset: u64,
        /// Where the last one ended.
        expected: u64,
    },
    /// Writes are whole pages.
    #[error("{length} bytes at {offset}: expected whole pages of {page} bytes")]
    NotWholePages {
        /// Where it is.
        offset: u64,
        /// How long.
        length: u64,
        /// Bytes of a page.
        page: u64,
    },
    /// There are no blocks to write to.
    #[error("no blocks at {offset}: a recording needs preallocated extents")]
    NotAllocated {
        /// The first byte without.
        offset: u64,
    },
    /// Too many wait.
    #[error("{limit} accesses wait; wait for one to be answered")]
    Full {
        /// The limit.
        limit: usize,
    },
    /// It reads a stream that is written, or writes one that is read.
    #[error("the stream goes the other way")]
    Direction,
    /// There is none of that name, or it was closed.
    #[error("no such stream")]
    NoStream,
}

/// A transfer under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InFlight {
    pub key: u64,
    pub extent: Extent,
    pub from: u64,
    pub to: u64,
    pub urgency: Urgency,
    pub relevance: Relevance,
}

/// How a transfer was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// At best effort.
    Filling,
    /// At best effort, and somebody waits for it.
    Wanted,
    /// Under the guarantee.
    Batch {
        deadline: Instant,
        slot: Option<Slot>,
    },
}

/// Whether what a transfer brings is still of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relevance {
    Wanted,
    /// The buffer has moved away, or the blocks are another file's by now.
    Stale,
}

#[derive(Clone, Copy, Debug)]
struct WaitingAccess {
    access: AccessId,
    from: u64,
    to: u64,
    since: Instant,
}

/// A part of a batch that is to be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub piece: Piece,
    pub from: u64,
    pub to: u64,
    pub deadline: Instant,
}

/// One stream.
#[derive(Clone, Debug)]
pub(crate) struct Playout {
    pub contract: Contract,
    pub map: LocationMap,
    pub standing: Standing,
    pub in_flight: Vec<InFlight>,
    base: u64,
    point: u64,
    edge: u64,
    credit: Credit,
    waiting: VecDeque<WaitingAccess>,
    /// What could not be read, inside the buffer.
    failed: Vec<(u64, u64)>,
    pub answers: VecDeque<(AccessId, Served)>,
    tail: Tail,
    course: NextWrite,
}

/// Whether the rest of a recording's last track is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    /// More may come.
    Kept,
    /// The recording is over.
    Due,
}

/// Where a recording's next write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextWrite {
    /// Where the last one ended.
    Straight,
    /// There; or anywhere else, when all that was written before is on the media.
    Leaving,
}

/// Best-effort reads of one filling stream at once: while one is served the next waits, so that
/// filling is sequential for the disk (Lumb et al., FAST 2002, 4.1: two commands).
const FILLS: usize = 2;

/// Accesses of one stream that may wait; at the bound they are refused. A choice.
pub const WAITING: usize = 64;

/// Failed ranges of one buffer that are told apart; beyond, all between them counts as failed. A
/// choice.
const FAILED: usize = 16;

impl Playout {
    pub fn new(now: Instant, contract: Contract, map: LocationMap, start: u64) -> Self {
        let Contract {
            demand, latency, ..
        } = contract;
        let page = demand.page;
        let base = start - start % page;
        Playout {
            credit: Credit::new(now, demand.rate, latency, page),
            contract,
            map,
            standing: Standing::Filling,
            in_flight: Vec::new(),
            base,
            point: base,
            edge: base,
            waiting: VecDeque::new(),
            failed: Vec::new(),
            answers: VecDeque::new(),
            tail: Tail::Kept,
            course: NextWrite::Straight,
        }
    }

    /// The buffer's memory, in whole pages.
    pub(super) fn memory(&self) -> u64 {
        let Demand { memory, page, .. } = self.contract.demand;
        memory - memory % page
    }

    /// What the caller has to keep in memory: the bytes from here to there.
    pub fn window(&self) -> (u64, u64) {
        match self.contract.direction() {
            Direction::Read => (self.base, self.edge),
            Direction::Write => (self.drained(), self.point),
        }
    }

    /// Everything before is on the media.
    pub(super) fn drained(&self) -> u64 {
        let first = self.in_flight.iter().map(|in_flight| in_flight.from).min();
        first.unwrap_or(self.edge)
    }

    /// Whether all that was written is on the media.
    pub fn is_drained(&self) -> bool {
        self.contract.direction() == Direction::Read || self.drained() >= self.point
    }

    /// The end of the file, in whole pages.
    pub(super) fn end(&self) -> u64 {
        match self.contract.direction() {
            Direction::Read => self
                .map
                .length()
                .next_multiple_of(self.contract.demand.page),
            Direction::Write => u64::MAX,
        }
    }

    pub(super) fn page_of(&self, offset: u64) -> u64 {
        offset - offset % self.contract.demand.page
    }
}

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferEnd {
    Good,
    Failed,
}
