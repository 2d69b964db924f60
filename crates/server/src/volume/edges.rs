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

use block::{Direction, Durability, Extent};

use super::Volumes;
use super::exports::Exports;
use super::operation::{Edges, Operation, Pending, Stage};
use crate::arena::Bytes;
use crate::arena::{Buffer, Memory};
use crate::disk::Disk;
use block::operation::Ask;

/// The blocks of which pending operations change a part.
#[derive(Default)]
pub(super) struct Partial {
    /// Each such block, and the key of its operation.
    held: Vec<(usize, Extent)>,
    /// Operations that wait for others on their blocks.
    waiting: Vec<usize>,
}

impl Partial {
    /// Whether an operation changes blocks whose edges are being changed.
    pub(super) fn holds_of(&self, exports: &Exports, operation: &Operation) -> bool {
        if self.held.is_empty() || !operation.is_change() {
            return false;
        }
        let around = exports.around(operation);
        self.held.iter().any(|(_, edge)| edge.overlaps(around))
    }

    /// Releases the edges of an operation.
    pub(super) fn release(&mut self, key: usize) {
        self.held.retain(|&(holder, _)| holder != key);
    }
}

impl Volumes {
    /// Holds the edges of an operation that has just begun, if it has some.
    pub(super) fn hold_edges(&mut self, key: usize) {
        let blocks = self.exports.edges(&self.pending[key].operation);
        if blocks == [None; 2] {
            return;
        }
        for block in blocks.into_iter().flatten() {
            self.partial.held.push((key, Extent::block(block)));
        }
        let stage = Stage::Waiting;
        self.pending[key].edges = Some(Edges { blocks, stage });
    }

    /// Begins to change the edges that are held. If there is nothing to wait for, there is room for a
    /// request, as was asked before.
    pub(super) fn begin_edges(&mut self, disk: &mut Disk, key: usize) {
        let Pending {
            operation, bytes, ..
        } = &mut self.pending[key];
        if let (Ask::Write { .. }, Bytes::Own(buffer)) = (operation.ask, bytes) {
            let (offset, length) = (operation.offset, operation.length as usize);
            let lead = (offset % disk.block()) as usize;
            buffer.show(buffer.capacity());
            buffer.bytes_mut().copy_within(..length, lead);
        }
        if self.is_behind_others(key) {
            self.partial.waiting.push(key);
        } else {
            self.read_edge(disk, key, 0);
        }
    }

    /// Whether something that began before, and is not all with the engine, is on the edges. What came
    /// later waits for them.
    fn is_behind_others(&self, key: usize) -> bool {
        let own = self.partial.held.iter();
        let own = own.filter(|&&(holder, _)| holder == key);
        let own: Vec<Extent> = own.map(|&(_, edge)| edge).collect();
        self.is_changed_apart(&own, Some(key))
    }

    /// Whether some of these blocks are changed by operations, except one, that the engine does not order
    /// with its requests: trims, zeroes, operations with edges, and those that a stream has refused and that
    /// wait for room. A new request of the engine may overtake them.
    pub(super) fn is_changed_apart(&self, blocks: &[Extent], except: Option<usize>) -> bool {
        self.pending.iter().any(|(other, pending)| {
            let operation = &pending.operation;
            let is_unordered = operation.is_punch()
                || pending.edges.is_some()
                || self.streams.is_left_to_others(other);
            except != Some(other) && is_unordered && operation.is_change() && {
                let around = self.exports.around(operation);
                blocks.iter().any(|block| block.overlaps(around))
            }
        })
    }

    /// Goes on with those that wait for others, if these have ended; whether any did.
    pub(crate) fn begin_waiting(&mut self, disk: &mut Disk) -> bool {
        let mut is_any = false;
        let mut next = 0;
        while let Some(&key) = self.partial.waiting.get(next) {
            let class = self.exports.class(self.pending[key].operation.export);
            if self.is_behind_others(key) || !disk.engine.has_room(class) {
                next += 1;
                continue;
            }
            self.partial.waiting.remove(next);
            self.read_edge(disk, key, 0);
            is_any = true;
        }
        is_any
    }

    /// A request of an operation with edges has ended.
    pub(super) fn edges_ended(&mut self, disk: &mut Disk, key: usize) {
        let pending = &self.pending[key];
        let (is_zeroes, stage) = (pending.operation.is_zeroes(), pending.stage());
        if pending.result.is_err() {
            return self.answer(disk, key);
        }
        match stage {
            Stage::Reading(index) => {
                self.pending[key].change_edge(&self.exports, index);
                match is_zeroes {
                    true => self.ask_for_edge(disk, key, index, Stage::Writing(index)),
                    false => self.read_edge(disk, key, index + 1),
                }
            }
            Stage::Writing(index) => self.read_edge(disk, key, index + 1),
            Stage::Waiting => unreachable!("nothing of it is under way"),
            Stage::Rest if self.write_zeroes(disk, key) => (),
            Stage::Rest => self.answer(disk, key),
        }
    }

    /// Reads an edge, or what comes after the last of them.
    fn read_edge(&mut self, disk: &mut Disk, key: usize, index: usize) {
        let blocks = self.pending[key].edges.as_ref().map(|edges| edges.blocks);
        let blocks = blocks.unwrap_or_default();
        match (index..blocks.len()).find(|&index| blocks[index].is_some()) {
            Some(index) => self.ask_for_edge(disk, key, index, Stage::Reading(index)),
            None => self.finish_edges(disk, key),
        }
    }

    fn ask_for_edge(&mut self, disk: &mut Disk, key: usize, index: usize, stage: Stage) {
        let pending = &mut self.pending[key];
        let class = self.exports.class(pending.operation.export);
        let Some(edges) = &mut pending.edges else {
            return;
        };
        edges.stage = stage;
        let Some(block) = edges.blocks[index] else {
            return;
        };
        let (direction, durability) = match (stage, pending.operation.ask) {
            (Stage::Writing(_), Ask::Zero { durability, .. }) => (Direction::Write, durability),
            _ => (Direction::Read, Durability::Volatile),
        };
        self.submit(
            disk,
            key,
            Extent::block(block),
            direction,
            class,
            durability,
        );
    }

    /// The edges are as they shall be, in memory or on the drive: now the rest.
    fn finish_edges(&mut self, disk: &mut Disk, key: usize) {
        let pending = &mut self.pending[key];
        let operation = pending.operation;
        if let Some(edges) = &mut pending.edges {
            edges.stage = Stage::Rest;
        }
        match (operation.ask, self.exports.within(&operation)) {
            (Ask::Write { durability }, _) => {
                let class = self.streams.class_of(&self.exports, &operation);
                let around = self.exports.around(&operation);
                self.submit(disk, key, around, Direction::Write, class, durability);
            }
            (Ask::Zero { space, pace, .. }, Some(within)) => {
                self.zero(disk, key, within, space, pace)
            }
            _ => self.answer(disk, key),
        }
    }
}

impl Pending {
    fn stage(&self) -> Stage {
        self.edges.as_ref().map_or(Stage::Rest, |edges| edges.stage)
    }

    /// An edge was read. The bytes of it that stay go into the write, or zeroes into the others.
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
            false => keep(buffer, place, start..start + block, changed),
        }
    }

    /// Where in an operation's buffer an edge is.
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

    /// The memory of the request that an operation has at the engine; none for zeroes.
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
fn keep(buffer: &mut Buffer, place: usize, edge: Range<usize>, changed: Range<usize>) {
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
        };
        let durability = Durability::Volatile;
        let mut partial = Partial::default();
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
