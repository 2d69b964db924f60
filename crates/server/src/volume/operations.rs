//! The operations of a drive that have begun, and the memory of their bytes.
//!
//! ```text
//!   begin --> [ pending: by key ] --> end --> answer of a connection, or callback
//!                    |
//!                 [ arena ]   one buffer an operation
//! ```
//!
//! A key is the index of an operation, and the id of its requests at the engine.

use std::collections::VecDeque;
use std::io;
use std::ops::{Index, IndexMut};

use block::operation::Ask;
use block::{Class, Direction, Extent, Request, RequestId, Sectors};
use slab::Slab;

use super::exports::Exports;
use super::operation::{Operation, OperationSource, PendingOperation};
use crate::arena::{Arena, Buffer, Bytes, Memory};
use crate::disk::Disk;

/// Pending operations of all volumes of a drive.
pub(crate) struct Operations {
    pub(crate) exports: Exports,
    pending: Slab<PendingOperation>,
    /// Ended operations of connections, which their clients have not polled.
    ended: VecDeque<PendingOperation>,
    /// Bytes of the longest read or write.
    longest: usize,
    zeroes: Buffer,
    /// Last, because the fields above may point into it.
    arena: Arena,
}

/// The default limit of a read or write, in bytes: what NBD clients may assume without asking.
pub const LONGEST: u64 = 32 << 20;

/// Bytes of one piece of zeroes. A choice: a piece holds the head for a few milliseconds.
pub(crate) const ZEROES: usize = 1 << 20;

impl Index<usize> for Operations {
    type Output = PendingOperation;

    fn index(&self, key: usize) -> &PendingOperation {
        &self.pending[key]
    }
}

impl IndexMut<usize> for Operations {
    fn index_mut(&mut self, key: usize) -> &mut PendingOperation {
        &mut self.pending[key]
    }
}

impl Operations {
    /// No operations. Their bytes will be in `arena`.
    ///
    /// # Errors
    /// If the arena has no room for [`ZEROES`].
    pub(super) fn new(exports: Exports, mut arena: Arena, longest: usize) -> io::Result<Self> {
        let zeroes = arena.allocate(ZEROES).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Operations {
            exports,
            pending: Slab::new(),
            ended: VecDeque::new(),
            longest,
            zeroes,
            arena,
        })
    }

    /// The number of pending operations.
    pub(super) fn count(&self) -> usize {
        self.pending.len()
    }

    /// Bytes of operations in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.arena.length() - self.arena.left() - self.zeroes.length()
    }

    /// Bytes of the longest read or write.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    pub(super) fn insert(
        &mut self,
        source: OperationSource,
        operation: Operation,
        bytes: Bytes,
    ) -> usize {
        self.pending
            .insert(PendingOperation::new(source, operation, bytes))
    }

    pub(super) fn remove(&mut self, key: usize) -> PendingOperation {
        self.pending.remove(key)
    }

    pub(super) fn get_mut(&mut self, key: usize) -> Option<&mut PendingOperation> {
        self.pending.get_mut(key)
    }

    /// A pending operation and the exports, for a change of the operation.
    pub(super) fn pending_and_exports(&mut self, key: usize) -> (&mut PendingOperation, &Exports) {
        (&mut self.pending[key], &self.exports)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &PendingOperation)> {
        self.pending.iter()
    }

    /// All blocks of which a pending operation has a byte.
    pub(super) fn around(&self, key: usize) -> Extent {
        self.exports.around(&self.pending[key].operation)
    }

    /// Memory for an operation's bytes. `device` is the whole device in memory, for reads that need no copy.
    pub(super) fn bytes_for(
        &mut self,
        operation: &Operation,
        device: Option<Memory>,
    ) -> Option<Bytes> {
        let (length, shown) = self.exports.memory_for(operation);
        match (operation.ask, device) {
            (Ask::Read, Some(device)) if length > 0 => {
                let start = self.exports.around(operation).start().0 * self.exports.block();
                return Some(Bytes::Mapped(device.part(start as usize, length)));
            }
            (Ask::Zero { .. } | Ask::Trim { .. } | Ask::Flush, _) if length == 0 => {
                return Some(Bytes::None);
            }
            _ => (),
        }
        let mut buffer = self.arena.allocate(length)?;
        buffer.show(shown);
        Some(Bytes::Own(buffer))
    }

    /// Frees the memory of an operation.
    pub(crate) fn free_bytes(&mut self, bytes: Bytes) {
        if let Bytes::Own(buffer) = bytes {
            self.arena.free(buffer);
        }
    }

    /// Memory of no bytes.
    pub(super) fn no_memory(&self) -> Memory {
        self.zeroes.memory().part(0, 0)
    }

    /// The memory of some blocks of an operation's request.
    pub(super) fn memory_of(&self, request: &Request, part: Extent) -> Memory {
        let block = self.exports.block() as usize;
        let length = part.length().0 as usize * block;
        let pending = &self.pending[request.id.0 as usize];
        match pending.memory_of_request(&self.exports) {
            Some(memory) => {
                let before = (part.start().0 - request.extent.start().0) as usize;
                memory.part(before * block, length)
            }
            None => self.zeroes.memory().part(0, length),
        }
    }

    /// The request for the next piece of zeroes, if any are left. There is one piece at a time.
    pub(super) fn next_zeroes(&mut self, disk: &Disk, key: usize) -> Option<Request> {
        let pending = &mut self.pending[key];
        let (Some(rest), Ok(())) = (pending.rest, pending.result) else {
            return None;
        };
        let Ask::Zero { durability, .. } = pending.operation.ask else {
            return None;
        };
        let class = self.exports.class(&pending.operation);
        let most = self.zeroes.length() as u64 / disk.block();
        let now = rest.length().0.min(most);
        let extent = Extent::new(rest.start(), Sectors(now)).expect("at least one block");
        let left = rest.length().0 - now;
        pending.rest = Extent::new(extent.end(), Sectors(left)).ok();
        Some(Request {
            id: RequestId(key as u64),
            direction: Direction::Write,
            extent,
            class,
            durability,
            owner: pending.operation.owner,
        })
    }

    /// Whether operations, except one, change some of these blocks outside the engine's order.
    ///
    /// These are trims, zeroes, partial writes, and operations that a stream refused and that wait for room.
    /// A new request of the engine may overtake them.
    pub(super) fn is_changed_apart(&self, blocks: &[Extent], except: Option<usize>) -> bool {
        self.pending.iter().any(|(other, pending)| {
            let operation = &pending.operation;
            let is_unordered =
                operation.is_punch() || pending.edges.is_some() || pending.is_redirected;
            except != Some(other) && is_unordered && operation.is_change() && {
                let around = self.exports.around(operation);
                blocks.iter().any(|block| block.overlaps(around))
            }
        })
    }

    /// The requests of an export's operations on `extents` that are less urgent than `class`.
    pub(super) fn less_urgent(
        &self,
        export: usize,
        class: Class,
        overlaps: impl Fn(Extent) -> bool,
        class_of: impl Fn(&Operation) -> Class,
    ) -> Vec<(RequestId, Extent)> {
        let of_export = self.pending.iter().filter(|(_, pending)| {
            pending.operation.export == export && pending.operation.length > 0
        });
        let requests = of_export.filter_map(|(key, PendingOperation { operation, .. })| {
            let around = self.exports.around(operation);
            (overlaps(around) && class_of(operation) > class)
                .then_some((RequestId(key as u64), around))
        });
        requests.collect()
    }

    /// The next ended operation of a connection.
    pub(crate) fn poll_ended(&mut self) -> Option<PendingOperation> {
        self.ended.pop_front()
    }

    /// Answers an operation that was removed: by [`Operations::poll_ended`], or by its callback.
    pub(super) fn reply(&mut self, mut ended: PendingOperation) {
        if ended.operation.ask == Ask::Read {
            let bytes = std::mem::take(&mut ended.bytes);
            ended.bytes = requested_part(bytes, &ended.operation, self.exports.block());
        }
        match ended.source {
            OperationSource::Connection { .. } => self.ended.push_back(ended),
            OperationSource::Posted(reply) => {
                let is_read = ended.operation.ask == Ask::Read;
                match (ended.result, &ended.bytes) {
                    (Err(failed), _) => reply(Err(failed)),
                    (Ok(()), Bytes::Own(buffer)) if is_read => reply(Ok(buffer.bytes())),
                    (Ok(()), Bytes::Mapped(memory)) => reply(Ok(mapped(memory))),
                    (Ok(()), _) => reply(Ok(&[])),
                }
                self.free_bytes(ended.bytes);
            }
            OperationSource::Copied(_) | OperationSource::Preserved { .. } => (),
        }
    }
}

/// The requested bytes of a read, which transfers whole blocks.
fn requested_part(bytes: Bytes, operation: &Operation, block: u64) -> Bytes {
    let lead = (operation.offset % block) as usize;
    let length = operation.length as usize;
    match bytes {
        Bytes::Own(mut buffer) if buffer.length() != length => {
            buffer.bytes_mut().copy_within(lead..lead + length, 0);
            buffer.show(length);
            Bytes::Own(buffer)
        }
        Bytes::Mapped(memory) if memory.length != length => {
            Bytes::Mapped(memory.part(lead, length))
        }
        bytes => bytes,
    }
}

#[allow(unsafe_code, reason = "reads the device's own memory")]
fn mapped(memory: &Memory) -> &[u8] {
    // SAFETY: a part of the back end's mapping, which lives as long as the loop, and which only
    // the loop's own thread writes to.
    unsafe { memory.bytes() }
}
