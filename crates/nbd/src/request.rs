//! Requests: from bytes to what is asked, and whether it may be.

use block::Durability;

use super::Style;
use super::negotiation::{Agreed, Sizes};
use super::offer::{Offer, PAYLOAD};
use super::wire::{self, command, flag};
use block::operation::{Ask, OperationError, Space, ZeroingPace};

/// What a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Something of the volume.
    Of(Ask),
    /// What there is, in the contexts that were agreed.
    BlockStatus {
        /// How much of it.
        wanted: Wanted,
    },
    /// To end the session after what is under way. It has no reply.
    Disconnect,
    /// Something that the protocol's document does not have, by its number.
    Unknown(u16),
}

/// How many descriptors a reply to a block status request may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// As many as there are.
    Many,
    /// One for each context, not longer than what was asked (`NBD_CMD_FLAG_REQ_ONE`).
    One,
}

/// A request without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What is asked.
    pub ask: Asked,
    /// As they came: [`check`] looks at them.
    pub flags: u16,
    /// Names the request in its reply.
    pub cookie: u64,
    /// From where, in bytes of the export.
    pub offset: u64,
    /// How many bytes of the export.
    pub length: u64,
    /// How many bytes follow the header, whether the request is refused or not. At most
    /// [`PAYLOAD`].
    pub payload: u64,
}

impl Header {
    /// A request as a client sends it.
    #[must_use]
    pub fn new(ask: Asked, style: Style, cookie: u64, offset: u64, length: u64) -> Self {
        let writes = matches!(ask, Asked::Of(Ask::Write { .. }));
        Self {
            ask,
            flags: flags(ask) | has(writes && style.extended(), flag::PAYLOAD_LEN),
            cookie,
            offset,
            length,
            payload: if writes { length } else { 0 },
        }
    }

    /// Appends the request to `out`; its payload is to follow. In the compact styles, lengths have
    /// 32 bits: [`check`] refuses longer ones for a client.
    pub fn encode(&self, out: &mut Vec<u8>, style: Style) {
        let magic = if style.extended() {
            wire::EXTENDED_REQUEST
        } else {
            wire::REQUEST
        };
        out.extend_from_slice(&magic.to_be_bytes());
        out.extend_from_slice(&self.flags.to_be_bytes());
        out.extend_from_slice(&kind(self.ask).to_be_bytes());
        out.extend_from_slice(&self.cookie.to_be_bytes());
        out.extend_from_slice(&self.offset.to_be_bytes());
        if style.extended() {
            out.extend_from_slice(&self.length.to_be_bytes());
        } else {
            let length = u32::try_from(self.length).unwrap_or(u32::MAX);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }

    /// Whether a read is to be answered by one chunk of contents.
    #[must_use]
    pub const fn undivided(&self) -> bool {
        self.flags & flag::DF != 0
    }
}

/// What cannot come from a client that means well: the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// Another number where the magic is.
    #[error("a request begins with {found:#010x}, expected {expected:#010x}")]
    Magic {
        /// What came.
        found: u32,
        /// What the style wants.
        expected: u32,
    },
    /// More payload than anyone is told to be allowed.
    #[error("a request with {0} bytes of payload, expected at most 64 MiB")]
    Payload(u64),
}

/// The request at the front of `bytes`, and how many of them are its header. `None`: more bytes are
/// needed. Its payload follows the header.
///
/// # Errors
/// If this is no request: nothing that follows can be understood.
pub fn parse(bytes: &[u8], style: Style) -> Result<Option<(Header, usize)>, RequestError> {
    let expected = match style {
        Style::Simple | Style::Structured => wire::REQUEST,
        Style::Extended => wire::EXTENDED_REQUEST,
    };
    // A wrong magic is told at once, not when the rest has come.
    if let Some(magic) = bytes.first_chunk() {
        let found = u32::from_be_bytes(*magic);
        if found != expected {
            return Err(RequestError::Magic { found, expected });
        }
    }
    let size = match style {
        Style::Simple | Style::Structured => wire::COMPACT_REQUEST,
        Style::Extended => wire::EXTENDED_HEADER,
    };
    let Some((front, _)) = bytes.split_at_checked(size) else {
        return Ok(None);
    };
    match header(front, style) {
        None => Ok(None),
        Some(header) if header.payload > u64::from(PAYLOAD) => {
            Err(RequestError::Payload(header.payload))
        }
        Some(header) => Ok(Some((header, size))),
    }
}

#[inline]
fn header(front: &[u8], style: Style) -> Option<Header> {
    let mut bytes = wire::Fields(front);
    bytes.u32()?;
    let flags = bytes.u16()?;
    let kind = bytes.u16()?;
    let cookie = bytes.u64()?;
    let offset = bytes.u64()?;
    let (length, payload) = match style {
        Style::Simple | Style::Structured => {
            let length = u64::from(bytes.u32()?);
            (length, if kind == command::WRITE { length } else { 0 })
        }
        Style::Extended => {
            let length = bytes.u64()?;
            let follows = flags & flag::PAYLOAD_LEN != 0;
            (length, if follows { length } else { 0 })
        }
    };
    Some(Header {
        ask: asked(kind, flags),
        flags,
        cookie,
        offset,
        length,
        payload,
    })
}

const fn asked(kind: u16, flags: u16) -> Asked {
    let durability = if flags & flag::FUA != 0 {
        Durability::Durable
    } else {
        Durability::Volatile
    };
    match kind {
        command::READ => Asked::Of(Ask::Read),
        command::WRITE => Asked::Of(Ask::Write { durability }),
        command::DISC => Asked::Disconnect,
        command::FLUSH => Asked::Of(Ask::Flush),
        command::TRIM => Asked::Of(Ask::Trim { durability }),
        command::CACHE => Asked::Of(Ask::Cache),
        command::WRITE_ZEROES => Asked::Of(Ask::Zero {
            durability,
            space: if flags & flag::NO_HOLE != 0 {
                Space::Kept
            } else {
                Space::MayBeFreed
            },
            pace: if flags & flag::FAST_ZERO != 0 {
                ZeroingPace::Fast
            } else {
                ZeroingPace::Any
            },
        }),
        command::BLOCK_STATUS => Asked::BlockStatus {
            wanted: if flags & flag::REQ_ONE != 0 {
                Wanted::One
            } else {
                Wanted::Many
            },
        },
        other => Asked::Unknown(other),
    }
}

/// The flags that belong to what is asked.
fn flags(ask: Asked) -> u16 {
    let fua = |durability| has(durability == Durability::Durable, flag::FUA);
    match ask {
        Asked::Of(Ask::Write { durability } | Ask::Trim { durability }) => fua(durability),
        Asked::Of(Ask::Zero {
            durability,
            space,
            pace,
        }) => {
            fua(durability)
                | has(space == Space::Kept, flag::NO_HOLE)
                | has(pace == ZeroingPace::Fast, flag::FAST_ZERO)
        }
        Asked::BlockStatus { wanted } => has(wanted == Wanted::One, flag::REQ_ONE),
        Asked::Of(Ask::Read | Ask::Flush | Ask::Cache) | Asked::Disconnect | Asked::Unknown(_) => 0,
    }
}

/// The number of a command.
const fn kind(ask: Asked) -> u16 {
    match ask {
        Asked::Of(Ask::Read) => command::READ,
        Asked::Of(Ask::Write { .. }) => command::WRITE,
        Asked::Of(Ask::Zero { .. }) => command::WRITE_ZEROES,
        Asked::Of(Ask::Trim { .. }) => command::TRIM,
        Asked::Of(Ask::Flush) => command::FLUSH,
        Asked::Of(Ask::Cache) => command::CACHE,
        Asked::BlockStatus { .. } => command::BLOCK_STATUS,
        Asked::Disconnect => command::DISC,
        Asked::Unknown(number) => number,
    }
}

/// Whether a request may be served. The payload of one that is refused still follows its header:
/// the caller passes over [`Header::payload`] bytes and goes on.
///
/// A request without length is refused as `NBD_EINVAL`: the protocol leaves it open, nbdkit does
/// the same.
///
/// # Errors
/// What the client is to be told (the protocol's section "Error values"). The first of these:
/// unknown, not offered or with flags that do not belong to it; writing what is read-only; longer
/// than the longest; without length, or not in whole blocks from a client that knows them; past the
/// end.
pub fn check(header: &Header, agreed: &Agreed, offer: &Offer) -> Result<(), OperationError> {
    let features = offer.features;
    let allowed = match header.ask {
        Asked::Disconnect => return Ok(()),
        Asked::Unknown(_) => return Err(OperationError::Invalid),
        Asked::Of(Ask::Read) => has(features.df && agreed.style.structured(), flag::DF),
        Asked::Of(Ask::Zero { .. }) => {
            flag::NO_HOLE | has(features.fast_zero && features.write_zeroes, flag::FAST_ZERO)
        }
        Asked::BlockStatus { .. } => flag::REQ_ONE,
        Asked::Of(Ask::Write { .. }) => has(agreed.style.extended(), flag::PAYLOAD_LEN),
        Asked::Of(Ask::Flush | Ask::Trim { .. } | Ask::Cache) => 0,
    };
    if header.flags & !(allowed | has(features.fua, flag::FUA)) != 0 {
        return Err(OperationError::Invalid);
    }
    if features.read_only && writes(header.ask) {
        return Err(OperationError::NotPermitted);
    }
    let offered = match header.ask {
        Asked::Of(Ask::Flush) => features.flush,
        Asked::Of(Ask::Trim { .. }) => features.trim,
        Asked::Of(Ask::Zero { .. }) => features.write_zeroes,
        Asked::Of(Ask::Cache) => features.cache,
        Asked::BlockStatus { .. } => !agreed.contexts.is_empty(),
        Asked::Of(Ask::Write { .. }) => header.payload == header.length,
        Asked::Of(Ask::Read) | Asked::Disconnect | Asked::Unknown(_) => true,
    };
    if !offered {
        return Err(OperationError::Invalid);
    }
    if header.ask == Asked::Of(Ask::Flush) {
        let whole = header.offset == 0 && header.length == 0;
        return whole.then_some(()).ok_or(OperationError::Invalid);
    }
    extent(header, agreed, offer)
}

/// Whether the bytes that are meant can be.
fn extent(header: &Header, agreed: &Agreed, offer: &Offer) -> Result<(), OperationError> {
    if header.length > u64::from(offer.block.max()) {
        match header.ask {
            // A read without chunks is one payload; with chunks, this error is foreseen.
            Asked::Of(Ask::Read) if agreed.style.structured() => {
                return Err(OperationError::TooLong);
            }
            Asked::Of(Ask::Read | Ask::Write { .. }) => return Err(OperationError::Invalid),
            _ => {}
        }
    }
    // Who did not ask for the block sizes may not know that there are any.
    let block = match agreed.sizes {
        Sizes::Asked => u64::from(offer.block.min()),
        Sizes::NotAsked => 1,
    };
    if header.length == 0 || (header.offset | header.length) & (block - 1) != 0 {
        return Err(OperationError::Invalid);
    }
    let end = header.offset.checked_add(header.length);
    if end.is_none_or(|end| end > offer.size) {
        return Err(match header.ask {
            Asked::Of(Ask::Write { .. } | Ask::Zero { .. }) => OperationError::NoSpace,
            _ => OperationError::Invalid,
        });
    }
    Ok(())
}

const fn writes(ask: Asked) -> bool {
    matches!(
        ask,
        Asked::Of(Ask::Write { .. } | Ask::Zero { .. } | Ask::Trim { .. })
    )
}

const fn has(condition: bool, flags: u16) -> u16 {
    if condition { flags } else { 0 }
}
