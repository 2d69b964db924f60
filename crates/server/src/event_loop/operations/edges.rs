//! Operations that begin or end within a block: drives have no smaller pieces.
//!
//! ```text
//!   blocks     |  first  |         |         |  last   |
//!   operation       |-----------------------------|
//!   edges      |^^^^|                              ^^^^|   these bytes have to stay
//! ```
//!
//! A read is one of all these blocks. Trims leave the edges alone. Writes and zeroes read the edges,
//! change them, and write them: meanwhile nothing else that changes these blocks begins, and what
//! had begun before is in front of the read, or has ended.
//!
//! ```text
//!   write   buffer  [ blocks of the write | first, as it was | last, as it was ]
//!           read first -> read last -> write all blocks at once
//!   zeroes  buffer  [ first | last ]
//!           read first -> write it -> read last -> write it -> zeroes between them
//! ```

use std::ops::Range;

use block::{Direction, Durability, Extent, Lba, Sectors};

use super::{Bytes, Operation, Pending};
use crate::arena::{Buffer, Memory};
use crate::event_loop::EventLoop;
use crate::operation::Ask;

/// The edges of an operation that changes them.
pub(super) struct Edges {
    blocks: [Option<Lba>; 2],
    step: Step,
}

/// What is under way of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// What began before and is not ordered by the engine.
    Waiting,
    /// A read of an edge.
    Reading(usize),
    /// A write of an edge of zeroes.
    Writing(usize),
    /// All blocks of a write; the blocks between the edges of zeroes.
    Rest,
}

impl Operation {
    pub(super) fn changes(&self) -> bool {
        match self.ask {
            Ask::Write { .. } | Ask::Zero { .. } | Ask::Trim { .. } => self.length > 0,
            Ask::Read | Ask::Flush | Ask::Cache => false,
        }
    }

    fn is_zeroes(&self) -> bool {
        matches!(self.ask, Ask::Zero { .. })
    }
}

impl EventLoop {
    fn block(&self) -> u64 {
        u64::from(self.shape.block_bytes)
    }

    /// All blocks of which an operation has a byte.
    pub(in crate::event_loop) fn around(&self, operation: &Operation) -> Extent {
        let (span, block) = (self.span(operation), self.block());
        let first = span.offset / block;
        let end = (span.offset + span.length).div_ceil(block);
        Extent::new(Lba(first), Sectors(end - first)).expect("blocks of the drive, at least one")
    }

    /// The blocks of which it has all bytes.
    pub(in crate::event_loop) fn within(&self, operation: &Operation) -> Option<Extent> {
        let (span, block) = (self.span(operation), self.block());
        let first = span.offset.div_ceil(block);
        let end = (span.offset + span.length) / block;
        Extent::new(Lba(first), Sectors(end.saturating_sub(first))).ok()
    }

    /// The blocks that it changes in part.
    fn edges_of(&self, operation: &Operation) -> [Option<Lba>; 2] {
        if !operation.changes() || matches!(operation.ask, Ask::Trim { .. }) {
            return [None; 2];
        }
        let (span, block) = (self.span(operation), self.block());
        let end = span.offset + span.length;
        let is_part = |at: u64| !at.is_multiple_of(block);
        let first = is_part(span.offset).then_some(Lba(span.offset / block));
        let last = is_part(end).then_some(Lba(end / block));
        [first, last.filter(|&last| first != Some(last))]
    }

    /// How many bytes of memory an operation needs, and how many of them its client fills or gets.
    pub(in crate::event_loop) fn memory_for(&self, operation: &Operation) -> (usize, usize) {
        let around = || (self.around(operation).length().0 * self.block()) as usize;
        let edges = self.edges_of(operation).iter().flatten().count() * self.block() as usize;
        let length = operation.length as usize;
        match operation.ask {
            _ if operation.length == 0 => (0, 0),
            Ask::Read | Ask::Cache => (around(), around()),
            Ask::Write { .. } => (around() + edges, length),
            Ask::Zero { .. } => (edges, edges),
            Ask::Trim { .. } | Ask::Flush => (0, 0),
        }
    }

    /// Whether it changes blocks whose edges are being changed.
    pub(super) fn has_to_wait(&self, operation: &Operation) -> bool {
        if self.edges.is_empty() || !operation.changes() {
            return false;
        }
        let around = self.around(operation);
        self.edges.iter().any(|(_, edge)| edge.overlaps(around))
    }

    /// Holds the edges of an operation that has just begun, if it has some.
    pub(super) fn hold_edges(&mut self, key: usize) {
        let blocks = self.edges_of(&self.pending[key].operation);
        if blocks == [None; 2] {
            return;
        }
        for block in blocks.into_iter().flatten() {
            self.edges.push((key, one(block)));
        }
        let step = Step::Waiting;
        self.pending[key].edges = Some(Edges { blocks, step });
    }

    /// They are free again.
    pub(super) fn release_edges(&mut self, key: usize) {
        self.edges.retain(|&(holder, _)| holder != key);
    }

    /// Begins to change the edges that are held. If there is nothing to wait for, there is room for a
    /// request, as was asked before.
    pub(super) fn begin_edges(&mut self, key: usize) {
        let Pending {
            operation, bytes, ..
        } = &mut self.pending[key];
        if let (Ask::Write { .. }, Bytes::Own(buffer)) = (operation.ask, bytes) {
            let (offset, length) = (operation.offset, operation.length as usize);
            let lead = (offset % u64::from(self.shape.block_bytes)) as usize;
            buffer.show(buffer.capacity());
            buffer.bytes_mut().copy_within(..length, lead);
        }
        if self.is_behind_others(key) {
            self.waiting.push(key);
        } else {
            self.read_edge(key, 0);
        }
    }

    /// Whether something that began before, and is not all with the engine, is on the edges. What came
    /// later waits for them.
    fn is_behind_others(&self, key: usize) -> bool {
        let own = self.edges.iter().filter(|&&(holder, _)| holder == key);
        let own: Vec<Extent> = own.map(|&(_, edge)| edge).collect();
        self.is_changed_apart(&own, Some(key))
    }

    /// Whether something, but for one, changes some of these blocks in a way of which the engine does not
    /// know all: zeroes, trims, what changes edges itself, what a stream has not taken and waits for room.
    /// What the engine is given now may get there before it.
    pub(in crate::event_loop) fn is_changed_apart(
        &self,
        blocks: &[Extent],
        but: Option<usize>,
    ) -> bool {
        self.pending.iter().any(|(other, pending)| {
            let operation = &pending.operation;
            let is_unordered = matches!(operation.ask, Ask::Zero { .. } | Ask::Trim { .. });
            let is_unordered =
                is_unordered || pending.edges.is_some() || self.streams.is_left_to_others(other);
            but != Some(other) && is_unordered && operation.changes() && {
                let around = self.around(operation);
                blocks.iter().any(|block| block.overlaps(around))
            }
        })
    }

    /// Goes on with those that wait for others, if these have ended; whether any did.
    pub(in crate::event_loop) fn begin_waiting(&mut self) -> bool {
        let mut is_any = false;
        let mut next = 0;
        while let Some(&key) = self.waiting.get(next) {
            let class = self.exports[self.pending[key].operation.export].class;
            if self.is_behind_others(key) || !self.engine.has_room(class) {
                next += 1;
                continue;
            }
            self.waiting.remove(next);
            self.read_edge(key, 0);
            is_any = true;
        }
        is_any
    }

    /// A request of an operation with edges has ended.
    pub(super) fn edges_ended(&mut self, key: usize) {
        let pending = &self.pending[key];
        let (is_zeroes, step) = (pending.operation.is_zeroes(), pending.step());
        if pending.result.is_err() {
            return self.answer(key);
        }
        match step {
            Step::Reading(index) => {
                self.change_edge(key, index);
                match is_zeroes {
                    true => self.ask_for_edge(key, index, Step::Writing(index)),
                    false => self.read_edge(key, index + 1),
                }
            }
            Step::Writing(index) => self.read_edge(key, index + 1),
            Step::Waiting => unreachable!("nothing of it is under way"),
            Step::Rest if self.write_zeroes(key) => (),
            Step::Rest => self.answer(key),
        }
    }

    /// Reads an edge, or what comes after the last of them.
    fn read_edge(&mut self, key: usize, index: usize) {
        let blocks = self.pending[key].edges.as_ref().map(|edges| edges.blocks);
        let blocks = blocks.unwrap_or_default();
        match (index..blocks.len()).find(|&index| blocks[index].is_some()) {
            Some(index) => self.ask_for_edge(key, index, Step::Reading(index)),
            None => self.finish_edges(key),
        }
    }

    fn ask_for_edge(&mut self, key: usize, index: usize, step: Step) {
        let pending = &mut self.pending[key];
        let class = self.exports[pending.operation.export].class;
        let Some(edges) = &mut pending.edges else {
            return;
        };
        edges.step = step;
        let Some(block) = edges.blocks[index] else {
            return;
        };
        let (direction, durability) = match (step, pending.operation.ask) {
            (Step::Writing(_), Ask::Zero { durability, .. }) => (Direction::Write, durability),
            _ => (Direction::Read, Durability::Volatile),
        };
        self.submit(key, one(block), direction, class, durability);
    }

    /// The edges are as they shall be, in memory or on the drive: now the rest.
    fn finish_edges(&mut self, key: usize) {
        let pending = &mut self.pending[key];
        let operation = pending.operation;
        if let Some(edges) = &mut pending.edges {
            edges.step = Step::Rest;
        }
        match (operation.ask, self.within(&operation)) {
            (Ask::Write { durability }, _) => {
                let class = self.class_of(&operation);
                let around = self.around(&operation);
                self.submit(key, around, Direction::Write, class, durability);
            }
            (Ask::Zero { space, pace, .. }, Some(within)) => self.zero(key, within, space, pace),
            _ => self.answer(key),
        }
    }

    /// An edge was read. The bytes of it that stay go into the write, or zeroes into the others.
    fn change_edge(&mut self, key: usize, index: usize) {
        let block = self.block() as usize;
        let around = self.around(&self.pending[key].operation);
        let lead = (self.span(&self.pending[key].operation).offset % self.block()) as usize;
        let place = self.edge_in_buffer(key, index);
        let pending = &mut self.pending[key];
        let edge = pending.edges.as_ref().and_then(|edges| edges.blocks[index]);
        let (Some(edge), Bytes::Own(buffer)) = (edge, &mut pending.bytes) else {
            return;
        };
        // In bytes of the blocks around: where the edge is, and what is changed of it.
        let start = (edge.0 - around.start().0) as usize * block;
        let changed =
            lead.max(start)..(lead + pending.operation.length as usize).min(start + block);
        match pending.operation.is_zeroes() {
            true => {
                let in_edge = changed.start - start..changed.end - start;
                buffer.bytes_mut()[place..place + block][in_edge].fill(0);
            }
            false => keep(buffer, place, start..start + block, changed),
        }
    }

    /// Where in an operation's buffer an edge is.
    fn edge_in_buffer(&self, key: usize, index: usize) -> usize {
        let pending = &self.pending[key];
        let block = self.block() as usize;
        let before = match pending.operation.is_zeroes() {
            true => 0,
            false => self.around(&pending.operation).length().0 as usize * block,
        };
        let edges = pending.edges.as_ref();
        let earlier = edges.map_or(0, |edges| edges.blocks[..index].iter().flatten().count());
        before + earlier * block
    }

    /// The memory of the request that an operation has at the engine; none for zeroes.
    pub(super) fn memory_of_request(&self, key: usize) -> Option<Memory> {
        let pending = &self.pending[key];
        let memory = pending.bytes.memory()?;
        match pending.edges.as_ref().map(|edges| edges.step) {
            Some(Step::Reading(index) | Step::Writing(index)) => {
                let place = self.edge_in_buffer(key, index);
                Some(memory.part(place, memory.length - place))
            }
            Some(Step::Rest) if pending.operation.is_zeroes() => None,
            Some(Step::Rest | Step::Waiting) | None => Some(memory),
        }
    }

    /// Of what a read has brought, what was asked for.
    pub(super) fn asked_for(&self, operation: &Operation, bytes: Bytes) -> Bytes {
        let lead = || (operation.offset % self.block()) as usize;
        let length = operation.length as usize;
        match bytes {
            Bytes::Own(mut buffer) if buffer.length() != length => {
                let lead = lead();
                buffer.bytes_mut().copy_within(lead..lead + length, 0);
                buffer.show(length);
                Bytes::Own(buffer)
            }
            Bytes::Mapped(memory) if memory.length != length => {
                Bytes::Mapped(memory.part(lead(), length))
            }
            bytes => bytes,
        }
    }
}

impl Pending {
    fn step(&self) -> Step {
        self.edges.as_ref().map_or(Step::Rest, |edges| edges.step)
    }
}

/// Copies the bytes of `edge` that are not `changed` from `place` of the buffer.
fn keep(buffer: &mut Buffer, place: usize, edge: Range<usize>, changed: Range<usize>) {
    let bytes = buffer.bytes_mut();
    let before = place..place + (changed.start - edge.start);
    bytes.copy_within(before, edge.start);
    let after = place + (changed.end - edge.start)..place + edge.len();
    bytes.copy_within(after, changed.end);
}

fn one(block: Lba) -> Extent {
    Extent::new(block, Sectors(1)).expect("one block")
}
