//! What is told of a connection.

use block::Instant;

use super::Connection;
use crate::status;

/// What ended well for a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) requests: u64,
    /// Read and written.
    pub(super) bytes: u64,
}

impl Connection {
    pub(in crate::event_loop) fn export(&self) -> usize {
        self.export
    }

    /// No other has it, earlier or later.
    pub(in crate::event_loop) fn number(&self) -> u64 {
        self.number
    }

    /// Since when it is there.
    pub(in crate::event_loop) fn since(&self) -> Instant {
        self.since
    }

    /// What the status says of it, but for its export and what is made of the time.
    pub(in crate::event_loop) fn described(&self) -> status::Connection {
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
}
