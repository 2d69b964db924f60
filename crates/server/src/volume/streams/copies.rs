//! What a recording has in memory only, written at once: before a flush ends, and before anybody
//! reads it from the drive.
//!
//! The recording's own batches write it again in their rounds: the same bytes, or newer ones. So
//! nobody who flushes waits for a round, and no batch changes its size because somebody flushes.

use block::{Durability, Extent};
use headtime_client::wire::Mode;

use super::Streams;
use crate::arena::Bytes;
use crate::arena::Region;
use crate::disk::Disk;
use crate::volume::Volumes;
use crate::volume::exports::Exports;
use crate::volume::operation::{Before, Copied, From, Operation};
use block::operation::{Ask, Failed};

/// A copy that is to be written.
pub(super) struct Copy {
    /// The flush that waits for it.
    flush: Option<usize>,
    operation: Operation,
    bytes: Region,
}

/// What recordings have only in memory.
#[derive(Default)]
struct Dirty {
    /// The places of streams, and the first blocks of their files.
    parts: Vec<(usize, u64, Extent)>,
    /// Before which bytes the streams are on the drive then.
    streams: Vec<Before>,
}

impl Streams {
    /// Copies what recordings have only in memory of some blocks of the drive. Those for a flush may
    /// wait for room at the engine, and leave out what an earlier one has written. No copy is longer than
    /// `longest` bytes.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub(super) fn copy_dirty(
        &mut self,
        disk: &Disk,
        exports: &Exports,
        (export, within): (usize, Extent),
        (flush, longest): (Option<usize>, usize),
    ) -> Result<Copied, Failed> {
        let block = disk.block();
        let offset = exports.offset(export);
        let Dirty { parts, streams } = self.dirty_parts(disk, exports, within, (flush, longest));
        let left = parts.len();
        for (place, first, extent) in parts {
            let length = extent.length().0 * block;
            let mut bytes = Region::map(length as usize).map_err(|_| Failed::NoSpace)?;
            let kept = &self.table[place].kept;
            kept.copy_out(first, bytes.bytes_mut());
            self.copies.push(Copy {
                flush,
                operation: Operation {
                    export,
                    ask: Ask::Write {
                        durability: Durability::Volatile,
                    },
                    offset: extent.start().0 * block - offset,
                    length,
                },
                bytes,
            });
        }
        Ok(Copied { left, streams })
    }

    fn dirty_parts(
        &self,
        disk: &Disk,
        exports: &Exports,
        within: Extent,
        (flush, longest): (Option<usize>, usize),
    ) -> Dirty {
        let block = disk.block();
        let longest = (longest as u64 / block).max(1);
        let mut found = Dirty::default();
        for (place, entry) in self.table.iter().enumerate() {
            // What is answered only when it is on the media needs no copy, and what is in another
            // volume is not asked for.
            let here = exports.extent(entry.export);
            let is_here = here.is_some_and(|here| here.overlaps(within));
            let is_answered = entry.terms.mode == Mode::Record;
            let Some((from, to)) = self.dirty(disk, place).filter(|_| is_here && is_answered)
            else {
                continue;
            };
            let from = match flush {
                Some(_) => from.max(entry.copied / block),
                None => from,
            };
            for run in entry.kept.parts(within) {
                let end = to.min(run.first + run.extent.length().0);
                let mut at = from.max(run.first);
                while at < end {
                    let count = (end - at).min(longest);
                    let start = block::Lba(run.extent.start().0 + (at - run.first));
                    let extent = super::kept::blocks(start, count);
                    found.parts.extend(extent.map(|extent| (place, at, extent)));
                    at += count;
                }
            }
            found.streams.push(Before {
                stream: entry.number,
                to: to * block,
                leaps: entry.leaps,
            });
        }
        found
    }

    /// The blocks of a recording's file that are in memory only.
    pub(super) fn dirty(&self, disk: &Disk, place: usize) -> Option<(u64, u64)> {
        let entry = &self.table[place];
        let (from, to) = disk
            .engine
            .guarantees()
            .window(entry.id)
            .filter(|_| entry.records())?;
        let block = disk.block();
        (from < to).then_some((from / block, to / block))
    }

    /// Whether no flush has anything to do with streams.
    fn is_idle(&self) -> bool {
        self.table.is_empty() && self.lost.is_empty()
    }

    /// Whether something of these blocks was lost. It is told once.
    fn take_lost(&mut self, within: Extent) -> bool {
        let before = self.lost.len();
        self.lost.retain(|lost| !lost.overlaps(within));
        self.lost.len() < before
    }

    fn forget_flush(&mut self, key: usize) {
        for copy in &mut self.copies {
            copy.flush = copy.flush.filter(|&flush| flush != key);
        }
    }

    /// The copies that wait.
    pub(super) fn queued(&self) -> impl Iterator<Item = &Operation> {
        self.copies.iter().map(|copy| &copy.operation)
    }
}

impl Volumes {
    /// Gives copies to the engine, as far as there is room; whether any was.
    pub(crate) fn begin_copies(&mut self, disk: &mut Disk) -> bool {
        let mut is_any = false;
        while let Some(copy) = self.streams.copies.first() {
            let class = self.exports.class(copy.operation.export);
            if !disk.engine.has_room(class) {
                break;
            }
            let Copy {
                flush,
                operation,
                bytes,
            } = self.streams.copies.remove(0);
            self.streams.copying += 1;
            self.begin_copy(disk, From::Copied(flush), operation, Bytes::Copied(bytes));
            is_any = true;
        }
        is_any
    }

    /// A copy has ended, and its flush goes on if it was the last.
    pub(crate) fn copy_ended(
        &mut self,
        disk: &mut Disk,
        flush: Option<usize>,
        result: Result<(), Failed>,
    ) {
        self.streams.copying -= 1;
        let Some(pending) = flush.and_then(|key| self.pending.get_mut(key)) else {
            return;
        };
        pending.result = pending.result.and(result);
        pending.copied.left -= 1;
        if let (0, Some(key)) = (pending.copied.left, flush) {
            self.copies_ended(disk, key);
        }
    }

    /// All copies of a flush have ended.
    pub(super) fn copies_ended(&mut self, disk: &mut Disk, key: usize) {
        let pending = &mut self.pending[key];
        let streams = std::mem::take(&mut pending.copied.streams);
        if pending.result.is_err() {
            return self.answer(disk, key);
        }
        for before in streams {
            let mut entries = self.streams.table.iter_mut();
            let entry = entries.find(|entry| entry.number == before.stream);
            if let Some(entry) = entry.filter(|entry| entry.leaps == before.leaps) {
                entry.copied = entry.copied.max(before.to);
            }
        }
        self.flush(disk, key);
    }

    /// A flush: what recordings have in memory is written first.
    pub(crate) fn flush_streams(&mut self, disk: &mut Disk, key: usize) {
        let export = self.pending[key].operation.export;
        let within = self.exports.extent(export);
        let Some(within) = within.filter(|_| !self.streams.is_idle()) else {
            return self.flush(disk, key);
        };
        if self.streams.take_lost(within) {
            self.pending[key].result = Err(Failed::Io);
            return self.answer(disk, key);
        }
        let which = (Some(key), self.longest);
        let copied = self
            .streams
            .copy_dirty(disk, &self.exports, (export, within), which);
        match copied {
            Ok(copied) => self.pending[key].copied = copied,
            Err(failed) => {
                // The flush waits for none of the copies that were made.
                self.streams.forget_flush(key);
                self.pending[key].result = Err(failed);
                return self.answer(disk, key);
            }
        }
        match self.pending[key].copied.left {
            0 => self.copies_ended(disk, key),
            _ => {
                self.begin_copies(disk);
            }
        }
    }
}
