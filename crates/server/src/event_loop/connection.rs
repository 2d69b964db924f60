//! NBD connections of an event loop.
//!
//! ```text
//!              .------ no room: stalled, nothing is received ------.
//!              v                                                    |
//!   receive -> [ inbox ] -> header -> [payload] -> ready -> begin --'
//!                              '-> refused: its payload is passed over
//! ```

#![allow(
    unsafe_code,
    reason = "the kernel writes received bytes by address while a receive is under way"
)]

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use block::Instant;
use tracing::{debug, info, warn};

use super::operations::{Bytes, From, Operation, Stalled};
use super::outbox::Outbox;
use super::{EventLoop, Stopping};
use crate::arena::Memory;
use crate::listener::Seat;
use crate::nbd::negotiation::Agreed;
use crate::nbd::offer::Offer;
use crate::nbd::reply::Reply;
use crate::nbd::request::{self, Asked, Header};
use crate::operation::{Ask, Failed};
use crate::ring::{Owner, Ticket};
use crate::tls::Session;

mod description;
mod inbox;
mod leaving;
mod replying;
mod room;
mod secure;

use description::Served;
use inbox::Inbox;
pub(super) use leaving::PATROL;
use room::For;

/// A connection whose client has agreed on an export.
pub struct Newcomer {
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
    number: u64,
    peer: String,
    since: Instant,
    served: Served,
    socket: OwnedFd,
    session: Option<Box<Session>>,
    agreed: Agreed,
    export: usize,
    offer: Offer,
    inbox: Inbox,
    reading: Reading,
    outbox: Outbox,
    is_receiving: bool,
    /// It is in the loop's list of those that wait for room.
    is_stalled: bool,
    /// It waits until some of its own replies have left.
    is_full: bool,
    /// Nothing more is read from it.
    is_ending: bool,
    /// It is not worth sending to any more.
    is_broken: bool,
    /// It is in the loop's list of those with something to send.
    is_answered: bool,
    /// Operations that have begun and were not answered, and their bytes.
    held: usize,
    owed: usize,
    /// Bytes of the loop's memory: of payloads, operations and replies.
    memory: usize,
    /// When something was sent last, or it began to wait for that.
    moved: Instant,
}

/// What comes next from the client.
enum Reading {
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

/// What became of trying to read on.
enum Step {
    /// Go on.
    On,
    /// More has to be received.
    More,
    /// Wait.
    Wait,
}

/// A payload of which so much is missing is received where it belongs, not through the inbox. A
/// choice: below that another call costs more than copying.
const STRAIGHT: usize = 16 << 10;

impl EventLoop {
    pub(super) fn welcome(&mut self, newcomer: Newcomer) {
        if self.connections.len() >= self.bounds.connections || self.stopping != Stopping::No {
            warn!(
                most = self.bounds.connections,
                "a connection is refused: too many, or going down"
            );
            self.tally.turned_away += 1;
            return;
        }
        if newcomer.offer.size > self.exports[newcomer.export].length {
            warn!("a connection is refused: its volume has become smaller since it was told of it");
            return;
        }
        info!(export = self.exports[newcomer.export].name, style = ?newcomer.agreed.style, "a client");
        self.tally.accepted += 1;
        let place = self.connections.insert(Box::new(Connection {
            _seat: newcomer.seat,
            number: newcomer.number,
            peer: newcomer.peer,
            since: self.now,
            served: Served::default(),
            socket: newcomer.socket,
            session: newcomer.session,
            agreed: newcomer.agreed,
            export: newcomer.export,
            offer: newcomer.offer,
            inbox: Inbox::with(&newcomer.received),
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
            moved: self.now,
        }));
        self.read_on(place);
    }

    /// Understands what was received, begins what can be begun, and receives more.
    pub(super) fn read_on(&mut self, place: usize) {
        loop {
            let connection = &mut self.connections[place];
            if connection.is_ending {
                return;
            }
            let step = match &mut connection.reading {
                Reading::Header => self.read_header(place),
                Reading::Payload { .. } => self.read_payload(place),
                Reading::Skip(left) => {
                    let taken = connection.inbox.take(*left);
                    *left -= taken;
                    match *left {
                        0 => {
                            connection.reading = Reading::Header;
                            Step::On
                        }
                        _ => Step::More,
                    }
                }
                Reading::Ready { .. } => self.begin_ready(place),
            };
            let step = match step {
                Step::More => self.more(place),
                step => step,
            };
            match step {
                Step::On => (),
                Step::More | Step::Wait => return,
            }
        }
    }

    fn read_header(&mut self, place: usize) -> Step {
        let connection = &mut self.connections[place];
        let (header, size) = match request::parse(connection.inbox.bytes(), connection.agreed.style)
        {
            Ok(Some(found)) => found,
            Ok(None) => return Step::More,
            Err(hostile) => {
                warn!(%hostile, "a client is cut off");
                self.tally.turned_away += 1;
                self.cut_off(place);
                return Step::Wait;
            }
        };
        connection.inbox.understood(size);
        if let Err(failed) = request::check(&header, &connection.agreed, &connection.offer) {
            debug!(?header, %failed, "refused");
            connection.refuse(&header, failed);
            connection.reading = Reading::Skip(header.payload);
            self.note_answered(place);
            return Step::On;
        }
        connection.reading = match header.ask {
            Asked::Of(Ask::Write { .. }) => Reading::Payload {
                header,
                bytes: None,
                have: 0,
            },
            Asked::Of(ask) => Reading::Ready {
                header,
                operation: connection.operation(ask, &header),
                bytes: None,
            },
            Asked::BlockStatus { .. } => {
                self.reply_status(place, &header);
                return Step::On;
            }
            Asked::Disconnect | Asked::Unknown(_) => {
                self.end(place);
                return Step::Wait;
            }
        };
        Step::On
    }

    /// Takes what there is of a write's payload.
    fn read_payload(&mut self, place: usize) -> Step {
        let connection = &mut self.connections[place];
        let Reading::Payload {
            header,
            bytes,
            have,
        } = &mut connection.reading
        else {
            return Step::On;
        };
        let Asked::Of(ask) = header.ask else {
            return Step::On;
        };
        let (header, has_bytes) = (*header, bytes.is_some());
        if !has_bytes {
            let operation = connection.operation(ask, &header);
            if connection.is_over_share(&operation, &self.bounds) {
                return Step::Wait;
            }
            let Some(memory) = self.bytes_of(place, &operation) else {
                return self.stall(place, For::Memory);
            };
            let connection = &mut self.connections[place];
            if let Reading::Payload { bytes, .. } = &mut connection.reading {
                *bytes = Some(memory);
            }
            return Step::On;
        }
        let Some(Bytes::Own(buffer)) = bytes else {
            return Step::On;
        };
        let taken = connection.inbox.copy(&mut buffer.bytes_mut()[*have..]);
        *have += taken;
        if *have < buffer.length() {
            return Step::More;
        }
        let bytes = bytes.take();
        let operation = connection.operation(ask, &header);
        connection.reading = Reading::Ready {
            header,
            operation,
            bytes,
        };
        Step::On
    }

    /// Begins the operation that is ready, if there is room.
    fn begin_ready(&mut self, place: usize) -> Step {
        let connection = &mut self.connections[place];
        let reading = std::mem::replace(&mut connection.reading, Reading::Header);
        let Reading::Ready {
            header,
            operation,
            bytes,
        } = reading
        else {
            unreachable!("asked for when something is ready");
        };
        let is_over = bytes.is_none() && connection.is_over_share(&operation, &self.bounds);
        let bytes = match bytes {
            None if is_over => None,
            None => self.bytes_of(place, &operation),
            bytes => bytes,
        };
        let Some(bytes) = bytes else {
            self.connections[place].reading = Reading::Ready {
                header,
                operation,
                bytes: None,
            };
            return match is_over {
                true => Step::Wait,
                false => self.stall(place, For::Memory),
            };
        };
        // Counted before: an operation may be answered at once.
        self.connections[place].took(&operation);
        let from = From::Connection { place, header };
        match self.begin(from, operation, bytes) {
            Ok(()) => Step::On,
            Err(Stalled { bytes, .. }) => {
                let connection = &mut self.connections[place];
                connection.gave(&operation);
                let bytes = Some(bytes);
                connection.reading = Reading::Ready {
                    header,
                    operation,
                    bytes,
                };
                self.stall(place, For::Turn)
            }
        }
    }

    /// Receives more: where a long payload belongs, or into the inbox.
    fn receive(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        if connection.is_receiving {
            return;
        }
        let memory = match (&mut connection.session, &connection.reading) {
            (Some(session), _) => {
                let free = session.space();
                Memory {
                    at: free.as_mut_ptr(),
                    length: free.len(),
                }
            }
            (
                None,
                Reading::Payload {
                    bytes: Some(Bytes::Own(buffer)),
                    have,
                    ..
                },
            ) if buffer.length() - have >= STRAIGHT => {
                let rest = buffer.length() - have;
                buffer.memory().part(*have, rest)
            }
            _ => connection.inbox.space(),
        };
        connection.is_receiving = true;
        let (ticket, socket) = (receiving(place), connection.raw());
        // SAFETY: the buffer is the reading's, the inbox and the session are the connection's; they
        // are kept until the receive has ended, and nobody looks at that part of them before.
        unsafe { self.ring.receive(ticket, socket, memory) };
    }

    /// The kernel says how many bytes came.
    pub(super) fn received(&mut self, place: usize, result: i32) {
        let connection = &mut self.connections[place];
        connection.is_receiving = false;
        connection.moved = self.now;
        let Ok(count @ 1..) = usize::try_from(result) else {
            // The client has gone, or is cut off. What it asked for ends first.
            self.end(place);
            return;
        };
        if connection.is_ending {
            // It came while the connection was being ended.
            return self.leave_if_done(place);
        }
        match (&mut connection.session, &mut connection.reading) {
            (Some(session), _) => session.received(count),
            (
                None,
                Reading::Payload {
                    bytes: Some(Bytes::Own(buffer)),
                    have,
                    ..
                },
            ) if buffer.length() - *have >= STRAIGHT => *have += count,
            _ => connection.inbox.received(count),
        }
        match connection.is_ending {
            // It came before the socket was closed, and nobody looks at it any more.
            true => self.leave_if_done(place),
            false => self.read_on(place),
        }
    }
}

impl Connection {
    fn raw(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn operation(&self, ask: Ask, header: &Header) -> Operation {
        Operation {
            export: self.export,
            ask,
            offset: header.offset,
            length: header.length,
        }
    }

    fn took(&mut self, operation: &Operation) {
        self.held += 1;
        self.owed += operation.bytes();
    }

    fn gave(&mut self, operation: &Operation) {
        self.held -= 1;
        self.owed -= operation.bytes();
    }

    fn refuse(&mut self, header: &Header, failed: Failed) {
        let reply = Reply::to(header, self.agreed.style);
        self.outbox
            .head(|out| reply.failed(out, failed, &failed.to_string()));
    }

    /// The buffer of an operation that never began.
    fn unread(&mut self) -> Option<Bytes> {
        match std::mem::replace(&mut self.reading, Reading::Header) {
            Reading::Payload { bytes, .. } | Reading::Ready { bytes, .. } => bytes,
            Reading::Header | Reading::Skip(_) => None,
        }
    }
}

fn receiving(place: usize) -> Ticket {
    Ticket {
        owner: Owner::Receive,
        key: place as u32,
    }
}
