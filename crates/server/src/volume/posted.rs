//! Operations posted by front ends on other threads, such as FUSE and ublk.

use std::collections::VecDeque;

use block::{Class, Extent, Owner};

use super::Volumes;
use super::edges::PartialWrites;
use super::operation::{Operation, OperationSource, Reply, Stalled};
use super::operations::Operations;
use crate::arena::Bytes;
use crate::arena::Memory;
use crate::disk::Disk;
use block::operation::{Ask, OperationError};

/// An operation with its bytes and its callback.
pub struct Posted {
    /// The index of the export in the loop's list of exports.
    pub export: usize,
    /// The kind of the operation.
    pub ask: Ask,
    /// The first byte, counted from the begin of the volume.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
    /// The memory of the bytes.
    pub contents: Contents,
    /// The program that waits for it.
    pub owner: Owner,
    /// The callback, which gets the bytes of a read. It runs on the loop's thread and must not block.
    pub reply: Reply,
}

/// The memory of a posted operation's bytes.
pub enum Contents {
    /// The bytes of a write, which the loop copies into its own memory. Empty for other operations.
    Owned(Vec<u8>),
    /// Memory of the front end, which the loop uses without a copy.
    Lent(Lent),
}

/// Memory of a front end, lent for one read or write.
pub struct Lent(Memory);

impl Lent {
    /// Lends memory for one operation.
    ///
    /// # Safety
    /// Until the operation's reply has been called or dropped, the memory must be there, and nobody
    /// else may use it.
    #[allow(unsafe_code, reason = "whoever lends has to promise something")]
    pub unsafe fn new(memory: Memory) -> Self {
        Lent(memory)
    }

    pub(crate) fn memory(&self) -> Memory {
        self.0
    }
}

impl Contents {
    /// The number of bytes.
    pub(crate) fn length(&self) -> u64 {
        match self {
            Contents::Owned(bytes) => bytes.len() as u64,
            Contents::Lent(lent) => lent.0.length as u64,
        }
    }
}

impl Operation {
    fn of(WaitingPost { posted, class }: &WaitingPost) -> Self {
        Operation {
            export: posted.export,
            ask: posted.ask,
            offset: posted.offset,
            length: posted.length,
            owner: posted.owner,
            class: *class,
        }
    }
}

/// The queue of posted operations that wait for room.
#[derive(Default)]
pub(crate) struct PostedQueue {
    waiting: VecDeque<WaitingPost>,
    is_stopping: bool,
}

/// A posted operation that waits for room.
pub(super) struct WaitingPost {
    posted: Posted,
    /// The class of the operation, unless it has that of its export.
    class: Option<Class>,
}

/// One pass over the queue.
#[derive(Default)]
pub(super) struct QueuePass {
    /// The index of the next operation.
    next: usize,
    /// The blocks of the operations before `next`, which wait.
    held: Vec<Extent>,
}

impl PostedQueue {
    /// Appends an operation of a front end on another thread, and its class unless it has that of its export.
    pub(crate) fn push(&mut self, posted: Posted, class: Option<Class>) {
        self.waiting.push_back(WaitingPost { posted, class });
    }

    /// Refuses these operations and all later ones.
    pub(crate) fn stop(&mut self, refused: impl Iterator<Item = Posted>) {
        self.is_stopping = true;
        for posted in refused {
            (posted.reply)(Err(OperationError::ShuttingDown));
        }
    }

    /// The number of operations that wait.
    pub(super) fn count(&self) -> usize {
        self.waiting.len()
    }

    /// The next operation of a pass that may begin. Invalid operations are refused.
    ///
    /// A change of blocks whose edges another operation is changing waits for that operation. Later operations
    /// go first if they change other blocks or none.
    pub(super) fn next(
        &mut self,
        pass: &mut QueuePass,
        operations: &Operations,
        partial: &PartialWrites,
    ) -> Option<WaitingPost> {
        while let Some(waiting) = self.waiting.get(pass.next) {
            let operation = Operation::of(waiting);
            let checked = self.check(operations, &operation, &waiting.posted.contents);
            if checked.is_ok() && operation.is_change() {
                let around = operations.exports.around(&operation);
                let is_behind = pass.held.iter().any(|extent| extent.overlaps(around));
                if is_behind || partial.holds_of(&operations.exports, &operation) {
                    pass.held.push(around);
                    pass.next += 1;
                    continue;
                }
            }
            let waiting = self.waiting.remove(pass.next)?;
            match checked {
                Ok(()) => return Some(waiting),
                Err(failed) => (waiting.posted.reply)(Err(failed)),
            }
        }
        None
    }

    /// Returns the last operation of a pass, for which there was no room.
    pub(super) fn put_back(&mut self, pass: &QueuePass, waiting: WaitingPost) {
        self.waiting.insert(pass.next, waiting);
    }

    /// Checks a posted operation. The protocol has checked those of connections.
    fn check(
        &self,
        operations: &Operations,
        operation: &Operation,
        contents: &Contents,
    ) -> Result<(), OperationError> {
        let Some(export) = operations.exports.get(operation.export) else {
            return Err(OperationError::Invalid);
        };
        if self.is_stopping {
            return Err(OperationError::ShuttingDown);
        }
        let end = operation.offset.checked_add(operation.length);
        let is_inside = end.is_some_and(|end| end <= export.length);
        let carries = match (operation.ask, contents) {
            (Ask::Write { .. }, _) | (Ask::Read, Contents::Lent(_)) => {
                contents.length() == operation.length
            }
            _ => true,
        };
        // Lent memory has no room for the rest of a block.
        let block = operations.exports.block();
        let is_whole = operation.offset.is_multiple_of(block)
            && operation.length.is_multiple_of(block)
            || matches!(contents, Contents::Owned(_));
        if !carries || !is_inside || !is_whole {
            return Err(OperationError::Invalid);
        }
        let is_long = operation.length > operations.longest() as u64;
        match operation.ask {
            Ask::Read | Ask::Write { .. } | Ask::Cache if is_long => Err(OperationError::TooLong),
            _ => Ok(()),
        }
    }
}

impl Volumes {
    /// Begins posted operations in their order, as far as there is room. The answer is whether any began.
    pub(crate) fn begin_posted(&mut self, disk: &mut Disk) -> bool {
        let mut is_any = false;
        let mut pass = QueuePass::default();
        while let Some(waiting) = self.posted.next(&mut pass, &self.operations, &self.partial) {
            if let Err(waiting) = self.begin_post(disk, waiting) {
                self.posted.put_back(&pass, waiting);
                break;
            }
            is_any = true;
        }
        is_any
    }

    fn begin_post(&mut self, disk: &mut Disk, waiting: WaitingPost) -> Result<(), WaitingPost> {
        let operation = Operation::of(&waiting);
        let WaitingPost { posted, class } = waiting;
        let bytes = match (&posted.contents, operation.ask) {
            (Contents::Lent(lent), Ask::Read | Ask::Write { .. }) => {
                Some(Bytes::Lent(lent.memory()))
            }
            (Contents::Owned(given), Ask::Write { .. }) => {
                let mut bytes = self.bytes_for(disk, &operation);
                if let Some(Bytes::Own(buffer)) = &mut bytes {
                    buffer.bytes_mut().copy_from_slice(given);
                }
                bytes
            }
            _ => self.bytes_for(disk, &operation),
        };
        let Some(bytes) = bytes else {
            return Err(WaitingPost { posted, class });
        };
        match self.begin(
            disk,
            OperationSource::Posted(posted.reply),
            operation,
            bytes,
        ) {
            Ok(()) => Ok(()),
            Err(Stalled { source, bytes }) => {
                self.operations.free_bytes(bytes);
                let OperationSource::Posted(reply) = source else {
                    unreachable!("the source does not change");
                };
                let posted = Posted { reply, ..posted };
                Err(WaitingPost { posted, class })
            }
        }
    }
}
