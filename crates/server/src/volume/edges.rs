//! Partial writes: operations that begin or end within a block, the drive's smallest unit.
//!
//! ```text
//!   blocks     |  first  |         |         |  last   |
//!   operation       |-----------------------------|
//!   edges      |^^^^|                              ^^^^|   these bytes have to stay
//! ```
//!
//! A read transfers all these blocks. Trims leave the edges alone. Writes and zeroes read, change and write
//! the edges. Meanwhile no other change of these blocks begins. Earlier changes have ended, or the engine
//! orders them before the read.
//!
//! ```text
//!   write   buffer  [ blocks of the write | first, as it was | last, as it was ]
//!           read first -> read last -> write all blocks at once
//!   zeroes  buffer  [ first | last ]
//!           read first -> write it -> read last -> write it -> zeroes between them
//! ```

use std::ops::Range;

use block::{Direction, Durability, Extent};

use super::exports::Exports;
use super::operation::{Edges, NextStep, Operation, PendingOperation, Stage};
use super::operations::Operations;
use crate::arena::Bytes;
use crate::arena::{Buffer, Memory};
use crate::disk::Disk;
use block::operation::Ask;

/// The partial writes of a drive: the blocks that pending operations change in part.
#[derive(Default)]
pub(super) struct PartialWrites {
    /// Each such block, and the key of its operation.
    held: Vec<(usize, Extent)>,
    /// Operations that wait for earlier operations on their blocks.
    waiting: Vec<usize>,
}

impl PartialWrites {
    /// Whether an operation changes blocks whose edges are being changed.
    pub(super) fn holds_of(&self, exports: &Exports, operation: &Operation) -> bool {
        if self.held.is_empty() || !operation.is_change() {
            return false;
        }
        let around = exports.around(operation);
        self.held.iter().any(|(_, edge)| edge.overlaps(around))
    }

    /// Holds the edges of an operation that has just begun, if it has some.
    pub(super) fn hold(&mut self, operations: &mut Operations, key: usize) {
        let blocks = operations.exports.edges(&operations[key].operation);
        if blocks == [None; 2] {
            return;
        }
        for block in blocks.into_iter().flatten() {
            self.held.push((key, Extent::block(block)));
        }
        let stage = Stage::Waiting;
        operations[key].edges = Some(Edges { blocks, stage });
    }

    /// Releases the edges of an operation.
    pub(super) fn release(&mut self, key: usize) {
        self.held.retain(|&(holder, _)| holder != key);
    }

    /// Begins to change the held edges. The engine has room for a request.
    pub(super) fn begin(&mut self, operations: &mut Operations, key: usize) -> NextStep {
        let block = operations.exports.block();
        let PendingOperation {
            operation, bytes, ..
        } = &mut operations[key];
        if let (Ask::Write { .. }, Bytes::Own(buffer)) = (operation.ask, bytes) {
            let (offset, length) = (operation.offset, operation.length as usize);
            let lead = (offset % block) as usize;
            buffer.show(buffer.capacity());
            buffer.bytes_mut().copy_within(..length, lead);
        }
        if self.is_behind_others(operations, key) {
            self.waiting.push(key);
            return NextStep::Wait;
        }
        read_edge(operations, key, 0)
    }

    /// Whether an earlier operation on the edges is not entirely with the engine. Later operations wait for
    /// the edges.
    fn is_behind_others(&self, operations: &Operations, key: usize) -> bool {
        let own = self.held.iter();
        let own = own.filter(|&&(holder, _)| holder == key);
        let own: Vec<Extent> = own.map(|&(_, edge)| edge).collect();
        operations.is_changed_apart(&own, Some(key))
    }

    /// The next waiting operation, from index `next` on, that can begin now.
    pub(super) fn next_waiting(
        &mut self,
        disk: &Disk,
        operations: &mut Operations,
        next: &mut usize,
    ) -> Option<(usize, NextStep)> {
        while let Some(&key) = self.waiting.get(*next) {
            let operation = &operations[key].operation;
            let has_room = disk.engine.has_room(operations.exports.class(operation));
            if has_room && !self.is_behind_others(operations, key) {
                self.waiting.remove(*next);
                return Some((key, read_edge(operations, key, 0)));
            }
            *next += 1;
        }
        None
    }
}

/// The next step of an operation with edges, one of whose requests has ended.
pub(super) fn edges_ended(operations: &mut Operations, key: usize) -> NextStep {
    let (pending, exports) = operations.pending_and_exports(key);
    if pending.result.is_err() {
        return NextStep::Answer;
    }
    match pending.stage() {
        Stage::Reading(index) => {
            pending.change_edge(exports, index);
            match pending.operation.is_zeroes() {
                true => pending.transfer_edge(index, Stage::Writing(index)),
                false => read_edge(operations, key, index + 1),
            }
        }
        Stage::Writing(index) => read_edge(operations, key, index + 1),
        Stage::Waiting => unreachable!("nothing of it is under way"),
        Stage::Rest => NextStep::WriteZeroes,
    }
}

/// Reads the edge from `index` on. After the last edge the operation changes all its blocks.
fn read_edge(operations: &mut Operations, key: usize, index: usize) -> NextStep {
    let (pending, exports) = operations.pending_and_exports(key);
    let Some(edges) = &mut pending.edges else {
        return NextStep::Answer;
    };
    if let Some(index) = (index..edges.blocks.len()).find(|&index| edges.blocks[index].is_some()) {
        return pending.transfer_edge(index, Stage::Reading(index));
    }
    edges.stage = Stage::Rest;
    let operation = &pending.operation;
    match (operation.ask, exports.within(operation)) {
        (Ask::Write { .. }, _) => NextStep::Change(exports.around(operation)),
        (Ask::Zero { .. }, Some(within)) => NextStep::Change(within),
        _ => NextStep::Answer,
    }
}

impl PendingOperation {
    fn stage(&self) -> Stage {
        self.edges.as_ref().map_or(Stage::Rest, |edges| edges.stage)
    }

    /// Reads or writes an edge.
    fn transfer_edge(&mut self, index: usize, stage: Stage) -> NextStep {
        let Some(edges) = &mut self.edges else {
            return NextStep::Wait;
        };
        edges.stage = stage;
        let Some(block) = edges.blocks[index] else {
            return NextStep::Wait;
        };
        let (direction, durability) = match (stage, self.operation.ask) {
            (Stage::Writing(_), Ask::Zero { durability, .. }) => (Direction::Write, durability),
            _ => (Direction::Read, Durability::Volatile),
        };
        NextStep::Transfer {
            extent: Extent::block(block),
            direction,
            durability,
        }
    }

    /// Merges an edge that was read: its other bytes into the write, or zeroes into the edge.
    fn change_edge(&mut self, exports: &Exports, index: usize) {
        let block = exports.block() as usize;
        let around = exports.around(&self.operation);
        let lead = (exports.span(&self.operation).offset % exports.block()) as usize;
        let place = self.edge_in_buffer(exports, index);
        let edge = self.edges.as_ref().and_then(|edges| edges.blocks[index]);
        let (Some(edge), Bytes::Own(buffer)) = (edge, &mut self.bytes) else {
            return;
        };
        // In bytes of the blocks around: where the edge is, and what is changed of it.
        let start = (edge.0 - around.start().0) as usize * block;
        let changed = lead.max(start)..(lead + self.operation.length as usize).min(start + block);
        match self.operation.is_zeroes() {
            true => {
                let in_edge = changed.start - start..changed.end - start;
                buffer.bytes_mut()[place..place + block][in_edge].fill(0);
            }
            false => copy_unchanged(buffer, place, start..start + block, changed),
        }
    }

    /// The offset of an edge in the operation's buffer.
    fn edge_in_buffer(&self, exports: &Exports, index: usize) -> usize {
        let block = exports.block() as usize;
        let before = match self.operation.is_zeroes() {
            true => 0,
            false => exports.around(&self.operation).length().0 as usize * block,
        };
        let edges = self.edges.as_ref();
        let earlier = edges.map_or(0, |edges| edges.blocks[..index].iter().flatten().count());
        before + earlier * block
    }

    /// The memory of the operation's request at the engine, or `None` for zeroes.
    pub(super) fn memory_of_request(&self, exports: &Exports) -> Option<Memory> {
        let memory = self.bytes.memory()?;
        match self.edges.as_ref().map(|edges| edges.stage) {
            Some(Stage::Reading(index) | Stage::Writing(index)) => {
                let place = self.edge_in_buffer(exports, index);
                Some(memory.part(place, memory.length - place))
            }
            Some(Stage::Rest) if self.operation.is_zeroes() => None,
            Some(Stage::Rest | Stage::Waiting) | None => Some(memory),
        }
    }
}

/// Copies the bytes of `edge` that are not `changed` from `place` of the buffer.
fn copy_unchanged(buffer: &mut Buffer, place: usize, edge: Range<usize>, changed: Range<usize>) {
    let bytes = buffer.bytes_mut();
    let before = place..place + (changed.start - edge.start);
    bytes.copy_within(before, edge.start);
    let after = place + (changed.end - edge.start)..place + edge.len();
    bytes.copy_within(after, changed.end);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::Export;
    use block::Class;
    use block::Lba;

    #[test]
    fn a_change_waits_for_held_edges_and_a_read_does_not() {
        let export = Export {
            name: "all".to_owned(),
            offset: 0,
            length: 1 << 20,
            class: Class::default(),
        };
        let exports = Exports::new(vec![export], 4096);
        let operation = |ask, offset| Operation {
            export: 0,
            ask,
            offset,
            length: 10,
            owner: block::Owner::NOBODY,
            class: None,
        };
        let durability = Durability::Volatile;
        let mut partial = PartialWrites::default();
        partial.held.push((7, Extent::block(Lba(2))));
        let write = operation(Ask::Write { durability }, 8200);
        assert!(partial.holds_of(&exports, &write));
        assert!(!partial.holds_of(&exports, &operation(Ask::Read, 8200)));
        assert!(!partial.holds_of(&exports, &operation(Ask::Trim { durability }, 100)));
        partial.release(6);
        assert!(partial.holds_of(&exports, &write), "another's edge");
        partial.release(7);
        assert!(!partial.holds_of(&exports, &write));
    }
}
