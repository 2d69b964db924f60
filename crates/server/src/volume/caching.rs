//! The caches of a drive's volumes, between operations and the engine.
//!
//! ```text
//!   begin:     read ----------> cache --hit--> answer
//!              write ---------> pages (write = "back") --> answer
//!                     `-------> engine; the cache is notified of each request that writes
//!   each turn: requests of the caches, before operations that wait
//!   ends:      of the caches' requests, of writes, of trims and zeroes
//! ```
//!
//! Without a cache each of these is a lookup in an empty list.

use std::io;

use block::{Class, Direction, Durability, Extent, Finished, Instant, Request, RequestId, Status};
use cache::level::Ending;
use scheduler::background::TaskId;

use super::cached::{self, CacheRead, Cached, CachedVolume, Upgrade};
use super::exports::Exports;
use super::operation::{NextStep, Operation, OperationSource};
use super::operations::Operations;
use crate::arena::Memory;
use crate::cache_setting::{CacheSetting, PAGE, Readmore};
use crate::disk::Disk;
use crate::status;
use block::operation::{Ask, OperationError};

mod background;
mod flushing;

use flushing::{Draining, Losses};

/// The caches of a drive's volumes.
#[derive(Default)]
pub(crate) struct Caches {
    all: Vec<Cached>,
    /// The number of writes that were stored in a cache.
    serial: u64,
    draining: Vec<Draining>,
    losses: Losses,
    /// Operations that a cache could not serve, and that wait for room at the engine.
    unserved: Vec<usize>,
    /// Pending trims and zeroes of volumes with caches.
    punching: usize,
    /// Whether pages became urgent since the last look at the requests of the caches.
    is_hastened: bool,
    upgrades: Vec<Upgrade>,
    /// The engine's task for background reads of all caches.
    standing: Option<TaskId>,
}

impl Caches {
    /// Whether no request of a cache is in flight or waits.
    pub(super) fn are_idle(&self) -> bool {
        self.all.iter().all(Cached::is_idle)
    }

    /// The time at which a cache writes its oldest pages.
    pub(crate) fn next_wakeup(&self, now: Instant) -> Option<Instant> {
        let each = self.all.iter();
        each.filter_map(|cached| cached.next_wakeup(now)).min()
    }

    /// Discards written pages: the drive may have lost their blocks.
    pub(crate) fn forget(&mut self) {
        self.all.iter_mut().for_each(Cached::void_all);
    }

    /// Changes the length of the volume at `offset`.
    pub(super) fn resize(&mut self, offset: u64, length: u64) {
        for cached in &mut self.all {
            if cached.volume().offset == offset {
                cached.resize(length);
            }
        }
    }

    /// The memory of some blocks of a cache's request.
    pub(super) fn memory_of(&self, request: &Request, part: Extent) -> Option<Memory> {
        let (number, piece) = cached::owner(request.id)?;
        Some(self.all[number].memory_of(piece, part))
    }

    /// The status of each cache.
    pub(crate) fn status(&self) -> Vec<status::Cache> {
        self.all.iter().map(Cached::status).collect()
    }

    /// The index of the cache of the volume at `offset`.
    pub(super) fn at(&self, offset: u64) -> Option<usize> {
        let mut all = self.all.iter();
        all.position(|cached| cached.volume().offset == offset)
    }

    /// The index of the cache of an operation's volume.
    pub(super) fn of(&self, exports: &Exports, operation: &Operation) -> Option<usize> {
        match self.all.is_empty() {
            true => None,
            false => self.at(exports.offset(operation.export)),
        }
    }

    /// Whether the volume at `offset` has all acknowledged bytes. Otherwise its holes may be data.
    pub(super) fn are_written(&self, offset: u64) -> bool {
        let cached = self.at(offset).map(|number| &self.all[number]);
        !cached.is_some_and(|cached| cached.has_unwritten(u64::MAX))
    }

    /// Counts an operation until [`Caches::end`].
    pub(super) fn begin(&mut self, exports: &Exports, operation: &Operation) {
        if operation.is_punch() && self.of(exports, operation).is_some() {
            self.punching += 1;
        }
    }

    /// Ends an operation that [`Caches::begin`] has counted.
    pub(super) fn end(&mut self, exports: &Exports, operation: &Operation) {
        if operation.is_punch() && self.of(exports, operation).is_some() {
            self.punching -= 1;
        }
    }

    /// Copies newer bytes over the bytes of a background read: those of write-back caches, and of writes in flight, which clients
    /// find in any cache.
    pub(crate) fn apply_newer(&self, from: u64, memory: Memory) {
        let to = from + memory.length as u64;
        for cached in &self.all {
            let volume = cached.volume();
            let (first, end) = (
                from.max(volume.offset),
                to.min(volume.offset + volume.length),
            );
            if first < end {
                let part = memory.part((first - from) as usize, (end - first) as usize);
                let start = first - volume.offset;
                match cached.writes_back() {
                    true => cached.apply_newer(start, part),
                    false => cached.apply_in_flight(start, part),
                }
            }
        }
    }

    /// Blocks of the drive as bytes of a volume with a cache: offset and length.
    fn span_in_volume(&self, disk: &Disk, extent: Extent, number: usize) -> (u64, u64) {
        let start = extent.start().0 * disk.block() - self.all[number].volume().offset;
        (start, extent.length().0 * disk.block())
    }

    /// Raises the urgency of pieces at the engine.
    fn upgrade_pieces(&mut self, disk: &mut Disk) {
        for Upgrade { id, extent, class } in self.upgrades.drain(..) {
            // The engine refuses if the piece is at the drive already.
            let _ = disk.engine.upgrade(disk.now, id, extent, class);
        }
    }

    /// The number of caches.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// Adds caches to volumes: the setting of each, and offset and length of its volume. It is called before
    /// the first operation.
    ///
    /// # Errors
    /// If the composition is invalid, there is no memory for it, the drive's blocks are larger than pages, or
    /// the drive has no free blocks for a cache that needs them.
    pub(crate) fn add(
        &mut self,
        disk: &Disk,
        exports: &Exports,
        all: &[(CacheSetting, u64, u64)],
    ) -> io::Result<()> {
        let block_bytes = disk.shape.block_bytes;
        if !all.is_empty() && !PAGE.is_multiple_of(u64::from(block_bytes)) {
            return Err(io::Error::other(format!(
                "a cache before a drive with blocks of {block_bytes} bytes: expected blocks that \
                 divide its pages of {PAGE} bytes"
            )));
        }
        for (number, &(ref setting, offset, length)) in all.iter().enumerate() {
            if setting.readmore == Readmore::Free {
                let may = disk.check_background();
                may.map_err(|problem| io::Error::other(format!("readmore free: {problem}")))?;
            }
            let mut exports = exports.all().iter();
            let volume = CachedVolume {
                offset,
                length,
                block_bytes,
                number,
                export: exports
                    .position(|export| export.offset == offset)
                    .unwrap_or(0),
            };
            self.all.push(Cached::new(setting, volume)?);
        }
        Ok(())
    }

    /// Whether an operation has to wait for room in its cache, or for operations that must not be in flight
    /// beside it: writes do not order trims and zeroes.
    ///
    /// A trim or zeroes of unwritten pages makes the cache write them soon.
    pub(super) fn holds_back(&mut self, operations: &Operations, operation: &Operation) -> bool {
        let Some(number) = self.of(&operations.exports, operation) else {
            return false;
        };
        let (start, length) = (operation.offset, operation.length);
        match operation.ask {
            Ask::Read | Ask::Cache => !self.all[number].has_room(),
            Ask::Flush => false,
            Ask::Write { .. } => {
                self.punching > 0 && is_beside(operations, operation, Operation::is_punch)
            }
            Ask::Trim { .. } | Ask::Zero { .. } => {
                is_beside(operations, operation, |_| true)
                    || self.prepare_punch(number, (start, length))
            }
        }
    }

    /// See [`Cached::prepare_punch`].
    fn prepare_punch(&mut self, number: usize, (start, length): (u64, u64)) -> bool {
        let cached = &mut self.all[number];
        let was_urgent = cached.has_urgent();
        let has_to_wait = cached.prepare_punch(start, length);
        self.is_hastened |= cached.has_urgent() && !was_urgent;
        has_to_wait
    }

    /// Whether pages became urgent since the last call. Their writes are among the next requests.
    pub(crate) fn take_hastened(&mut self) -> bool {
        std::mem::take(&mut self.is_hastened)
    }

    /// Stores a write that has just begun in a write-back cache. The answer is whether the write is done.
    pub(super) fn store(&mut self, now: Instant, operations: &Operations, key: usize) -> bool {
        let operation = operations[key].operation;
        let Ask::Write {
            durability: Durability::Volatile,
        } = operation.ask
        else {
            return false;
        };
        let Some(number) = self.of(&operations.exports, &operation) else {
            return false;
        };
        let Some(memory) = operations[key].bytes.memory() else {
            return false;
        };
        let cached = &mut self.all[number];
        if !cached.writes_back() {
            return false;
        }
        self.serial += 1;
        let memory = memory.part(0, operation.length as usize);
        cached.store(now, self.serial, operation.offset, memory)
    }

    /// Reads through a cache for an operation that has just begun, if its volume has one: the index of the
    /// cache, and the operation's next step.
    pub(super) fn read(
        &mut self,
        disk: &mut Disk,
        operations: &mut Operations,
        key: usize,
        class: Class,
    ) -> Option<(usize, NextStep)> {
        let pending = &operations[key];
        let operation = pending.operation;
        if !matches!(operation.ask, Ask::Read | Ask::Cache) {
            return None;
        }
        let number = self.of(&operations.exports, &operation)?;
        let client = match &pending.source {
            OperationSource::Connection { client, .. } => client.place as u32 + 1,
            OperationSource::Posted(_)
            | OperationSource::Copied(_)
            | OperationSource::Preserved { .. } => 0,
        };
        let around = operations.exports.around(&operation);
        let (start, length) = self.span_in_volume(disk, around, number);
        let memory = match (operation.ask, pending.bytes.memory()) {
            (Ask::Read, Some(memory)) => memory.part(0, length as usize),
            _ => operations.no_memory(),
        };
        let read = CacheRead {
            key,
            export: operation.export,
            client,
            class,
            owner: operation.owner,
        };
        let cached = &mut self.all[number];
        let refused = cached.read(disk.now, &read, (start, length), memory);
        if refused.is_err() {
            operations[key].result = Err(OperationError::Invalid);
            return Some((number, NextStep::Answer));
        }
        if class != Class::Background {
            cached.hasten((start, length), class, &mut self.upgrades);
        }
        self.upgrade_pieces(disk);
        Some((number, NextStep::Wait))
    }

    /// The next request of a cache, if the engine has room for it.
    pub(super) fn next_request(&mut self, disk: &Disk, number: usize) -> Option<Request> {
        let has_room = |class| disk.engine.has_room(class);
        self.all[number].next_request(disk.now, &has_room)
    }

    /// A request of a cache has ended. The answer is the index of the cache.
    pub(super) fn request_ended(
        &mut self,
        now: Instant,
        id: RequestId,
        result: Result<(), OperationError>,
    ) -> Option<usize> {
        let (number, piece) = cached::owner(id)?;
        self.all[number].request_ended(now, piece, result);
        Some(number)
    }

    /// The next operation that a cache has served. Operations that it could not serve wait for the engine.
    pub(super) fn poll_served(&mut self, number: usize) -> Option<usize> {
        while let Some(answer) = self.all[number].poll_answer() {
            match answer.ending {
                Ending::Done => return Some(answer.key),
                Ending::Failed => self.unserved.push(answer.key),
            }
        }
        None
    }

    /// The first operation that a cache could not serve.
    pub(super) fn next_unserved(&self) -> Option<usize> {
        self.unserved.first().copied()
    }

    /// Removes the operation of [`Caches::next_unserved`].
    pub(super) fn take_unserved(&mut self) {
        self.unserved.remove(0);
    }

    /// The export of a cache's request.
    pub(super) fn export_of(&self, id: RequestId) -> Option<usize> {
        let (number, piece) = cached::owner(id)?;
        Some(self.all[number].export_of(piece))
    }

    /// The engine has accepted a request of an operation.
    pub(super) fn note_change(&mut self, disk: &Disk, operations: &Operations, request: &Request) {
        let operation = &operations[request.id.0 as usize].operation;
        if request.direction == Direction::Write
            && let Some(number) = self.of(&operations.exports, operation)
        {
            let memory = operations.memory_of(request, request.extent);
            let (start, _) = self.span_in_volume(disk, request.extent, number);
            self.all[number].write_submitted(request.id, start, memory);
        }
    }

    /// A request of an operation has ended.
    pub(super) fn note_end(&mut self, disk: &Disk, operations: &Operations, finished: &Finished) {
        let request = &finished.request;
        let operation = &operations[request.id.0 as usize].operation;
        let Some(number) = self.of(&operations.exports, operation) else {
            return;
        };
        let result = match finished.status {
            Status::Good => Ok(()),
            status => Err(status),
        };
        match request.direction {
            Direction::Write => self.all[number].write_ended(request.id, result),
            Direction::Read => {
                let memory = operations.memory_of(request, request.extent);
                let (start, _) = self.span_in_volume(disk, request.extent, number);
                self.all[number].apply_newer(start, memory);
            }
        }
    }

    /// The back end has trimmed or zeroed the blocks of an operation, or has tried to.
    pub(super) fn note_punch(&mut self, operations: &Operations, key: usize) {
        let operation = &operations[key].operation;
        if let Some(number) = self.of(&operations.exports, operation) {
            self.all[number].void(operation.offset, operation.length);
        }
    }
}

/// Whether a pending operation of `such` a kind changes some of the same pages.
fn is_beside(operations: &Operations, operation: &Operation, such: fn(&Operation) -> bool) -> bool {
    let pages = |operation: &Operation| {
        let span = operations.exports.span(operation);
        (
            span.offset / PAGE,
            (span.offset + span.length).div_ceil(PAGE),
        )
    };
    if operation.length == 0 {
        return false;
    }
    let own = pages(operation);
    operations.iter().any(|(_, pending)| {
        let other = &pending.operation;
        other.is_change() && such(other) && {
            let theirs = pages(other);
            own.0 < theirs.1 && theirs.0 < own.1
        }
    })
}
