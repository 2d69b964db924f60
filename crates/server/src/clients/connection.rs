//! One NBD connection, and what it holds.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use block::Instant;

use super::Seat;
use super::inbox::Inbox;
use crate::arena::Bytes;
use crate::outbox::{Outbox, Socket};
use crate::ring::{Owner, Ring, Ticket};
use crate::status;
use crate::tls::{Opened, Session};
use crate::volume::operation::{Client, Operation};
use block::operation::{Ask, Failed};
use nbd::negotiation::Agreed;
use nbd::offer::Offer;
use nbd::reply::Reply;
use nbd::request::Header;

/// A connection whose client has agreed on an export.
pub struct Accepted {
    /// Names it; never used twice.
    pub number: u64,
    /// Where it comes from, for people.
    pub peer: String,
    /// The way to the client.
    pub socket: OwnedFd,
    /// TLS, if the client uses it.
    pub session: Option<Box<Session>>,
    /// What was agreed.
    pub agreed: Agreed,
    /// The export's place in the loop.
    pub export: usize,
    /// As the client was told of it.
    pub offer: Offer,
    /// What was received behind the agreement.
    pub received: Vec<u8>,
    /// That it may be here, until it leaves.
    pub seat: Seat,
}

/// One connection. It is boxed and kept until the kernel has given back all that it was told of.
pub(super) struct Connection {
    _seat: Seat,
    pub(super) number: u64,
    pub(super) peer: String,
    pub(super) since: Instant,
    pub(super) served: Served,
    pub(super) socket: OwnedFd,
    pub(super) session: Option<Box<Session>>,
    pub(super) agreed: Agreed,
    pub(super) export: usize,
    pub(super) offer: Offer,
    pub(super) inbox: Inbox,
    pub(super) reading: Reading,
    pub(super) outbox: Outbox,
    pub(super) is_receiving: bool,
    /// It is in the loop's list of those that wait for room.
    pub(super) is_stalled: bool,
    /// It waits until some of its own replies have left.
    pub(super) is_full: bool,
    /// Nothing more is read from it.
    pub(super) is_ending: bool,
    /// It is not worth sending to any more.
    pub(super) is_broken: bool,
    /// It is in the loop's list of those with something to send.
    pub(super) is_answered: bool,
    /// Operations that have begun and were not answered, and their bytes.
    pub(super) held: usize,
    pub(super) owed: usize,
    /// Bytes of the loop's memory: of payloads, operations and replies.
    pub(super) memory: usize,
    /// When something was sent last, or it began to wait for that.
    pub(super) moved: Instant,
}

/// What comes next from the client.
pub(super) enum Reading {
    Header,
    /// The payload of a write: `have` bytes of it are there.
    Payload {
        header: Header,
        bytes: Option<Bytes>,
        have: usize,
    },
    /// The payload of a refused write.
    Skip(u64),
    /// An operation that waits for room.
    Ready {
        header: Header,
        operation: Operation,
        bytes: Option<Bytes>,
    },
}

/// What ended well for a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) requests: u64,
    /// Read and written.
    pub(super) bytes: u64,
}

/// How far a connection was read.
pub(super) enum Progress {
    /// The next part can be understood.
    Continue,
    /// More has to be received.
    Receive,
    /// The connection waits, or ends.
    Wait,
}

impl Connection {
    pub(super) fn raw(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    pub(super) fn operation(&self, ask: Ask, header: &Header) -> Operation {
        Operation {
            export: self.export,
            ask,
            offset: header.offset,
            length: header.length,
        }
    }

    pub(super) fn took(&mut self, operation: &Operation) {
        self.held += 1;
        self.owed += operation.bytes();
    }

    pub(super) fn gave(&mut self, operation: &Operation) {
        self.held -= 1;
        self.owed -= operation.bytes();
    }

    pub(super) fn refuse(&mut self, header: &Header, failed: Failed) {
        let reply = Reply::to(header, self.agreed.style);
        self.outbox
            .head(|out| reply.failed(out, failed, &failed.to_string()));
    }

    /// The buffer of an operation that never began.
    pub(super) fn unread(&mut self) -> Option<Bytes> {
        match std::mem::replace(&mut self.reading, Reading::Header) {
            Reading::Payload { bytes, .. } | Reading::Ready { bytes, .. } => bytes,
            Reading::Header | Reading::Skip(_) => None,
        }
    }

    /// The connection, as the operations of its client name it.
    pub(super) fn client(&self, place: usize) -> Client {
        Client {
            place,
            number: self.number,
            since: self.since,
        }
    }

    /// The connection in the status, without its export and age.
    pub(super) fn described(&self) -> status::Connection {
        status::Connection {
            id: self.number,
            front: "nbd".to_owned(),
            peer: self.peer.clone(),
            tls: self.session.is_some(),
            in_flight: self.held as u64,
            requests_total: self.served.requests,
            bytes_total: self.served.bytes,
            ..status::Connection::default()
        }
    }

    /// Opens what was received, if there is a session, to where it belongs.
    pub(super) fn open(&mut self) -> io::Result<Opened> {
        let Some(session) = &mut self.session else {
            return Ok(Opened::Nothing);
        };
        match &mut self.reading {
            Reading::Payload {
                bytes: Some(Bytes::Own(buffer)),
                have,
                ..
            } => {
                let opened = session.open(&mut buffer.bytes_mut()[*have..])?;
                if let Opened::Bytes(count) = opened {
                    *have += count;
                }
                Ok(opened)
            }
            _ => {
                let opened = session.open(self.inbox.free())?;
                if let Opened::Bytes(count) = opened {
                    self.inbox.received(count);
                }
                Ok(opened)
            }
        }
    }

    /// The replies, and the socket to send them to.
    pub(super) fn outbox<'a>(
        &'a mut self,
        place: usize,
        ring: &'a mut Ring,
    ) -> (&'a mut Outbox, Socket<'a>) {
        let socket = Socket {
            ticket: Ticket {
                owner: Owner::Send,
                key: place as u32,
            },
            socket: self.raw(),
            ring,
            session: self.session.as_deref_mut(),
        };
        (&mut self.outbox, socket)
    }

    /// A new connection, of which nothing was read but what came with the agreement.
    pub(super) fn new(accepted: Accepted, now: Instant) -> Self {
        Connection {
            _seat: accepted.seat,
            number: accepted.number,
            peer: accepted.peer,
            since: now,
            served: Served::default(),
            socket: accepted.socket,
            session: accepted.session,
            agreed: accepted.agreed,
            export: accepted.export,
            offer: accepted.offer,
            inbox: Inbox::with(&accepted.received),
            reading: Reading::Header,
            outbox: Outbox::default(),
            is_receiving: false,
            is_stalled: false,
            is_full: false,
            is_ending: false,
            is_broken: false,
            is_answered: false,
            held: 0,
            owed: 0,
            memory: 0,
            moved: now,
        }
    }
}
