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

use block::{
    Class, Direction, Durability, Extent, Finished, Instant, Lba, Request, RequestId, Status,
};
use cache::level::Ending;
use scheduler::background::TaskId;

use super::operations::{From, Operation};
use super::resize::Resize;
use super::{EventLoop, Export};
use crate::arena::Memory;
use crate::cached::{self, Cached, Readmore, Setting, Site, Upgrade, Whose};
use crate::operation::{Ask, Failed};
use crate::status;

mod flushing;
mod wishing;

use flushing::{Draining, Loss};

/// The caches of a loop.
#[derive(Default)]
pub(super) struct Caches {
    all: Vec<Cached>,
    /// Counts what was stored.
    serial: u64,
    draining: Vec<Draining>,
    /// The last one of each, if there was one.
    losses: Vec<Loss>,
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
    pub(super) fn next_wakeup(&self, now: Instant) -> Option<Instant> {
        let each = self.all.iter();
        each.filter_map(|cached| cached.next_wakeup(now)).min()
    }

    /// Drives may have lost what was not on their medium.
    pub(super) fn forget(&mut self) {
        self.all.iter_mut().for_each(Cached::forget);
    }

    pub(super) fn resize(&mut self, resize: &Resize) {
        for cached in &mut self.all {
            if cached.site().offset == resize.offset {
                cached.resize(resize.to);
            }
        }
    }

    /// Where the bytes of a part of a request are, if it is a cache's.
    pub(super) fn memory_of(&self, request: &Request, part: Extent) -> Option<Memory> {
        let (number, place) = cached::owner(request.id)?;
        Some(self.all[number].memory_of(place, part))
    }

    pub(super) fn told(&self) -> Vec<status::Cache> {
        self.all.iter().map(Cached::told).collect()
    }
}

impl EventLoop {
    /// The loop, with caches before volumes: for each its setting, where the volume begins, and its
    /// length. Nothing may have happened yet.
    ///
    /// # Errors
    /// If one cannot be composed so, there is no memory for it, the drive's blocks are larger than pages,
    /// or it has no free blocks for one that wants them.
    pub fn with_caches(mut self, all: &[(Setting, u64, u64)]) -> io::Result<Self> {
        let block_bytes = self.shape.block_bytes;
        if !all.is_empty() && !cached::PAGE.is_multiple_of(u64::from(block_bytes)) {
            return Err(io::Error::other(format!(
                "a cache before a drive with blocks of {block_bytes} bytes: expected blocks that \
                 divide its pages of {} bytes",
                cached::PAGE
            )));
        }
        for (number, &(ref setting, offset, length)) in all.iter().enumerate() {
            if setting.readmore == Readmore::Free {
                let may = self.may_scan();
                may.map_err(|problem| io::Error::other(format!("readmore free: {problem}")))?;
            }
            let mut exports = self.exports.iter();
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
        Ok(self)
    }

    /// The cache before the operation's volume.
    pub(super) fn cache_of(&self, operation: &Operation) -> Option<usize> {
        if self.caches.all.is_empty() {
            return None;
        }
        let offset = self.exports[operation.export].offset;
        let mut all = self.caches.all.iter();
        all.position(|cached| cached.site().offset == offset)
    }

    /// Whether there is a cache before the volume of an export.
    pub(super) fn has_cache(&self, export: usize) -> bool {
        let offset = self.exports[export].offset;
        let mut all = self.caches.all.iter();
        all.any(|cached| cached.site().offset == offset)
    }

    /// Whether it has to wait until its cache has room for it, or until what must not be done beside it
    /// has ended: what is done to space is not ordered with writes by anybody else.
    pub(super) fn waits_for_cache(&mut self, operation: &Operation) -> bool {
        let Some(number) = self.cache_of(operation) else {
            return false;
        };
        let (start, length) = (operation.offset, operation.length);
        match operation.ask {
            Ask::Read | Ask::Cache => !self.caches.all[number].has_room(),
            Ask::Flush => false,
            Ask::Write { .. } => self.caches.punching > 0 && self.is_beside(operation, is_punch),
            Ask::Trim { .. } | Ask::Zero { .. } => {
                self.is_beside(operation, |_| true)
                    || self.caches.all[number].is_changing(start, length)
            }
        }
    }

    /// Whether the volume of an export has all that was acknowledged: otherwise what it says of its
    /// holes is not so.
    pub(super) fn is_written(&self, export: usize) -> bool {
        let Some(Export { offset, .. }) = self.exports.get(export) else {
            return true;
        };
        let mut of_it = self
            .caches
            .all
            .iter()
            .filter(|c| c.site().offset == *offset);
        !of_it.any(|cached| cached.has_unwritten(u64::MAX))
    }

    /// Whether an operation that changes some of the same pages, and is `such` a one, is under way.
    fn is_beside(&self, operation: &Operation, such: fn(&Operation) -> bool) -> bool {
        let pages = |operation: &Operation| {
            let span = self.span(operation);
            let page = cached::PAGE;
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
            let changes = !matches!(other.ask, Ask::Read | Ask::Cache | Ask::Flush);
            changes && other.length > 0 && such(other) && {
                let theirs = pages(other);
                own.0 < theirs.1 && theirs.0 < own.1
            }
        })
    }

    /// Whether a write that has just begun needs nothing more than to be kept.
    pub(super) fn is_stored(&mut self, key: usize) -> bool {
        let operation = self.pending[key].operation;
        let Ask::Write {
            durability: Durability::Volatile,
        } = operation.ask
        else {
            return false;
        };
        let Some(number) = self.cache_of(&operation) else {
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
        cached.store(self.now, self.caches.serial, operation.offset, memory)
    }

    /// Whether an operation that has just begun reads, and its volume has a cache, which sees to it.
    pub(super) fn is_read_through_cache(&mut self, key: usize) -> bool {
        let pending = &self.pending[key];
        let operation = pending.operation;
        let class = match operation.ask {
            Ask::Read => self.class_of(&operation),
            Ask::Cache => Class::Background,
            _ => return false,
        };
        let Some(number) = self.cache_of(&operation) else {
            return false;
        };
        let memory = pending.bytes.memory();
        let client = match &pending.from {
            From::Connection { place, .. } => *place as u32 + 1,
            From::Posted(_) | From::Copied(_) => 0,
        };
        let (start, length) = self.span_in_volume(self.around(&operation), number);
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
            .read(self.now, &whose, (start, length), memory)
            .is_err()
        {
            self.fail(key, Failed::Invalid);
            return true;
        }
        if class != Class::Background {
            cached.hasten((start, length), class, &mut self.caches.upgrades);
        }
        self.upgrade_pieces();
        self.take_cache_answers(number);
        true
    }

    /// Blocks of the drive as bytes of a volume with a cache: where they begin, and how many.
    fn span_in_volume(&self, extent: Extent, number: usize) -> (u64, u64) {
        let block = u64::from(self.shape.block_bytes);
        let start = extent.start().0 * block - self.caches.all[number].site().offset;
        (start, extent.length().0 * block)
    }

    fn upgrade_pieces(&mut self) {
        let mut upgrades = std::mem::take(&mut self.caches.upgrades);
        for Upgrade { id, extent, class } in upgrades.drain(..) {
            // What is at the drive already is as fast as can be.
            let _ = self.engine.upgrade(self.now, id, extent, class);
        }
        self.caches.upgrades = upgrades;
    }

    /// Tells the engine what the caches want; whether there was something.
    pub(super) fn ask_for_caches(&mut self) -> bool {
        let mut is_any = false;
        for number in 0..self.caches.all.len() {
            loop {
                let engine = &self.engine;
                let has_room = |class| engine.has_room(class);
                let cached = &mut self.caches.all[number];
                let Some(request) = cached.next_request(self.now, &has_room) else {
                    break;
                };
                is_any = true;
                if self.engine.submit(self.now, request).is_err() {
                    self.piece_ended(request.id, Err(Failed::Invalid));
                }
            }
        }
        is_any |= self.read_again();
        is_any |= self.tell_wishes();
        is_any | self.end_drained()
    }

    /// Reads what could not be had through a cache; whether any did.
    fn read_again(&mut self) -> bool {
        let mut is_any = false;
        while let Some(&key) = self.caches.again.first() {
            let operation = self.pending[key].operation;
            let class = self.class_of(&operation);
            if !self.engine.has_room(class) {
                break;
            }
            self.caches.again.remove(0);
            is_any = true;
            match operation.ask {
                Ask::Read => {
                    let (read, volatile) = (Direction::Read, Durability::Volatile);
                    self.submit(key, self.around(&operation), read, class, volatile);
                }
                // Nobody gets the bytes.
                _ => self.answer(key),
            }
        }
        is_any
    }

    /// A request of a cache has ended.
    pub(super) fn piece_finished(&mut self, finished: &Finished) {
        let result = match finished.status {
            Status::Good => Ok(()),
            _ => Err(Failed::Io),
        };
        self.piece_ended(finished.request.id, result);
    }

    fn piece_ended(&mut self, id: RequestId, result: Result<(), Failed>) {
        let Some((number, place)) = cached::owner(id) else {
            return;
        };
        self.caches.all[number].ended(self.now, place, result);
        self.take_cache_answers(number);
    }

    pub(super) fn take_cache_answers(&mut self, number: usize) {
        while let Some(answer) = self.caches.all[number].poll_answer() {
            match answer.ending {
                Ending::Done => self.answer(answer.key),
                Ending::Failed => self.caches.again.push(answer.key),
            }
        }
    }

    /// The export for which the engine was asked for something.
    pub(super) fn export_of(&self, request: &Request) -> usize {
        match cached::owner(request.id) {
            Some((number, place)) => self.caches.all[number].export_of(place),
            None => self.pending[request.id.0 as usize].operation.export,
        }
    }

    /// The engine has just been asked for something for an operation.
    pub(super) fn note_change(&mut self, request: &Request) {
        let operation = self.pending[request.id.0 as usize].operation;
        if request.direction == Direction::Write
            && let Some(number) = self.cache_of(&operation)
        {
            let memory = self.memory_of(request, request.extent);
            let (start, _) = self.span_in_volume(request.extent, number);
            self.caches.all[number].changing(request.id, start, memory);
        }
    }

    /// That has ended.
    pub(super) fn note_end(&mut self, finished: &Finished) {
        let request = &finished.request;
        let operation = self.pending[request.id.0 as usize].operation;
        let Some(number) = self.cache_of(&operation) else {
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
                let (start, _) = self.span_in_volume(request.extent, number);
                self.caches.all[number].renew(start, memory);
            }
        }
    }

    /// Something was done to space, without the engine.
    pub(super) fn note_punch(&mut self, key: usize) {
        let operation = self.pending[key].operation;
        if let Some(number) = self.cache_of(&operation) {
            self.caches.all[number].void(operation.offset, operation.length);
        }
    }

    /// An operation has begun: as long as it is not answered, [`EventLoop::note_answer`], it counts.
    pub(super) fn note_begun(&mut self, operation: &Operation) {
        if is_punch(operation) && self.cache_of(operation).is_some() {
            self.caches.punching += 1;
        }
    }

    /// An operation is answered now.
    pub(super) fn note_answer(&mut self, operation: &Operation) {
        if is_punch(operation) && self.cache_of(operation).is_some() {
            self.caches.punching -= 1;
        }
    }

    /// What a background read has brought, with what caches have of it that the drive has not.
    pub(super) fn put_cached(&self, start: Lba, memory: Memory) {
        let from = start.0 * u64::from(self.shape.block_bytes);
        let to = from + memory.length as u64;
        for cached in self.caches.all.iter().filter(|c| c.writes_back()) {
            let site = cached.site();
            let (first, end) = (from.max(site.offset), to.min(site.offset + site.length));
            if first < end {
                let part = memory.part((first - from) as usize, (end - first) as usize);
                cached.renew(first - site.offset, part);
            }
        }
    }
}

/// Whether it does something to space, which the engine may not learn of.
fn is_punch(operation: &Operation) -> bool {
    matches!(operation.ask, Ask::Trim { .. } | Ask::Zero { .. })
}
