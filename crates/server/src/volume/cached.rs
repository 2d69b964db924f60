//! The cache of a volume: a level decides which blocks are kept and fetched, and pages hold their bytes.
//!
//! ```text
//!   operations of clients                                         in the event loop
//!     read --> [ pages ] --hit--> answer                          caching
//!                 |  ^
//!           fetch |  | its bytes, with the changes in flight
//!                 v  |
//!               engine <------ write, zeroes (through) --- pages change when the engine is asked
//!                 ^
//!                 '--- unwritten pages (write = "back"), before a flush is answered
//! ```
//!
//! [`Cached`] has five parts. It asks them in order, and none of them knows another one.
//!
//! | part | state | file |
//! |---|---|---|
//! | `CacheContents` | the level, pages, unwritten pages, writes in flight | `contents`, `pages`, `changes` |
//! | `CacheTransfers` | pieces of fetches and writes, their memory and queues | `transfers` |
//! | `BackgroundReads` | background reads at the drive, and the pieces that wait for them | `background` |
//! | `Readers` | reads of operations that wait, and their answers | `readers` |
//! | `CachedVolume` | the place on the drive | `volume` |
//!
//! `CacheContents` keeps the rule that makes the bytes right. The engine does not order trims, nor zeroes
//! without bytes: these are kept apart from writes to the same blocks, and void fetches of them.
//!
//! # Readmore on free blocks
//!
//! The additional blocks of the coordinator are read at no cost for the drive, or not at all:
//!
//! ```text
//!   level --Want, Unwant--> the engine's standing task --in a gap, in idle time--> bytes
//!     ^                                                                              |
//!     '--offer: still wanted, and nothing has changed meanwhile? a frame, a page ----'
//! ```
//!
//! Blocks that the engine reads ahead in slack (`free_prefetch`) take the same way without a wish: absent ones
//! become pages, counted as prefetched.
//!
//! No other party may change the volume: no other client of a server behind it, and no other drive's volume
//! of the same file.

use std::io;

use block::operation::OperationError;
use block::{Class, Direction, Extent, Instant, Interval, Owner, Request, RequestId};
use cache::coordinator::{Purpose, UpperRequest};
use cache::level::{Ending, FetchId, LevelRefused};
use tracing::error;

use crate::arena::Memory;
use crate::cache_setting::{CacheSetting, PAGE, Writes};

mod background;
mod changes;
mod contents;
mod pages;
mod readers;
mod status;
mod transfers;
mod unordered;
mod volume;

use background::{BackgroundReads, JoinedPiece};
use contents::CacheContents;
use pages::VolumeBytes;
use readers::Readers;
pub use readers::ServedRead;
pub use transfers::Upgrade;
use transfers::{CacheTransfers, FetchOutcome, LONGEST_PIECE, PieceWork, Requester};
use volume::blocks_of;
pub use volume::{BackgroundReadId, BackgroundReadKind, CachedVolume, owner};

/// The cache of one volume.
pub struct Cached {
    setting: CacheSetting,
    volume: CachedVolume,
    contents: CacheContents,
    transfers: CacheTransfers,
    background: BackgroundReads,
    readers: Readers,
}

/// The reader of a read through a cache.
#[derive(Clone, Copy, Debug)]
pub struct CacheRead {
    /// The key of the operation.
    pub key: usize,
    /// The index of the export.
    pub export: usize,
    /// The connection. All front ends other than NBD are one client.
    pub client: u32,
    /// The class of the read.
    pub class: Class,
    /// The program that waits for it.
    pub owner: Owner,
}

/// A change of the blocks that the engine's standing task wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedChange {
    /// These blocks are wanted, too.
    More(Extent),
    /// These blocks are no longer wanted.
    Less(Extent),
}

/// The cache as a whole, and reads.
impl Cached {
    /// An empty cache.
    ///
    /// # Errors
    /// If the composition is invalid, or there is no memory for it.
    pub fn new(setting: &CacheSetting, volume: CachedVolume) -> io::Result<Self> {
        Ok(Cached {
            contents: CacheContents::new(setting)?,
            transfers: CacheTransfers::new()?,
            background: BackgroundReads::default(),
            readers: Readers::default(),
            setting: setting.clone(),
            volume,
        })
    }

    /// The place of the volume.
    pub fn volume(&self) -> CachedVolume {
        self.volume
    }

    /// Whether the cache accepts another read.
    pub fn has_room(&self) -> bool {
        self.contents.has_room()
    }

    /// Whether no piece is in flight or waits.
    pub fn is_idle(&self) -> bool {
        self.transfers.is_idle()
    }

    /// Reads `memory.length` bytes from byte `start` of the volume on, or fetches `length` bytes without a
    /// copy. The answer comes by [`Cached::poll_answer`].
    ///
    /// # Errors
    /// If too many reads are pending, or the volume has no such blocks.
    pub fn read(
        &mut self,
        now: Instant,
        reader: &CacheRead,
        (start, length): (u64, u64),
        memory: Memory,
    ) -> Result<(), LevelRefused> {
        let bytes = VolumeBytes { start, memory };
        // Before the level is asked: it may evict resident blocks to make room for absent ones.
        self.contents.copy_to(&bytes);
        let asked = UpperRequest {
            client: reader.client,
            file: self.volume.number as u64,
            blocks: blocks_of(start, length),
            within: Interval::of(0, self.volume.blocks()),
            purpose: Purpose::Demand,
            direction: Direction::Read,
        };
        let id = RequestId(reader.key as u64);
        self.contents.submit(now, id, asked)?;
        self.readers.begin(reader.key, bytes);
        self.begin_fetches(reader);
        self.collect_answers();
        Ok(())
    }

    /// Raises the urgency of reads of these bytes, in flight or waiting. Waiting pieces change at once.
    pub fn hasten(&mut self, (start, length): (u64, u64), class: Class, to: &mut Vec<Upgrade>) {
        let (blocks, transfers) = (blocks_of(start, length), &mut self.transfers);
        let raise = |piece| transfers.raise(piece, class);
        self.background.hasten(blocks, raise);
        transfers.hasten(&self.volume, blocks, class, to);
    }

    /// The next answer to a read.
    pub fn poll_answer(&mut self) -> Option<ServedRead> {
        self.readers.poll()
    }

    /// Moves the level's answers to the readers.
    fn collect_answers(&mut self) {
        while let Some(answered) = self.contents.poll_answered() {
            self.readers.end(answered);
        }
    }

    /// Changes the length of the volume. Pages beyond its end are dropped and never written.
    pub fn resize(&mut self, length: u64) {
        let shorter = self.volume.length.min(length);
        self.volume.length = length;
        self.contents.cut_unwritten(shorter / PAGE);
        self.void(shorter, u64::MAX - shorter);
    }
}

/// Requests of the engine.
impl Cached {
    /// Divides the level's new fetches into pieces.
    fn begin_fetches(&mut self, reader: &CacheRead) {
        while let Some((fetch, framed)) = self.contents.poll_fetch() {
            let purpose = fetch.asked.purpose;
            let class = match purpose {
                Purpose::Demand => reader.class,
                Purpose::Prefetch => self.setting.ahead.max(reader.class),
            };
            let whose = Requester {
                class,
                export: reader.export,
                owner: reader.owner,
            };
            self.transfers.begin_fetch(fetch.id, framed);
            for (mut rest, read) in self.background.divide(fetch.asked.blocks) {
                let transfers = &mut self.transfers;
                while let Some((piece, blocks)) = transfers.add_piece(fetch.id, &mut rest, whose) {
                    match read {
                        Some(read) => self.background.join(JoinedPiece {
                            piece,
                            read,
                            blocks,
                            purpose,
                        }),
                        None => transfers.queue(piece, purpose),
                    }
                }
            }
        }
    }

    /// The next request, if the engine has room for its class and there is memory. The caller submits it at
    /// once.
    pub fn next_request(
        &mut self,
        now: Instant,
        has_room: &dyn Fn(Class) -> bool,
    ) -> Option<Request> {
        let read = self.transfers.next_read(&self.volume, has_room);
        read.or_else(|| self.next_write(now, has_room))
    }

    /// The next write of pages, if one is due, the engine has room and there is memory.
    fn next_write(&mut self, now: Instant, has_room: &dyn Fn(Class) -> bool) -> Option<Request> {
        let class = self.contents.due_class(now, self.setting.ahead)?;
        if !self.transfers.has_room_for_write() || !has_room(class) {
            return None;
        }
        let most = (self.transfers.longest(), self.volume.blocks());
        let next = self.contents.next_write(most)?;
        let blocks = next.blocks();
        let whose = Requester {
            class,
            export: self.volume.export,
            owner: Owner::service(self.volume.number as u64),
        };
        let begun = self.transfers.begin_write(blocks, next.serial(), whose);
        let (piece, memory) = begun?;
        self.note_changing(blocks);
        let id = self.volume.request_id(piece);
        let staged = VolumeBytes::page(blocks.first, memory);
        self.contents.begin_write(id, &next, staged);
        Some(self.transfers.request(&self.volume, piece))
    }

    /// The memory of some blocks of a piece's request.
    pub fn memory_of(&self, piece: usize, part: Extent) -> Memory {
        self.transfers.memory_of(&self.volume, piece, part)
    }

    /// The export in whose name a piece is transferred.
    pub fn export_of(&self, piece: usize) -> usize {
        self.transfers.export_of(piece)
    }

    /// The request of a piece has ended.
    pub fn request_ended(
        &mut self,
        now: Instant,
        piece: usize,
        result: Result<(), OperationError>,
    ) {
        match self.transfers.work_of(piece) {
            PieceWork::Fetch(_) => self.read_ended(now, piece, result),
            PieceWork::Write { serial } => self.page_write_ended(piece, serial, result),
        }
    }

    /// A read has ended, and all pieces that it combines.
    fn read_ended(&mut self, now: Instant, first: usize, result: Result<(), OperationError>) {
        let (mut buffer, mut start, mut next) = (None, 0, Some(first));
        while let Some(number) = next {
            let mut piece = self.transfers.remove(number);
            // The first piece has the memory of all.
            buffer = buffer.or(piece.buffer.take());
            let length = (piece.blocks.len() * PAGE) as usize;
            let all = buffer.as_ref().expect("a submitted piece").memory();
            if let PieceWork::Fetch(id) = piece.work {
                let bytes = VolumeBytes::page(piece.blocks.first, all.part(start, length));
                self.piece_ended(now, id, &bytes, result);
            }
            start += length;
            next = piece.next;
        }
        self.transfers.free(buffer);
        self.collect_answers();
    }

    /// A piece of a fetch has ended. Its bytes become pages, and go to readers. The level is notified when all
    /// pieces have ended.
    fn piece_ended(
        &mut self,
        now: Instant,
        id: FetchId,
        bytes: &VolumeBytes,
        result: Result<(), OperationError>,
    ) {
        let result = match bytes.end() > self.volume.length {
            true => Err(OperationError::Invalid),
            false => result,
        };
        let fetch = self.transfers.end_piece(id, result);
        if fetch.outcome == FetchOutcome::Good {
            self.contents.fill(bytes, fetch.framed);
            self.readers.deliver(bytes);
        }
        if fetch.left > 0 {
            return;
        }
        let ending = match fetch.outcome {
            FetchOutcome::Good => Ending::Done,
            FetchOutcome::Failed | FetchOutcome::Void => {
                self.contents.discard_fetched(fetch.framed);
                Ending::Failed
            }
        };
        self.contents.complete(now, id, ending);
    }

    /// A write of pages has ended.
    fn page_write_ended(&mut self, piece: usize, serial: u64, result: Result<(), OperationError>) {
        let ended = self.transfers.remove(piece);
        let blocks = ended.blocks.len();
        self.contents.end_write(serial, blocks, result);
        if let Err(failed) = result {
            error!(
                first = ended.blocks.first * PAGE,
                bytes = blocks * PAGE,
                %failed,
                "acknowledged data could not be written, and the next flush fails"
            );
        }
        self.write_ended(self.volume.request_id(piece), result);
        self.transfers.free(ended.buffer);
    }
}

/// Changes of the volume.
impl Cached {
    /// A write of this memory from byte `start` of the volume on was submitted. The memory stays unchanged
    /// until [`Cached::write_ended`].
    pub fn write_submitted(&mut self, id: RequestId, start: u64, memory: Memory) {
        let bytes = VolumeBytes { start, memory };
        self.note_changing(bytes.blocks());
        self.contents.submit_change(id, bytes);
    }

    /// The write has ended. After a failure the content of the volume is unknown.
    pub fn write_ended<E>(&mut self, id: RequestId, result: Result<(), E>) {
        let ended = self.contents.end_change(id);
        if let Some(bytes) = ended.filter(|_| result.is_err()) {
            self.void(bytes.start, bytes.memory.length as u64);
        }
    }

    /// Copies newer bytes over bytes that were read past the cache: submitted writes, and unwritten pages.
    pub fn apply_newer(&self, start: u64, memory: Memory) {
        self.contents.apply_newer(&VolumeBytes { start, memory });
    }

    /// Copies submitted writes over bytes that were read past the cache.
    pub fn apply_in_flight(&self, start: u64, memory: Memory) {
        let read = VolumeBytes { start, memory };
        self.contents.changes().copy_to(&read);
    }

    /// Prepares a trim or zeroes of these bytes, which the engine does not order with writes. Unwritten
    /// pages of them are written soon. The answer is whether the operation has to wait for writes.
    pub fn prepare_punch(&mut self, start: u64, length: u64) -> bool {
        self.contents.prepare_punch(blocks_of(start, length))
    }

    /// Whether somebody waits for unwritten pages.
    pub fn has_urgent(&self) -> bool {
        let unwritten = self.contents.unwritten();
        unwritten.is_some_and(|unwritten| unwritten.is_urgent() && unwritten.count() > 0)
    }

    /// Drops pages and voids fetches of these bytes, except for unwritten pages: the content of the volume
    /// is unknown.
    pub fn void(&mut self, start: u64, length: u64) {
        let blocks = blocks_of(start, length);
        self.note_changing(blocks);
        self.transfers.void(blocks);
        self.contents.discard(blocks);
    }

    /// Drops everything that the volume may have lost because it was not on the medium.
    pub fn void_all(&mut self) {
        self.void(0, u64::MAX);
    }

    /// These blocks change: background reads of them are void, and the blocks are no longer wanted.
    fn note_changing(&mut self, blocks: Interval) {
        let transfers = &mut self.transfers;
        let submit = |piece, purpose| transfers.queue(piece, purpose);
        self.background.change(blocks, submit);
        self.contents.end_wanted(blocks);
    }
}

/// Write-back.
impl Cached {
    /// Whether writes are acknowledged before the volume has them.
    pub fn writes_back(&self) -> bool {
        self.setting.writes == Writes::Back
    }

    /// Stores a write from byte `start` of the volume on, under a serial. The answer is whether it was
    /// stored; otherwise the write goes to the volume.
    pub fn store(&mut self, now: Instant, serial: u64, start: u64, memory: Memory) -> bool {
        let bytes = VolumeBytes { start, memory };
        self.contents.store(now, serial, &bytes, LONGEST_PIECE)
    }

    /// Whether a stored write up to this serial is unwritten.
    pub fn has_unwritten(&self, serial: u64) -> bool {
        self.contents.has_unwritten(serial)
    }

    /// A flush of this class waits: all pages are written as soon as possible.
    pub fn begin_flush(&mut self, class: Class, to: &mut Vec<Upgrade>) {
        self.contents.begin_flush();
        self.transfers.hasten_writes(&self.volume, class, to);
    }

    /// No flush waits any more.
    pub fn end_flush(&mut self) {
        self.contents.end_flush();
    }

    /// Whether a write of pages has failed since the last call.
    pub fn take_failure(&mut self) -> bool {
        self.contents.take_failure()
    }

    /// The time at which the oldest page has to be written.
    pub fn next_wakeup(&self, now: Instant) -> Option<Instant> {
        let then = self.contents.unwritten()?.next_due()?;
        // A write that is due and cannot begin waits for the end of another request.
        (then > now).then_some(then)
    }
}

#[cfg(test)]
mod tests;
