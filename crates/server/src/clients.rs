//! The clients of a drive over NBD: connections, fairness between them, and their shares of memory.
//!
//! ```text
//!   listener --Accepted--> [ connection ] --operation--> volumes
//!   socket   --bytes-----> [ inbox      ]
//!            <--replies--- [ outbox     ] <--answer-----
//! ```
//!
//! A connection's next operation waits in the connection while there is no room for it, and nothing
//! more is received from that client. Connections that wait are served in the order in which they came.

use std::collections::VecDeque;

use block::Instant;
use slab::Slab;
use tracing::{info, warn};

use crate::disk::Disk;
use crate::status;
use crate::volume::{Export, Volumes};
use nbd::request::Header;

mod bounds;
mod connection;
mod inbox;
mod leaving;
mod reading;
mod replying;
mod seats;
mod sharing;

pub use bounds::Bounds;
pub use connection::Accepted;
use connection::Connection;
pub use seats::{Seat, Seats};
pub(crate) use sharing::Awaited;

/// All connections of a drive.
pub(crate) struct Clients {
    connections: Slab<Box<Connection>>,
    /// Block status requests that the back end has not answered.
    questions: Slab<(usize, Header)>,
    /// Connections that wait for room, by its kind.
    stalled: [VecDeque<usize>; 2],
    /// The connection that is the next to have common memory.
    first_in_line: Option<usize>,
    /// Bytes that connections hold beyond their own.
    common: usize,
    /// Connections with something to send.
    answered: Vec<usize>,
    /// When clients are looked for next that take none of their replies.
    patrol: Instant,
    bounds: Bounds,
    is_closed: bool,
    /// How often connections and posted operations took turns.
    passes: u64,
    counts: Counts,
}

/// Connections since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those that were accepted.
    pub accepted: u64,
    /// Those that were refused, or closed because they broke the protocol or a limit.
    pub turned_away: u64,
}

impl Clients {
    /// No connections.
    pub(crate) fn new(bounds: Bounds) -> Self {
        Clients {
            connections: Slab::new(),
            questions: Slab::new(),
            stalled: [VecDeque::new(), VecDeque::new()],
            first_in_line: None,
            common: 0,
            answered: Vec::new(),
            patrol: Instant::ZERO,
            bounds,
            is_closed: false,
            passes: 0,
            counts: Counts::default(),
        }
    }

    /// Takes a connection, and begins to receive from it.
    pub(crate) fn accept(&mut self, volumes: &mut Volumes, disk: &mut Disk, accepted: Accepted) {
        if self.connections.len() >= self.bounds.connections || self.is_closed {
            warn!(
                most = self.bounds.connections,
                "a connection is refused: too many, or going down"
            );
            self.counts.turned_away += 1;
            return;
        }
        let export = &volumes.operations.exports.all()[accepted.export];
        if accepted.offer.size > export.length {
            warn!("a connection is refused: its volume has become smaller since it was told of it");
            return;
        }
        info!(export = export.name, style = ?accepted.agreed.style, "a client");
        self.counts.accepted += 1;
        let connection = Box::new(Connection::new(accepted, disk.now));
        let place = self.connections.insert(connection);
        self.read_on(volumes, disk, place);
    }

    /// Takes no more connections, and ends those that are there when their operations have ended.
    pub(crate) fn close(&mut self, volumes: &mut Volumes, disk: &mut Disk) {
        self.is_closed = true;
        for place in self.places() {
            self.end(volumes, disk, place);
        }
    }

    /// Cuts all connections.
    pub(crate) fn cut_all(&mut self, volumes: &mut Volumes, disk: &mut Disk) {
        for place in self.places() {
            self.cut_off(volumes, disk, place);
        }
    }

    fn places(&self) -> Vec<usize> {
        self.connections.iter().map(|(place, _)| place).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.connections.len()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// How many connections use an export that is so.
    pub(crate) fn using(&self, volumes: &Volumes, is_so: impl Fn(&Export) -> bool) -> usize {
        let exports = volumes.operations.exports.all();
        let connections = self.connections.iter();
        connections
            .filter(|(_, connection)| is_so(&exports[connection.export]))
            .count()
    }

    /// When [`Clients::patrol`] is due.
    pub(crate) fn next_wakeup(&self) -> Option<Instant> {
        (!self.connections.is_empty()).then_some(self.patrol)
    }

    /// The connections, for the status.
    pub(crate) fn listed(&self, volumes: &Volumes, disk: &Disk) -> Vec<status::Connection> {
        let each = self.connections.iter();
        each.map(|(_, connection)| {
            let export = &volumes.operations.exports.all()[connection.export];
            let age = disk.now.since(connection.since);
            status::Connection {
                export: export.name.clone(),
                class: export.class.into(),
                connected_s: disk.clock.scale().real(age).as_secs_f64(),
                ..connection.described()
            }
        })
        .collect()
    }
}
