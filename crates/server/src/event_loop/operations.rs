//! Operations from their beginning to their answer.
//!
//! ```text
//!   read, write ---> engine ------------------------------------> answer
//!   zero ----------> engine, piece by piece --------------------> answer
//!   trim, zero ----> back end's space ---[if durable: flush]----> answer
//!   flush ---------> engine's flushes --------------------------> answer
//! ```
//!
//! Before a volume with a cache reads go there instead, and what changes it is noted there (`caching`).
//!
//! What begins or ends within a block is in `edges`, what front ends other than NBD ask in `posted`.

use block::{Class, Direction, Durability, Extent, Finished, Request, RequestId, Sectors, Status};

use super::EventLoop;
use super::streams::{Copied, Meeting};
use crate::arena::{Buffer, Memory, Region};
use crate::back_end::{Punch, Span};
use crate::cached;
use crate::mailbox::Reply;
use crate::nbd::request::Header;
use crate::operation::{Ask, Failed, Pace, Space};

mod edges;
mod posted;

use edges::Edges;

/// What an operation is, once it is known to make sense.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// The place of its export.
    pub(super) export: usize,
    pub(super) ask: Ask,
    /// In bytes of the volume.
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl Operation {
    /// How many bytes go to or come from the client.
    pub(super) fn bytes(&self) -> usize {
        match self.ask {
            Ask::Read | Ask::Write { .. } | Ask::Cache => self.length as usize,
            Ask::Zero { .. } | Ask::Trim { .. } | Ask::Flush => 0,
        }
    }
}

/// Who is told of the end.
pub(super) enum From {
    Connection {
        place: usize,
        header: Header,
    },
    Posted(Reply),
    /// Nobody but a flush, if there is one, that waits for this copy of what a recording has.
    Copied(Option<usize>),
}

/// The bytes of an operation.
#[derive(Default)]
pub(crate) enum Bytes {
    #[default]
    None,
    Own(Buffer),
    /// Those that somebody else keeps: of the device, where the back end has them in memory.
    Mapped(Memory),
    /// Those of whoever has posted the operation.
    Lent(Memory),
    /// A copy of what a recording has in memory.
    Copied(Region),
}

impl Bytes {
    /// How much of the loop's memory they take up.
    pub(super) fn capacity(&self) -> usize {
        match self {
            Bytes::Own(buffer) => buffer.capacity(),
            Bytes::None | Bytes::Mapped(_) | Bytes::Lent(_) | Bytes::Copied(_) => 0,
        }
    }

    pub(super) fn memory(&self) -> Option<Memory> {
        match self {
            Bytes::None => None,
            Bytes::Own(buffer) => Some(buffer.memory()),
            Bytes::Copied(region) => Some(region.memory()),
            Bytes::Mapped(memory) | Bytes::Lent(memory) => Some(*memory),
        }
    }
}

/// An operation that has begun.
pub(super) struct Pending {
    pub(super) from: From,
    pub(super) operation: Operation,
    pub(super) bytes: Bytes,
    pub(super) result: Result<(), Failed>,
    /// Why a command of it failed last; it may be tried again.
    noted: Option<Failed>,
    /// Zeroes that are still to be written, of those that are written as bytes.
    rest: Option<Extent>,
    /// The blocks of which it changes a part, if there are such.
    edges: Option<Edges>,
    /// Of a flush, what is to be written before.
    pub(super) copied: Copied,
}

/// An operation that cannot begin yet; it comes back whole.
pub(super) struct Stalled {
    pub(super) from: From,
    pub(super) bytes: Bytes,
}

impl EventLoop {
    /// Whether the back end has the bytes of an operation in memory.
    pub(super) fn is_mapped(&self, operation: &Operation) -> bool {
        operation.ask == Ask::Read
            && self.back_end.mapped().is_some()
            && self.cache_of(operation).is_none()
    }

    /// Memory for an operation's bytes: nothing if there is none now.
    pub(super) fn bytes_for(&mut self, operation: &Operation) -> Option<Bytes> {
        let (length, shown) = self.memory_for(operation);
        match (operation.ask, self.back_end.mapped()) {
            (Ask::Read, Some(device)) if length > 0 && self.cache_of(operation).is_none() => {
                let start = self.around(operation).start().0 * u64::from(self.shape.block_bytes);
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
    pub(super) fn begin(
        &mut self,
        from: From,
        operation: Operation,
        bytes: Bytes,
    ) -> Result<(), Stalled> {
        // Streams do not wait for room.
        let meeting = self.meet_streams(&operation);
        if let Meeting::Served(serving) = meeting {
            let key = self.insert(from, operation, bytes);
            self.serve_by_stream(key, serving);
            return Ok(());
        }
        let class = self.class_of(&operation);
        let room = match operation.ask {
            Ask::Cache => self.engine.has_room(Class::Background),
            _ => self.engine.has_room(class),
        };
        let has_to_wait = self.has_to_wait(&operation) || self.waits_for_cache(&operation);
        if !room || meeting == Meeting::Later || has_to_wait {
            return Err(Stalled { from, bytes });
        }
        let is_empty = operation.length == 0 && operation.ask != Ask::Flush;
        let key = self.insert(from, operation, bytes);
        self.note_begun(&operation);
        if is_empty || self.is_stored(key) {
            self.answer(key);
            return Ok(());
        }
        if self.is_read_through_cache(key) {
            return Ok(());
        }
        self.hold_edges(key);
        self.dispatch(key);
        Ok(())
    }

    /// Begins to write a copy of what a recording has in memory. There is room, as was asked before.
    pub(super) fn begin_copy(&mut self, from: From, operation: Operation, bytes: Bytes) {
        let class = self.exports[operation.export].class;
        let around = self.around(&operation);
        let key = self.insert(from, operation, bytes);
        self.submit(key, around, Direction::Write, class, Durability::Volatile);
    }

    fn insert(&mut self, from: From, operation: Operation, bytes: Bytes) -> usize {
        self.pending.insert(Pending {
            from,
            operation,
            bytes,
            result: Ok(()),
            noted: None,
            rest: None,
            edges: None,
            copied: Copied::default(),
        })
    }

    /// Does what an operation asks for that has begun. There is room, as was asked before.
    pub(super) fn dispatch(&mut self, key: usize) {
        self.change_recorded(key);
        let operation = self.pending[key].operation;
        let class = self.class_of(&operation);
        let has_edges = self.pending[key].edges.is_some();
        let (read, volatile) = (Direction::Read, Durability::Volatile);
        match operation.ask {
            Ask::Read => self.submit(key, self.around(&operation), read, class, volatile),
            Ask::Cache => {
                let around = self.around(&operation);
                self.submit(key, around, read, Class::Background, volatile);
            }
            Ask::Zero { pace, .. } if pace == Pace::Fast && !self.shape.zeroes_fast => {
                self.fail(key, Failed::Unsupported);
            }
            Ask::Write { .. } | Ask::Zero { .. } if has_edges => self.begin_edges(key),
            Ask::Write { durability } => {
                let around = self.around(&operation);
                self.submit(key, around, Direction::Write, class, durability);
            }
            Ask::Flush => self.flush_streams(key),
            Ask::Trim { .. } => match self.within(&operation) {
                Some(within) if self.shape.trims => self.punch(key, Punch::Trim, within),
                _ => self.answer(key),
            },
            Ask::Zero { space, pace, .. } => self.zero(key, self.around(&operation), space, pace),
        }
    }

    /// The engine has room for a request, as was asked before.
    pub(super) fn submit(
        &mut self,
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
        match self.engine.submit(self.now, request) {
            Ok(()) => self.note_change(&request),
            Err(_) => self.fail(key, Failed::Invalid),
        }
    }

    pub(super) fn span(&self, operation: &Operation) -> Span {
        Span {
            offset: self.exports[operation.export].offset + operation.offset,
            length: operation.length,
        }
    }

    fn punch(&mut self, key: usize, what: Punch, blocks: Extent) {
        let block = u64::from(self.shape.block_bytes);
        let span = Span {
            offset: blocks.start().0 * block,
            length: blocks.length().0 * block,
        };
        self.back_end.punch(key as u32, what, span, &mut self.ring);
    }

    fn zero(&mut self, key: usize, blocks: Extent, space: Space, pace: Pace) {
        match (self.shape.zeroes_fast, space) {
            (true, Space::MayBeFreed) => self.punch(key, Punch::Free(pace), blocks),
            (true, Space::Kept) => self.punch(key, Punch::Zero(pace), blocks),
            (false, _) => {
                self.pending[key].rest = Some(blocks);
                if !self.write_zeroes(key) {
                    self.answer(key);
                }
            }
        }
    }

    /// The next piece of zeroes, if any are left: one at a time.
    fn write_zeroes(&mut self, key: usize) -> bool {
        let pending = &mut self.pending[key];
        let (Some(rest), Ok(())) = (pending.rest, pending.result) else {
            return false;
        };
        let Ask::Zero { durability, .. } = pending.operation.ask else {
            return false;
        };
        let class = self.exports[pending.operation.export].class;
        if !self.engine.has_room(class) {
            // Room was given by the piece that has just ended, unless others took it.
            pending.result = Err(Failed::Io);
            return false;
        }
        let most = self.zeroes.length() as u64 / u64::from(self.shape.block_bytes);
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
        match self.engine.submit(self.now, request) {
            Ok(()) => {
                self.note_change(&request);
                true
            }
            Err(_) => {
                self.pending[key].result = Err(Failed::Io);
                false
            }
        }
    }

    /// Where the bytes of some blocks of a request lie.
    pub(super) fn memory_of(&self, request: &Request, part: Extent) -> Memory {
        if let Some(memory) = self.caches.memory_of(request, part) {
            return memory;
        }
        let block = self.shape.block_bytes as usize;
        let length = part.length().0 as usize * block;
        match self.memory_of_request(request.id.0 as usize) {
            Some(memory) => {
                let before = (part.start().0 - request.extent.start().0) as usize;
                memory.part(before * block, length)
            }
            None => self.zeroes.memory().part(0, length),
        }
    }

    /// What a command of the request did has failed.
    pub(super) fn note_failure(&mut self, request: &Request, failed: Failed) {
        match cached::owner(request.id) {
            // What reads it is read anew without the cache.
            Some(_) => (),
            None => self.pending[request.id.0 as usize].noted = Some(failed),
        }
    }

    /// Answers what the engine says has ended; whether there was something.
    pub(super) fn answer_finished(&mut self) -> bool {
        let mut is_any = false;
        while let Some(finished) = self.engine.poll_finished() {
            is_any = true;
            self.finished(&finished);
        }
        while let Some(flushed) = self.engine.poll_flushed() {
            is_any = true;
            let key = flushed.id.0 as usize;
            if flushed.status == Status::Good {
                self.drive_flushed(key);
            } else {
                self.fail_flushes();
                // It may be a write or a trim that is to be durable.
                self.pending[key].result = Err(Failed::Io);
            }
            self.answer(key);
        }
        while let Some((key, result)) = self.back_end.poll_punched() {
            is_any = true;
            self.punched(key as usize, result);
        }
        while let Some((key, runs)) = self.back_end.poll_runs() {
            is_any = true;
            self.tell_question(key as usize, &runs);
        }
        is_any
    }

    fn finished(&mut self, finished: &Finished) {
        self.tally.finished(finished);
        let export = self.export_of(&finished.request);
        self.accounts.finished(&self.engine, export, finished);
        if cached::owner(finished.request.id).is_some() {
            return self.piece_finished(finished);
        }
        self.note_end(finished);
        let key = finished.request.id.0 as usize;
        if finished.status != Status::Good {
            let pending = &mut self.pending[key];
            let failed = pending.noted.unwrap_or(Failed::Io);
            pending.result = pending.result.and(Err(failed));
        }
        if self.pending[key].edges.is_some() {
            self.edges_ended(key);
        } else if !self.write_zeroes(key) {
            self.answer(key);
        }
    }

    fn punched(&mut self, key: usize, result: Result<(), Failed>) {
        self.note_punch(key);
        let pending = &mut self.pending[key];
        let durability = match pending.operation.ask {
            Ask::Trim { durability } | Ask::Zero { durability, .. } => durability,
            _ => Durability::Volatile,
        };
        match (result, durability) {
            (Ok(()), Durability::Durable) => self.flush(key),
            (Ok(()), Durability::Volatile) => self.answer(key),
            (Err(failed), _) => self.fail(key, failed),
        }
    }

    pub(super) fn fail(&mut self, key: usize, failed: Failed) {
        self.pending[key].result = Err(failed);
        self.answer(key);
    }

    /// The client is told.
    pub(super) fn answer(&mut self, key: usize) {
        let Pending {
            from,
            operation,
            bytes,
            result,
            edges,
            ..
        } = self.pending.remove(key);
        self.note_answer(&operation);
        if edges.is_some() {
            self.release_edges(key);
        }
        if let From::Copied(flush) = from {
            return self.copy_ended(flush, result);
        }
        self.changed(&operation, &bytes, result);
        let bytes = match operation.ask {
            Ask::Read => self.asked_for(&operation, bytes),
            _ => bytes,
        };
        match from {
            From::Connection { place, header } => {
                self.reply(place, &header, &operation, result, bytes);
            }
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

    pub(super) fn give_back(&mut self, bytes: Bytes) {
        if let Bytes::Own(buffer) = bytes {
            self.arena.free(buffer);
        }
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
