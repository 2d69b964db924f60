//! Operations from their beginning to their answer.
//!
//! ```text
//!   read, write ---> engine ------------------------------------> answer
//!   zero ----------> engine, piece by piece --------------------> answer
//!   trim, zero ----> back end's space ---[if durable: flush]----> answer
//!   flush ---------> engine's flushes --------------------------> answer
//! ```
//!
//! Reads of a volume with a cache go there instead (`caching`). Operations that begin or end within a
//! block are in `edges`, those of front ends other than NBD in `posted`.

use block::{Class, Direction, Durability, Extent, Finished, Request, RequestId, Sectors, Status};
use engine::Flushed;

use super::Volumes;
use super::cached;
use super::operation::{Answer, From, Operation, Pending, Stalled};
use super::streams::Meeting;
use crate::arena::Bytes;
use crate::arena::Memory;
use crate::disk::Disk;
use crate::disk::back_end::Punch;
use block::operation::{Ask, Failed, Pace, Space};

impl Volumes {
    /// Whether the back end has the bytes of an operation in memory.
    pub(crate) fn is_mapped(&self, disk: &Disk, operation: &Operation) -> bool {
        operation.ask == Ask::Read
            && disk.mapped().is_some()
            && self.caches.of(&self.exports, operation).is_none()
    }

    /// Memory for an operation's bytes: nothing if there is none now.
    pub(crate) fn bytes_for(&mut self, disk: &mut Disk, operation: &Operation) -> Option<Bytes> {
        let (length, shown) = self.exports.memory_for(operation);
        match (operation.ask, disk.mapped()) {
            (Ask::Read, Some(device))
                if length > 0 && self.caches.of(&self.exports, operation).is_none() =>
            {
                let start = self.exports.around(operation).start().0 * disk.block();
                return Some(Bytes::Mapped(device.part(start as usize, length)));
            }
            (Ask::Zero { .. } | Ask::Trim { .. } | Ask::Flush, _) if length == 0 => {
                return Some(Bytes::None);
            }
            _ => (),
        }
        let mut buffer = self.arena.allocate(length)?;
        buffer.show(shown);
        Some(Bytes::Own(buffer))
    }

    /// Begins an operation whose offset and length were checked against the export.
    ///
    /// # Errors
    /// If there is no room now: it is to be tried again when something has ended.
    pub(crate) fn begin(
        &mut self,
        disk: &mut Disk,
        from: From,
        operation: Operation,
        bytes: Bytes,
    ) -> Result<(), Stalled> {
        // Streams do not wait for room.
        let meeting = self.meet_streams(disk, &operation);
        if let Meeting::Served(serving) = meeting {
            let key = self.insert(from, operation, bytes);
            self.serve_by_stream(disk, key, serving);
            return Ok(());
        }
        let class = self.streams.class_of(&self.exports, &operation);
        let room = match operation.ask {
            Ask::Cache => disk.engine.has_room(Class::Background),
            _ => disk.engine.has_room(class),
        };
        let has_to_wait =
            self.partial.holds_of(&self.exports, &operation) || self.waits_for_cache(&operation);
        if !room || meeting == Meeting::Later || has_to_wait {
            return Err(Stalled { from, bytes });
        }
        let is_empty = operation.length == 0 && operation.ask != Ask::Flush;
        let key = self.insert(from, operation, bytes);
        self.caches.begin(&self.exports, &operation);
        if is_empty || self.store_in_cache(disk, key) {
            self.answer(disk, key);
            return Ok(());
        }
        if self.read_through_cache(disk, key) {
            return Ok(());
        }
        self.hold_edges(key);
        self.dispatch(disk, key);
        Ok(())
    }

    /// Begins to write a copy of what a recording has in memory. There is room, as was asked before.
    pub(super) fn begin_copy(
        &mut self,
        disk: &mut Disk,
        from: From,
        operation: Operation,
        bytes: Bytes,
    ) {
        let class = self.exports.class(operation.export);
        let around = self.exports.around(&operation);
        let key = self.insert(from, operation, bytes);
        self.submit(
            disk,
            key,
            around,
            Direction::Write,
            class,
            Durability::Volatile,
        );
    }

    fn insert(&mut self, from: From, operation: Operation, bytes: Bytes) -> usize {
        self.pending.insert(Pending::new(from, operation, bytes))
    }

    /// Does what an operation asks for that has begun. There is room, as was asked before.
    pub(super) fn dispatch(&mut self, disk: &mut Disk, key: usize) {
        self.streams
            .change_recorded(disk, &self.exports, &self.pending[key]);
        let operation = self.pending[key].operation;
        let class = self.streams.class_of(&self.exports, &operation);
        let has_edges = self.pending[key].edges.is_some();
        let (read, volatile) = (Direction::Read, Durability::Volatile);
        match operation.ask {
            Ask::Read => {
                let around = self.exports.around(&operation);
                self.submit(disk, key, around, read, class, volatile);
            }
            Ask::Cache => {
                let around = self.exports.around(&operation);
                self.submit(disk, key, around, read, Class::Background, volatile);
            }
            Ask::Zero { pace, .. } if pace == Pace::Fast && !disk.shape.zeroes_fast => {
                self.fail(disk, key, Failed::Unsupported);
            }
            Ask::Write { .. } | Ask::Zero { .. } if has_edges => self.begin_edges(disk, key),
            Ask::Write { durability } => {
                let around = self.exports.around(&operation);
                self.submit(disk, key, around, Direction::Write, class, durability);
            }
            Ask::Flush => self.flush_streams(disk, key),
            Ask::Trim { .. } => match self.exports.within(&operation) {
                Some(within) if disk.shape.trims => disk.punch(key, Punch::Trim, within),
                _ => self.answer(disk, key),
            },
            Ask::Zero { space, pace, .. } => {
                self.zero(disk, key, self.exports.around(&operation), space, pace)
            }
        }
    }

    /// The engine has room for a request, as was asked before.
    pub(super) fn submit(
        &mut self,
        disk: &mut Disk,
        key: usize,
        extent: Extent,
        direction: Direction,
        class: Class,
        durability: Durability,
    ) {
        let request = Request {
            id: RequestId(key as u64),
            direction,
            extent,
            class,
            durability,
        };
        match disk.engine.submit(disk.now, request) {
            Ok(()) => self.note_change(disk, &request),
            Err(_) => self.fail(disk, key, Failed::Invalid),
        }
    }

    pub(super) fn zero(
        &mut self,
        disk: &mut Disk,
        key: usize,
        blocks: Extent,
        space: Space,
        pace: Pace,
    ) {
        match (disk.shape.zeroes_fast, space) {
            (true, Space::MayBeFreed) => disk.punch(key, Punch::Free(pace), blocks),
            (true, Space::Kept) => disk.punch(key, Punch::Zero(pace), blocks),
            (false, _) => {
                self.pending[key].rest = Some(blocks);
                if !self.write_zeroes(disk, key) {
                    self.answer(disk, key);
                }
            }
        }
    }

    /// The next piece of zeroes, if any are left: one at a time.
    pub(super) fn write_zeroes(&mut self, disk: &mut Disk, key: usize) -> bool {
        let pending = &mut self.pending[key];
        let (Some(rest), Ok(())) = (pending.rest, pending.result) else {
            return false;
        };
        let Ask::Zero { durability, .. } = pending.operation.ask else {
            return false;
        };
        let class = self.exports.class(pending.operation.export);
        if !disk.engine.has_room(class) {
            // Room was given by the piece that has just ended, unless others took it.
            pending.result = Err(Failed::Io);
            return false;
        }
        let most = self.zeroes.length() as u64 / disk.block();
        let now = rest.length().0.min(most);
        let extent = Extent::new(rest.start(), Sectors(now)).expect("at least one block");
        let left = rest.length().0 - now;
        pending.rest = Extent::new(extent.end(), Sectors(left)).ok();
        let request = Request {
            id: RequestId(key as u64),
            direction: Direction::Write,
            extent,
            class,
            durability,
        };
        match disk.engine.submit(disk.now, request) {
            Ok(()) => {
                self.note_change(disk, &request);
                true
            }
            Err(_) => {
                self.pending[key].result = Err(Failed::Io);
                false
            }
        }
    }

    /// Where the bytes of some blocks of a request lie.
    pub(crate) fn memory_of(&self, request: &Request, part: Extent) -> Memory {
        if let Some(memory) = self.caches.memory_of(request, part) {
            return memory;
        }
        let block = self.exports.block() as usize;
        let length = part.length().0 as usize * block;
        let pending = &self.pending[request.id.0 as usize];
        match pending.memory_of_request(&self.exports) {
            Some(memory) => {
                let before = (part.start().0 - request.extent.start().0) as usize;
                memory.part(before * block, length)
            }
            None => self.zeroes.memory().part(0, length),
        }
    }

    /// A command of the request has failed.
    pub(crate) fn note_failure(&mut self, request: &Request, failed: Failed) {
        match cached::owner(request.id) {
            // What reads it is read anew without the cache.
            Some(_) => (),
            None => self.pending[request.id.0 as usize].noted = Some(failed),
        }
    }

    /// The engine has flushed, or could not.
    pub(crate) fn flushed(&mut self, disk: &mut Disk, flushed: &Flushed) {
        let key = flushed.id.0 as usize;
        if flushed.status == Status::Good {
            self.drive_flushed(key);
        } else {
            self.fail_flushes(disk);
            // It may be a write or a trim that is to be durable.
            self.pending[key].result = Err(Failed::Io);
        }
        self.answer(disk, key);
    }

    /// A request of an operation, or of a cache, has ended.
    pub(crate) fn finished(&mut self, disk: &mut Disk, finished: &Finished) {
        if cached::owner(finished.request.id).is_some() {
            return self.piece_finished(disk, finished);
        }
        self.note_end(disk, finished);
        let key = finished.request.id.0 as usize;
        if finished.status != Status::Good {
            let pending = &mut self.pending[key];
            let failed = pending.noted.unwrap_or(Failed::Io);
            pending.result = pending.result.and(Err(failed));
        }
        if self.pending[key].edges.is_some() {
            self.edges_ended(disk, key);
        } else if !self.write_zeroes(disk, key) {
            self.answer(disk, key);
        }
    }

    /// Blocks were trimmed or zeroed by the back end, or could not be.
    pub(crate) fn punched(&mut self, disk: &mut Disk, key: usize, result: Result<(), Failed>) {
        self.note_punch(key);
        let pending = &mut self.pending[key];
        let durability = match pending.operation.ask {
            Ask::Trim { durability } | Ask::Zero { durability, .. } => durability,
            _ => Durability::Volatile,
        };
        match (result, durability) {
            (Ok(()), Durability::Durable) => self.flush(disk, key),
            (Ok(()), Durability::Volatile) => self.answer(disk, key),
            (Err(failed), _) => self.fail(disk, key, failed),
        }
    }

    pub(super) fn fail(&mut self, disk: &mut Disk, key: usize, failed: Failed) {
        self.pending[key].result = Err(failed);
        self.answer(disk, key);
    }

    /// Ends an operation: its client is told.
    pub(super) fn answer(&mut self, disk: &mut Disk, key: usize) {
        let Pending {
            from,
            operation,
            bytes,
            result,
            edges,
            ..
        } = self.pending.remove(key);
        self.caches.end(&self.exports, &operation);
        if edges.is_some() {
            self.partial.release(key);
        }
        if let From::Copied(flush) = from {
            return self.copy_ended(disk, flush, result);
        }
        self.streams
            .changed(disk, &self.exports, &operation, &bytes, result);
        let bytes = match operation.ask {
            Ask::Read => asked_for(bytes, &operation, self.exports.block()),
            _ => bytes,
        };
        match from {
            From::Connection { client, header } => self.answers.push_back(Answer {
                client,
                header,
                operation,
                result,
                bytes,
            }),
            From::Posted(reply) => {
                match (result, &bytes) {
                    (Err(failed), _) => reply(Err(failed)),
                    (Ok(()), Bytes::Own(buffer)) if operation.ask == Ask::Read => {
                        reply(Ok(buffer.bytes()));
                    }
                    (Ok(()), Bytes::Mapped(memory)) => reply(Ok(mapped(memory))),
                    (Ok(()), _) => reply(Ok(&[])),
                }
                self.give_back(bytes);
            }
            From::Copied(_) => (),
        }
    }

    pub(crate) fn give_back(&mut self, bytes: Bytes) {
        if let Bytes::Own(buffer) = bytes {
            self.arena.free(buffer);
        }
    }
}

/// The part of the blocks that a read has brought for which its client has asked.
fn asked_for(bytes: Bytes, operation: &Operation, block: u64) -> Bytes {
    let lead = (operation.offset % block) as usize;
    let length = operation.length as usize;
    match bytes {
        Bytes::Own(mut buffer) if buffer.length() != length => {
            buffer.bytes_mut().copy_within(lead..lead + length, 0);
            buffer.show(length);
            Bytes::Own(buffer)
        }
        Bytes::Mapped(memory) if memory.length != length => {
            Bytes::Mapped(memory.part(lead, length))
        }
        bytes => bytes,
    }
}

#[allow(unsafe_code, reason = "reads the device's own memory")]
fn mapped(memory: &Memory) -> &[u8] {
    // SAFETY: a part of the back end's mapping, which lives as long as the loop, and which only
    // the loop's own thread writes to.
    unsafe { memory.bytes() }
}

/// The longest read or write unless something else is configured, in bytes: what NBD clients may
/// assume without asking.
pub const LONGEST: u64 = 32 << 20;
