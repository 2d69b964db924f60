//! The place of caches in the loop: between operations and the engine.
//!
//! ```text
//!   begin:     read ----------> cache --hit--> answer
//!              write ---------> kept (write = "back") --> answer
//!                     `-------> engine; the cache learns of each request that writes
//!   each turn: what the caches want of the engine, in front of what waits in line
//!   ends:      of caches' requests, of writes, of what was done to space
//! ```
//!
//! Without a cache all of this is one look at an empty list.

use std::io;

use block::{Class, Direction, Durability, Extent, Finished, Instant, Request, RequestId, Status};
use cache::level::Ending;
use scheduler::background::TaskId;

use super::Volumes;
use super::cached::{self, Cached, Site, Upgrade, Whose};
use super::exports::Exports;
use super::operation::{From, Operation};
use crate::arena::Memory;
use crate::config::caching::{PAGE, Readmore, Setting};
use crate::disk::Disk;
use crate::status;
use block::operation::{Ask, Failed};

mod flushing;
mod wishing;

use flushing::{Draining, Losses};

/// The caches of a loop.
#[derive(Default)]
pub(crate) struct Caches {
    all: Vec<Cached>,
    /// Counts what was stored.
    serial: u64,
    draining: Vec<Draining>,
    losses: Losses,
    /// Reads that are to be read without the cache.
    again: Vec<usize>,
    /// Operations under way that do something to space, of volumes with caches.
    punching: usize,
    upgrades: Vec<Upgrade>,
    /// What they wish for, of the engine.
    standing: Option<TaskId>,
}

impl Caches {
    /// Whether nothing of them is under way.
    pub(super) fn are_at_rest(&self) -> bool {
        self.all.iter().all(Cached::is_at_rest)
    }

    /// When one of them wants something of the engine.
    pub(crate) fn next_wakeup(&self, now: Instant) -> Option<Instant> {
        let each = self.all.iter();
        each.filter_map(|cached| cached.next_wakeup(now)).min()
    }

    /// Drives may have lost what was not on their medium.
    pub(crate) fn forget(&mut self) {
        self.all.iter_mut().for_each(Cached::forget);
    }

    /// Gives the volume at `offset` another length.
    pub(super) fn resize(&mut self, offset: u64, length: u64) {
        for cached in &mut self.all {
            if cached.site().offset == offset {
                cached.resize(length);
            }
        }
    }

    /// Where the bytes of a part of a request are, if it is a cache's.
    pub(super) fn memory_of(&self, request: &Request, part: Extent) -> Option<Memory> {
        let (number, place) = cached::owner(request.id)?;
        Some(self.all[number].memory_of(place, part))
    }

    /// The caches, for the status.
    pub(crate) fn listed(&self) -> Vec<status::Cache> {
        self.all.iter().map(Cached::told).collect()
    }

    /// The cache before the volume at `offset`.
    pub(super) fn at(&self, offset: u64) -> Option<usize> {
        let mut all = self.all.iter();
        all.position(|cached| cached.site().offset == offset)
    }

    /// The cache before the volume of an operation.
    pub(super) fn of(&self, exports: &Exports, operation: &Operation) -> Option<usize> {
        match self.all.is_empty() {
            true => None,
            false => self.at(exports.offset(operation.export)),
        }
    }

    /// Whether the volume at `offset` has all that was acknowledged: otherwise its holes may be data.
    pub(super) fn are_written(&self, offset: u64) -> bool {
        let cached = self.at(offset).map(|number| &self.all[number]);
        !cached.is_some_and(|cached| cached.has_unwritten(u64::MAX))
    }

    /// An operation has begun; it counts until [`Caches::end`].
    pub(super) fn begin(&mut self, exports: &Exports, operation: &Operation) {
        if operation.is_punch() && self.of(exports, operation).is_some() {
            self.punching += 1;
        }
    }

    /// An operation is answered now.
    pub(super) fn end(&mut self, exports: &Exports, operation: &Operation) {
        if operation.is_punch() && self.of(exports, operation).is_some() {
            self.punching -= 1;
        }
    }

    /// Changes what a background read has brought to what caches have of it that the drive has not.
    pub(crate) fn renew(&self, from: u64, memory: Memory) {
        let to = from + memory.length as u64;
        for cached in self.all.iter().filter(|cached| cached.writes_back()) {
            let site = cached.site();
            let (first, end) = (from.max(site.offset), to.min(site.offset + site.length));
            if first < end {
                let part = memory.part((first - from) as usize, (end - first) as usize);
                cached.renew(first - site.offset, part);
            }
        }
    }

    /// Blocks of the drive as bytes of a volume with a cache: where they begin, and how many.
    fn span_in_volume(&self, disk: &Disk, extent: Extent, number: usize) -> (u64, u64) {
        let start = extent.start().0 * disk.block() - self.all[number].site().offset;
        (start, extent.length().0 * disk.block())
    }

    /// Has the engine serve pieces sooner.
    fn upgrade_pieces(&mut self, disk: &mut Disk) {
        for Upgrade { id, extent, class } in self.upgrades.drain(..) {
            // What is at the drive already is as fast as can be.
            let _ = disk.engine.upgrade(disk.now, id, extent, class);
        }
    }
}

impl Volumes {
    /// The volumes, with caches before some: for each its setting, where the volume begins, and its
    /// length. Nothing may have happened yet.
    ///
    /// # Errors
    /// If one cannot be composed so, there is no memory for it, the drive's blocks are larger than pages,
    /// or it has no free blocks for one that wants them.
    pub(crate) fn add_caches(
        &mut self,
        disk: &Disk,
        all: &[(Setting, u64, u64)],
    ) -> io::Result<()> {
        let block_bytes = disk.shape.block_bytes;
        if !all.is_empty() && !PAGE.is_multiple_of(u64::from(block_bytes)) {
            return Err(io::Error::other(format!(
                "a cache before a drive with blocks of {block_bytes} bytes: expected blocks that \
                 divide its pages of {} bytes",
                PAGE
            )));
        }
        for (number, &(ref setting, offset, length)) in all.iter().enumerate() {
            if setting.readmore == Readmore::Free {
                let may = disk.check_background();
                may.map_err(|problem| io::Error::other(format!("readmore free: {problem}")))?;
            }
            let mut exports = self.exports.all().iter();
            let site = Site {
                offset,
                length,
                block_bytes,
                number,
                export: exports
                    .position(|export| export.offset == offset)
                    .unwrap_or(0),
            };
            self.caches.all.push(Cached::new(setting, site)?);
        }
        Ok(())
    }

    /// Whether an operation has to wait until its cache has room for it, or until operations that must not
    /// be in flight beside it have ended: writes do not order trims and zeroes.
    pub(super) fn waits_for_cache(&mut self, operation: &Operation) -> bool {
        let Some(number) = self.caches.of(&self.exports, operation) else {
            return false;
        };
        let (start, length) = (operation.offset, operation.length);
        match operation.ask {
            Ask::Read | Ask::Cache => !self.caches.all[number].has_room(),
            Ask::Flush => false,
            Ask::Write { .. } => {
                self.caches.punching > 0 && self.is_beside(operation, Operation::is_punch)
            }
            Ask::Trim { .. } | Ask::Zero { .. } => {
                self.is_beside(operation, |_| true)
                    || self.caches.all[number].prepare_punch(start, length)
            }
        }
    }

    /// Whether an operation that changes some of the same pages, and is `such` a one, is pending.
    fn is_beside(&self, operation: &Operation, such: fn(&Operation) -> bool) -> bool {
        let pages = |operation: &Operation| {
            let span = self.exports.span(operation);
            let page = PAGE;
            (
                span.offset / page,
                (span.offset + span.length).div_ceil(page),
            )
        };
        if operation.length == 0 {
            return false;
        }
        let own = pages(operation);
        self.pending.iter().any(|(_, pending)| {
            let other = &pending.operation;
            other.is_change() && such(other) && {
                let theirs = pages(other);
                own.0 < theirs.1 && theirs.0 < own.1
            }
        })
    }

    /// Stores a write that has just begun in a write-back cache. The answer is whether it needs nothing
    /// more.
    pub(super) fn store_in_cache(&mut self, disk: &Disk, key: usize) -> bool {
        let operation = self.pending[key].operation;
        let Ask::Write {
            durability: Durability::Volatile,
        } = operation.ask
        else {
            return false;
        };
        let Some(number) = self.caches.of(&self.exports, &operation) else {
            return false;
        };
        let Some(memory) = self.pending[key].bytes.memory() else {
            return false;
        };
        let cached = &mut self.caches.all[number];
        if !cached.writes_back() {
            return false;
        }
        self.caches.serial += 1;
        let memory = memory.part(0, operation.length as usize);
        cached.store(disk.now, self.caches.serial, operation.offset, memory)
    }

    /// Has the cache serve an operation that has just begun, if it reads and its volume has one. The
    /// answer is whether it does.
    pub(super) fn read_through_cache(&mut self, disk: &mut Disk, key: usize) -> bool {
        let pending = &self.pending[key];
        let operation = pending.operation;
        let class = match operation.ask {
            Ask::Read => self.streams.class_of(&self.exports, &operation),
            Ask::Cache => Class::Background,
            _ => return false,
        };
        let Some(number) = self.caches.of(&self.exports, &operation) else {
            return false;
        };
        let memory = pending.bytes.memory();
        let client = match &pending.from {
            From::Connection { client, .. } => client.place as u32 + 1,
            From::Posted(_) | From::Copied(_) => 0,
        };
        let around = self.exports.around(&operation);
        let (start, length) = self.caches.span_in_volume(disk, around, number);
        let memory = match (operation.ask, memory) {
            (Ask::Read, Some(memory)) => memory.part(0, length as usize),
            _ => self.zeroes.memory().part(0, 0),
        };
        let whose = Whose {
            key,
            export: operation.export,
            client,
            class,
        };
        let cached = &mut self.caches.all[number];
        if cached
            .read(disk.now, &whose, (start, length), memory)
            .is_err()
        {
            self.fail(disk, key, Failed::Invalid);
            return true;
        }
        if class != Class::Background {
            cached.hasten((start, length), class, &mut self.caches.upgrades);
        }
        self.caches.upgrade_pieces(disk);
        self.take_cache_answers(disk, number);
        true
    }

    /// Tells the engine what the caches want; whether there was something.
    pub(crate) fn ask_for_caches(&mut self, disk: &mut Disk) -> bool {
        let mut is_any = false;
        for number in 0..self.caches.all.len() {
            loop {
                let engine = &disk.engine;
                let has_room = |class| engine.has_room(class);
                let cached = &mut self.caches.all[number];
                let Some(request) = cached.next_request(disk.now, &has_room) else {
                    break;
                };
                is_any = true;
                if disk.engine.submit(disk.now, request).is_err() {
                    self.piece_ended(disk, request.id, Err(Failed::Invalid));
                }
            }
        }
        is_any |= self.read_again(disk);
        is_any |= self.caches.tell_wishes(disk);
        is_any | self.end_drained(disk)
    }

    /// Reads what could not be had through a cache; whether any did.
    fn read_again(&mut self, disk: &mut Disk) -> bool {
        let mut is_any = false;
        while let Some(&key) = self.caches.again.first() {
            let operation = self.pending[key].operation;
            let class = self.streams.class_of(&self.exports, &operation);
            if !disk.engine.has_room(class) {
                break;
            }
            self.caches.again.remove(0);
            is_any = true;
            match operation.ask {
                Ask::Read => {
                    let (read, volatile) = (Direction::Read, Durability::Volatile);
                    let around = self.exports.around(&operation);
                    self.submit(disk, key, around, read, class, volatile);
                }
                // Nobody gets the bytes.
                _ => self.answer(disk, key),
            }
        }
        is_any
    }

    /// A request of a cache has ended.
    pub(super) fn piece_finished(&mut self, disk: &mut Disk, finished: &Finished) {
        let result = match finished.status {
            Status::Good => Ok(()),
            _ => Err(Failed::Io),
        };
        self.piece_ended(disk, finished.request.id, result);
    }

    fn piece_ended(&mut self, disk: &mut Disk, id: RequestId, result: Result<(), Failed>) {
        let Some((number, place)) = cached::owner(id) else {
            return;
        };
        self.caches.all[number].ended(disk.now, place, result);
        self.take_cache_answers(disk, number);
    }

    pub(super) fn take_cache_answers(&mut self, disk: &mut Disk, number: usize) {
        while let Some(answer) = self.caches.all[number].poll_answer() {
            match answer.ending {
                Ending::Done => self.answer(disk, answer.key),
                Ending::Failed => self.caches.again.push(answer.key),
            }
        }
    }

    /// The export for which the engine was asked for something.
    pub(crate) fn export_of(&self, request: &Request) -> usize {
        match cached::owner(request.id) {
            Some((number, place)) => self.caches.all[number].export_of(place),
            None => self.pending[request.id.0 as usize].operation.export,
        }
    }

    /// The engine has just been asked for something for an operation.
    pub(super) fn note_change(&mut self, disk: &Disk, request: &Request) {
        let operation = self.pending[request.id.0 as usize].operation;
        if request.direction == Direction::Write
            && let Some(number) = self.caches.of(&self.exports, &operation)
        {
            let memory = self.memory_of(request, request.extent);
            let (start, _) = self.caches.span_in_volume(disk, request.extent, number);
            self.caches.all[number].changing(request.id, start, memory);
        }
    }

    /// That has ended.
    pub(super) fn note_end(&mut self, disk: &Disk, finished: &Finished) {
        let request = &finished.request;
        let operation = self.pending[request.id.0 as usize].operation;
        let Some(number) = self.caches.of(&self.exports, &operation) else {
            return;
        };
        let result = match finished.status {
            Status::Good => Ok(()),
            status => Err(status),
        };
        match request.direction {
            Direction::Write => self.caches.all[number].changed(request.id, result),
            Direction::Read => {
                let memory = self.memory_of(request, request.extent);
                let (start, _) = self.caches.span_in_volume(disk, request.extent, number);
                self.caches.all[number].renew(start, memory);
            }
        }
    }

    /// Something was done to space, without the engine.
    pub(super) fn note_punch(&mut self, key: usize) {
        let operation = self.pending[key].operation;
        if let Some(number) = self.caches.of(&self.exports, &operation) {
            self.caches.all[number].void(operation.offset, operation.length);
        }
    }
}
