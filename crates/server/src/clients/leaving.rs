//! The ends of connections: the client disconnects, violates the protocol, or reads no replies.

use std::time;

use rustix::net::{Shutdown, shutdown};
use tracing::{info, warn};

use super::Clients;
use super::connection::Connection;
use crate::disk::Disk;
use crate::volume::Volumes;

/// The time for which a client may read no replies. A choice: the default of Linux's NBD client for a
/// server.
const SEND_PATIENCE: time::Duration = time::Duration::from_secs(30);

/// The same time while other connections wait for memory. A choice: longer than any accidental pause.
const SHORT_PATIENCE: time::Duration = time::Duration::from_secs(10);

/// The period of the check. A choice.
pub(super) const PATROL: time::Duration = time::Duration::from_secs(5);

impl Clients {
    /// Receives nothing more from a client. Its operations end, and its replies are sent.
    pub(crate) fn end(&mut self, volumes: &mut Volumes, disk: &mut Disk, place: usize) {
        self.connections[place].take_no_more();
        self.leave_if_done(volumes, disk, place);
    }

    /// Drops a connection: the client has violated the protocol, or the socket is broken.
    pub(crate) fn cut_off(&mut self, volumes: &mut Volumes, disk: &mut Disk, place: usize) {
        let connection = &mut self.connections[place];
        connection.take_no_more();
        connection.is_broken = true;
        let _ = shutdown(&connection.socket, Shutdown::Both);
        if !connection.outbox.is_sending() {
            let mut free = Vec::new();
            connection.outbox.give_up(&mut free);
            for bytes in free {
                self.take_back(volumes, place, bytes);
            }
        }
        self.leave_if_done(volumes, disk, place);
    }

    pub(super) fn leave_if_done(&mut self, volumes: &mut Volumes, disk: &mut Disk, place: usize) {
        let connection = &mut self.connections[place];
        if !connection.is_ending || connection.held > 0 || connection.is_answered {
            return;
        }
        if connection.is_broken && !connection.outbox.is_sending() {
            let mut free = Vec::new();
            connection.outbox.give_up(&mut free);
            for bytes in free {
                self.take_back(volumes, place, bytes);
            }
        }
        let connection = &mut self.connections[place];
        if !connection.outbox.is_empty() {
            return;
        }
        if !connection.is_broken {
            connection.moved = disk.now;
            let (outbox, mut socket) = connection.outbox(place, &mut disk.ring);
            // If even that fails it is as good as said.
            if outbox.say_end(&mut socket).unwrap_or(false) {
                return;
            }
        }
        if connection.is_receiving {
            // The receive ends when the socket does.
            let _ = shutdown(&connection.socket, Shutdown::Both);
            return;
        }
        if let Some(bytes) = self.connections[place].unread() {
            self.take_back(volumes, place, bytes);
        }
        self.connections.remove(place);
        self.forget(place);
        info!("a client has left");
    }

    /// Drops clients that read no replies, or stop amid a request.
    pub(crate) fn patrol(&mut self, volumes: &mut Volumes, disk: &mut Disk) {
        let (now, scale) = (disk.now, disk.clock.scale());
        if now < self.patrol {
            return;
        }
        self.patrol = now + scale.model(PATROL.min(self.bounds.pause));
        let (patience, short) = (scale.model(SEND_PATIENCE), scale.model(SHORT_PATIENCE));
        let is_short = self.is_short_of_memory();
        let (bounds, pause) = (self.bounds, scale.model(self.bounds.pause));
        let patience_with = |connection: &Connection| {
            let is_waited_for = connection.is_in_the_middle();
            match connection.charged(&bounds) {
                _ if connection.is_in_a_header() => Some(pause),
                1.. if is_short && is_waited_for => Some(short),
                _ => is_waited_for.then_some(patience),
            }
        };
        let slow: Vec<usize> = self
            .connections
            .iter()
            .filter(|(_, connection)| {
                let most = patience_with(connection);
                most.is_some_and(|most| now.since(connection.moved) > most)
            })
            .map(|(place, _)| place)
            .collect();
        for place in slow {
            warn!(
                "a client has stopped in the middle of a request or of its replies and is cut off"
            );
            self.counts.turned_away += 1;
            self.cut_off(volumes, disk, place);
        }
    }
}

impl Connection {
    fn take_no_more(&mut self) {
        self.is_ending = true;
    }
}
