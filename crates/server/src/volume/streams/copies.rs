//! Copies of what recordings have only in memory, written before a flush ends and before a read of the drive.
//!
//! The recording's own batches write the same or newer bytes again in their rounds. So a flush waits for no
//! round, and no batch changes its size for a flush.

use block::{Durability, Extent, Lba, Owner};
use headtime_client::wire::StreamMode;

use super::VolumeStreams;
use super::buffer::extent_of;
use super::table::StreamTable;
use crate::arena::Bytes;
use crate::arena::Region;
use crate::disk::Disk;
use crate::volume::exports::Exports;
use crate::volume::operation::{Before, Copied, NextStep, Operation, OperationSource};
use crate::volume::operations::Operations;
use block::operation::{Ask, OperationError};

/// The copies of a drive's recordings.
#[derive(Default)]
pub(super) struct Copies {
    /// Copies that wait for room at the engine.
    queue: Vec<QueuedCopy>,
    /// The number of copies at the engine.
    in_flight: usize,
    /// Blocks whose copies were queued for reads, and whose recordings have not changed since.
    before: Vec<Extent>,
}

/// The most reads whose copies are remembered. A choice: more than clients have waiting. Without its copies in mind
/// a read has others made.
const MOST_BEFORE: usize = 256;

/// A copy that is to be written.
struct QueuedCopy {
    /// The flush that waits for the copy.
    flush: Option<usize>,
    operation: Operation,
    bytes: Region,
}

impl Copies {
    /// Whether no copy is queued or in flight. Copies outlive their streams.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.in_flight == 0
    }

    /// Whether copies of these blocks wait for room.
    pub(super) fn is_queued(&self, exports: &Exports, extent: Extent) -> bool {
        let mut queue = self.queue.iter();
        queue.any(|copy| exports.around(&copy.operation).overlaps(extent))
    }

    /// Copies of these blocks were queued for a read.
    pub(super) fn note_before(&mut self, extent: Extent) {
        if self.before.len() == MOST_BEFORE {
            self.before.clear();
        }
        self.before.push(extent);
    }

    /// Whether copies of these blocks were queued for a read, and recordings have not changed since.
    pub(super) fn is_before(&self, extent: Extent) -> bool {
        self.before.contains(&extent)
    }

    /// What recordings have in memory of some blocks changes: the next read of them has others made.
    pub(super) fn outdate(&mut self, extent: Extent) {
        self.before.retain(|before| !before.overlaps(extent));
    }

    /// The same of all blocks: recordings have more in memory, or the drive may lack a copy.
    pub(super) fn outdate_all(&mut self) {
        self.before.clear();
    }

    /// The next copy, if the engine has room for it. It is in flight until [`Copies::ended`].
    pub(super) fn next(
        &mut self,
        disk: &Disk,
        exports: &Exports,
    ) -> Option<(OperationSource, Operation, Bytes)> {
        let first = self.queue.first()?;
        let class = exports.class(&first.operation);
        if !disk.engine.has_room(class) {
            return None;
        }
        let copy = self.queue.remove(0);
        self.in_flight += 1;
        let source = OperationSource::Copied(copy.flush);
        Some((source, copy.operation, Bytes::Copied(copy.bytes)))
    }

    /// A copy has ended. The answer is the flush that waited for it as the last one.
    pub(super) fn ended(
        &mut self,
        operations: &mut Operations,
        flush: Option<usize>,
        result: Result<(), OperationError>,
    ) -> Option<usize> {
        self.in_flight -= 1;
        if result.is_err() {
            self.outdate_all();
        }
        let key = flush?;
        let pending = operations.get_mut(key)?;
        pending.result = pending.result.and(result);
        pending.copied.left -= 1;
        (pending.copied.left == 0).then_some(key)
    }

    /// A flush waits for no copy any more.
    pub(super) fn forget_flush(&mut self, key: usize) {
        for copy in &mut self.queue {
            copy.flush = copy.flush.filter(|&flush| flush != key);
        }
    }

    /// Queues copies of what recordings have only in memory of some blocks of the drive. Copies for a flush
    /// leave out what an earlier flush has written. No copy is longer than the longest operation.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub(super) fn queue(
        &mut self,
        disk: &Disk,
        table: &StreamTable,
        operations: &Operations,
        (export, within): (usize, Extent),
        flush: Option<usize>,
    ) -> Result<Copied, OperationError> {
        let block = disk.block();
        let exports = &operations.exports;
        let longest = (operations.longest() as u64 / block).max(1);
        let offset = exports.offset(export);
        let mut copied = Copied::default();
        for entry in &table.0 {
            // Blocks that are durable before their answer need no copy, and other volumes were not asked for.
            let here = exports.extent(entry.export);
            let is_here = here.is_some_and(|here| here.overlaps(within));
            let is_answered = entry.terms.mode == StreamMode::Record;
            let Some((from, to)) = entry.dirty(disk).filter(|_| is_here && is_answered) else {
                continue;
            };
            let from = match flush {
                Some(_) => from.max(entry.written.copied / block),
                None => from,
            };
            for run in entry.buffer.parts(within) {
                let end = to.min(run.first + run.extent.length().0);
                let mut first = from.max(run.first);
                while first < end {
                    let count = (end - first).min(longest);
                    let start = Lba(run.extent.start().0 + (first - run.first));
                    let Some(extent) = extent_of(start, count) else {
                        break;
                    };
                    let length = count * block;
                    let mut bytes =
                        Region::map(length as usize).map_err(|_| OperationError::NoSpace)?;
                    entry.buffer.copy_out(first, bytes.bytes_mut());
                    copied.left += 1;
                    self.queue.push(QueuedCopy {
                        flush,
                        operation: Operation {
                            export,
                            ask: Ask::Write {
                                durability: Durability::Volatile,
                            },
                            offset: extent.start().0 * block - offset,
                            length,
                            owner: Owner::stream(entry.number),
                            class: None,
                        },
                        bytes,
                    });
                    first += count;
                }
            }
            copied.streams.push(Before {
                stream: entry.number,
                to: to * block,
                leaps: entry.written.leaps,
            });
        }
        Ok(copied)
    }
}

/// What the volumes ask for.
impl VolumeStreams {
    /// Writes what recordings have in memory, before a flush of the drive.
    pub(in crate::volume) fn flush(
        &mut self,
        disk: &Disk,
        operations: &mut Operations,
        key: usize,
    ) -> NextStep {
        let export = operations[key].operation.export;
        let within = operations.exports.extent(export);
        let is_idle = self.table.0.is_empty() && self.lost.is_empty();
        let Some(within) = within.filter(|_| !is_idle) else {
            return NextStep::FlushPages;
        };
        let losses = self.lost.len();
        self.lost.retain(|lost| !lost.overlaps(within));
        if self.lost.len() < losses {
            operations[key].result = Err(OperationError::Io);
            return NextStep::Answer;
        }
        match self.copy_dirty(disk, operations, (export, within), Some(key)) {
            Ok(copied) => operations[key].copied = copied,
            Err(failed) => {
                // The flush waits for none of the copies that were made.
                self.copies.forget_flush(key);
                operations[key].result = Err(failed);
                return NextStep::Answer;
            }
        }
        match operations[key].copied.left {
            0 => self.copies_ended(operations, key),
            _ => NextStep::BeginCopies,
        }
    }

    /// Queues copies of what recordings have only in memory of some blocks of the drive, see [`Copies::queue`].
    ///
    /// # Errors
    /// If there is no memory for them.
    pub(in crate::volume) fn copy_dirty(
        &mut self,
        disk: &Disk,
        operations: &Operations,
        of: (usize, Extent),
        flush: Option<usize>,
    ) -> Result<Copied, OperationError> {
        self.copies.queue(disk, &self.table, operations, of, flush)
    }

    /// See [`Copies::note_before`].
    pub(in crate::volume) fn note_copied_before(&mut self, extent: Extent) {
        self.copies.note_before(extent);
    }

    /// See [`Copies::is_before`].
    pub(in crate::volume) fn is_copied_before(&self, extent: Extent) -> bool {
        self.copies.is_before(extent)
    }

    /// Whether copies of these blocks wait for room.
    pub(in crate::volume) fn is_queued(&self, exports: &Exports, extent: Extent) -> bool {
        self.copies.is_queued(exports, extent)
    }

    /// The next copy, if the engine has room for it.
    pub(in crate::volume) fn next_copy(
        &mut self,
        disk: &Disk,
        exports: &Exports,
    ) -> Option<(OperationSource, Operation, Bytes)> {
        self.copies.next(disk, exports)
    }

    /// A copy has ended. The answer is its flush and the next step, if the copy was the last.
    pub(in crate::volume) fn copy_ended(
        &mut self,
        operations: &mut Operations,
        flush: Option<usize>,
        result: Result<(), OperationError>,
    ) -> Option<(usize, NextStep)> {
        let key = self.copies.ended(operations, flush, result)?;
        Some((key, self.copies_ended(operations, key)))
    }

    /// All copies of a flush have ended.
    fn copies_ended(&mut self, operations: &mut Operations, key: usize) -> NextStep {
        let pending = &mut operations[key];
        let streams = std::mem::take(&mut pending.copied.streams);
        if pending.result.is_err() {
            return NextStep::Answer;
        }
        for before in streams {
            if let Some(entry) = self.table.with_number(before.stream)
                && entry.written.leaps == before.leaps
            {
                entry.written.copied = entry.written.copied.max(before.to);
            }
        }
        NextStep::FlushPages
    }
}

#[cfg(test)]
impl Copies {
    /// Queues one copy for no flush.
    pub(super) fn queue_one(&mut self, operation: Operation) {
        let bytes = Region::map(operation.length as usize).expect("memory");
        self.queue.push(QueuedCopy {
            flush: None,
            operation,
            bytes,
        });
    }
}
