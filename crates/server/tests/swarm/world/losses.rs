//! What is lost with a connection, with the power, or with the process.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use server::clients::Seats;
use server::event_loop::mailbox::Mailbox;

use super::ending::Phase;
use super::{Tell, Told, Wait, World, tell};
use crate::client::Client;
use crate::films::Films;
use crate::model::contents;
use crate::moments::Moments;
use crate::plan::Leaving;
use crate::reload::Reloads;
use crate::status::{Seen, Served};
use crate::streams::Streams;

/// A client that is gone without its answers. The service may still work for it.
pub(super) struct Departed {
    number: u64,
    waits: Vec<Wait>,
}

/// How long after a look at the connections the next one is, in nanoseconds. A choice.
const LOOK_NS: u64 = 1_000_000;

impl World {
    /// The service has stopped, well or not. Another one begins with this mailbox.
    pub fn begin_after_stop(&mut self, mailbox: Mailbox, is_well: bool) {
        self.leave_all();
        self.history
            .stop(is_well.then_some(self.counts.failed as usize));
        self.counts.stops += 1;
        self.begin(mailbox);
    }

    /// The process was killed, and another one begins with this mailbox.
    pub fn begin_after_kill(&mut self, mailbox: Mailbox) {
        self.leave_all();
        self.history.kill(self.setting.has_pages());
        self.counts.kills += 1;
        self.begin(mailbox);
    }

    /// No client has a connection any more, and nobody will answer what was asked.
    fn leave_all(&mut self) {
        self.see_failures(0);
        // What had been told and sent arrives.
        self.listen(0);
        for who in 0..self.clients.len() {
            self.clients[who].wake();
            while self.move_client(who, 0) {}
        }
        self.told = Tell::default();
        let clients = std::mem::take(&mut self.clients);
        let of_clients = clients.into_iter().flat_map(Client::into_waits);
        let departed = std::mem::take(&mut self.departed);
        let of_departed = departed.into_iter().flat_map(|departed| departed.waits);
        let posted = std::mem::take(&mut self.posted).into_values();
        let waits: Vec<Wait> = of_clients.chain(of_departed).chain(posted).collect();
        for wait in &waits {
            self.unknown(wait);
        }
    }

    fn begin(&mut self, mailbox: Mailbox) {
        self.scans.clear();
        self.seen = Seen::default();
        self.served = Served::nothing();
        self.streams = Streams::new(self.setting.pace, self.seen.clone());
        self.films = Films::new(self.seen.clone());
        self.failures_before = self.failures.load(Ordering::Relaxed);
        self.moments = Moments::default();
        self.reloads = Reloads::begin(self.reloads.blocks());
        self.phase = Phase::Running;
        self.mailbox = mailbox;
        self.seats = Seats::default();
        self.is_killed = false;
        self.is_stopped = false;
    }

    /// Cuts the power of the drive.
    pub(super) fn cut_power(&self) {
        let told = Arc::clone(&self.told);
        let posted = self.mailbox.call(move |event_loop| {
            event_loop.power_cut().expect("an emulated drive");
            tell(&told, Told::Cut);
        });
        posted.expect("it runs");
    }

    /// The power was cut, and all connections with it. Replies that had been sent count as before.
    pub(super) fn cut(&mut self, now: u64) {
        for who in 0..self.clients.len() {
            self.clients[who].wake();
            while self.move_client(who, now) {}
        }
        self.history.cut();
        self.counts.cuts += 1;
        for client in std::mem::take(&mut self.clients) {
            self.depart(client);
        }
    }

    /// A client leaves, in one of several ways.
    pub(super) fn leave(&mut self, who: usize, how: Leaving) {
        match how {
            Leaving::Politely => self.clients[who].say_goodbye(),
            Leaving::ByHalf => self.clients[who].close_half(),
            Leaving::Abruptly | Leaving::WithinPayload => {
                let mut client = self.clients.remove(who);
                if matches!(how, Leaving::WithinPayload) {
                    let stamp = self.history.stamp();
                    // Nothing of a write whose payload never comes may be done.
                    client.send_a_part(&contents(0, 416, stamp)[..30_000]);
                }
                self.depart(client);
            }
        }
    }

    /// A client is gone.
    pub(super) fn depart(&mut self, client: Client) {
        self.served.are_all = false;
        let number = client.number();
        let waits = client.into_waits().collect();
        self.departed.push(Departed { number, waits });
    }

    /// The service has these connections: nothing is done any more for others.
    pub(super) fn see(&mut self, present: &[u64]) {
        let is_gone = |departed: &mut Departed| !present.contains(&departed.number);
        let gone: Vec<Departed> = self.departed.extract_if(.., is_gone).collect();
        for wait in gone.iter().flat_map(|departed| &departed.waits) {
            self.unknown(wait);
        }
    }

    /// Whether the service is to be asked for its connections.
    pub(super) fn may_look(&self) -> bool {
        !self.departed.is_empty() && !self.is_stopped
    }

    /// Asks for the connections that there are.
    pub(super) fn look(&mut self, now: u64) {
        self.look = now + LOOK_NS;
        let told = Arc::clone(&self.told);
        let posted = self.mailbox.call(move |event_loop| {
            let present = event_loop
                .clients()
                .iter()
                .map(|client| client.id)
                .collect();
            tell(&told, Told::Present(present));
        });
        posted.expect("it runs");
    }

    pub(super) fn unknown(&mut self, wait: &Wait) {
        self.served.are_all = false;
        if let Some(change) = wait.change {
            self.history.unknown(change);
        }
    }
}
