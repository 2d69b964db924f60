//! Requests of connections, from received bytes to operations of volumes.
//!
//! ```text
//!              .------ no room: stalled, nothing is received ------.
//!              v                                                    |
//!   receive -> [ inbox ] -> header -> [payload] -> ready -> begin --'
//!                              '-> refused: its payload is passed over
//! ```
//!
//! With TLS the kernel receives into a session, and the inbox gets the decrypted bytes.

#![allow(
    unsafe_code,
    reason = "the kernel writes received bytes by address while a receive is in flight"
)]

use tracing::{debug, warn};

use super::Clients;
use super::connection::{ReadProgress, Reading};
use super::sharing::Awaited;
use crate::arena::Bytes;
use crate::arena::Memory;
use crate::disk::Disk;
use crate::ring::{Owner, Ticket};
use crate::tls::Opened;
use crate::volume::Volumes;
use crate::volume::operation::{OperationSource, Stalled};
use block::operation::Ask;
use nbd::request::{self, Asked};

/// The missing bytes of a payload from which they are received into its buffer, not through the inbox. A
/// choice: below that a system call costs more than a copy.
const STRAIGHT: usize = 16 << 10;

impl Clients {
    /// Parses received bytes, begins operations, and receives more.
    pub(super) fn read_on(&mut self, volumes: &mut Volumes, disk: &mut Disk, place: usize) {
        loop {
            let connection = &mut self.connections[place];
            if connection.is_ending {
                return;
            }
            let progress = match &mut connection.reading {
                Reading::Header => self.read_header(volumes, disk, place),
                Reading::Payload { .. } => self.read_payload(volumes, disk, place),
                Reading::Skip(left) => {
                    let taken = connection.inbox.take(*left);
                    *left -= taken;
                    match *left {
                        0 => {
                            connection.reading = Reading::Header;
                            ReadProgress::Continue
                        }
                        _ => ReadProgress::Receive,
                    }
                }
                Reading::Ready { .. } => self.begin_ready(volumes, disk, place),
            };
            let progress = match progress {
                ReadProgress::Receive => self.more(volumes, disk, place),
                progress => progress,
            };
            match progress {
                ReadProgress::Continue => (),
                ReadProgress::Receive | ReadProgress::Wait => return,
            }
        }
    }

    fn read_header(
        &mut self,
        volumes: &mut Volumes,
        disk: &mut Disk,
        place: usize,
    ) -> ReadProgress {
        let connection = &mut self.connections[place];
        let (header, size) = match request::parse(connection.inbox.bytes(), connection.agreed.style)
        {
            Ok(Some(found)) => found,
            Ok(None) => return ReadProgress::Receive,
            Err(hostile) => {
                warn!(%hostile, "a client is cut off");
                self.counts.turned_away += 1;
                self.cut_off(volumes, disk, place);
                return ReadProgress::Wait;
            }
        };
        connection.inbox.consume(size);
        if let Err(failed) = request::check(&header, &connection.agreed, &connection.offer) {
            debug!(?header, %failed, "refused");
            connection.refuse(&header, failed);
            connection.reading = Reading::Skip(header.payload);
            self.note_answered(place);
            return ReadProgress::Continue;
        }
        connection.reading = match header.ask {
            Asked::Of(Ask::Write { .. }) => Reading::Payload {
                header,
                bytes: None,
                have: 0,
            },
            Asked::Of(ask) => Reading::Ready {
                header,
                operation: volumes.classified(connection.operation(ask, &header)),
                bytes: None,
            },
            Asked::BlockStatus { .. } => {
                self.reply_status(volumes, disk, place, &header);
                return ReadProgress::Continue;
            }
            Asked::Disconnect | Asked::Unknown(_) => {
                self.end(volumes, disk, place);
                return ReadProgress::Wait;
            }
        };
        ReadProgress::Continue
    }

    /// Copies the available bytes of a write's payload.
    fn read_payload(
        &mut self,
        volumes: &mut Volumes,
        disk: &mut Disk,
        place: usize,
    ) -> ReadProgress {
        let connection = &mut self.connections[place];
        let Reading::Payload {
            header,
            bytes,
            have,
        } = &mut connection.reading
        else {
            return ReadProgress::Continue;
        };
        let Asked::Of(ask) = header.ask else {
            return ReadProgress::Continue;
        };
        let (header, has_bytes) = (*header, bytes.is_some());
        if !has_bytes {
            let operation = connection.operation(ask, &header);
            if connection.fill_share(&operation, &self.bounds) {
                return ReadProgress::Wait;
            }
            let Some(memory) = self.bytes_of(volumes, disk, place, &operation) else {
                return self.stall(place, Awaited::Memory);
            };
            let connection = &mut self.connections[place];
            if let Reading::Payload { bytes, .. } = &mut connection.reading {
                *bytes = Some(memory);
            }
            return ReadProgress::Continue;
        }
        let Some(Bytes::Own(buffer)) = bytes else {
            return ReadProgress::Continue;
        };
        let taken = connection.inbox.copy(&mut buffer.bytes_mut()[*have..]);
        *have += taken;
        if *have < buffer.length() {
            return ReadProgress::Receive;
        }
        let bytes = bytes.take();
        let operation = volumes.classified(connection.operation(ask, &header));
        connection.reading = Reading::Ready {
            header,
            operation,
            bytes,
        };
        ReadProgress::Continue
    }

    /// Begins the parsed operation, if there is room.
    fn begin_ready(
        &mut self,
        volumes: &mut Volumes,
        disk: &mut Disk,
        place: usize,
    ) -> ReadProgress {
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
        let is_over = bytes.is_none() && connection.fill_share(&operation, &self.bounds);
        let bytes = match bytes {
            None if is_over => None,
            None => self.bytes_of(volumes, disk, place, &operation),
            bytes => bytes,
        };
        let Some(bytes) = bytes else {
            self.connections[place].reading = Reading::Ready {
                header,
                operation,
                bytes: None,
            };
            return match is_over {
                true => ReadProgress::Wait,
                false => self.stall(place, Awaited::Memory),
            };
        };
        // Counted before: an operation may be answered at once.
        self.connections[place].charge_operation(&operation);
        let client = self.connections[place].client(place);
        let source = OperationSource::Connection { client, header };
        match volumes.begin(disk, source, operation, bytes) {
            Ok(()) => {
                self.take_answers(volumes);
                ReadProgress::Continue
            }
            Err(Stalled { bytes, .. }) => {
                let connection = &mut self.connections[place];
                connection.release_operation(&operation);
                let bytes = Some(bytes);
                connection.reading = Reading::Ready {
                    header,
                    operation,
                    bytes,
                };
                self.stall(place, Awaited::Turn)
            }
        }
    }

    /// Receives more bytes, into the buffer of a long payload or into the inbox.
    fn receive(&mut self, disk: &mut Disk, place: usize) {
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
        let ticket = Ticket {
            owner: Owner::Receive,
            key: place as u32,
        };
        let socket = connection.raw();
        // SAFETY: the buffer is the reading's, the inbox and the session are the connection's; they
        // are kept until the receive has ended, and nobody looks at that part of them before.
        unsafe { disk.ring.receive(ticket, socket, memory) };
    }

    /// A receive has completed.
    pub(crate) fn received(
        &mut self,
        volumes: &mut Volumes,
        disk: &mut Disk,
        place: usize,
        result: i32,
    ) {
        let connection = &mut self.connections[place];
        connection.is_receiving = false;
        connection.moved = disk.now;
        let Ok(count @ 1..) = usize::try_from(result) else {
            // The client has gone, or is cut off. What it asked for ends first.
            self.end(volumes, disk, place);
            return;
        };
        if connection.is_ending {
            // It came while the connection was being ended.
            return self.leave_if_done(volumes, disk, place);
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
            true => self.leave_if_done(volumes, disk, place),
            false => self.read_on(volumes, disk, place),
        }
    }

    /// Gets more bytes to parse: from the session now, or from the kernel later.
    pub(super) fn more(
        &mut self,
        volumes: &mut Volumes,
        disk: &mut Disk,
        place: usize,
    ) -> ReadProgress {
        let connection = &mut self.connections[place];
        // What the session has of received bytes is the kernel's while it receives.
        if !connection.is_receiving {
            match connection.open() {
                Ok(Opened::Bytes(_)) => return ReadProgress::Continue,
                Ok(Opened::Nothing) => (),
                Ok(Opened::Closed) => {
                    self.end(volumes, disk, place);
                    return ReadProgress::Wait;
                }
                Err(error) => {
                    warn!(%error, "a client is cut off");
                    self.cut_off(volumes, disk, place);
                    return ReadProgress::Wait;
                }
            }
        }
        self.receive(disk, place);
        ReadProgress::Wait
    }
}
