//! One connection to another server: requests out, replies in, both through the ring.
//!
//! ```text
//!   request -> outbox -> [TLS] -> socket
//!   socket -> [TLS] -> inbox -> replies; contents that are long go straight to where they belong
//! ```

#![allow(
    unsafe_code,
    reason = "the kernel and the server's replies write to the memory of commands by address"
)]

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use rustix::net::{SendFlags, Shutdown, send, shutdown};
use tracing::warn;

use super::dialing::Agreement;
use super::job::{RequestLimits, ServerRequest};
use crate::arena::{Bytes, Memory};
use crate::disk::back_end::{Holds, Run};
use crate::outbox::{Outbox, Socket};
use crate::ring::{Owner, Ring, Ticket};
use crate::tls::{Opened, Session};
use block::operation::{Ask, OperationError};
use nbd::client::{Event, NotSent, Requests, place};
use nbd::request::Asked;
use nbd::{HOLE, ZERO};

/// A connection to a server.
pub(super) struct Line {
    socket: OwnedFd,
    tls: Option<Box<Session>>,
    requests: Requests,
    /// Requests in flight, by their cookies.
    parts: Box<[Option<Part>]>,
    inbox: Inbox,
    /// The memory of the next bytes, if they are contents.
    contents: Option<Memory>,
    outbox: Outbox,
    /// The head of the next request.
    head: Vec<u8>,
    /// The number of payloads that were appended to the outbox, and of those that were sent.
    payloads: (u64, u64),
    /// Ended requests in their order. A request whose payload is still with the kernel is kept.
    ended: VecDeque<Part>,
    is_receiving: bool,
    is_closing: bool,
}

/// A request in flight, or an ended one.
pub(super) struct Part {
    /// The index of its job.
    pub(super) job: usize,
    pub(super) result: Result<(), OperationError>,
    /// The answer of a block status request.
    pub(super) runs: Vec<Run>,
    offset: u64,
    memory: Option<Memory>,
    /// The number of its payload, 0 without one.
    payload: u64,
}

/// Received bytes that were not parsed.
struct Inbox {
    bytes: Box<[u8]>,
    from: usize,
    to: usize,
}

/// The key of receives in the ring.
pub(super) const RECEIVE: u32 = 0;
pub(super) const SEND: u32 = 1;

/// The largest number of requests in flight. A choice: twice the queue depth of an engine without a belief.
const LIMIT: usize = 256;

/// Bytes of an inbox. A choice: some thousands of replies without contents.
const INBOX: usize = 64 << 10;

/// The missing bytes of contents from which they are received into their memory. A choice: below that a
/// system call costs more than a copy.
const STRAIGHT: usize = 16 << 10;

impl Line {
    pub(super) fn new(agreement: Agreement) -> Self {
        let Agreement {
            socket,
            tls,
            session,
            received,
        } = agreement;
        let mut parts = Vec::new();
        parts.resize_with(LIMIT, || None);
        Line {
            socket,
            tls,
            requests: Requests::new(session, LIMIT),
            parts: parts.into(),
            inbox: Inbox::with(&received),
            contents: None,
            outbox: Outbox::default(),
            head: Vec::new(),
            payloads: (0, 0),
            ended: VecDeque::new(),
            is_receiving: false,
            is_closing: false,
        }
    }

    /// The limits of one request.
    pub(super) fn bounds(&self) -> RequestLimits {
        let offer = &self.requests.session().offer;
        RequestLimits {
            payload: u64::from(offer.block.max()),
            fua: offer.features.fua,
            flush: offer.features.flush,
        }
    }

    /// Whether the server answers block status requests.
    pub(super) fn has_status(&self) -> bool {
        !self.requests.session().agreed.contexts.is_empty()
    }

    pub(super) fn under_way(&self) -> usize {
        self.requests.under_way()
    }

    pub(super) fn is_full(&self) -> bool {
        self.under_way() >= LIMIT
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// Whether the kernel has completed all operations.
    pub(super) fn is_over(&self) -> bool {
        self.is_closing && !self.is_receiving && !self.outbox.is_sending()
    }

    /// Appends a request to the outbox.
    ///
    /// # Errors
    /// If the server would refuse it.
    pub(super) fn submit(
        &mut self,
        job: usize,
        request: ServerRequest,
    ) -> Result<(), OperationError> {
        let ServerRequest {
            ask,
            offset,
            length,
            memory,
        } = request;
        self.head.clear();
        let submitted = self.requests.submit(&mut self.head, ask, offset, length);
        let cookie = submitted.map_err(|refused| match refused {
            NotSent::Senseless(failed) => failed,
            NotSent::Full => OperationError::Io,
        })?;
        let head = &self.head;
        self.outbox.head(|out| out.extend_from_slice(head));
        let mut payload = 0;
        if let (Asked::Of(Ask::Write { .. }), Some(memory)) = (ask, memory) {
            self.payloads.0 += 1;
            payload = self.payloads.0;
            self.outbox.bytes(Bytes::Mapped(memory));
        }
        self.parts[place(cookie)] = Some(Part {
            job,
            result: Ok(()),
            runs: Vec::new(),
            offset,
            memory,
            payload,
        });
        Ok(())
    }

    /// Sends the outbox, and receives.
    pub(super) fn go_on(&mut self, ring: &mut Ring) {
        if self.is_closing {
            return;
        }
        if self.outbox.has_more() {
            let (outbox, mut way) = self.way(ring);
            if let Err(error) = outbox.send(&mut way) {
                self.cut(&error.to_string());
                return;
            }
        }
        self.receive(ring);
    }

    fn receive(&mut self, ring: &mut Ring) {
        if self.is_receiving || self.is_closing {
            return;
        }
        let memory = match (&mut self.tls, self.contents) {
            (Some(session), _) => {
                let free = session.space();
                Memory {
                    at: free.as_mut_ptr(),
                    length: free.len(),
                }
            }
            (None, Some(rest)) if rest.length >= STRAIGHT => rest,
            _ => {
                let free = self.inbox.free();
                Memory {
                    at: free.as_mut_ptr(),
                    length: free.len(),
                }
            }
        };
        self.is_receiving = true;
        // SAFETY: the inbox and the session are the line's, which is kept until its operations have
        // ended or the ring is gone; the memory of contents is that of a command, which does not
        // end before.
        unsafe { ring.receive(ticket(RECEIVE), self.raw(), memory) };
    }

    /// A receive has completed.
    pub(super) fn received(&mut self, result: i32) {
        self.is_receiving = false;
        let Ok(count @ 1..) = usize::try_from(result) else {
            return self.cut("the server has hung up");
        };
        if self.is_closing {
            return;
        }
        match (&mut self.tls, self.contents) {
            (Some(session), _) => session.received(count),
            (None, Some(rest)) if rest.length >= STRAIGHT => self.came(count),
            _ => self.inbox.to += count,
        }
        if let Err(problem) = self.understand() {
            self.cut(&problem);
        }
    }

    /// A send has completed.
    pub(super) fn sent(&mut self, result: i32, ring: &mut Ring) {
        let mut free = Vec::new();
        let is_on = match usize::try_from(result) {
            Ok(count @ 1..) if !self.is_closing => {
                let (outbox, mut way) = self.way(ring);
                outbox.sent_some(count, &mut way, &mut free).is_ok()
            }
            _ => false,
        };
        self.payloads.1 += free.len() as u64;
        if !is_on {
            self.outbox.give_up(&mut free);
            self.cut("the server takes nothing more");
        }
    }

    /// The next ended request whose memory the kernel does not use any more.
    pub(super) fn next_end(&mut self) -> Option<Part> {
        let first = self.ended.front()?;
        (first.payload <= self.payloads.1)
            .then(|| self.ended.pop_front())
            .flatten()
    }

    /// Ends the connection. It is over when the kernel has completed its operations.
    pub(super) fn cut(&mut self, problem: &str) {
        if !self.is_closing {
            warn!("the connection to the server behind ends: {problem}");
            self.is_closing = true;
            let _ = shutdown(&self.socket, Shutdown::Both);
        }
    }

    /// Parses received bytes.
    fn understand(&mut self) -> Result<(), String> {
        loop {
            let is_stuck = match self.contents {
                Some(rest) => {
                    let there = self.inbox.bytes();
                    let count = there.len().min(rest.length);
                    // SAFETY: the rest of the memory of a command that has not ended.
                    let to = unsafe { rest.part(0, count).bytes_mut() };
                    to.copy_from_slice(&there[..count]);
                    self.inbox.from += count;
                    self.came(count);
                    self.contents.is_some()
                }
                None => {
                    let told = self.requests.receive(self.inbox.bytes());
                    let (used, event) =
                        told.map_err(|hostile| format!("it cannot be trusted: {hostile}"))?;
                    self.inbox.from += used;
                    let is_stuck = used == 0 && event.is_none();
                    if let Some(event) = event {
                        self.happened(event);
                    }
                    is_stuck
                }
            };
            if is_stuck && !self.open()? {
                return Ok(());
            }
        }
    }

    /// Decrypts received bytes. The answer is whether there were any.
    fn open(&mut self) -> Result<bool, String> {
        let Some(session) = &mut self.tls else {
            return Ok(false);
        };
        let opened = match self.contents {
            // SAFETY: as above.
            Some(rest) => session.open(unsafe { rest.bytes_mut() }),
            None => session.open(self.inbox.free()),
        };
        match opened {
            Ok(Opened::Bytes(count)) => {
                match self.contents {
                    Some(_) => self.came(count),
                    None => self.inbox.to += count,
                }
                Ok(true)
            }
            Ok(Opened::Nothing) => Ok(false),
            Ok(Opened::Closed) => Err("the server has said goodbye".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Advances by `count` bytes of contents in their memory.
    fn came(&mut self, count: usize) {
        self.contents = self
            .contents
            .filter(|rest| rest.length > count)
            .map(|rest| rest.part(count, rest.length - count));
    }

    fn happened(&mut self, event: Event) {
        match event {
            Event::Contents {
                cookie,
                offset,
                length,
            } => self.contents = self.memory(cookie, offset, length),
            Event::Hole {
                cookie,
                offset,
                length,
            } => {
                if let Some(memory) = self.memory(cookie, offset, length) {
                    // SAFETY: a part of the memory of a command that has not ended.
                    unsafe { memory.bytes_mut() }.fill(0);
                }
            }
            Event::State {
                cookie, descriptor, ..
            } => {
                if let Some(part) = &mut self.parts[place(cookie)] {
                    let is_hole = descriptor.state & (HOLE | ZERO) == HOLE | ZERO;
                    part.runs.push(Run {
                        length: descriptor.length,
                        holds: match is_hole {
                            true => Holds::Hole,
                            false => Holds::Bytes,
                        },
                    });
                }
            }
            Event::Complaint {
                failed,
                offset,
                message,
                ..
            } => warn!(?offset, %failed, "the server behind says: {message}"),
            Event::Finished { cookie, result } => {
                if let Some(part) = self.parts[place(cookie)].take() {
                    self.ended.push_back(Part { result, ..part });
                }
            }
        }
    }

    /// The memory of contents. The protocol's parser has checked that they are within their request.
    fn memory(&self, cookie: u64, offset: u64, length: u64) -> Option<Memory> {
        let part = self.parts[place(cookie)].as_ref()?;
        let memory = part.memory?;
        Some(memory.part((offset - part.offset) as usize, length as usize))
    }

    fn way<'a>(&'a mut self, ring: &'a mut Ring) -> (&'a mut Outbox, Socket<'a>) {
        let way = Socket {
            ticket: ticket(SEND),
            socket: self.socket.as_fd().as_raw_fd(),
            ring,
            session: self.tls.as_deref_mut(),
        };
        (&mut self.outbox, way)
    }

    fn raw(&self) -> RawFd {
        self.socket.as_fd().as_raw_fd()
    }
}

/// Sends a disconnect request, if that does not block.
impl Drop for Line {
    fn drop(&mut self) {
        if self.is_closing || self.outbox.is_sending() {
            return;
        }
        let mut out = Vec::new();
        self.requests.disconnect(&mut out);
        if let Some(session) = &mut self.tls {
            let plain = std::mem::take(&mut out);
            let sealed = session.seal(&[io::IoSlice::new(&plain)], &mut out);
            if sealed.and_then(|()| session.close(&mut out)).is_err() {
                return;
            }
        }
        let _ = send(
            &self.socket,
            &out,
            SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
        );
        let _ = shutdown(&self.socket, Shutdown::Write);
    }
}

impl Inbox {
    fn with(received: &[u8]) -> Self {
        let mut bytes: Box<[u8]> = vec![0; INBOX.max(received.len())].into();
        bytes[..received.len()].copy_from_slice(received);
        Inbox {
            bytes,
            from: 0,
            to: received.len(),
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[self.from..self.to]
    }

    /// The free space of the inbox, after its bytes have moved to the front.
    fn free(&mut self) -> &mut [u8] {
        if self.from > 0 {
            self.bytes.copy_within(self.from..self.to, 0);
            self.to -= self.from;
            self.from = 0;
        }
        &mut self.bytes[self.to..]
    }
}

fn ticket(key: u32) -> Ticket {
    let owner = Owner::BackEnd;
    Ticket { owner, key }
}
