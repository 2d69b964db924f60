//! The shares of connections in the loop's memory.
//!
//! ```text
//!   memory   | one's own | another's own | ...            | common, first come, first served |
//! ```
//!
//! Half of the memory is divided among the largest number of connections: each has its part reserved. What
//! a connection holds beyond its part is common memory. Clients that read no replies can use up the common
//! memory until they are dropped, but no other client's part.

use super::Clients;
use super::bounds::Bounds;
use super::connection::{Connection, ReadProgress, Reading};
use crate::arena::Bytes;
use crate::arena::PAGE;
use crate::disk::Disk;
use crate::volume::Volumes;
use crate::volume::exports::Exports;
use crate::volume::operation::Operation;

/// The reason for which a connection's next operation waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// Room in the engine, or blocks that a partial write is changing.
    Turn = 0,
    /// Memory.
    Memory = 1,
}

impl Clients {
    /// Memory for an operation of a connection, or `None` if the connection has to wait.
    pub(super) fn bytes_of(
        &mut self,
        volumes: &mut Volumes,
        disk: &mut Disk,
        place: usize,
        operation: &Operation,
    ) -> Option<Bytes> {
        let is_mapped = volumes.is_mapped(disk, operation);
        if !is_mapped && !self.may_take(&volumes.operations.exports, place, operation) {
            return None;
        }
        let bytes = volumes.bytes_for(disk, operation)?;
        self.first_in_line = None;
        self.charge(place, |memory| memory + bytes.capacity());
        Some(bytes)
    }

    /// Whether the operation fits the reserved part, or common memory is left and no connection waits for
    /// it.
    fn may_take(&self, exports: &Exports, place: usize, operation: &Operation) -> bool {
        let connection = &self.connections[place];
        let (needed, _) = exports.memory_for(operation);
        let (own, common) = (self.bounds.own(), self.bounds.common());
        let whole = needed.next_multiple_of(PAGE);
        let beyond = (connection.memory + whole).saturating_sub(own);
        if needed == 0 || beyond == 0 {
            return true;
        }
        let of_others = self.common - connection.charged(&self.bounds);
        let is_next = self.waits(Awaited::Memory).is_empty() || self.first_in_line == Some(place);
        is_next && (of_others == 0 || of_others + beyond <= common)
    }

    /// Frees memory of a connection.
    pub(super) fn take_back(&mut self, volumes: &mut Volumes, place: usize, bytes: Bytes) {
        self.charge(place, |memory| memory - bytes.capacity());
        volumes.operations.free_bytes(bytes);
    }

    fn charge(&mut self, place: usize, change: impl FnOnce(usize) -> usize) {
        let connection = &mut self.connections[place];
        let before = connection.charged(&self.bounds);
        connection.memory = change(connection.memory);
        self.common = self.common - before + connection.charged(&self.bounds);
    }

    /// Appends a connection to those that wait for the same.
    pub(super) fn stall(&mut self, place: usize, what: Awaited) -> ReadProgress {
        let connection = &mut self.connections[place];
        if !connection.is_stalled {
            connection.is_stalled = true;
            self.stalled[what as usize].push_back(place);
        }
        ReadProgress::Wait
    }

    fn waits(&self, what: Awaited) -> &std::collections::VecDeque<usize> {
        &self.stalled[what as usize]
    }

    /// Whether connections wait for memory.
    pub(super) fn is_short_of_memory(&self) -> bool {
        !self.waits(Awaited::Memory).is_empty()
    }

    /// Removes a connection from those that wait.
    pub(super) fn forget(&mut self, place: usize) {
        for queue in &mut self.stalled {
            queue.retain(|&other| other != place);
        }
    }

    /// Begins posted operations, and those of connections that wait for their turn. The answer is whether
    /// any began.
    ///
    /// Writers of parts of one block wait for each other, whether they are connections or other front ends.
    /// Connections come first in every other pass, in the order of Thue and Morse. That order has no period,
    /// so no rhythm of one client keeps out another.
    pub(crate) fn take_turns(&mut self, volumes: &mut Volumes, disk: &mut Disk) -> bool {
        let mut is_any = false;
        self.passes += 1;
        if !self.passes.count_ones().is_multiple_of(2) {
            self.take_answers(volumes);
            is_any |= self.resume(volumes, disk, Awaited::Turn);
        }
        is_any |= volumes.begin_posted(disk);
        self.take_answers(volumes);
        is_any | self.resume(volumes, disk, Awaited::Turn)
    }

    /// Continues connections that wait for a kind of room, in their order, until there is none. The answer
    /// is whether any continued.
    pub(crate) fn resume(&mut self, volumes: &mut Volumes, disk: &mut Disk, what: Awaited) -> bool {
        let mut is_any = false;
        for _ in 0..self.waits(what).len() {
            let Some(place) = self.stalled[what as usize].pop_front() else {
                break;
            };
            let Some(connection) = self.connections.get_mut(place) else {
                continue;
            };
            connection.is_stalled = false;
            let before = (connection.held, connection.memory);
            self.first_in_line = (what == Awaited::Memory).then_some(place);
            self.read_on(volumes, disk, place);
            self.first_in_line = None;
            let connection = self.connections.get(place);
            let is_still = connection.is_some_and(|c| {
                c.is_stalled && (c.held, c.memory) == before && self.waits(what).contains(&place)
            });
            if is_still {
                // It is still the first: who is behind it must not take what it waits for.
                self.stalled[what as usize].pop_back();
                self.stalled[what as usize].push_front(place);
                break;
            }
            is_any = true;
        }
        is_any
    }
}

impl Connection {
    /// Bytes of common memory that the connection holds.
    pub(super) fn charged(&self, bounds: &Bounds) -> usize {
        self.memory.saturating_sub(bounds.own())
    }

    /// Notes whether the connection holds so much that an operation has to wait for replies to be sent. The
    /// answer is whether it does.
    pub(super) fn fill_share(&mut self, operation: &Operation, bounds: &Bounds) -> bool {
        let bytes = self.owed + self.outbox.waiting();
        let is_large = bytes > 0 && bytes + operation.bytes() > bounds.share();
        self.is_full = is_large || self.held >= bounds.requests;
        self.is_full
    }

    /// Whether the connection is amid a payload or replies, which keep memory.
    pub(super) fn is_in_the_middle(&self) -> bool {
        let is_in_payload = matches!(self.reading, Reading::Payload { bytes: Some(_), .. });
        self.outbox.is_sending() || is_in_payload
    }

    /// Whether the next bytes of the client complete a header, or a payload that nobody wants. Neither keeps
    /// memory of the loop, and both keep a seat.
    pub(super) fn is_in_a_header(&self) -> bool {
        let is_begun = match self.reading {
            Reading::Header => !self.inbox.bytes().is_empty(),
            Reading::Skip(left) => left > 0,
            Reading::Payload { .. } | Reading::Ready { .. } => false,
        };
        is_begun && self.is_receiving
    }
}
