//! An operation of a client on its way through a volume.

use block::{Extent, Instant, Lba};

use crate::arena::Bytes;
use block::operation::{Ask, Failed};
use nbd::request::Header;

/// An operation that is known to make sense.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    /// The place of its export.
    pub(crate) export: usize,
    pub(crate) ask: Ask,
    /// In bytes of the volume.
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

impl Operation {
    /// How many bytes go to or come from the client.
    pub(crate) fn bytes(&self) -> usize {
        match self.ask {
            Ask::Read | Ask::Write { .. } | Ask::Cache => self.length as usize,
            Ask::Zero { .. } | Ask::Trim { .. } | Ask::Flush => 0,
        }
    }

    /// Whether it changes bytes.
    pub(crate) fn is_change(&self) -> bool {
        match self.ask {
            Ask::Write { .. } | Ask::Zero { .. } | Ask::Trim { .. } => self.length > 0,
            Ask::Read | Ask::Flush | Ask::Cache => false,
        }
    }

    pub(crate) fn is_zeroes(&self) -> bool {
        matches!(self.ask, Ask::Zero { .. })
    }

    /// Whether it trims or zeroes: the back end does that without the engine.
    pub(crate) fn is_punch(&self) -> bool {
        matches!(self.ask, Ask::Trim { .. } | Ask::Zero { .. })
    }
}

/// A connection, as the operations of its client name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    /// Its place among the connections.
    pub(crate) place: usize,
    /// No other has it, earlier or later.
    pub(crate) number: u64,
    /// When it was accepted.
    pub(crate) since: Instant,
}

/// What is called when an operation has ended; of a read with the bytes, unless they were lent.
pub type Reply = Box<dyn FnOnce(Result<&[u8], Failed>) + Send>;

/// The origin of an operation, which gets its answer.
pub(crate) enum From {
    Connection {
        client: Client,
        header: Header,
    },
    Posted(Reply),
    /// The copy of a recording's bytes to the drive; a flush may wait for it.
    Copied(Option<usize>),
}

/// An operation that has begun.
pub(crate) struct Pending {
    pub(super) from: From,
    pub(super) operation: Operation,
    pub(super) bytes: Bytes,
    pub(super) result: Result<(), Failed>,
    /// Why a command of it failed last; it may be tried again.
    pub(super) noted: Option<Failed>,
    /// Zeroes that are still to be written, of those that are written as bytes.
    pub(super) rest: Option<Extent>,
    /// The blocks of which it changes a part, if there are such.
    pub(super) edges: Option<Edges>,
    /// Of a flush, what is to be written before.
    pub(super) copied: Copied,
}

/// The edges of an operation that changes them.
pub(super) struct Edges {
    pub(super) blocks: [Option<Lba>; 2],
    pub(super) stage: Stage,
}

/// The part of a read-modify-write that is in flight.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// None: operations that the engine does not order come first.
    Waiting,
    /// A read of an edge.
    Reading(usize),
    /// A write of an edge of zeroes.
    Writing(usize),
    /// All blocks of a write; the blocks between the edges of zeroes.
    Rest,
}

/// Before which byte a recording is on the drive, if it has gone on elsewhere so often.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) stream: u64,
    pub(super) to: u64,
    pub(super) leaps: u64,
}

/// Of a flush, what it waits for.
#[derive(Debug, Default)]
pub(super) struct Copied {
    /// Copies that have not ended.
    pub(super) left: usize,
    /// Before which bytes the streams are on the drive when all have ended.
    pub(super) streams: Vec<Before>,
}

impl Pending {
    pub(super) fn new(from: From, operation: Operation, bytes: Bytes) -> Self {
        Pending {
            from,
            operation,
            bytes,
            result: Ok(()),
            noted: None,
            rest: None,
            edges: None,
            copied: Copied::default(),
        }
    }
}

/// An operation that cannot begin yet; it comes back whole.
pub(crate) struct Stalled {
    pub(crate) from: From,
    pub(crate) bytes: Bytes,
}

/// The end of an operation of a connection.
pub(crate) struct Answer {
    pub(crate) client: Client,
    pub(crate) header: Header,
    pub(crate) operation: Operation,
    pub(crate) result: Result<(), Failed>,
    pub(crate) bytes: Bytes,
}
