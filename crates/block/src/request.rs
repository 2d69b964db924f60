//! What a client asks for, and how it comes back.

use crate::account::Account;
use crate::address::Extent;
use crate::command::{Durability, Status};
use crate::time::{Duration, Instant};

/// Names a request from its submission to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RequestId(pub u64);

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Direction {
    /// From the drive.
    Read,
    /// To the drive.
    Write,
}

/// How urgent a request is (ABISS 3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Class {
    /// Under a guarantee, to be done by the deadline.
    RealTime {
        /// When it must be done.
        deadline: Instant,
    },
    /// Priority 0 (most urgent) to 6.
    BestEffort(u8),
    /// Served in gaps and idle time.
    Background,
}

impl Default for Class {
    /// The middle of the best-effort priorities.
    fn default() -> Self {
        Class::BestEffort(3)
    }
}

/// One request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Request {
    /// Comes back with the end.
    pub id: RequestId,
    /// Which way.
    pub direction: Direction,
    /// Which blocks.
    pub extent: Extent,
    /// How urgent.
    pub class: Class,
    /// Whether a write counts as done only when it is on the medium (FUA), and whether a read has
    /// to come from there.
    pub durability: Durability,
}

/// A request that ended. Every accepted request comes back exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Finished {
    /// The request as it was submitted.
    pub request: Request,
    /// When it was submitted.
    pub submitted: Instant,
    /// When it ended.
    pub at: Instant,
    /// How.
    pub status: Status,
    /// Waiting outside the drive, before its command was given to the drive.
    pub waited: Duration,
    /// The part of `waited` in which it could not have been given: it was behind earlier requests
    /// with common blocks, or behind a barrier.
    pub waited_order: Duration,
    /// Where the time in the drive went, if the drive is a simulated one.
    pub account: Option<Account>,
}

impl Finished {
    /// Submission to end.
    pub fn response(&self) -> Duration {
        self.at.since(self.submitted)
    }
}

/// Why a request or command was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A named limit is reached: stop reading from the client until something ends.
    #[error("full: {limit} may be held at once; wait for one to end")]
    Full {
        /// The limit.
        limit: usize,
    },
    /// The extent is not on the drive.
    #[error("{extent} end past the last block of the drive, which has {capacity} blocks")]
    PastEnd {
        /// What was asked for.
        extent: Extent,
        /// Blocks of the drive.
        capacity: u64,
    },
    /// There is no such best-effort priority.
    #[error("best-effort priority {priority}: expected 0 (most urgent) to 6")]
    Priority {
        /// What was asked for.
        priority: u8,
    },
}
