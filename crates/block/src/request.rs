//! Requests of clients, and their ends.

use crate::account::Account;
use crate::address::Extent;
use crate::command::{Durability, Status};
use crate::owner::Owner;
use crate::time::{Duration, Instant};

/// The number of a request from its submission to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RequestId(pub u64);

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Direction {
    /// From the drive to the client.
    Read,
    /// From the client to the drive.
    Write,
}

/// The urgency of a request (ABISS 3.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Class {
    /// Real time: guaranteed to end by the deadline.
    RealTime {
        /// The moment by which the request must end.
        deadline: Instant,
    },
    /// Best effort with a priority from 0 (most urgent) to 6.
    BestEffort(u8),
    /// Background: served in gaps and idle time.
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
    /// The number that comes back with the end.
    pub id: RequestId,
    /// The direction of the transfer.
    pub direction: Direction,
    /// The blocks.
    pub extent: Extent,
    /// The urgency.
    pub class: Class,
    /// `Durable` writes end when the data is on the medium (FUA); `Durable` reads come from the
    /// medium.
    pub durability: Durability,
    /// The program that waits for it; a hint for policies.
    pub owner: Owner,
}

/// Tables of requests are read and written for each of them: an owner has the place of former padding.
const _: () = assert!(size_of::<Request>() == 48);

/// The end of a request. Every accepted request comes back exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Finished {
    /// The request as submitted.
    pub request: Request,
    /// The moment of submission.
    pub submitted: Instant,
    /// The moment of the end.
    pub at: Instant,
    /// The result.
    pub status: Status,
    /// The wait outside the drive, before the last dispatch.
    pub waited: Duration,
    /// The part of `waited` in which ordering held the request back: behind overlapping requests or
    /// a barrier.
    pub waited_order: Duration,
    /// The phases inside a simulated drive; `None` for other drives.
    pub account: Option<Account>,
}

impl Finished {
    /// The time from submission to the end.
    pub fn response(&self) -> Duration {
        self.at.since(self.submitted)
    }
}

/// The reason that a request or command was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A limit is reached. The front end stops reading from the client until a request ends.
    #[error("full: {limit} may be held at once; wait for one to end")]
    Full {
        /// The limit, in requests.
        limit: usize,
    },
    /// The extent is not on the drive.
    #[error("{extent} end past the last block of the drive, which has {capacity} blocks")]
    PastEnd {
        /// The requested extent.
        extent: Extent,
        /// The drive's size in blocks.
        capacity: u64,
    },
    /// The best-effort priority does not exist.
    #[error("best-effort priority {priority}: expected 0 (most urgent) to 6")]
    Priority {
        /// The requested priority.
        priority: u8,
    },
}
