//! Replies: from how a request ended to bytes.
//!
//! ```text
//!              success              a read                      failure
//!   Simple     simple(0)            simple(0), contents         simple(errno)
//!   Structured simple(0)            OFFSET_DATA*, contents      ERROR* with a message
//!   Extended   NONE*                OFFSET_DATA*, contents      ERROR* with a message
//! ```
//!
//! `*` has `NBD_REPLY_FLAG_DONE`: a chunk that ends its reply. What is appended here is headers
//! and small payloads; the contents of a read go to the socket from where they are.

use super::request::{Asked, Header, Wanted};
use super::wire::{self, chunk, flag};
use super::{Descriptor, Style};
use block::operation::{Ask, OperationError};

/// The reply to one request. Every method appends to `out`.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    style: Style,
    header: Header,
}

/// A reply that may have several chunks.
#[derive(Clone, Copy, Debug)]
pub struct Chunks(Reply);

/// Whether a chunk ends its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkPosition {
    /// More chunks follow.
    Before,
    /// It is the last one.
    Last,
}

impl Reply {
    /// The reply to `header` in the style of its connection.
    #[must_use]
    pub const fn to(header: &Header, style: Style) -> Self {
        Self {
            style,
            header: *header,
        }
    }

    /// It is done, and there is nothing to hand back. Not for a read: its reply is
    /// [`contents`](Self::contents).
    pub fn done(&self, out: &mut Vec<u8>) {
        match self.style {
            Style::Simple | Style::Structured => self.simple(out, 0),
            Style::Extended => self.chunk(out, ChunkPosition::Last, chunk::NONE, 0),
        }
    }

    /// What goes before the whole contents of a read, which are sent in one piece right behind it.
    /// Only for bytes that are at hand: after this there is no way to tell an error.
    pub fn contents(&self, out: &mut Vec<u8>) {
        match self.chunks() {
            None => self.simple(out, 0),
            Some(chunks) => {
                // Reads have at most `BlockSizes::max` bytes, so that they fit.
                let length = u32::try_from(self.header.length).unwrap_or(u32::MAX);
                chunks.contents(out, self.header.offset, length, ChunkPosition::Last);
            }
        }
    }

    /// It failed. `message` is for people; of a long one, the front.
    pub fn failed(&self, out: &mut Vec<u8>, failed: OperationError, message: &str) {
        let number = self.number(failed);
        if !self.style.structured() {
            self.simple(out, number);
            return;
        }
        let message = front(message);
        self.chunk(
            out,
            ChunkPosition::Last,
            chunk::ERROR,
            6 + message.len() as u64,
        );
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&wire::length16(message.len()).to_be_bytes());
        out.extend_from_slice(message.as_bytes());
    }

    /// The reply in chunks, if the client has agreed to them.
    #[must_use]
    pub const fn chunks(&self) -> Option<Chunks> {
        if self.style.structured() {
            Some(Chunks(*self))
        } else {
            None
        }
    }

    /// The number for a failure, where the protocol foresees it: `NBD_ENOTSUP` is for fast zeroes
    /// only, and `NBD_EOVERFLOW` neither for writes nor for reads without chunks.
    fn number(&self, failed: OperationError) -> u32 {
        let foreseen = match (failed, self.header.ask) {
            (OperationError::Unsupported, Asked::Of(Ask::Zero { .. })) => {
                self.header.flags & flag::FAST_ZERO != 0
            }
            (OperationError::Unsupported, _)
            | (OperationError::TooLong, Asked::Of(Ask::Write { .. })) => false,
            (OperationError::TooLong, Asked::Of(Ask::Read)) => self.style.structured(),
            _ => true,
        };
        wire::number(if foreseen {
            failed
        } else {
            OperationError::Invalid
        })
    }

    fn simple(&self, out: &mut Vec<u8>, number: u32) {
        let mut bytes = [0; wire::SIMPLE];
        bytes[..4].copy_from_slice(&wire::SIMPLE_REPLY.to_be_bytes());
        bytes[4..8].copy_from_slice(&number.to_be_bytes());
        bytes[8..].copy_from_slice(&self.header.cookie.to_be_bytes());
        out.extend_from_slice(&bytes);
    }

    /// The header of a chunk with `length` bytes of payload.
    fn chunk(&self, out: &mut Vec<u8>, place: ChunkPosition, kind: u16, length: u64) {
        let flags = match place {
            ChunkPosition::Before => 0,
            ChunkPosition::Last => chunk::DONE,
        };
        let mut bytes = [0; wire::EXTENDED_HEADER];
        let magic = if self.style.extended() {
            wire::EXTENDED_REPLY
        } else {
            wire::STRUCTURED_REPLY
        };
        bytes[..4].copy_from_slice(&magic.to_be_bytes());
        bytes[4..6].copy_from_slice(&flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&kind.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.header.cookie.to_be_bytes());
        if self.style.extended() {
            bytes[16..24].copy_from_slice(&self.header.offset.to_be_bytes());
            bytes[24..].copy_from_slice(&length.to_be_bytes());
            out.extend_from_slice(&bytes);
        } else {
            // Payloads have at most `PAYLOAD` and a few bytes.
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            bytes[16..20].copy_from_slice(&length.to_be_bytes());
            out.extend_from_slice(&bytes[..wire::STRUCTURED]);
        }
    }
}

impl Chunks {
    /// What goes before `length` bytes (at least one) of contents from `offset` of the export. A
    /// read that must not be divided ([`Header::undivided`]) has one such chunk at most, and no
    /// hole.
    pub fn contents(&self, out: &mut Vec<u8>, offset: u64, length: u32, place: ChunkPosition) {
        let payload = 8 + u64::from(length);
        self.0.chunk(out, place, chunk::OFFSET_DATA, payload);
        out.extend_from_slice(&offset.to_be_bytes());
    }

    /// `length` bytes (at least one) from `offset` read as zeroes.
    pub fn hole(&self, out: &mut Vec<u8>, offset: u64, length: u32, place: ChunkPosition) {
        self.0.chunk(out, place, chunk::OFFSET_HOLE, 12);
        out.extend_from_slice(&offset.to_be_bytes());
        out.extend_from_slice(&length.to_be_bytes());
    }

    /// It failed at `offset` of the export, which lies within the request.
    pub fn failed_at(
        &self,
        out: &mut Vec<u8>,
        failed: OperationError,
        offset: u64,
        message: &str,
        place: ChunkPosition,
    ) {
        let message = front(message);
        let payload = 14 + message.len() as u64;
        self.0.chunk(out, place, chunk::ERROR_OFFSET, payload);
        out.extend_from_slice(&self.0.number(failed).to_be_bytes());
        out.extend_from_slice(&wire::length16(message.len()).to_be_bytes());
        out.extend_from_slice(message.as_bytes());
        out.extend_from_slice(&offset.to_be_bytes());
    }

    /// Ends a reply whose chunks were all [`ChunkPosition::Before`].
    pub fn end(&self, out: &mut Vec<u8>) {
        self.0.chunk(out, ChunkPosition::Last, chunk::NONE, 0);
    }

    /// The states from the request's offset on, in the context that was agreed as `context`.
    /// Neighbours of one state become one descriptor, empty ones are left out, and what goes too
    /// far for the request, for its header or for [`DESCRIPTORS`] is cut off: the client asks
    /// again from there. No more of `states` is looked at than that. `block` is the smallest block of the export, in bytes.
    ///
    /// # Errors
    /// If there is nothing to tell: the reply needs at least one descriptor. Nothing is appended.
    pub fn block_status(
        &self,
        out: &mut Vec<u8>,
        context: u32,
        block: u32,
        states: impl IntoIterator<Item = Descriptor>,
        place: ChunkPosition,
    ) -> Result<(), NothingToTell> {
        let begin = out.len();
        let extended = self.0.style.extended();
        let kind = if extended {
            chunk::BLOCK_STATUS_EXT
        } else {
            chunk::BLOCK_STATUS
        };
        self.0.chunk(out, place, kind, 0);
        let length_end = out.len();
        out.extend_from_slice(&context.to_be_bytes());
        if extended {
            out.extend_from_slice(&0_u32.to_be_bytes());
        }
        let count = self.descriptors(out, block, states);
        if count == 0 {
            out.truncate(begin);
            return Err(NothingToTell);
        }
        let payload = wire::length32(out.len() - length_end).to_be_bytes();
        // The low half of a length of 64 bits stands where one of 32 bits does: at the end.
        out[length_end - 4..length_end].copy_from_slice(&payload);
        if extended {
            out[length_end + 4..length_end + 8].copy_from_slice(&count.to_be_bytes());
        }
        Ok(())
    }

    fn descriptors(
        &self,
        out: &mut Vec<u8>,
        block: u32,
        states: impl IntoIterator<Item = Descriptor>,
    ) -> u32 {
        let asked = self.0.header.length;
        let one = matches!(
            self.0.header.ask,
            Asked::BlockStatus {
                wanted: Wanted::One
            }
        );
        let longest = match (self.0.style.extended(), one) {
            (true, true) => asked,
            (true, false) => u64::MAX,
            (false, _) => u64::from(u32::MAX - u32::MAX % block.max(1)),
        };
        let longest = if one { longest.min(asked) } else { longest };
        let most = if one { 1 } else { DESCRIPTORS };
        let mut count = 0;
        let mut told = 0_u64;
        let mut states = states
            .into_iter()
            .filter(|state| state.length != 0)
            .peekable();
        while told < asked && count < most {
            let Some(first) = states.next() else { break };
            let mut length = first.length;
            while told.saturating_add(length) < asked
                && let Some(next) = states.next_if(|next| next.state == first.state)
            {
                length = length.saturating_add(next.length);
            }
            let cut = length.min(longest);
            self.descriptor(out, cut, first.state);
            count += 1;
            told = told.saturating_add(cut);
            if cut < length {
                break;
            }
        }
        count
    }

    fn descriptor(&self, out: &mut Vec<u8>, length: u64, state: u32) {
        if self.0.style.extended() {
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(&u64::from(state).to_be_bytes());
        } else {
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(&state.to_be_bytes());
        }
    }
}

/// A block status without a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a block status without a descriptor, expected at least one")]
pub struct NothingToTell;

/// As much of a message as the protocol takes, in whole characters.
fn front(message: &str) -> &str {
    let mut end = message.len().min(wire::STRING);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}

/// How many descriptors a chunk has at most. In the extended style they take 1 MiB, which every
/// export has as its longest request at least; the protocol wants at most 2^20.
pub const DESCRIPTORS: u32 = 1 << 16;
