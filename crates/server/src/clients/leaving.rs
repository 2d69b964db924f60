//! The ends of connections: the client leaves, breaks the protocol, or takes none of its replies.

use std::time;

use rustix::net::{Shutdown, shutdown};
use tracing::{info, warn};

use super::Clients;
use super::connection::Connection;
use crate::disk::Disk;
use crate::volume::Volumes;

/// For how long a client may take nothing of its replies. A choice: what Linux's NBD client gives a
/// server by default.
const SEND_PATIENCE: time::Duration = time::Duration::from_secs(30);

/// The same, while others wait for memory that it holds. A choice: a pause that is no accident.
const SHORT_PATIENCE: time::Duration = time::Duration::from_secs(10);

/// How often clients are looked at. A choice.
pub(super) const PATROL: time::Duration = time::Duration::from_secs(5);

impl Clients {
    /// Nothing more is read from the client; what it asked for ends, and its replies leave.
    pub(crate) fn end(&mut self, volumes: &mut Volumes, disk: &mut Disk, place: usize) {
        self.connections[place].take_no_more();
        self.leave_if_done(volumes, disk, place);
    }

    /// The client has broken the protocol, or the way to it is broken.
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

    /// Cuts those off that take none of their replies, or stop in the middle of a payload.
    pub(crate) fn patrol(&mut self, volumes: &mut Volumes, disk: &mut Disk) {
        let (now, scale) = (disk.now, disk.clock.scale());
        if now < self.patrol {
            return;
        }
        self.patrol = now + scale.model(PATROL);
        let (patience, short) = (scale.model(SEND_PATIENCE), scale.model(SHORT_PATIENCE));
        let is_short = self.is_short_of_memory();
        let bounds = self.bounds;
        let patience_with = |connection: &Connection| match connection.charged(&bounds) {
            1.. if is_short => short,
            _ => patience,
        };
        let slow: Vec<usize> = self
            .connections
            .iter()
            .filter(|(_, connection)| {
                let is_waited_for = connection.is_in_the_middle();
                is_waited_for && now.since(connection.moved) > patience_with(connection)
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
