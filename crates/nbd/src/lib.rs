//! The NBD protocol, without sockets: bytes in, bytes out.
//!
//! ```text
//!   client                                    server
//!     |<------------ magic, handshake flags ----|
//!     |-- client flags, options --------------->|   negotiation::ServerNegotiation
//!     |<------------------------ option replies |
//!     |          (TLS begins here, if asked for)|
//!     |-- GO ---------------------------------->|
//!     |<-------- size, flags, block sizes, ACK -|   -> Agreed: an export and a style
//!     |== requests ============================>|   request::parse, request::check
//!     |<=============================== replies |   reply::Reply
//! ```
//!
//! The document is `doc/proto.md` of NetworkBlockDevice/nbd, with its branch for extended headers;
//! "the protocol" means it, here and below.
//!
//! All numbers of the protocol are big-endian.

pub mod client;
pub mod negotiation;
pub mod offer;
pub mod reply;
pub mod request;
mod wire;

/// The form of requests and replies, as the client negotiated it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Style {
    /// Compact requests (28 bytes), simple replies: a number and nothing else.
    #[default]
    Simple,
    /// Compact requests, replies in chunks (`NBD_OPT_STRUCTURED_REPLY`).
    Structured,
    /// Extended requests (32 bytes) with lengths of 64 bits, and extended chunks
    /// (`NBD_OPT_EXTENDED_HEADERS`).
    Extended,
}

impl Style {
    /// Whether replies come in chunks.
    #[must_use]
    pub const fn structured(self) -> bool {
        matches!(self, Self::Structured | Self::Extended)
    }

    /// Whether headers are the extended ones.
    #[must_use]
    pub const fn extended(self) -> bool {
        matches!(self, Self::Extended)
    }
}

/// A metadata context: a property of blocks that clients may query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Context {
    /// `base:allocation`: holes, and bytes that read as zeroes.
    Allocation,
    /// `qemu:dirty-bitmap:NAME`: changed bytes. The text is the whole name.
    DirtyBitmap(String),
}

impl Context {
    /// The context of a dirty bitmap, by the bitmap's own name.
    #[must_use]
    pub fn dirty_bitmap(name: &str) -> Self {
        Self::DirtyBitmap(format!("{DIRTY_BITMAP}{name}"))
    }

    /// The name in the protocol.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Allocation => "base:allocation",
            Self::DirtyBitmap(name) => name,
        }
    }

    /// The name of the dirty bitmap, if it is one.
    #[must_use]
    pub fn bitmap(&self) -> Option<&str> {
        match self {
            Self::Allocation => None,
            Self::DirtyBitmap(name) => name.strip_prefix(DIRTY_BITMAP),
        }
    }
}

/// The begin of the names of dirty bitmaps (QEMU's `docs/interop/nbd.rst`).
pub(crate) const DIRTY_BITMAP: &str = "qemu:dirty-bitmap:";
/// The bit of changed bytes in a dirty bitmap's states.
pub const DIRTY: u32 = 1 << 0;

/// A run of bytes with the same state in a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// In bytes.
    pub length: u64,
    /// The context's flags: for `base:allocation`, those of [`HOLE`] and [`ZERO`].
    pub state: u32,
}

/// `NBD_STATE_HOLE`: not allocated; writing there may find no space.
pub const HOLE: u32 = 1 << 0;
/// `NBD_STATE_ZERO`: reads as zeroes.
pub const ZERO: u32 = 1 << 1;
