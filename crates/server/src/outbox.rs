//! What is to be sent on a connection: heads of replies that are built here, and bytes that lie
//! elsewhere, in one call for all that has gathered.
//!
//! ```text
//!   filling   | head | bytes | head head | bytes |     what was answered since
//!   sending   | head | bytes |                         what the kernel has
//! ```
//!
//! Bytes are never copied: the kernel takes them from the buffers that the back end filled. Where
//! there is TLS, it is sealed slice by slice, and the kernel has the slice:
//!
//! ```text
//!   sending   | head | bytes | head head | bytes |
//!             '-sent-'- sealed -'
//! ```

#![allow(
    unsafe_code,
    reason = "the kernel reads the pieces by address while they are sent"
)]

use std::io::{self, IoSlice};
use std::os::fd::RawFd;

use crate::arena::{Bytes, Memory};
use crate::ring::{Ring, Ticket};
use crate::tls::Session;

/// Both halves.
#[derive(Default)]
pub(crate) struct Outbox {
    filling: Batch,
    sending: Batch,
    /// Pieces of `sending` that were sent or sealed whole, and bytes of the next one that were.
    sent: (usize, usize),
    sealed: Sealed,
    is_sending: bool,
    list: Vec<libc::iovec>,
    message: Option<Box<libc::msghdr>>,
}

/// Replies, in their order.
#[derive(Default)]
struct Batch {
    heads: Vec<u8>,
    pieces: Vec<Piece>,
    /// Buffers that are given back when the batch has been sent.
    buffers: Vec<Bytes>,
    length: usize,
    /// How many heads.
    replies: usize,
}

/// A slice of a batch as TLS has it, and how many bytes of it were sent.
#[derive(Default)]
struct Sealed {
    bytes: Vec<u8>,
    sent: usize,
}

/// Where the replies go.
pub(crate) struct Socket<'a> {
    pub(crate) ticket: Ticket,
    pub(crate) socket: RawFd,
    pub(crate) ring: &'a mut Ring,
    /// With TLS, if so.
    pub(crate) session: Option<&'a mut Session>,
}

/// A piece of a batch.
#[derive(Clone, Copy)]
enum Piece {
    /// Bytes of `heads`, from the first to before the second.
    Heads(usize, usize),
    Memory(Memory),
}

/// The most pieces that the kernel takes in one call (`UIO_MAXIOV`).
const MOST_PIECES: usize = 1024;

/// So many bytes are sealed at once. A choice: it takes a tenth of a millisecond, for which others
/// wait, and bounds the copy that TLS needs.
const SLICE: usize = 256 << 10;

impl Outbox {
    /// Appends a head that `write` builds.
    pub(crate) fn head(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let Batch {
            heads,
            pieces,
            length,
            replies,
            ..
        } = &mut self.filling;
        *replies += 1;
        let from = heads.len();
        write(heads);
        let to = heads.len();
        *length += to - from;
        match pieces.last_mut() {
            Some(Piece::Heads(_, end)) if *end == from => *end = to,
            _ => pieces.push(Piece::Heads(from, to)),
        }
    }

    /// Appends bytes, and keeps them until they have been sent.
    pub(crate) fn bytes(&mut self, bytes: Bytes) {
        if let Some(memory) = bytes.memory() {
            self.filling.length += memory.length;
            self.filling.pieces.push(Piece::Memory(memory));
        }
        self.filling.buffers.push(bytes);
    }

    /// Replies that have gathered.
    pub(crate) fn replies(&self) -> usize {
        self.filling.replies
    }

    /// Whether there is nothing to send, and nothing being sent.
    pub(crate) fn is_empty(&self) -> bool {
        !self.is_sending && self.filling.pieces.is_empty()
    }

    /// Whether there is something that could be sent now.
    pub(crate) fn has_more(&self) -> bool {
        !self.is_sending && !self.filling.pieces.is_empty()
    }

    /// Bytes that were answered and have not left.
    pub(crate) fn waiting(&self) -> usize {
        self.filling.length + self.sending.length + self.sealed.bytes.len()
    }

    pub(crate) fn is_sending(&self) -> bool {
        self.is_sending
    }

    /// Hands what has gathered to the kernel, unless it still has something.
    ///
    /// # Errors
    /// If it cannot be sealed: the session has failed.
    pub(crate) fn send(&mut self, to: &mut Socket<'_>) -> io::Result<()> {
        if self.is_sending || self.filling.pieces.is_empty() {
            return Ok(());
        }
        std::mem::swap(&mut self.filling, &mut self.sending);
        self.sent = (0, 0);
        self.submit(to)
    }

    /// Tells the client of a session that nothing more comes; whether that is under way now.
    ///
    /// # Errors
    /// If it cannot be sealed.
    pub(crate) fn say_end(&mut self, to: &mut Socket<'_>) -> io::Result<bool> {
        let Some(session) = &mut to.session else {
            return Ok(false);
        };
        session.close(&mut self.sealed.bytes)?;
        if self.sealed.bytes.is_empty() {
            return Ok(false);
        }
        self.submit(to)?;
        Ok(true)
    }

    fn submit(&mut self, to: &mut Socket<'_>) -> io::Result<()> {
        self.list.clear();
        match &mut to.session {
            None => self.list_pieces(),
            Some(session) => {
                if self.sealed.bytes.is_empty() {
                    self.seal(session)?;
                }
                let rest = &self.sealed.bytes[self.sealed.sent..];
                self.list.push(libc::iovec {
                    iov_base: rest.as_ptr().cast_mut().cast(),
                    iov_len: rest.len(),
                });
            }
        }
        // SAFETY: a message header of zeroes names nothing.
        let empty = || Box::new(unsafe { std::mem::zeroed::<libc::msghdr>() });
        let message = self.message.get_or_insert_with(empty);
        message.msg_iov = self.list.as_mut_ptr();
        message.msg_iovlen = self.list.len();
        self.is_sending = true;
        let message: *const libc::msghdr = &raw const **message;
        // SAFETY: the header is boxed, the list, `sending` and `sealed` are left alone until
        // `sent_some`, and the connection is kept until its operations have ended.
        unsafe { to.ring.send(to.ticket, to.socket, message) };
        Ok(())
    }

    fn list_pieces(&mut self) {
        let (first, mut skip) = self.sent;
        for piece in self.sending.pieces[first..].iter().take(MOST_PIECES) {
            let memory = self.sending.memory(*piece);
            let rest = memory.part(skip, memory.length - skip);
            skip = 0;
            self.list.push(libc::iovec {
                iov_base: rest.at.cast(),
                iov_len: rest.length,
            });
        }
    }

    /// Seals the next slice of what is sending.
    fn seal(&mut self, session: &mut Session) -> io::Result<()> {
        let (first, mut skip) = self.sent;
        let mut pieces = Vec::new();
        let mut length = 0;
        for piece in &self.sending.pieces[first..] {
            let memory = self.sending.memory(*piece);
            let part = (memory.length - skip).min(SLICE - length);
            let part = memory.part(skip, part);
            skip = 0;
            length += part.length;
            // SAFETY: the batch keeps the memory, and nobody writes to it any more.
            let bytes = unsafe { std::slice::from_raw_parts(part.at, part.length) };
            pieces.push(IoSlice::new(bytes));
            if length == SLICE {
                break;
            }
        }
        session.seal(&pieces, &mut self.sealed.bytes)?;
        self.pass(length);
        Ok(())
    }

    /// So many bytes of what is sending need not be looked at again.
    fn pass(&mut self, bytes: usize) {
        let mut left = bytes;
        let (mut first, mut skip) = self.sent;
        while let Some(&piece) = self.sending.pieces.get(first) {
            let length = self.sending.memory(piece).length - skip;
            if left < length {
                skip += left;
                break;
            }
            left -= length;
            first += 1;
            skip = 0;
        }
        self.sent = (first, skip);
    }

    /// The kernel has sent so many bytes. The rest follows; what is over is in `free`.
    ///
    /// # Errors
    /// If the rest cannot be sealed.
    pub(crate) fn sent_some(
        &mut self,
        bytes: usize,
        to: &mut Socket<'_>,
        free: &mut Vec<Bytes>,
    ) -> io::Result<()> {
        self.is_sending = false;
        match &to.session {
            None => self.pass(bytes),
            Some(_) => self.sealed.pass(bytes),
        }
        if self.sent.0 < self.sending.pieces.len() || !self.sealed.bytes.is_empty() {
            return self.submit(to);
        }
        self.sending.clear(free);
        Ok(())
    }

    /// Nothing more can be sent: the connection is broken.
    pub(crate) fn give_up(&mut self, free: &mut Vec<Bytes>) {
        self.is_sending = false;
        self.sealed = Sealed::default();
        self.sending.clear(free);
        self.filling.clear(free);
    }
}

impl Sealed {
    /// So many more bytes were sent; when all were, it is empty.
    fn pass(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent >= self.bytes.len() {
            self.bytes.clear();
            self.sent = 0;
        }
    }
}

impl Batch {
    fn memory(&self, piece: Piece) -> Memory {
        match piece {
            Piece::Heads(from, to) => Memory {
                at: self.heads[from..to].as_ptr().cast_mut(),
                length: to - from,
            },
            Piece::Memory(memory) => memory,
        }
    }

    fn clear(&mut self, free: &mut Vec<Bytes>) {
        self.heads.clear();
        self.pieces.clear();
        self.length = 0;
        self.replies = 0;
        free.append(&mut self.buffers);
    }
}
