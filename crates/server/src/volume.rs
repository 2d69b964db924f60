//! The volumes of a drive: the only place that knows bytes.
//!
//! ```text
//!   clients --operation--> [ streams? ] -> [ cache? ] -> [ edges? ] --request--> disk
//!           <--answer----   buffers of     pages         partial    <-finished--
//!                           a stream                     writes
//! ```
//!
//! `Volumes` asks its owners in this order. Each owner serves an operation, makes it wait, or passes it on,
//! and returns its `NextStep`. No owner calls another one.
//!
//! | owner | state | file |
//! |---|---|---|
//! | `Operations` | pending operations, their memory, exports | `operations`, `exports` |
//! | `VolumeStreams` | buffers of guaranteed streams | `streams` |
//! | `Caches` | pages of volumes with a cache | `caching`, `cached` |
//! | `Checkpoints` | moments of volumes, and changes that wait for them | `checkpoints` |
//! | `PartialWrites` | blocks that are changed in part | `edges` |
//! | `Punches` | trims and zeroes of the back end, and their order with reads | `punches` |
//! | `PostedQueue` | operations of front ends on other threads | `posted` |
//! | `Classifiers` | I/O priorities of requests that have not arrived | `crate::classify` |

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use block::operation::{Ask, OperationError};
use block::{Class, CommandId, Direction, Durability, Extent, Lba, Owner, RequestId};
use headtime_client::wire;

use crate::arena::{Arena, Bytes, Memory};
use crate::classify::Classifiers;
use crate::disk::Disk;

pub mod cached;
mod caching;
pub(crate) mod checkpoints;
mod classes;
mod edges;
pub(crate) mod exports;
mod layout;
pub(crate) mod operation;
mod operations;
pub mod posted;
mod punches;
mod requests;
mod resize;
mod room;
mod space;
pub mod streams;

use caching::Caches;
use checkpoints::Checkpoints;
pub use checkpoints::{CheckpointOrder, OpenBitmap, Opened, Release};
use edges::PartialWrites;
pub use exports::Export;
use exports::Exports;
use operation::{NextStep, Operation, OperationSource, Stalled};
pub use operations::LONGEST;
use operations::Operations;
pub(crate) use operations::ZEROES;
use posted::PostedQueue;
use punches::Punches;
pub use resize::Resize;
use room::WaitingForRoom;
use streams::meeting::Meeting;
use streams::{StreamRequest, VolumeStreams};

/// All volumes of a drive.
pub(crate) struct Volumes {
    pub(crate) streams: VolumeStreams,
    pub(crate) caches: Caches,
    partial: PartialWrites,
    punches: Punches,
    waiting: WaitingForRoom,
    pub(crate) posted: PostedQueue,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) classifiers: Classifiers,
    /// Last: what is above may point into its memory.
    pub(crate) operations: Operations,
}

/// Operations from their begin to their answer.
impl Volumes {
    /// Volumes without operations, whose bytes are in `arena`.
    ///
    /// # Errors
    /// If the arena has no room for [`ZEROES`].
    pub(crate) fn new(exports: Exports, arena: Arena, longest: usize) -> io::Result<Self> {
        Ok(Volumes {
            streams: VolumeStreams::default(),
            caches: Caches::default(),
            partial: PartialWrites::default(),
            punches: Punches::default(),
            waiting: WaitingForRoom::default(),
            posted: PostedQueue::default(),
            checkpoints: Checkpoints::default(),
            classifiers: Classifiers::default(),
            operations: Operations::new(exports, arena, longest)?,
        })
    }

    /// Whether nothing is pending.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending() == 0 && self.streams.is_empty() && self.caches.are_idle()
    }

    /// The number of operations that were accepted and not answered.
    pub(crate) fn pending(&self) -> usize {
        self.operations.count() + self.posted.count() + self.checkpoints.held()
    }

    /// Discards everything that the drive may have lost with its power.
    pub(crate) fn forget(&mut self) {
        self.streams.forget_played();
        self.caches.forget();
        self.checkpoints
            .fail_all("the drive has lost its power: its buffer may have had bytes of the moment");
    }

    /// Whether a read needs no memory, because the back end has the device in memory.
    pub(crate) fn is_mapped(&self, disk: &Disk, operation: &Operation) -> bool {
        operation.ask == Ask::Read
            && disk.mapped().is_some()
            && !self.checkpoints.is_moment(operation.export)
            && self
                .caches
                .of(&self.operations.exports, operation)
                .is_none()
    }

    /// Memory for an operation's bytes, or `None` if there is none now.
    pub(crate) fn bytes_for(&mut self, disk: &Disk, operation: &Operation) -> Option<Bytes> {
        let device = disk.mapped().filter(|_| self.is_mapped(disk, operation));
        self.operations.bytes_for(operation, device)
    }

    /// Begins an operation whose offset and length were checked against the export.
    ///
    /// # Errors
    /// If there is no room now. The caller tries again when another operation has ended.
    pub(crate) fn begin(
        &mut self,
        disk: &mut Disk,
        source: OperationSource,
        operation: Operation,
        bytes: Bytes,
    ) -> Result<(), Stalled> {
        self.begin_or_hold(disk, source, operation, bytes)
    }

    /// Begins an operation that no checkpoint holds.
    ///
    /// # Errors
    /// As for [`Volumes::begin`].
    fn begin_admitted(
        &mut self,
        disk: &mut Disk,
        source: OperationSource,
        operation: Operation,
        bytes: Bytes,
    ) -> Result<(), Stalled> {
        // Streams do not wait for room.
        let meeting = self.meet_streams(disk, &operation);
        if let Meeting::Served(serving) = meeting {
            let key = self.operations.insert(source, operation, bytes);
            match self.streams.serve(disk, &mut self.operations, key, serving) {
                NextStep::Wait => drop(self.poll_streams(disk)),
                step => self.advance(disk, key, step),
            }
            return Ok(());
        }
        let exports = &self.operations.exports;
        let class = match operation.ask {
            Ask::Cache => Class::Background,
            _ => self.streams.class_of(exports, &operation),
        };
        let has_to_wait = self.partial.holds_of(exports, &operation)
            || self.punches.hold_back(&self.operations, &operation)
            || self.caches.holds_back(&self.operations, &operation);
        if !disk.engine.has_room(class) || meeting == Meeting::Later || has_to_wait {
            return Err(Stalled { source, bytes });
        }
        let is_empty = operation.length == 0 && operation.ask != Ask::Flush;
        let key = self.operations.insert(source, operation, bytes);
        self.caches.begin(&self.operations.exports, &operation);
        if is_empty || self.caches.store(disk.now, &self.operations, key) {
            self.answer(disk, key);
            return Ok(());
        }
        let through = self.caches.read(disk, &mut self.operations, key, class);
        if let Some((number, step)) = through {
            self.advance(disk, key, step);
            self.answer_cached(disk, number);
            return Ok(());
        }
        self.partial.hold(&mut self.operations, key);
        self.dispatch(disk, key);
        Ok(())
    }

    /// How an operation meets the streams of its blocks, after copies and ends of streams that it needs.
    fn meet_streams(&mut self, disk: &mut Disk, operation: &Operation) -> Meeting {
        match self.streams.meet(disk, &self.operations, operation) {
            Meeting::Recorded(extent) => match self.copy_before(disk, operation.export, extent) {
                true => Meeting::Apart,
                false => Meeting::Later,
            },
            Meeting::Partial(extent) => {
                let reason = "parts of its blocks are written by somebody else";
                self.streams.end_recordings(disk, extent, reason);
                self.poll_streams(disk);
                Meeting::Later
            }
            meeting => meeting,
        }
    }

    fn fail(&mut self, disk: &mut Disk, key: usize, failed: OperationError) {
        self.operations[key].result = Err(failed);
        self.answer(disk, key);
    }

    /// Ends an operation, and answers its source.
    fn answer(&mut self, disk: &mut Disk, key: usize) {
        let mut ended = self.operations.remove(key);
        let exports = &self.operations.exports;
        self.caches.end(exports, &ended.operation);
        if ended.edges.is_some() {
            self.partial.release(key);
        }
        if let OperationSource::Copied(flush) = ended.source {
            let next = self
                .streams
                .copy_ended(&mut self.operations, flush, ended.result);
            if let Some((key, step)) = next {
                self.advance(disk, key, step);
            }
            return;
        }
        if let OperationSource::Preserved { checkpoint, chunk } = ended.source {
            return self.checkpoints.copied(checkpoint, chunk, ended.result);
        }
        self.checkpoints.end_read(exports, &mut ended);
        self.streams.changed(disk, exports, &ended);
        self.operations.reply(ended);
    }
}

/// Operations that wait in an owner.
impl Volumes {
    /// A background read has ended, with these bytes or with none.
    pub(crate) fn background_read_ended(
        &mut self,
        disk: &mut Disk,
        id: CommandId,
        start: Lba,
        memory: Option<Memory>,
    ) {
        for number in 0..self.caches.count() {
            self.caches
                .background_read_ended(disk, number, (id, start), memory);
            self.answer_cached(disk, number);
        }
    }

    /// Continues partial writes that waited for earlier operations, and punches that waited for reads. The
    /// answer is whether there was one.
    pub(crate) fn begin_waiting(&mut self, disk: &mut Disk) -> bool {
        let (mut is_any, mut next) = (false, 0);
        while let Some((key, step)) =
            self.partial
                .next_waiting(disk, &mut self.operations, &mut next)
        {
            self.advance(disk, key, step);
            is_any = true;
        }
        while let Some((key, what, blocks)) = self.punches.next_ready(&self.operations) {
            disk.punch(key, what, blocks);
            is_any = true;
        }
        is_any
    }

    /// Submits what the caches want of the engine, and continues operations that waited for caches. The
    /// answer is whether there was anything.
    pub(crate) fn submit_for_caches(&mut self, disk: &mut Disk) -> bool {
        let mut is_any = false;
        for number in 0..self.caches.count() {
            while let Some(request) = self.caches.next_request(disk, number) {
                is_any = true;
                if disk.submit(request).is_err() {
                    self.cache_request_ended(disk, request.id, Err(OperationError::Invalid));
                }
            }
        }
        // Reads that the caches could not serve go to the engine.
        while let Some(key) = self.caches.next_unserved() {
            let operation = self.operations[key].operation;
            let class = self.streams.class_of(&self.operations.exports, &operation);
            if !disk.engine.has_room(class) {
                break;
            }
            self.caches.take_unserved();
            is_any = true;
            match operation.ask {
                Ask::Read => {
                    let read = (self.operations.around(key), Direction::Read);
                    self.submit(disk, key, read, class, Durability::Volatile);
                }
                // A prefetch has no use for the bytes.
                _ => self.answer(disk, key),
            }
        }
        is_any |= self.caches.submit_wanted(disk);
        let mut next = 0;
        while let Some((key, step)) =
            self.caches
                .next_drained(disk, &mut self.operations, &mut next)
        {
            is_any = true;
            self.advance(disk, key, step);
        }
        is_any
    }

    fn cache_request_ended(
        &mut self,
        disk: &mut Disk,
        id: RequestId,
        result: Result<(), OperationError>,
    ) {
        if let Some(number) = self.caches.request_ended(disk.now, id, result) {
            self.answer_cached(disk, number);
        }
    }

    /// Answers the operations that a cache has served.
    fn answer_cached(&mut self, disk: &mut Disk, number: usize) {
        while let Some(key) = self.caches.poll_served(number) {
            self.answer(disk, key);
        }
    }

    /// Flushes all volumes at the end of the service. Losses that a client's flush has reported are not reported
    /// again.
    pub(crate) fn flush_at_the_end(&mut self, disk: &mut Disk) -> LastFlushes {
        self.caches.forget_reported_losses();
        let flushes = LastFlushes::default();
        for export in 0..self.operations.exports.all().len() {
            let operation = Operation {
                export,
                ask: Ask::Flush,
                offset: 0,
                length: 0,
                owner: Owner::service(export as u64),
                class: None,
            };
            let failed = Arc::clone(&flushes.failed);
            let reply: operation::Reply = Box::new(move |result| {
                if let Err(error) = result {
                    tracing::error!(%error, "the last flush has failed");
                    failed.fetch_add(1, Ordering::Relaxed);
                }
            });
            // Other flushes are the only operations: there is room.
            let _ = self.begin(disk, OperationSource::Posted(reply), operation, Bytes::None);
        }
        flushes
    }

    /// Checks at the end of the service that all acknowledged data were written.
    ///
    /// # Errors
    /// If a cache has lost unwritten bytes since it began, or a last flush failed.
    pub(crate) fn check_end(&self, flushes: &LastFlushes) -> io::Result<()> {
        let lost: u64 = (self.caches.status().iter())
            .map(|cache| cache.lost_bytes_total)
            .sum();
        let failed = flushes.failed.load(Ordering::Relaxed);
        match (lost, failed) {
            (0, 0) => Ok(()),
            (0, _) => Err(io::Error::other(format!(
                "{failed} of the last flushes failed: acknowledged writes may be lost"
            ))),
            _ => Err(io::Error::other(format!(
                "{lost} acknowledged bytes could not be written"
            ))),
        }
    }
}

/// The flushes at the end of the service: the number of those that failed.
#[derive(Debug, Default)]
pub(crate) struct LastFlushes {
    failed: Arc<AtomicU64>,
}

/// Operations and streams.
impl Volumes {
    /// Grants a stream, or refuses it.
    ///
    /// # Errors
    /// The reason, and what would be granted instead.
    pub(crate) fn attach(
        &mut self,
        disk: &mut Disk,
        request: StreamRequest,
    ) -> Result<wire::Granted, wire::StreamRefused> {
        let caches = &self.caches;
        let is_cached = |offset| caches.at(offset).is_some();
        let granted = self
            .streams
            .attach(disk, &self.operations, request, is_cached)?;
        self.poll_streams(disk);
        Ok(granted)
    }

    /// Handles the engine's events of streams. The answer is whether there was one.
    pub(crate) fn poll_streams(&mut self, disk: &mut Disk) -> bool {
        let mut is_any = false;
        self.streams.keep_written(disk, &self.operations);
        while let Some(event) = disk.engine.poll_stream() {
            is_any = true;
            let next = self.streams.handle(disk, &mut self.operations, event);
            if let Some((key, step)) = next {
                self.advance(disk, key, step);
            }
        }
        is_any
    }

    /// Gives copies of recordings to the engine, as far as there is room. The answer is whether any was.
    pub(crate) fn begin_copies(&mut self, disk: &mut Disk) -> bool {
        let mut is_any = false;
        while let Some(copy) = self.streams.next_copy(disk, &self.operations.exports) {
            let (source, operation, bytes) = copy;
            let class = self.operations.exports.class(&operation);
            let key = self.operations.insert(source, operation, bytes);
            let write = (self.operations.around(key), Direction::Write);
            self.submit(disk, key, write, class, Durability::Volatile);
            is_any = true;
        }
        is_any
    }

    /// Queues copies of what recordings have only in memory of some blocks, before a later read, unless that was done
    /// for it and nothing has changed since. The answer is whether the engine has all of them.
    fn copy_before(&mut self, disk: &mut Disk, export: usize, extent: Extent) -> bool {
        self.begin_copies(disk);
        if self.streams.is_queued(&self.operations.exports, extent) {
            return false;
        }
        if self.streams.is_copied_before(extent) {
            return true;
        }
        let of = (export, extent);
        let Ok(copied) = self.streams.copy_dirty(disk, &self.operations, of, None) else {
            return false;
        };
        if copied.left > 0 {
            // The copies may take the room that the read needs.
            self.streams.note_copied_before(extent);
        }
        self.begin_copies(disk);
        !self.streams.is_queued(&self.operations.exports, extent)
    }

    /// Dispatches operations that streams refused, as far as there is room. The answer is whether there was
    /// one.
    pub(crate) fn begin_redirected(&mut self, disk: &mut Disk) -> bool {
        let (mut is_any, mut next) = (false, 0);
        while let Some(key) = self.streams.redirected(next) {
            let operation = self.operations[key].operation;
            let class = self.operations.exports.class(&operation);
            let extent = self.operations.around(key);
            let is_copied = match operation.ask {
                Ask::Read => self.copy_before(disk, operation.export, extent),
                _ => !self.streams.is_queued(&self.operations.exports, extent),
            };
            if !is_copied || !disk.engine.has_room(class) {
                next += 1;
                continue;
            }
            self.streams.take_redirected(next);
            self.operations[key].is_redirected = false;
            self.dispatch(disk, key);
            is_any = true;
        }
        is_any
    }
}

#[cfg(test)]
mod tests;
