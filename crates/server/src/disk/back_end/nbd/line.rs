//! One connection to the server: requests out, replies in, both through the ring.
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
use super::job::{Bounds, Request};
use crate::arena::{Bytes, Memory};
use crate::disk::back_end::{Holds, Run};
use crate::outbox::{Outbox, Socket};
use crate::ring::{Owner, Ring, Ticket};
use crate::tls::{Opened, Session};
use block::operation::{Ask, OperationError};
use nbd::client::{Event, NotSent, Requests, place};
use nbd::request::Asked;
use nbd::{HOLE, ZERO};

/// The connection.
pub(super) struct Line {
    socket: OwnedFd,
    tls: Option<Box<Session>>,
    requests: Requests,
    /// Those under way, each at the place of its cookie.
    parts: Box<[Option<Part>]>,
    inbox: Inbox,
    /// Where the next bytes belong, if they are contents.
    contents: Option<Memory>,
    outbox: Outbox,
    /// The head of a request, on its way to the outbox.
    head: Vec<u8>,
    /// Payloads that were given to the outbox, and that have left it.
    payloads: (u64, u64),
    /// Requests that have ended, in the order in which they did. One whose payload the kernel still
    /// has is kept back.
    ended: VecDeque<Part>,
    is_receiving: bool,
    is_closing: bool,
}

/// A request under way, or one that has ended.
pub(super) struct Part {
    /// Which job's.
    pub(super) job: usize,
    pub(super) result: Result<(), OperationError>,
    /// What a block status has told.
    pub(super) runs: Vec<Run>,
    offset: u64,
    memory: Option<Memory>,
    /// Which of the payloads is its own; 0 if it has none.
    payload: u64,
}

/// Received bytes that were not understood yet.
struct Inbox {
    bytes: Box<[u8]>,
    from: usize,
    to: usize,
}

/// What the ends of the ring's operations are told by.
pub(super) const RECEIVE: u32 = 0;
pub(super) const SEND: u32 = 1;

/// At most so many requests are under way; what else there is waits here. A choice: twice the depth
/// of an engine that knows nothing of its drive.
const LIMIT: usize = 256;

/// Bytes of an inbox. A choice: some thousands of replies without contents.
const INBOX: usize = 64 << 10;

/// Contents of which so much is missing are received where they belong. A choice: below that
/// another call costs more than copying.
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

    /// What one request may have.
    pub(super) fn bounds(&self) -> Bounds {
        let offer = &self.requests.session().offer;
        Bounds {
            payload: u64::from(offer.block.max()),
            fua: offer.features.fua,
            flush: offer.features.flush,
        }
    }

    /// Whether it can be asked what blocks hold.
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

    /// Whether the kernel has given back all that it was told of.
    pub(super) fn is_over(&self) -> bool {
        self.is_closing && !self.is_receiving && !self.outbox.is_sending()
    }

    /// Puts a request in the outbox.
    ///
    /// # Errors
    /// If the server would refuse it.
    pub(super) fn submit(&mut self, job: usize, request: Request) -> Result<(), OperationError> {
        let Request {
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

    /// Hands everything to the kernel, and receives unless that is under way.
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

    /// The kernel says how many bytes came.
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

    /// The kernel says how many bytes have left.
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

    /// The next request that has ended, and whose memory the kernel does not have any more.
    pub(super) fn next_end(&mut self) -> Option<Part> {
        let first = self.ended.front()?;
        (first.payload <= self.payloads.1)
            .then(|| self.ended.pop_front())
            .flatten()
    }

    /// Nothing more comes or goes: it is over when the kernel has given everything back.
    pub(super) fn cut(&mut self, problem: &str) {
        if !self.is_closing {
            warn!("the connection to the server behind ends: {problem}");
            self.is_closing = true;
            let _ = shutdown(&self.socket, Shutdown::Both);
        }
    }

    /// Understands what was received, as far as it goes.
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

    /// Opens more of what TLS has; whether there was something.
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

    /// So many bytes of contents are where they belong.
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

    /// Where contents belong. They are within their request, as the protocol's part has checked.
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

/// Says goodbye in the protocol's way, if that can be said without waiting.
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

    /// Where more can be received: what is there moves to the front.
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
