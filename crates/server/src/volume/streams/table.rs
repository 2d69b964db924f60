//! The open streams of a drive, and the bytes in their buffers.
//!
//! ```text
//!   file of a recording   | on the drive | in memory only |
//!   window of the engine                 from             to
//! ```
//!
//! A buffer is never stale: every change of its blocks updates the buffer, or removes the blocks from it.

#![allow(
    unsafe_code,
    reason = "looks at the memory of writes that are pending, while no command uses it"
)]

use block::{Extent, Lba, Terms};
use headtime_client::wire::{self, StreamMode, StreamUpdate};
use stream::LocationMap;
use stream::location::Change;
use stream::playout::Standing;
use stream::streams::StreamId;

use super::buffer::{FileRun, StreamBuffer, extent_of};
use super::events::StreamEvents;
use crate::arena::Memory;
use crate::disk::Disk;
use crate::disk::back_end::Span;
use crate::volume::exports::Exports;
use crate::volume::operation::PendingOperation;
use crate::volume::operations::Operations;
use block::operation::{Ask, ZeroingPace};

/// A stream.
pub(super) struct Entry {
    pub(super) number: u64,
    pub(super) id: StreamId,
    pub(super) export: usize,
    pub(super) events: StreamEvents,
    pub(super) terms: Terms,
    pub(super) user: u32,
    pub(super) buffer: StreamBuffer,
    pub(super) standing: Standing,
    /// Reads and writes that the engine has not answered.
    pub(super) waiting: Vec<WaitingAccess>,
    pub(super) written: Written,
    pub(super) totals: StreamTotals,
}

/// A read or a write that the engine has not answered.
pub(super) struct WaitingAccess {
    pub(super) key: usize,
    /// The first block of the file, and the byte after the last, of a write.
    pub(super) write: Option<(u64, u64)>,
    pub(super) is_in_buffer: bool,
}

/// How far a recording is written.
pub(super) struct Written {
    /// The byte of the file before which flushes have copied the buffer to the drive.
    pub(super) copied: u64,
    /// The byte after the last write of the client.
    pub(super) end: u64,
    /// The number of times that the client continued elsewhere in the file.
    pub(super) leaps: u64,
}

/// The counters of a stream.
#[derive(Default)]
pub(super) struct StreamTotals {
    pub(super) from_memory: u64,
    pub(super) waited: u64,
    pub(super) late: u64,
    pub(super) lapsed: u64,
}

impl Entry {
    pub(super) fn records(&self) -> bool {
        self.terms.mode != StreamMode::Play
    }

    pub(super) fn send(&self, event: StreamUpdate) {
        self.events.send(self.number, event);
    }

    /// The stream in a listing, without the name of its drive.
    pub(super) fn listed(&self, disk: &Disk) -> wire::Listed {
        let (from, to) = self.window(disk).unwrap_or_default();
        wire::Listed {
            stream: self.number,
            drive: String::new(),
            user: self.user,
            terms: Terms {
                memory: Some(self.buffer.bytes()),
                ..self.terms.clone()
            },
            standing: match self.standing {
                Standing::Filling => wire::StreamStatus::Filling,
                Standing::Serving => wire::StreamStatus::Serving,
                Standing::Behind => wire::StreamStatus::Behind,
            },
            from,
            to,
            from_memory_total: self.totals.from_memory,
            waited_total: self.totals.waited,
            late_total: self.totals.late,
            lapsed_total: self.totals.lapsed,
        }
    }

    /// The bytes of the file that the engine wants in the buffer.
    pub(super) fn window(&self, disk: &Disk) -> Option<(u64, u64)> {
        disk.engine.guarantees().window(self.id)
    }

    /// The blocks of a recording's file that are in memory only.
    pub(super) fn dirty(&self, disk: &Disk) -> Option<(u64, u64)> {
        let (from, to) = self.window(disk).filter(|_| self.records())?;
        let block = disk.block();
        (from < to).then_some((from / block, to / block))
    }

    /// Whether a synchronous recording has some of these blocks of the file in memory only. Their write is not acknowledged:
    /// who found them there could find the older ones of the drive afterwards.
    pub(super) fn is_unacknowledged(&self, disk: &Disk, first: u64, count: u64) -> bool {
        self.terms.mode == StreamMode::RecordSync
            && self
                .dirty(disk)
                .is_some_and(|(from, to)| from < first + count && first < to)
    }

    /// Whether the buffer has all blocks of an extent from block `first` of the file on.
    pub(super) fn has(&self, first: u64, extent: Extent) -> bool {
        self.buffer.has(first, extent.length().0)
    }

    /// Copies a read's blocks, all of which are in the buffer, from block `first` of the file on.
    pub(super) fn fill(&self, pending: &PendingOperation, first: u64) {
        if let Some(memory) = pending.bytes.memory() {
            // SAFETY: the memory of a read that is pending and of which no command is in flight.
            self.buffer.copy_out(first, unsafe { memory.bytes_mut() });
        }
    }

    /// The file has changed its place or its length. The answer is the first byte of the file from which reads
    /// in flight have no use.
    pub(super) fn relocate(&mut self, map: &LocationMap, change: Change) -> Option<u64> {
        let kept = match change {
            Change::Same => return None,
            Change::Grown => u64::MAX,
            Change::Shrunk => map.length(),
            Change::Moved(at) | Change::Punched(at) => at,
        };
        if self.records() {
            // The rest of the buffer is written to the new place.
            self.buffer.moved(map, u64::MAX);
            self.written.copied = self.written.copied.min(kept);
            return None;
        }
        self.buffer.moved(map, kept);
        Some(kept)
    }

    /// Copies writes that the engine has accepted into the buffer of a recording. The answer is whether there were any.
    fn keep_written(&mut self, disk: &Disk, operations: &Operations) -> bool {
        let block = disk.block();
        if self.waiting.is_empty() || self.terms.mode == StreamMode::Play {
            return false;
        }
        let Some((window_start, point)) = self.window(disk) else {
            return false;
        };
        let mut is_any = false;
        for waiting in &mut self.waiting {
            let accepted = waiting
                .write
                .filter(|&(first, to)| window_start <= first * block && to <= point);
            let (Some((first, to)), false) = (accepted, waiting.is_in_buffer) else {
                continue;
            };
            waiting.is_in_buffer = true;
            is_any = true;
            let written = &mut self.written;
            if written.end != first * block {
                // The client continues elsewhere: no copy has any of that.
                (written.copied, written.leaps) = (0, written.leaps + 1);
            }
            written.end = to;
            let Some(memory) = operations[waiting.key].bytes.memory() else {
                continue;
            };
            // SAFETY: the memory of a write that is pending, filled by its client before.
            let bytes = unsafe { memory.bytes() };
            let blocks = bytes.chunks_exact(disk.shape.block_bytes as usize);
            for (bytes, number) in blocks.zip(first..) {
                self.buffer.put(number, bytes);
            }
        }
        is_any
    }
}

/// The open streams.
#[derive(Default)]
pub(super) struct StreamTable(pub(super) Vec<Entry>);

impl StreamTable {
    pub(super) fn with_number(&mut self, number: u64) -> Option<&mut Entry> {
        self.0.iter_mut().find(|entry| entry.number == number)
    }

    pub(super) fn with_id(&mut self, id: StreamId) -> Option<&mut Entry> {
        self.0.iter_mut().find(|entry| entry.id == id)
    }

    pub(super) fn recordings(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter(|entry| entry.records())
    }

    /// Bytes of all buffers.
    pub(super) fn memory(&self) -> u64 {
        self.0.iter().map(|entry| entry.buffer.bytes()).sum()
    }

    /// A block in the buffer of a recording whose write was acknowledged.
    pub(super) fn recorded(&self, disk: &Disk, lba: Lba) -> Option<&[u8]> {
        self.recordings().find_map(|entry| {
            let number = entry.buffer.whole(Extent::block(lba))?;
            let bytes = entry.buffer.get(number)?;
            (!entry.is_unacknowledged(disk, number, 1)).then_some(bytes)
        })
    }

    /// Whether some of these bytes of the drive are in memory only.
    pub(super) fn has_recorded(&self, disk: &Disk, span: Span) -> bool {
        let block = disk.block();
        let first = span.offset / block;
        let end = (span.offset + span.length).div_ceil(block);
        let Some(extent) = extent_of(Lba(first), end.saturating_sub(first)) else {
            return false;
        };
        self.0.iter().any(|entry| {
            entry.dirty(disk).is_some_and(|(from, to)| {
                let mut all = entry.buffer.extents_of(from, to).into_iter();
                all.any(|dirty| dirty.overlaps(extent))
            })
        })
    }

    /// Copies newer blocks of recordings over the bytes of a background read.
    pub(super) fn put_recorded(&self, disk: &Disk, start: Lba, memory: Memory) {
        if self.recordings().next().is_none() {
            return;
        }
        // SAFETY: a scratch buffer of the loop's, whose command has ended.
        let bytes = unsafe { memory.bytes_mut() };
        let block = disk.shape.block_bytes as usize;
        for (bytes, index) in bytes.chunks_exact_mut(block).zip(0..) {
            if let Some(newer) = self.recorded(disk, Lba(start.0 + index)) {
                bytes.copy_from_slice(newer);
            }
        }
    }

    /// Copies writes that the engine has accepted into the buffers of recordings, before the engine can order
    /// them to be written. The answer is whether there were any.
    pub(super) fn keep_written(&mut self, disk: &Disk, operations: &Operations) -> bool {
        let mut is_any = false;
        for entry in &mut self.0 {
            is_any |= entry.keep_written(disk, operations);
        }
        is_any
    }

    /// Changes blocks in the buffers of recordings. An operation is about to change them on the drive.
    pub(super) fn change_recorded(
        &mut self,
        disk: &Disk,
        exports: &Exports,
        pending: &PendingOperation,
    ) {
        let operation = &pending.operation;
        let is_zeroes = match operation.ask {
            Ask::Write { .. } => false,
            // The back end will refuse it.
            Ask::Zero {
                pace: ZeroingPace::Fast,
                ..
            } if !disk.shape.zeroes_fast => return,
            Ask::Zero { .. } | Ask::Trim { .. } => true,
            _ => return,
        };
        if self.0.is_empty() || operation.length == 0 {
            return;
        }
        let Some(extent) = exports.within(operation) else {
            return;
        };
        let memory = pending.bytes.memory().filter(|_| !is_zeroes);
        // SAFETY: the memory of a write that is pending, filled by its client before.
        let bytes = memory.map(|memory| unsafe { memory.bytes() });
        for entry in self.0.iter_mut().filter(|entry| entry.records()) {
            change(&mut entry.buffer, extent, bytes);
        }
    }

    /// Updates the buffers with an operation that changed blocks and is about to be answered.
    pub(super) fn changed(
        &mut self,
        disk: &Disk,
        extent: Extent,
        ended: &PendingOperation,
        is_whole: bool,
    ) {
        let memory = match (ended.operation.ask, ended.result) {
            (Ask::Write { .. }, Ok(())) if is_whole => ended.bytes.memory(),
            _ => None,
        };
        // SAFETY: the memory of a write that has ended and is not answered.
        let bytes = memory.map(|memory| unsafe { memory.bytes() });
        for entry in &mut self.0 {
            match (entry.records(), bytes) {
                (true, _) => {
                    if ended.result.is_err() {
                        let dirty = entry.dirty(disk);
                        forget(&mut entry.buffer, extent, dirty);
                    }
                }
                (false, Some(_)) => change(&mut entry.buffer, extent, bytes),
                (false, None) => forget(&mut entry.buffer, extent, None),
            }
        }
    }
}

/// Changes the blocks of a buffer that are in an extent: to these bytes, or to zeroes.
fn change(buffer: &mut StreamBuffer, extent: Extent, bytes: Option<&[u8]>) {
    let runs: Vec<FileRun> = buffer.parts(extent).collect();
    for run in runs {
        let before = run.extent.start().0 - extent.start().0;
        for index in 0..run.extent.length().0 {
            let block = buffer.block();
            let at = (before + index) as usize * block;
            match bytes {
                Some(bytes) => buffer.update(run.first + index, &bytes[at..at + block]),
                None => buffer.clear(run.first + index),
            };
        }
    }
}

/// Removes the blocks of an extent from a buffer, but for those that are still to be written.
pub(super) fn forget(buffer: &mut StreamBuffer, extent: Extent, but: Option<(u64, u64)>) {
    let runs: Vec<FileRun> = buffer.parts(extent).collect();
    let (from, to) = but.unwrap_or_default();
    for run in runs {
        for number in run.first..run.first + run.extent.length().0 {
            if !(from..to).contains(&number) {
                buffer.forget(number);
            }
        }
    }
}
