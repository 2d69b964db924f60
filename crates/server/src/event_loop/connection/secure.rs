//! Where received bytes come from: the kernel, or a session of TLS that the kernel's went into.

use std::io;

use tracing::warn;

use super::{Bytes, Connection, Owner, Reading, Step, Ticket};
use crate::event_loop::EventLoop;
use crate::event_loop::outbox::{Outbox, Way};
use crate::ring::Ring;
use crate::tls::Opened;

impl EventLoop {
    /// Gets more to understand: out of the session, or later from the kernel.
    pub(super) fn more(&mut self, place: usize) -> Step {
        let connection = &mut self.connections[place];
        // What the session has of received bytes is the kernel's while it receives.
        if !connection.is_receiving {
            match connection.open() {
                Ok(Opened::Bytes(_)) => return Step::On,
                Ok(Opened::Nothing) => (),
                Ok(Opened::Closed) => {
                    self.end(place);
                    return Step::Wait;
                }
                Err(error) => {
                    warn!(%error, "a client is cut off");
                    self.cut_off(place);
                    return Step::Wait;
                }
            }
        }
        self.receive(place);
        Step::Wait
    }
}

impl Connection {
    /// Opens what was received, if there is a session, to where it belongs.
    fn open(&mut self) -> io::Result<Opened> {
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

    /// What is to be sent, and the way for it.
    pub(super) fn way<'a>(
        &'a mut self,
        place: usize,
        ring: &'a mut Ring,
    ) -> (&'a mut Outbox, Way<'a>) {
        let socket = self.raw();
        let way = Way {
            ticket: Ticket {
                owner: Owner::Send,
                key: place as u32,
            },
            socket,
            ring,
            session: self.session.as_deref_mut(),
        };
        (&mut self.outbox, way)
    }
}
