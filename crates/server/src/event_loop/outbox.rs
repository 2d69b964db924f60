//! What is to be sent on a connection: heads of replies that are built here, and bytes that lie
//! elsewhere, in one call for all that has gathered.
//!
//! ```text
//!   filling   | head | bytes | head head | bytes |     what was answered since
//!   going     | head | bytes |                         what the kernel has
//! ```
//!
//! Bytes are never copied: the kernel takes them from the buffers that the back end filled.

#![allow(
    unsafe_code,
    reason = "the kernel reads the pieces by address while they are sent"
)]

use std::os::fd::RawFd;

use super::operations::Bytes;
use crate::arena::Memory;
use crate::ring::{Ring, Ticket};

/// Both halves.
#[derive(Default)]
pub(super) struct Outbox {
    filling: Batch,
    going: Batch,
    /// Pieces of `going` that were sent whole, and bytes of the next one that were.
    sent: (usize, usize),
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

impl Outbox {
    /// Appends a head that `write` builds.
    pub(super) fn head(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let Batch {
            heads,
            pieces,
            length,
            ..
        } = &mut self.filling;
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
    pub(super) fn bytes(&mut self, bytes: Bytes) {
        if let Some(memory) = bytes.memory() {
            self.filling.length += memory.length;
            self.filling.pieces.push(Piece::Memory(memory));
        }
        self.filling.buffers.push(bytes);
    }

    /// Whether there is nothing to send, and nothing being sent.
    pub(super) fn is_empty(&self) -> bool {
        !self.is_sending && self.filling.pieces.is_empty()
    }

    /// Whether there is something to send, and nothing being sent.
    pub(super) fn has_more(&self) -> bool {
        !self.is_sending && !self.filling.pieces.is_empty()
    }

    /// Bytes that were answered and have not left.
    pub(super) fn waiting(&self) -> usize {
        self.filling.length + self.going.length
    }

    pub(super) fn is_sending(&self) -> bool {
        self.is_sending
    }

    /// Hands what has gathered to the kernel, unless it still has something.
    pub(super) fn send(&mut self, ticket: Ticket, socket: RawFd, ring: &mut Ring) {
        if self.is_sending || self.filling.pieces.is_empty() {
            return;
        }
        std::mem::swap(&mut self.filling, &mut self.going);
        self.sent = (0, 0);
        self.submit(ticket, socket, ring);
    }

    fn submit(&mut self, ticket: Ticket, socket: RawFd, ring: &mut Ring) {
        let (first, mut skip) = self.sent;
        self.list.clear();
        for piece in self.going.pieces[first..].iter().take(MOST_PIECES) {
            let memory = self.going.memory(*piece);
            let rest = memory.part(skip, memory.length - skip);
            skip = 0;
            self.list.push(libc::iovec {
                iov_base: rest.at.cast(),
                iov_len: rest.length,
            });
        }
        // SAFETY: a message header of zeroes names nothing.
        let empty = || Box::new(unsafe { std::mem::zeroed::<libc::msghdr>() });
        let message = self.message.get_or_insert_with(empty);
        message.msg_iov = self.list.as_mut_ptr();
        message.msg_iovlen = self.list.len();
        self.is_sending = true;
        let message: *const libc::msghdr = &raw const **message;
        // SAFETY: the header is boxed, the list and `going` are left alone until `sent_some`, and
        // the connection is kept until its operations have ended.
        unsafe { ring.send(ticket, socket, message) };
    }

    /// The kernel has sent so many bytes. The rest follows; what is over is in `free`.
    pub(super) fn sent_some(
        &mut self,
        bytes: usize,
        ticket: Ticket,
        socket: RawFd,
        ring: &mut Ring,
        free: &mut Vec<Bytes>,
    ) {
        self.is_sending = false;
        let mut left = bytes;
        let (mut first, mut skip) = self.sent;
        while let Some(&piece) = self.going.pieces.get(first) {
            let length = self.going.memory(piece).length - skip;
            if left < length {
                skip += left;
                break;
            }
            left -= length;
            first += 1;
            skip = 0;
        }
        self.sent = (first, skip);
        if first < self.going.pieces.len() {
            return self.submit(ticket, socket, ring);
        }
        self.going.clear(free);
    }

    /// Nothing more can be sent: the connection is broken.
    pub(super) fn give_up(&mut self, free: &mut Vec<Bytes>) {
        self.is_sending = false;
        self.going.clear(free);
        self.filling.clear(free);
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
        free.append(&mut self.buffers);
    }
}
