//! The replies of a connection: heads that are built here, and bytes in other buffers, sent in one call.
//!
//! ```text
//!   filling   | head | bytes | head head | bytes |     what was answered since
//!   sending   | head | bytes |                         what the kernel has
//! ```
//!
//! Plain bytes are never copied: the kernel takes them from the buffers that the back end filled. With TLS
//! the bytes are sealed in slices, and the kernel gets the slices:
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

/// The replies of a connection that wait or are being sent.
#[derive(Default)]
pub(crate) struct Outbox {
    filling: Batch,
    sending: Batch,
    /// The pieces of `sending` that are sent or sealed, and the bytes of the next one.
    sent: (usize, usize),
    sealed: Sealed,
    is_sending: bool,
    list: Vec<libc::iovec>,
    message: Option<Box<libc::msghdr>>,
}

/// Replies in their order.
#[derive(Default)]
struct Batch {
    heads: Vec<u8>,
    pieces: Vec<BatchPiece>,
    /// Buffers to free when the batch is sent.
    buffers: Vec<Bytes>,
    length: usize,
    /// The number of replies.
    replies: usize,
}

/// A sealed slice of a batch, and the number of bytes sent.
#[derive(Default)]
struct Sealed {
    bytes: Vec<u8>,
    sent: usize,
}

/// The socket for the replies.
pub(crate) struct Socket<'a> {
    pub(crate) ticket: Ticket,
    pub(crate) socket: RawFd,
    pub(crate) ring: &'a mut Ring,
    /// The TLS session, if there is one.
    pub(crate) session: Option<&'a mut Session>,
}

/// A piece of a batch.
#[derive(Clone, Copy)]
enum BatchPiece {
    /// A range of `heads`.
    Heads(usize, usize),
    Memory(Memory),
}

/// The largest number of pieces in one call (`UIO_MAXIOV`).
const MOST_PIECES: usize = 1024;

/// The bytes of a sealed slice. A choice: sealing takes a tenth of a millisecond, in which other clients
/// wait, and the copy is bounded.
const SLICE: usize = 256 << 10;

impl Outbox {
    /// Appends the head of a reply, built by `write`.
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
            Some(BatchPiece::Heads(_, end)) if *end == from => *end = to,
            _ => pieces.push(BatchPiece::Heads(from, to)),
        }
    }

    /// Appends bytes, kept until they are sent.
    pub(crate) fn bytes(&mut self, bytes: Bytes) {
        if let Some(memory) = bytes.memory() {
            self.filling.length += memory.length;
            self.filling.pieces.push(BatchPiece::Memory(memory));
        }
        self.filling.buffers.push(bytes);
    }

    /// The number of replies that wait.
    pub(crate) fn replies(&self) -> usize {
        self.filling.replies
    }

    /// Whether no reply waits or is being sent.
    pub(crate) fn is_empty(&self) -> bool {
        !self.is_sending && self.filling.pieces.is_empty()
    }

    /// Whether a reply could be sent now.
    pub(crate) fn has_more(&self) -> bool {
        !self.is_sending && !self.filling.pieces.is_empty()
    }

    /// Bytes of replies that are not sent.
    pub(crate) fn waiting(&self) -> usize {
        self.filling.length + self.sending.length + self.sealed.bytes.len()
    }

    pub(crate) fn is_sending(&self) -> bool {
        self.is_sending
    }

    /// Sends the replies that wait, unless the kernel is still sending.
    ///
    /// # Errors
    /// If the session fails to seal them.
    pub(crate) fn send(&mut self, to: &mut Socket<'_>) -> io::Result<()> {
        if self.is_sending || self.filling.pieces.is_empty() {
            return Ok(());
        }
        std::mem::swap(&mut self.filling, &mut self.sending);
        self.sent = (0, 0);
        self.submit(to)
    }

    /// Sends the end of a TLS session. The answer is whether that is in flight.
    ///
    /// # Errors
    /// If the session fails to seal it.
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

    /// Seals the next slice of the batch that is being sent.
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

    /// Advances by `bytes` bytes in the batch that is being sent.
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

    /// Advances after a send of `bytes` bytes and sends the rest. Finished buffers are appended to `free`.
    ///
    /// # Errors
    /// If the session fails to seal the rest.
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

    /// Drops all replies: the connection is broken.
    pub(crate) fn give_up(&mut self, free: &mut Vec<Bytes>) {
        self.is_sending = false;
        self.sealed = Sealed::default();
        self.sending.clear(free);
        self.filling.clear(free);
    }
}

impl Sealed {
    /// Advances by `bytes` bytes in the sealed slice, which is empty at its end.
    fn pass(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent >= self.bytes.len() {
            self.bytes.clear();
            self.sent = 0;
        }
    }
}

impl Batch {
    fn memory(&self, piece: BatchPiece) -> Memory {
        match piece {
            BatchPiece::Heads(from, to) => Memory {
                at: self.heads[from..to].as_ptr().cast_mut(),
                length: to - from,
            },
            BatchPiece::Memory(memory) => memory,
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
