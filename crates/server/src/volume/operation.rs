//! One operation of a client, from its submission to a volume until its answer.

use block::{Class, Direction, Durability, Extent, Instant, Lba, Owner};

use crate::arena::Bytes;
use block::operation::{Ask, OperationError};
use nbd::request::Header;

/// An operation whose offset and length were checked against its export.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    /// The index of its export.
    pub(crate) export: usize,
    pub(crate) ask: Ask,
    /// In bytes of the volume.
    pub(crate) offset: u64,
    pub(crate) length: u64,
    /// The program that waits for it.
    pub(crate) owner: Owner,
    /// The class of this operation, unless it has that of its export.
    pub(crate) class: Option<Class>,
}

impl Operation {
    /// Bytes that the client sends or receives.
    pub(crate) fn bytes(&self) -> usize {
        match self.ask {
            Ask::Read | Ask::Write { .. } | Ask::Cache => self.length as usize,
            Ask::Zero { .. } | Ask::Trim { .. } | Ask::Flush => 0,
        }
    }

    /// Whether the operation changes bytes of its volume.
    pub(crate) fn is_change(&self) -> bool {
        match self.ask {
            Ask::Write { .. } | Ask::Zero { .. } | Ask::Trim { .. } => self.length > 0,
            Ask::Read | Ask::Flush | Ask::Cache => false,
        }
    }

    pub(crate) fn is_zeroes(&self) -> bool {
        matches!(self.ask, Ask::Zero { .. })
    }

    /// Whether the operation trims or zeroes. The back end may do both without the engine.
    pub(crate) fn is_punch(&self) -> bool {
        matches!(self.ask, Ask::Trim { .. } | Ask::Zero { .. })
    }
}

/// The connection of an operation's client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientId {
    /// The index of the connection.
    pub(crate) place: usize,
    /// The number of the connection, which is never used twice.
    pub(crate) number: u64,
    /// The time at which the connection was accepted.
    pub(crate) since: Instant,
}

/// The callback at the end of an operation. A read passes its bytes, unless its memory was lent.
pub type Reply = Box<dyn FnOnce(Result<&[u8], OperationError>) + Send>;

/// The origin of an operation, which gets its answer.
pub(crate) enum OperationSource {
    /// A client over NBD.
    Connection { client: ClientId, header: Header },
    /// A front end on another thread.
    Posted(Reply),
    /// The copy of a recording's bytes to the drive, and the flush that waits for it.
    Copied(Option<usize>),
    /// The read of a chunk's old bytes for a checkpoint, before a change.
    Preserved {
        /// The number of the checkpoint.
        checkpoint: u64,
        /// The number of the chunk in the volume.
        chunk: u64,
    },
}

/// An operation that has begun and was not answered.
pub(crate) struct PendingOperation {
    pub(crate) source: OperationSource,
    pub(crate) operation: Operation,
    pub(crate) bytes: Bytes,
    pub(crate) result: Result<(), OperationError>,
    /// The last failure of one of its commands, which may be repeated.
    pub(super) noted: Option<OperationError>,
    /// Blocks of zeroes that are still to be written.
    pub(super) rest: Option<Extent>,
    /// The blocks that the operation changes in part.
    pub(super) edges: Option<Edges>,
    /// The copies that a flush waits for.
    pub(super) copied: Copied,
    /// Whether a stream refused the operation, which waits for room at the engine.
    pub(super) is_redirected: bool,
}

/// The partially changed blocks of an operation.
pub(super) struct Edges {
    pub(super) blocks: [Option<Lba>; 2],
    pub(super) stage: Stage,
}

/// The part of a read-modify-write that is in flight.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing: operations that the engine does not order come first.
    Waiting,
    /// The read of an edge.
    Reading(usize),
    /// The write of an edge of zeroes.
    Writing(usize),
    /// All blocks of a write, or the blocks between the edges of zeroes.
    Rest,
}

/// The position of a recording that a flush makes durable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) stream: u64,
    /// The byte of the file after the last durable one.
    pub(super) to: u64,
    /// The discontinuities of the recording so far.
    pub(super) leaps: u64,
}

/// The copies of recordings that a flush waits for.
#[derive(Debug, Default)]
pub(super) struct Copied {
    /// Copies that have not ended.
    pub(super) left: usize,
    /// The positions that are durable when all copies have ended.
    pub(super) streams: Vec<Before>,
}

impl PendingOperation {
    pub(super) fn new(source: OperationSource, operation: Operation, bytes: Bytes) -> Self {
        PendingOperation {
            source,
            operation,
            bytes,
            result: Ok(()),
            noted: None,
            rest: None,
            edges: None,
            copied: Copied::default(),
            is_redirected: false,
        }
    }
}

/// The next step of a pending operation, decided by the owner that has dealt with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    /// None now: the operation is in flight or waits.
    Wait,
    /// The engine transfers blocks at the urgency of the export.
    Transfer {
        extent: Extent,
        direction: Direction,
        durability: Durability,
    },
    /// The blocks are written or zeroed.
    Change(Extent),
    /// The next piece of zeroes is written. Without one the operation has ended.
    WriteZeroes,
    /// Recordings write their buffers, the cache its pages, and the drive is flushed.
    Flush,
    /// The cache of the volume writes its pages, and the drive is flushed.
    FlushPages,
    /// The drive is flushed.
    FlushDrive,
    /// Queued copies of recordings begin. The operation waits for them.
    BeginCopies,
    /// The operation has ended.
    Answer,
}

/// An operation that cannot begin yet. It comes back whole.
pub(crate) struct Stalled {
    pub(crate) source: OperationSource,
    pub(crate) bytes: Bytes,
}
