//! Streams with a guarantee, as the engine's owner sees them.
//!
//! ```text
//!   attach, position, stream_read, stream_write, refresh, detach          poll_stream
//!        |                                                                    ^
//!        v                                                                    |
//!     stream::Streams -- transfers --> order, policy, safe set --> poll --> complete
//! ```
//!
//! The transfers of streams are commands as all others: they go out through
//! [`Engine::poll`](crate::Engine::poll) and come back through
//! [`Engine::complete`](crate::Engine::complete). Who keeps the bytes asks
//! [`Engine::stream_of`](crate::Engine::stream_of) where those of a command belong, while it is at
//! the drive, and [`Engine::poll_stream`](crate::Engine::poll_stream) for everything that streams
//! are to be told.

use block::{Direction, Extent, Instant, Status};
use stream::admission::{Refusal, Rules};
use stream::quota::Quotas;
use stream::streams::{Answer, Settings, StreamId};

use crate::guarantees::Beyond;

/// What an engine promises to streams.
#[derive(Clone, Debug)]
pub struct Promise {
    /// What the drive does beyond its profile, at worst.
    pub beyond: Beyond,
    /// What holds for all streams: the foreground's share, the host's latency, the longest round.
    pub rules: Rules,
    /// Who may have how much.
    pub quotas: Quotas,
    /// Pages, and how buffers fill.
    pub settings: Settings,
    /// The blocks among which all files of streams lie: the nearer they are to each other, the
    /// more streams fit. None: the whole drive.
    pub place: Option<Extent>,
}

/// Why a stream was not granted, or not moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotGranted {
    /// The engine was made without [`Promise`].
    #[error(
        "this drive promises nothing to streams: its head times are not known, or no guarantees were set up"
    )]
    NoPromise,
    /// There is no stream of that name.
    #[error("no stream {}: it was closed, or never granted", .0.0)]
    NoStream(StreamId),
    /// The map is of blocks of another size.
    #[error("a map in blocks of {block} bytes: expected those of the drive, {expected} bytes")]
    Block {
        /// Bytes of a block of the map.
        block: u64,
        /// Bytes of a block of the drive.
        expected: u64,
    },
    /// Some of the file is not where streams may be.
    #[error("{extent} of the file: expected blocks among {place}")]
    Outside {
        /// The piece of the file.
        extent: Extent,
        /// Where streams may be.
        place: Extent,
    },
    /// It would break a guarantee, or a quota.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// The bytes of a file that a command moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamTransfer {
    /// Whose.
    pub stream: StreamId,
    /// Which way.
    pub direction: Direction,
    /// The blocks.
    pub extent: Extent,
    /// The byte of the file with which the first block begins.
    pub offset: u64,
}

/// What the owner of the bytes, or a client, is to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// A transfer has ended, all of its commands with it. It comes before the answers that follow
    /// from it.
    Moved {
        /// Which bytes. Those outside of the stream's window are not wanted any more.
        transfer: StreamTransfer,
        /// How it ended.
        status: Status,
        /// When.
        at: Instant,
    },
    /// An access was answered, or the stream itself is told something.
    Answer(Answer),
}
