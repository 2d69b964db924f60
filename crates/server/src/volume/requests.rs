//! From the steps of an operation to requests at the engine, and back from their ends.
//!
//! ```text
//!   read, write ---> engine ------------------------------------> answer
//!   zero ----------> engine, piece by piece --------------------> answer
//!   trim, zero ----> back end's space ---[if durable: flush]----> answer
//!   flush ---------> recordings, pages, drive ------------------> answer
//! ```

use block::operation::{Ask, OperationError, Space, ZeroingPace};
use block::{Class, Direction, Durability, Extent, Finished, Request, RequestId, Status};
use engine::Flushed;

use super::operation::NextStep;
use super::{Volumes, cached, edges};
use crate::arena::Memory;
use crate::disk::Disk;
use crate::disk::back_end::Punch;

impl Volumes {
    /// Does the next step of a pending operation.
    pub(super) fn advance(&mut self, disk: &mut Disk, key: usize, step: NextStep) {
        match step {
            NextStep::Wait => (),
            NextStep::Transfer {
                extent,
                direction,
                durability,
            } => {
                let operation = &self.operations[key].operation;
                let class = self.operations.exports.class(operation);
                self.submit(disk, key, (extent, direction), class, durability);
            }
            NextStep::Change(extent) => self.change(disk, key, extent),
            NextStep::WriteZeroes => self.write_zeroes(disk, key),
            NextStep::Flush => {
                let step = self.streams.flush(disk, &mut self.operations, key);
                self.advance(disk, key, step);
            }
            NextStep::FlushPages => {
                let step = self.caches.flush(disk, &mut self.operations, key);
                self.advance(disk, key, step);
            }
            NextStep::FlushDrive => self.flush_drive(disk, key),
            NextStep::BeginCopies => drop(self.begin_copies(disk)),
            NextStep::Answer => self.answer(disk, key),
        }
    }

    /// Gives an operation to the engine or the back end. The engine has room for a request.
    pub(super) fn dispatch(&mut self, disk: &mut Disk, key: usize) {
        let pending = &self.operations[key];
        let exports = &self.operations.exports;
        self.streams.change_recorded(disk, exports, pending);
        let operation = pending.operation;
        let has_edges = pending.edges.is_some();
        match operation.ask {
            Ask::Read | Ask::Cache => {
                let class = match operation.ask {
                    Ask::Cache => Class::Background,
                    _ => self.streams.class_of(exports, &operation),
                };
                let read = (exports.around(&operation), Direction::Read);
                self.submit(disk, key, read, class, Durability::Volatile);
            }
            Ask::Zero { pace, .. } if pace == ZeroingPace::Fast && !disk.shape.zeroes_fast => {
                self.fail(disk, key, OperationError::Unsupported);
            }
            Ask::Write { .. } | Ask::Zero { .. } if has_edges => {
                let step = self.partial.begin(&mut self.operations, key);
                self.advance(disk, key, step);
            }
            Ask::Write { .. } | Ask::Zero { .. } => {
                self.change(disk, key, exports.around(&operation));
            }
            Ask::Flush => self.advance(disk, key, NextStep::Flush),
            Ask::Trim { .. } => match exports.within(&operation) {
                Some(within) if disk.shape.trims => self.punch(disk, key, Punch::Trim, within),
                _ => self.answer(disk, key),
            },
        }
    }

    /// Writes or zeroes blocks for an operation.
    fn change(&mut self, disk: &mut Disk, key: usize, extent: Extent) {
        let operation = self.operations[key].operation;
        match operation.ask {
            Ask::Write { durability } => {
                let class = self.streams.class_of(&self.operations.exports, &operation);
                self.submit(disk, key, (extent, Direction::Write), class, durability);
            }
            Ask::Zero { space, pace, .. } if disk.shape.zeroes_fast => {
                let punch = match space {
                    Space::MayBeFreed => Punch::Free(pace),
                    Space::Kept => Punch::Zero(pace),
                };
                self.punch(disk, key, punch, extent);
            }
            _ => {
                self.operations[key].rest = Some(extent);
                self.write_zeroes(disk, key);
            }
        }
    }

    /// Trims or zeroes blocks at the back end, once the reads of them have ended.
    fn punch(&mut self, disk: &mut Disk, key: usize, what: Punch, blocks: Extent) {
        if self.punches.begin(&self.operations, key, (what, blocks)) {
            disk.punch(key, what, blocks);
        }
    }

    /// Writes the next piece of zeroes, or answers the operation.
    fn write_zeroes(&mut self, disk: &mut Disk, key: usize) {
        match self.operations.next_zeroes(disk, key) {
            Some(request) => self.give(disk, request),
            None => self.answer(disk, key),
        }
    }

    /// Submits a request of an operation to the engine.
    pub(super) fn submit(
        &mut self,
        disk: &mut Disk,
        key: usize,
        (extent, direction): (Extent, Direction),
        class: Class,
        durability: Durability,
    ) {
        let request = Request {
            id: RequestId(key as u64),
            direction,
            extent,
            class,
            durability,
            owner: self.operations[key].operation.owner,
        };
        self.give(disk, request);
    }

    /// The memory of some blocks of a request.
    pub(crate) fn memory_of(&self, request: &Request, part: Extent) -> Memory {
        let of_cache = self.caches.memory_of(request, part);
        of_cache.unwrap_or_else(|| self.operations.memory_of(request, part))
    }

    /// The export of a request.
    pub(crate) fn export_of(&self, request: &Request) -> usize {
        let of_cache = self.caches.export_of(request.id);
        of_cache.unwrap_or_else(|| self.operations[request.id.0 as usize].operation.export)
    }

    /// Notes why a command of the request has failed.
    pub(crate) fn note_failure(&mut self, request: &Request, failed: OperationError) {
        // Operations repeat failed requests of caches without the cache.
        if cached::owner(request.id).is_none() {
            self.operations[request.id.0 as usize].noted = Some(failed);
        }
    }

    /// A request of an operation or of a cache has ended.
    pub(crate) fn finished(&mut self, disk: &mut Disk, finished: &Finished) {
        let id = finished.request.id;
        if cached::owner(id).is_some() {
            let result = match finished.status {
                Status::Good => Ok(()),
                _ => Err(OperationError::Io),
            };
            return self.cache_request_ended(disk, id, result);
        }
        self.caches.note_end(disk, &self.operations, finished);
        let key = id.0 as usize;
        let pending = &mut self.operations[key];
        if finished.status != Status::Good {
            let failed = pending.noted.unwrap_or(OperationError::Io);
            pending.result = pending.result.and(Err(failed));
        }
        let step = match pending.edges {
            Some(_) => edges::edges_ended(&mut self.operations, key),
            None => NextStep::WriteZeroes,
        };
        self.advance(disk, key, step);
    }

    /// The engine has flushed the drive, or could not.
    pub(crate) fn flushed(&mut self, disk: &mut Disk, flushed: &Flushed) {
        let key = flushed.id.0 as usize;
        match flushed.status {
            Status::Good => self.caches.drive_flushed(&mut self.operations, key),
            _ => {
                self.caches.fail_flushes(disk, &mut self.operations);
                // It may be a write or a trim that is to be durable.
                self.operations[key].result = Err(OperationError::Io);
            }
        }
        self.answer(disk, key);
    }

    /// A flush has failed for which no operation waits. Drives tell of a loss once, so that a client's next flush would
    /// end well.
    pub(crate) fn flush_failed(&mut self, disk: &Disk) {
        self.caches.fail_flushes(disk, &mut self.operations);
    }

    /// The back end has trimmed or zeroed blocks, or could not.
    pub(crate) fn punched(
        &mut self,
        disk: &mut Disk,
        key: usize,
        result: Result<(), OperationError>,
    ) {
        self.punches.end(key);
        self.caches.note_punch(&self.operations, key);
        let durability = match self.operations[key].operation.ask {
            Ask::Trim { durability } | Ask::Zero { durability, .. } => durability,
            _ => Durability::Volatile,
        };
        match (result, durability) {
            (Ok(()), Durability::Durable) => self.advance(disk, key, NextStep::FlushPages),
            (Ok(()), Durability::Volatile) => self.answer(disk, key),
            (Err(failed), _) => self.fail(disk, key, failed),
        }
    }
}
