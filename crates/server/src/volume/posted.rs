//! Operations that were posted: those of front ends on threads of their own.

use block::Extent;

use super::Volumes;
use super::operation::{From, Operation, Reply, Stalled};
use crate::arena::Bytes;
use crate::arena::Memory;
use crate::disk::Disk;
use block::operation::{Ask, Failed};

/// An operation with its bytes and whom to tell.
pub struct Posted {
    /// The export's place among the loop's exports.
    pub export: usize,
    /// What.
    pub ask: Ask,
    /// Where, in bytes of the volume.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
    /// Where its bytes are.
    pub contents: Contents,
    /// Called on the loop's thread, with what was read: it must not take long.
    pub reply: Reply,
}

/// Where the bytes of a posted operation are.
pub enum Contents {
    /// Those of a write, which the loop copies into its own memory; of others there are none.
    Owned(Vec<u8>),
    /// The loop uses the memory of whoever has posted: nothing is copied.
    Lent(Lent),
}

/// Memory from which a write is carried out, or into which a read is.
pub struct Lent(Memory);

impl Lent {
    /// Lends it.
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
    /// How many bytes there are.
    pub(crate) fn length(&self) -> u64 {
        match self {
            Contents::Owned(bytes) => bytes.len() as u64,
            Contents::Lent(lent) => lent.0.length as u64,
        }
    }
}

impl Operation {
    fn of(posted: &Posted) -> Self {
        Operation {
            export: posted.export,
            ask: posted.ask,
            offset: posted.offset,
            length: posted.length,
        }
    }
}

impl Volumes {
    /// Begins posted operations in their order, as far as there is room; whether any began.
    ///
    /// An operation that changes blocks whose edges another one is changing waits for that one. Operations
    /// behind it that change other blocks, or that change nothing, go first.
    pub(crate) fn begin_posted(&mut self, disk: &mut Disk) -> bool {
        let mut is_any = false;
        // The blocks of the operations that wait, all of which are before `next`.
        let mut held: Vec<Extent> = Vec::new();
        let mut next = 0;
        while let Some(posted) = self.posted.get(next) {
            let operation = Operation::of(posted);
            let checked = self.check(&operation, &posted.contents);
            if checked.is_ok() && operation.is_change() {
                let around = self.exports.around(&operation);
                let is_behind = held.iter().any(|extent| extent.overlaps(around));
                if is_behind || self.partial.holds_of(&self.exports, &operation) {
                    held.push(around);
                    next += 1;
                    continue;
                }
            }
            let Some(posted) = self.posted.remove(next) else {
                break;
            };
            if let Err(failed) = checked {
                (posted.reply)(Err(failed));
                continue;
            }
            match self.begin_post(disk, posted) {
                Ok(()) => is_any = true,
                Err(posted) => {
                    self.posted.insert(next, posted);
                    break;
                }
            }
        }
        is_any
    }

    fn begin_post(&mut self, disk: &mut Disk, posted: Posted) -> Result<(), Posted> {
        let operation = Operation::of(&posted);
        let Some(bytes) = self.bytes_of_post(disk, &operation, &posted.contents) else {
            return Err(posted);
        };
        let from = From::Posted(posted.reply);
        match self.begin(disk, from, operation, bytes) {
            Ok(()) => Ok(()),
            Err(Stalled { from, bytes }) => {
                self.give_back(bytes);
                let From::Posted(reply) = from else {
                    unreachable!("it was posted");
                };
                Err(Posted { reply, ..posted })
            }
        }
    }

    /// Memory for a posted operation's bytes, with those of a write in it; nothing if there is none
    /// now.
    fn bytes_of_post(
        &mut self,
        disk: &mut Disk,
        operation: &Operation,
        contents: &Contents,
    ) -> Option<Bytes> {
        match (contents, operation.ask) {
            (Contents::Lent(lent), Ask::Read | Ask::Write { .. }) => {
                Some(Bytes::Lent(lent.memory()))
            }
            (Contents::Owned(given), Ask::Write { .. }) => {
                let mut bytes = self.bytes_for(disk, operation)?;
                if let Bytes::Own(buffer) = &mut bytes {
                    buffer.bytes_mut().copy_from_slice(given);
                }
                Some(bytes)
            }
            _ => self.bytes_for(disk, operation),
        }
    }

    /// Whether a posted operation makes sense. Those of connections were checked by the protocol.
    fn check(&self, operation: &Operation, contents: &Contents) -> Result<(), Failed> {
        let Some(export) = self.exports.get(operation.export) else {
            return Err(Failed::Invalid);
        };
        if self.is_stopping {
            return Err(Failed::ShuttingDown);
        }
        let end = operation.offset.checked_add(operation.length);
        let is_inside = end.is_some_and(|end| end <= export.length);
        let carries = match (operation.ask, contents) {
            (Ask::Write { .. }, _) | (Ask::Read, Contents::Lent(_)) => {
                contents.length() == operation.length
            }
            _ => true,
        };
        // What is lent has no room for the rest of a block.
        let block = self.exports.block();
        let is_whole = operation.offset.is_multiple_of(block)
            && operation.length.is_multiple_of(block)
            || matches!(contents, Contents::Owned(_));
        if !carries || !is_inside || !is_whole {
            return Err(Failed::Invalid);
        }
        let is_long = operation.length > self.longest as u64;
        match operation.ask {
            Ask::Read | Ask::Write { .. } | Ask::Cache if is_long => Err(Failed::TooLong),
            _ => Ok(()),
        }
    }
}
