//! What replies tell, and what may be wrong with requests and replies.

use super::super::Descriptor;
use block::operation::OperationError;

/// What a reply tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The next `length` bytes are contents from `offset`; the caller takes them before it calls
    /// [`super::Requests::receive`] again.
    Contents {
        /// The request.
        cookie: u64,
        /// Where, in bytes of the export.
        offset: u64,
        /// How many.
        length: u64,
    },
    /// Zeroes, which do not follow.
    Hole {
        /// The request.
        cookie: u64,
        /// Where, in bytes of the export.
        offset: u64,
        /// How many.
        length: u64,
    },
    /// A state of the next bytes, from the request's offset on.
    State {
        /// The request.
        cookie: u64,
        /// The context, by the number that was agreed.
        context: u32,
        /// How many bytes in which state.
        descriptor: Descriptor,
    },
    /// Something failed; the end of the request follows.
    Complaint {
        /// The request.
        cookie: u64,
        /// What failed.
        failed: OperationError,
        /// Where, if the server says so.
        offset: Option<u64>,
        /// What the server says.
        message: String,
    },
    /// The request has ended.
    Finished {
        /// The request. The number may be used again.
        cookie: u64,
        /// How.
        result: Result<(), OperationError>,
    },
}

/// Why a request was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSent {
    /// As many as may be under way are.
    #[error("as many requests as may be are under way")]
    Full,
    /// The server would refuse it: see [`super::super::request::check`].
    #[error(transparent)]
    Senseless(#[from] OperationError),
}

/// What cannot come from a server that means well: the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// Another number where the magic is.
    #[error("a reply begins with {0:#010x}, which is none of what was agreed")]
    Magic(u32),
    /// A reply to nothing.
    #[error("a reply with the cookie {0:#x}, to which there is no request")]
    Cookie(u64),
    /// A simple reply where a chunk is due.
    #[error("a simple reply to a request that is answered in chunks")]
    Simple,
    /// An extended chunk with another offset than its request.
    #[error("a chunk for offset {0}, which is not that of its request")]
    Offset(u64),
    /// A chunk that does not belong to its request, or not there.
    #[error("a chunk of type {0} that does not belong there")]
    Kind(u16),
    /// A chunk with an impossible length.
    #[error("a chunk of type {kind} with {length} bytes")]
    Length {
        /// Its type.
        kind: u16,
        /// Its payload.
        length: u64,
    },
    /// An error chunk without an error, with a message that does not fit, or an offset outside.
    #[error("an error that makes no sense")]
    Error,
    /// Contents that were not asked for.
    #[error("contents outside of what was asked for")]
    Outside,
    /// Contents that came before.
    #[error("contents that came before")]
    Overlap,
    /// Contents in too many pieces.
    #[error("contents in more than 1024 pieces out of order")]
    Pieces,
    /// A reply that ends well without having told everything.
    #[error("a reply that ends before everything was told")]
    Incomplete,
    /// States of no bytes, of another context, or a second time.
    #[error("a block status that was not asked for")]
    State,
}
