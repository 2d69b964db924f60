//! A client over NBD that never waits.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use block::operation::Ask;
use block::{Class, Durability};
use nbd::client::Session;
use nbd::negotiation::{Agreed, Sizes};
use nbd::request::Asked;
use nbd::{Context, Style};
use server::clients::{Accepted, Seat};
use server::event_loop::mailbox::{Letter, Mailbox};
use server::volume::Export;

use crate::conversation::{Conversation, End};
use crate::failures::KnownFailures;
use crate::offered::offer;
use crate::plan::Setting;
use crate::run::BLOCK;
use crate::world::Wait;

/// One connection.
pub struct Client {
    number: u64,
    stream: UnixStream,
    conversation: Conversation,
    /// Where received bytes come first.
    chunk: Box<[u8]>,
    /// What the socket has not taken.
    out: Vec<u8>,
    waits: Vec<(u64, Wait)>,
    paused_until: Option<u64>,
    /// Whether it ever let the service wait.
    is_patient: bool,
    /// Whether nothing more will be asked.
    is_leaving: bool,
    /// Whether the service has closed.
    is_closed: bool,
    pub failures: KnownFailures,
    /// Blocks of the volume, as it was told.
    blocks: u64,
}

impl Client {
    /// A client after its handshake.
    pub fn connect(
        number: u64,
        (style, setting): (Style, &Setting),
        (export, blocks): (usize, u64),
        (seat, failed): (Seat, usize),
        mailbox: &Mailbox,
    ) -> Client {
        let (stream, socket) = UnixStream::pair().expect("sockets");
        stream.set_nonblocking(true).expect("a socket");
        let session = Session {
            offer: offer("", blocks * BLOCK, setting.sector),
            agreed: Agreed {
                export,
                style,
                contexts: match style {
                    Style::Simple => Vec::new(),
                    Style::Structured | Style::Extended => vec![(1, Context::Allocation)],
                },
                sizes: match setting.in_sectors {
                    true => Sizes::Asked,
                    false => Sizes::NotAsked,
                },
            },
        };
        let accepted = Accepted {
            number,
            peer: "swarm".to_owned(),
            socket: socket.into(),
            session: None,
            agreed: session.agreed.clone(),
            export,
            offer: session.offer.clone(),
            received: Vec::new(),
            seat,
        };
        let posted = mailbox.post(Letter::Connection(Box::new(accepted)));
        posted.expect("it runs");
        Client {
            number,
            stream,
            conversation: Conversation::new(session, 256, Vec::new()),
            chunk: vec![0; 64 << 10].into_boxed_slice(),
            out: Vec::new(),
            waits: Vec::new(),
            paused_until: None,
            is_patient: false,
            is_leaving: false,
            is_closed: false,
            failures: KnownFailures::since(failed),
            blocks,
        }
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn has_room(&self, depth: usize) -> bool {
        !self.is_leaving && self.conversation.under_way() < depth
    }

    /// Those of some blocks that its volume has.
    pub fn within(&self, (first, count): (u64, u64)) -> Option<(u64, u64)> {
        let left = self.blocks.checked_sub(first)?;
        (left > 0 || count == 0).then_some((first, count.min(left)))
    }

    pub fn submit(&mut self, wait: Wait, ask: Ask, (first, count): (u64, u64), payload: &[u8]) {
        let (offset, length) = (first * BLOCK, count * BLOCK);
        let cookie = self
            .conversation
            .submit(&mut self.out, Asked::Of(ask), offset, length);
        self.out.extend_from_slice(payload);
        self.waits.push((cookie, wait));
    }

    pub fn under_way(&self) -> usize {
        self.waits.len()
    }

    pub fn waits(&mut self) -> impl Iterator<Item = &mut Wait> {
        self.waits.iter_mut().map(|(_, wait)| wait)
    }

    /// It is gone: what waited.
    pub fn into_waits(self) -> impl Iterator<Item = Wait> {
        self.waits.into_iter().map(|(_, wait)| wait)
    }

    /// It takes no replies until then.
    pub fn pause(&mut self, until: u64) {
        self.paused_until = Some(until);
        self.is_patient = true;
    }

    pub fn wake(&mut self) {
        self.paused_until = None;
    }

    pub fn paused_until(&self) -> Option<u64> {
        self.paused_until
    }

    /// Sends and receives what it can. The answer is whether anything moved.
    pub fn transfer(&mut self, now: u64) -> bool {
        if self.paused_until.is_some_and(|until| now < until) {
            return false;
        }
        let mut is_any = self.paused_until.take().is_some();
        is_any |= self.send();
        while !self.is_closed {
            match self.stream.read(&mut self.chunk) {
                Ok(0) => self.is_closed = true,
                Ok(count) => self.conversation.received().extend(&self.chunk[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => self.is_closed = true,
                Err(error) => panic!("{error}"),
            }
            is_any = true;
        }
        is_any
    }

    fn send(&mut self) -> bool {
        let mut sent = 0;
        while sent < self.out.len() {
            match self.stream.write(&self.out[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // The service has closed, which shows in what is received.
                Err(_) => sent = self.out.len(),
            }
        }
        self.out.drain(..sent);
        if self.is_leaving && self.out.is_empty() {
            // A service that has closed already is no error.
            let _ = self.stream.shutdown(Shutdown::Write);
        }
        sent > 0
    }

    /// The next end: what waited for it, and whether the client has let the service wait.
    pub fn next_end(&mut self) -> Option<(Wait, End, bool)> {
        let end = self.conversation.next_end()?;
        let place = self
            .waits
            .iter()
            .position(|&(cookie, _)| cookie == end.cookie);
        let (_, wait) = self.waits.swap_remove(place.expect("it was asked"));
        Some((wait, end, self.is_patient))
    }

    pub fn has_left(&self) -> bool {
        self.is_closed
    }

    /// Says that nothing more will come, in the protocol's way.
    pub fn say_goodbye(&mut self) {
        if !self.is_leaving {
            self.conversation.disconnect(&mut self.out);
        }
        self.is_leaving = true;
    }

    /// Says that nothing more will come, in the socket's way.
    pub fn close_half(&mut self) {
        self.is_leaving = true;
        self.send();
    }

    /// Sends a write of 52 KiB, but not all of its payload, if its volume has so many.
    pub fn send_a_part(&mut self, payload: &[u8]) {
        let durability = Durability::Volatile;
        let write = Asked::Of(Ask::Write { durability });
        if !self.is_leaving && self.blocks >= 416 {
            let mut out = Vec::new();
            self.conversation.submit(&mut out, write, 0, 416 * BLOCK);
            self.out.extend(out);
            self.out.extend_from_slice(payload);
        }
        self.send();
    }
}

/// The volume of so many blocks from a byte of its drive on, as the service has it.
pub fn export(origin: u64, blocks: u64) -> Export {
    Export {
        name: String::new(),
        offset: origin,
        length: blocks * BLOCK,
        class: Class::default(),
    }
}
