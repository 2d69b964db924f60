//! Guaranteed streams: their clients, and their buffers.
//!
//! ```text
//!   control socket --attach, position--> engine: what is to be read or written by when
//!   front end ------ reads, writes ----> buffer of the stream, or the engine    (`meeting`)
//!   engine --------- transfers --------> back end, into and out of that buffer (`transfers`)
//!   flushes -------- copies of what is not written yet                         (`copies`)
//! ```
//!
//! **No read is stale.**
//!
//! - A write of any client updates the buffers before it is answered (`table`).
//! - Blocks that were in flight from the drive meanwhile are discarded.
//! - A recording's buffer is written to the drive before a read of the drive, and before a flush ends.

use std::time;

use block::{Class, Command, CommandId, Duration, Extent, Lba};
use engine::streams::StreamEvent;
use headtime_client::wire::{self, StreamUpdate};
use stream::admission::Promises;
use stream::location::Change;
use stream::memory::MemoryRule;
use stream::playout::Standing;
use stream::streams::{Answer, Notice, StreamId};

use super::exports::Exports;
use super::operation::{NextStep, Operation, PendingOperation};
use super::operations::Operations;
use crate::arena::Memory;
use crate::disk::Disk;
use crate::disk::back_end::Span;
use crate::status;

mod buffer;
mod copies;
mod events;
mod granting;
pub(super) mod meeting;
mod preferences;
mod table;
mod transfers;

use copies::Copies;
pub use events::StreamEvents;
use preferences::Preferences;
use table::{Entry, StreamTable};
use transfers::StreamTransfers;

/// Limits of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of all buffers together.
    pub memory: u64,
    /// The duration of a batch in real time, if the client does not limit its memory.
    pub batch: time::Duration,
    /// The engine's unit of buffers, in bytes.
    pub page: u64,
    /// The latency of the host, in real time.
    pub latency: time::Duration,
}

impl Settings {
    /// The rule of the streams' memory.
    pub fn memory_rule(&self) -> MemoryRule {
        let nanos = |length: time::Duration| Duration::from_nanos(length.as_nanos() as u64);
        MemoryRule {
            total: self.memory,
            batch: nanos(self.batch),
            page: self.page,
            latency: nanos(self.latency),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            // Choices: 64 streams of 4 MB; batches of a second, as in ABISS' figures, which leave the
            // disk to other clients for long stretches; a wakeup of Linux on a busy machine.
            memory: 256 << 20,
            batch: time::Duration::from_secs(1),
            page: 4096,
            latency: time::Duration::from_millis(10),
        }
    }
}

/// A request for a stream.
pub struct StreamRequest {
    /// The number of the stream, which is never used twice.
    pub stream: u64,
    /// The user who owns the stream.
    pub user: u32,
    /// The terms and the places of the file.
    pub attach: wire::Attach,
    /// The receiver of its events.
    pub events: StreamEvents,
}

/// All streams of a drive.
#[derive(Default)]
pub(crate) struct VolumeStreams {
    settings: Settings,
    table: StreamTable,
    preferences: Preferences,
    transfers: StreamTransfers,
    copies: Copies,
    /// Operations that their streams refused, and that wait for room at the engine.
    redirected: Vec<usize>,
    /// Acknowledged blocks that could not be written. The next flush fails.
    lost: Vec<Extent>,
    is_stopping: bool,
    totals: Totals,
}

/// Counters since the loop began.
#[derive(Default)]
struct Totals {
    granted: u64,
    refused: u64,
    /// Batches that came too late.
    late: u64,
    /// Guarantees that lapsed.
    lapsed: u64,
}

/// Requests of clients.
impl VolumeStreams {
    /// Sets the limits of streams that are attached from now on.
    pub(crate) fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Whether nothing is left that has to end. Copies outlive their streams.
    pub(super) fn is_empty(&self) -> bool {
        self.table.0.is_empty() && self.copies.is_empty() && self.redirected.is_empty()
    }

    /// Whether a stream is on an export.
    pub(super) fn uses(&self, export: usize) -> bool {
        let mut streams = self.table.0.iter();
        self.preferences.uses(export) || streams.any(|entry| entry.export == export)
    }

    /// Moves a stream's playout point. A stream that is gone or closing ignores it.
    pub(crate) fn position(&mut self, disk: &mut Disk, position: &wire::Position) {
        if let Some(entry) = self.table.with_number(position.stream) {
            let _ = disk.engine.position(disk.now, entry.id, position.offset);
        }
    }

    /// Replaces the places of a stream's file.
    ///
    /// # Errors
    /// If there is no such stream, or the places are not in its volume.
    pub(crate) fn refresh(
        &mut self,
        disk: &mut Disk,
        exports: &Exports,
        refresh: &wire::Refresh,
    ) -> Result<wire::FileChange, wire::StreamRefused> {
        if let Some(done) = self.preferences.refresh(exports, refresh) {
            return done;
        }
        let entry = self.table.with_number(refresh.stream);
        let entry = entry.ok_or_else(|| refused(format!("no stream {}", refresh.stream)))?;
        let map = exports
            .map(entry.export, &refresh.places)
            .map_err(refused)?;
        let changed = disk.engine.refresh(disk.now, entry.id, map.clone());
        let change = changed.map_err(|error| refused(error.to_string()))?;
        if let Some(kept) = entry.relocate(&map, change) {
            self.transfers.supersede_from(entry.id, kept);
        }
        Ok(match change {
            Change::Same => wire::FileChange::Same,
            Change::Grown => wire::FileChange::Grown,
            Change::Shrunk => wire::FileChange::Shrunk,
            Change::Moved(at) => wire::FileChange::Moved(at),
            Change::Punched(at) => wire::FileChange::Punched(at),
        })
    }

    /// Closes a stream. A recording's buffer is still written.
    pub(crate) fn close(&mut self, disk: &mut Disk, number: u64) {
        self.preferences.remove(disk, number);
        if let Some(entry) = self.table.with_number(number) {
            // It may be closing already.
            let _ = disk.engine.detach(disk.now, entry.id);
        }
    }

    /// Ends all streams, notifies their clients of the reason, and refuses new ones.
    pub(crate) fn stop(&mut self, disk: &mut Disk, reason: &str) {
        self.is_stopping = true;
        self.preferences.end(reason);
        self.end(disk, reason, |_| true);
    }

    /// Ends the recordings that have some of these blocks, and notifies their clients of the reason.
    pub(super) fn end_recordings(&mut self, disk: &mut Disk, extent: Extent, reason: &str) {
        self.end(disk, reason, |entry| {
            entry.records() && entry.buffer.parts(extent).next().is_some()
        });
    }

    fn end(&mut self, disk: &mut Disk, reason: &str, such: impl Fn(&Entry) -> bool) {
        for entry in self.table.0.iter().filter(|entry| such(entry)) {
            entry.send(StreamUpdate::Ended {
                reason: reason.to_owned(),
            });
            // It may be closing already.
            let _ = disk.engine.detach(disk.now, entry.id);
        }
    }

    /// All streams in a listing, without the name of the drive.
    pub(crate) fn listed(&self, disk: &Disk) -> Vec<wire::Listed> {
        let streams = self.table.0.iter().map(|entry| entry.listed(disk));
        streams.chain(self.preferences.listed()).collect()
    }

    /// The streams in the status.
    pub(crate) fn summary(&self, disk: &Disk) -> status::StreamTotals {
        let guarantees = disk.engine.guarantees();
        let head_ppm = guarantees.plan().map_or(0, |plan| plan.share / 1_000);
        let others = guarantees.rules();
        let left_ppm = others.map_or(0, |rules| {
            1_000_000_u64.saturating_sub(head_ppm + 1_000 * u64::from(rules.foreground_permille))
        });
        let overruns = guarantees.overruns();
        status::StreamTotals {
            now: self.table.0.len() as u64,
            memory_bytes: self.table.memory(),
            granted_total: self.totals.granted,
            refused_total: self.totals.refused,
            late_total: self.totals.late,
            lapsed_total: self.totals.lapsed,
            overruns_total: overruns.count,
            longest_overrun_us: disk.clock.scale().real(overruns.longest).as_micros() as u64,
            strained: guarantees.promises() == Some(Promises::Strained),
            head_ppm,
            left_ppm,
        }
    }
}

/// Events of the engine, and commands of streams.
impl VolumeStreams {
    /// Handles an event of the engine. The answer is an operation and its next step, if it has one.
    pub(super) fn handle(
        &mut self,
        disk: &Disk,
        operations: &mut Operations,
        event: StreamEvent,
    ) -> Option<(usize, NextStep)> {
        match event {
            StreamEvent::Moved { .. } => None,
            StreamEvent::Answer(Answer::Access {
                stream,
                access,
                served,
            }) => self.access_answered(operations, stream, access, served),
            StreamEvent::Answer(Answer::Notice { stream, notice }) => {
                self.notice(disk, stream, notice);
                None
            }
        }
    }

    fn notice(&mut self, disk: &Disk, id: StreamId, notice: Notice) {
        let Some(entry) = self.table.with_id(id) else {
            return;
        };
        match notice {
            Notice::Stands(standing) => {
                let before = std::mem::replace(&mut entry.standing, standing);
                match standing {
                    Standing::Serving => entry.send(StreamUpdate::Serving),
                    Standing::Behind => entry.send(StreamUpdate::Behind),
                    Standing::Filling if before == Standing::Filling => (),
                    Standing::Filling => {
                        entry.totals.lapsed += 1;
                        self.totals.lapsed += 1;
                        entry.send(StreamUpdate::Lapsed);
                    }
                }
            }
            Notice::Late { by, held_up } => {
                entry.totals.late += 1;
                self.totals.late += 1;
                let [us, held_up_us] =
                    [by, held_up].map(|time| disk.clock.scale().real(time).as_micros() as u64);
                entry.send(StreamUpdate::Late { us, held_up_us });
            }
            Notice::WriteFailed { from, to } => {
                entry.send(StreamUpdate::WriteFailed { from, to });
                let block = disk.block();
                let dirty = entry.dirty(disk);
                for lost in entry.buffer.extents_of(from / block, to / block) {
                    // The drive does not have them: later reads find what it has.
                    table::forget(&mut entry.buffer, lost, dirty);
                    self.lost.push(lost);
                }
            }
            Notice::Unguaranteed(refusal) => {
                let refused = granting::in_real_time(disk, &refusal);
                entry.send(StreamUpdate::Unguaranteed(refused));
            }
            Notice::Closed => self.table.0.retain(|entry| entry.id != id),
        }
    }

    /// Copies accepted writes into the buffers of recordings, before the engine can order them to be written.
    pub(super) fn keep_written(&mut self, disk: &Disk, operations: &Operations) {
        if self.table.keep_written(disk, operations) {
            self.copies.outdate_all();
        }
    }

    /// The blocks of a stream's command.
    pub(crate) fn extent_of(&self, id: CommandId) -> Option<Extent> {
        self.transfers.extent_of(id)
    }

    /// Finds the memory of a stream's command. The answer is the stream's blocks of it, if it is a stream's.
    pub(super) fn lay_out(
        &mut self,
        disk: &Disk,
        command: &Command,
        pieces: &mut [Option<Memory>; 3],
    ) -> Option<Extent> {
        self.transfers
            .lay_out(disk, &mut self.table, command, pieces)
    }

    /// Ends a stream's command, and stores the blocks of a good read.
    pub(crate) fn command_ended(&mut self, disk: &Disk, id: CommandId, is_good: bool) {
        self.transfers
            .command_ended(disk, &mut self.table, id, is_good);
    }

    /// Removes all blocks from the buffers of readers: the drive may have lost acknowledged writes.
    pub(super) fn forget_played(&mut self) {
        for entry in self.table.0.iter_mut().filter(|entry| !entry.records()) {
            entry.buffer.forget_all();
        }
        self.copies.outdate_all();
        self.transfers.supersede_all();
    }

    /// Whether some of these bytes are in a recording's buffer only. They are data, even in a hole of the back
    /// end.
    pub(super) fn has_recorded(&self, disk: &Disk, span: Span) -> bool {
        self.table.has_recorded(disk, span)
    }

    /// Copies newer blocks of recordings over the bytes of a background read.
    pub(crate) fn put_recorded(&self, disk: &Disk, start: Lba, memory: Memory) {
        self.table.put_recorded(disk, start, memory);
    }
}

/// Operations on blocks of streams.
impl VolumeStreams {
    /// The class of an operation: its export's, or the highest priority of a file with its blocks.
    pub(super) fn class_of(&self, exports: &Exports, operation: &Operation) -> Class {
        let class = exports.class(operation);
        let is_empty = self.preferences.is_empty() && self.table.0.is_empty();
        if is_empty || operation.length == 0 {
            return class;
        }
        let extent = exports.around(operation);
        let streams = self.table.0.iter().filter_map(|entry| {
            let priority = entry.terms.priority?;
            entry.buffer.parts(extent).next().map(|_| priority)
        });
        let priority = self.preferences.priorities(extent).chain(streams).min();
        match (class, priority) {
            (Class::BestEffort(_) | Class::Background, Some(priority)) => {
                Class::BestEffort(priority)
            }
            _ => class,
        }
    }

    /// The refused operation at an index of the queue.
    pub(super) fn redirected(&self, index: usize) -> Option<usize> {
        self.redirected.get(index).copied()
    }

    /// Removes the operation of [`VolumeStreams::redirected`].
    pub(super) fn take_redirected(&mut self, index: usize) {
        self.redirected.remove(index);
    }

    /// Updates recordings: an operation is about to change blocks on the drive.
    pub(super) fn change_recorded(
        &mut self,
        disk: &Disk,
        exports: &Exports,
        pending: &PendingOperation,
    ) {
        let operation = &pending.operation;
        if operation.is_change() {
            self.copies.outdate(exports.around(operation));
        }
        self.table.change_recorded(disk, exports, pending);
    }

    /// Updates all buffers: an operation is about to be answered.
    pub(super) fn changed(&mut self, disk: &Disk, exports: &Exports, ended: &PendingOperation) {
        let operation = &ended.operation;
        if !operation.is_change() || self.table.0.is_empty() {
            return;
        }
        let extent = exports.around(operation);
        self.transfers.supersede(extent);
        let is_whole = !exports.is_partial(operation);
        self.copies.outdate(extent);
        self.table.changed(disk, extent, ended, is_whole);
    }
}

fn refused(reason: impl Into<String>) -> wire::StreamRefused {
    wire::StreamRefused {
        reason: reason.into(),
        ..wire::StreamRefused::default()
    }
}

#[cfg(test)]
pub(in crate::volume) mod tests;
