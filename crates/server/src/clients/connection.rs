//! One NBD connection and its state.

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
use crate::volume::operation::{ClientId, Operation};
use block::operation::{Ask, OperationError};
use nbd::negotiation::Agreed;
use nbd::offer::Offer;
use nbd::reply::Reply;
use nbd::request::Header;

/// A connection after a successful handshake.
pub struct Accepted {
    /// The number of the connection, which is never used twice.
    pub number: u64,
    /// The address of the client, for people.
    pub peer: String,
    /// The socket.
    pub socket: OwnedFd,
    /// The TLS session, if the client uses TLS.
    pub session: Option<Box<Session>>,
    /// The result of the negotiation.
    pub agreed: Agreed,
    /// The index of the export in the loop.
    pub export: usize,
    /// The export as the client saw it.
    pub offer: Offer,
    /// Bytes that were received after the handshake.
    pub received: Vec<u8>,
    /// The place in the limit of connections.
    pub seat: Seat,
}

/// One connection. It is boxed and kept until the kernel has completed its operations.
pub(super) struct Connection {
    _seat: Seat,
    pub(super) number: u64,
    pub(super) peer: String,
    pub(super) since: Instant,
    pub(super) served: ClientTally,
    pub(super) socket: OwnedFd,
    pub(super) session: Option<Box<Session>>,
    pub(super) agreed: Agreed,
    pub(super) export: usize,
    pub(super) offer: Offer,
    pub(super) inbox: Inbox,
    pub(super) reading: Reading,
    pub(super) outbox: Outbox,
    pub(super) is_receiving: bool,
    /// Whether the connection is in the list of those that wait for room.
    pub(super) is_stalled: bool,
    /// Whether the connection waits until some of its replies are sent.
    pub(super) is_full: bool,
    /// Whether the loop receives nothing more from the connection.
    pub(super) is_ending: bool,
    /// Whether sending has become useless.
    pub(super) is_broken: bool,
    /// Whether the connection is in the list of those with replies to send.
    pub(super) is_answered: bool,
    /// The number of pending operations, and their bytes.
    pub(super) held: usize,
    pub(super) owed: usize,
    /// Bytes of the loop's memory: payloads, operations and replies.
    pub(super) memory: usize,
    /// The time of the last send, or of the begin of the wait for it.
    pub(super) moved: Instant,
}

/// The part of a request that comes next.
pub(super) enum Reading {
    Header,
    /// The payload of a write, of which `have` bytes were received.
    Payload {
        header: Header,
        bytes: Option<Bytes>,
        have: usize,
    },
    /// The rest of the payload of a refused write.
    Skip(u64),
    /// An operation that waits for room.
    Ready {
        header: Header,
        operation: Operation,
        bytes: Option<Bytes>,
    },
}

/// Successful requests of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientTally {
    pub(super) requests: u64,
    /// Bytes read and written.
    pub(super) bytes: u64,
}

/// The next step in reading a connection.
pub(super) enum ReadProgress {
    /// The next part can be parsed.
    Continue,
    /// More bytes have to be received.
    Receive,
    /// The connection waits or ends.
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
            owner: block::Owner::connection(self.number),
            class: None,
        }
    }

    /// Counts an operation against the bounds of the client, until [`Connection::release_operation`].
    pub(super) fn charge_operation(&mut self, operation: &Operation) {
        self.held += 1;
        self.owed += operation.bytes();
    }

    /// The operation has ended, or could not begin.
    pub(super) fn release_operation(&mut self, operation: &Operation) {
        self.held -= 1;
        self.owed -= operation.bytes();
    }

    pub(super) fn refuse(&mut self, header: &Header, failed: OperationError) {
        let reply = Reply::to(header, self.agreed.style);
        self.outbox
            .head(|out| reply.failed(out, failed, &failed.to_string()));
    }

    /// The buffer of an operation that has not begun.
    pub(super) fn unread(&mut self) -> Option<Bytes> {
        match std::mem::replace(&mut self.reading, Reading::Header) {
            Reading::Payload { bytes, .. } | Reading::Ready { bytes, .. } => bytes,
            Reading::Header | Reading::Skip(_) => None,
        }
    }

    /// The connection as a source of operations.
    pub(super) fn client(&self, place: usize) -> ClientId {
        ClientId {
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

    /// Decrypts received bytes into the payload or the inbox, if there is a TLS session.
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

    /// The replies, and the socket for them.
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

    /// A new connection, with the bytes that came after the handshake.
    pub(super) fn new(accepted: Accepted, now: Instant) -> Self {
        Connection {
            _seat: accepted.seat,
            number: accepted.number,
            peer: accepted.peer,
            since: now,
            served: ClientTally::default(),
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
