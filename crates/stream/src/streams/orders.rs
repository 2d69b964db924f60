//! What goes in and out: attachments, orders for the disk, answers for the clients.

use block::{Class, Direction, Durability, Duration, Extent, Terms};

use crate::admission::{Plan, Refusal};
use crate::location::LocationMap;
use crate::playout::{AccessId, Served, Standing};

/// Names a stream from its attachment on; never used twice.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct StreamId(pub u64);

/// Names a transfer from its order to its completion; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransferId(pub u64);

/// Request for a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attach {
    /// Uid of the client.
    pub user: u32,
    /// The client's terms in the drive's time. Without `memory` admission refuses them, and names the
    /// least memory that it would grant. Without `priority` the buffer fills at that of [`Settings`].
    pub terms: Terms,
    /// Place of the file on the drive.
    pub map: LocationMap,
}

/// Entry of the list of streams that were granted and have not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed<'a> {
    /// The stream.
    pub stream: StreamId,
    /// Uid of its client.
    pub user: u32,
    /// Its terms, with the memory that it was granted.
    pub terms: &'a Terms,
    /// Bytes that are due to it in a round at present. `None` while it has no guarantee because its
    /// file moved to a place where it could not be granted.
    pub batch: Option<u64>,
    /// State of its guarantee.
    pub standing: Standing,
    /// The bytes of the file that are in memory, from the first to the end.
    pub window: (u64, u64),
}

/// A stream that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Its name from now on.
    pub stream: StreamId,
    /// How rounds go, with it.
    pub plan: Plan,
    /// What it is due in a round, in bytes.
    pub batch: u64,
    /// The memory that was set, in bytes.
    pub memory: u64,
}

/// What is to be done for the streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Read or write an extent, and say so with `started` and `complete`.
    Transfer(Transfer),
    /// Serve one that was ordered before at this class from now on, if it has not ended.
    Raise {
        /// Which.
        id: TransferId,
        /// How urgent it is.
        class: Class,
    },
}

/// A read or a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Comes back with its completion.
    pub id: TransferId,
    /// Whose.
    pub stream: StreamId,
    /// Which way.
    pub direction: Direction,
    /// The blocks.
    pub extent: Extent,
    /// The first byte of the file.
    pub offset: u64,
    /// Real-time with its deadline, or best effort while a buffer fills.
    pub class: Class,
    /// Whether it counts only when it is on the media.
    pub durability: Durability,
}

/// What streams are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Of an access.
    Access {
        /// Whose.
        stream: StreamId,
        /// Which.
        access: AccessId,
        /// What became of it.
        served: Served,
    },
    /// Of the stream itself.
    Notice {
        /// Whose.
        stream: StreamId,
        /// What.
        notice: Notice,
    },
}

/// What happened to a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The guarantee holds from now on, or does not any more.
    Stands(Standing),
    /// A batch came too late. If `by` is more than `held_up`, the disk did not keep what was promised.
    Late {
        /// The time since its deadline.
        by: Duration,
        /// For how long earlier requests over its blocks came before it, since it was a batch. No
        /// promise covers that.
        held_up: Duration,
    },
    /// What was written here is not on the media.
    WriteFailed {
        /// The first byte.
        from: u64,
        /// The byte after the last.
        to: u64,
    },
    /// Its file lies elsewhere, and there it would not have been granted: it goes on at best
    /// effort.
    Unguaranteed(Refusal),
    /// It was closed, and all that it wrote is on the media.
    Closed,
}

/// What holds for every stream of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Batches are whole pages of so many bytes, a multiple of the block.
    pub page: u64,
    /// Bytes of one best-effort read while a buffer fills: no longer than the longest foreground
    /// command of the head times.
    pub fill: u64,
    /// The priority at which buffers fill.
    pub priority: u8,
}
