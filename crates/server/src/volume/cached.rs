//! The cache of a volume: a level decides which blocks are kept and fetched, and pages hold their bytes.
//!
//! ```text
//!   operations of clients                                         in the event loop
//!     read --> [ pages ] --hit--> answer                          caching
//!                 |  ^
//!           fetch |  | its bytes, with the changes under way
//!                 v  |
//!               engine <------ write, zeroes (through) --- pages change when the engine is asked
//!                 ^
//!                 '--- unwritten pages (write = "back"), before a flush is answered
//! ```
//!
//! One rule keeps the contents right: *every page has what the volume will have when all requests of the
//! engine are done.*
//!
//! - The engine executes overlapping requests in the order of their submission.
//! - So a page changes when a write is submitted. Fetched bytes get the changes that were submitted after
//!   their fetch and are still in flight.
//! - The engine does not order trims, nor zeroes without bytes. They are kept apart from writes to the same
//!   blocks, and void fetches of them.
//! - Background reads are not ordered with anything. Their blocks are discarded if they have changed
//!   meanwhile (`wishing`). Operations that wait for them (`joining`) then submit requests of their own.
//!
//! No other party may change the volume: no other client of a server behind it, and no other drive's volume
//! of the same file.

use std::collections::VecDeque;
use std::io;

use block::Interval;
use block::{Class, Direction, Duration, Instant, RequestId};
use cache::coordinator::{Purpose, UpperRequest};
use cache::level::{Ending, LevelRefused};
use cache::write_back::Unwritten;
use cache::{Composition, Level};
use slab::Slab;

use crate::arena::{Arena, Memory};
use crate::cache_setting::{CacheSetting, PAGE, Readmore, Shares, Writes};

mod changing;
mod fetching;
mod joining;
mod pages;
mod told;
mod wishing;
mod writing;

pub use fetching::Upgrade;
use fetching::{CachePiece, Fetching, PIECE};
use joining::Joined;
use pages::{Pages, VolumeBytes};
use wishing::Passing;
pub use wishing::WantedChange;

/// The place of the cached volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The first byte on the drive.
    pub offset: u64,
    /// The number of bytes, a multiple of [`PAGE`].
    pub length: u64,
    /// Bytes of the drive's blocks, which divide [`PAGE`].
    pub block_bytes: u32,
    /// The index of the cache in the loop.
    pub number: usize,
    /// An export of the volume, for the accounts of late writes.
    pub export: usize,
}

/// The cache of one volume.
pub struct Cached {
    setting: CacheSetting,
    site: Site,
    level: Level,
    pages: Pages,
    /// Memory of transfers between the engine and pages.
    staging: Arena,
    readers: Vec<PendingRead>,
    /// The fetches, by the level's numbers.
    fetches: Vec<Fetching>,
    pieces: Slab<CachePiece>,
    /// Pieces that were not submitted: demanded ones, and prefetches.
    waiting: [VecDeque<usize>; 2],
    /// Writes at the engine, in the order of their submission.
    changes: Vec<Change>,
    /// Background reads in flight that have wanted blocks.
    passing: Vec<Passing>,
    /// Pieces that wait for one of these.
    joined: Vec<Joined>,
    /// Blocks that needed no read of their own, because they had joined a background read.
    joined_blocks: u64,
    /// The largest number of blocks of a piece.
    longest: u64,
    unwritten: Option<Unwritten>,
    /// The number of pieces that are being written.
    writing: usize,
    /// Reads that have their answers.
    answered: VecDeque<ServedRead>,
}

/// A read that waits.
struct PendingRead {
    key: usize,
    /// The memory of the bytes, empty for a prefetch.
    bytes: VolumeBytes,
}

/// A write at the engine.
struct Change {
    id: RequestId,
    bytes: VolumeBytes,
}

impl Change {
    fn blocks(&self) -> Interval {
        blocks_of(self.bytes.start, self.bytes.memory.length as u64)
    }
}

/// The end of a read. A failed read has to be repeated without the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedRead {
    /// The key of the operation.
    pub key: usize,
    /// The result.
    pub ending: Ending,
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
}

/// The largest number of reads in the level. A choice: the number of requests of an engine.
const READS: u32 = 1024;

/// Memory for pieces in flight. A choice: sixteen of the longest. Further pieces wait.
const STAGING: usize = 16 << 20;

/// The bit that marks request ids of caches. Those of operations are indices, and much smaller.
const OURS: u64 = 1 << 63;
const NUMBER_SHIFT: u32 = 32;

/// The cache and the piece of a request, if it is a cache's.
pub fn owner(id: RequestId) -> Option<(usize, usize)> {
    let place = id.0 & ((1 << NUMBER_SHIFT) - 1);
    let number = (id.0 & !OURS) >> NUMBER_SHIFT;
    (id.0 & OURS != 0).then_some((number as usize, place as usize))
}

impl Cached {
    /// An empty cache.
    ///
    /// # Errors
    /// If the composition is invalid, or there is no memory for it.
    pub fn new(setting: &CacheSetting, site: Site) -> io::Result<Self> {
        let Shares { frames, unwritten } = Shares::of(setting);
        let level = Level::new(&Composition {
            capacity: frames,
            replacement: &setting.replacement,
            prefetch: &setting.prefetch,
            coordinator: &setting.coordinator,
            requests: READS,
        });
        let level = level.map_err(io::Error::other)?.with_departures();
        let level = match setting.readmore {
            Readmore::Ordinary => level,
            Readmore::Free => level.with_wishes_while_granted(),
        };
        let count = (frames + unwritten) as usize;
        let pages = Pages::new(count, level.residency().frame_ids())?;
        Ok(Cached {
            site,
            level,
            staging: Arena::map(STAGING)?,
            readers: Vec::new(),
            fetches: Vec::new(),
            pieces: Slab::new(),
            waiting: [VecDeque::new(), VecDeque::new()],
            changes: Vec::new(),
            passing: Vec::new(),
            joined: Vec::new(),
            joined_blocks: 0,
            longest: PIECE,
            unwritten: match setting.writes {
                Writes::Through => None,
                Writes::Back => Some(Unwritten::new(pages.places(), unwritten as usize, AGE)),
            },
            pages,
            writing: 0,
            answered: VecDeque::new(),
            setting: setting.clone(),
        })
    }

    /// The place of the volume.
    pub fn site(&self) -> Site {
        self.site
    }

    /// Whether the cache accepts another read.
    pub fn has_room(&self) -> bool {
        self.level.pending() < READS as usize
    }

    /// Whether no piece is in flight or waits.
    pub fn is_at_rest(&self) -> bool {
        self.pieces.is_empty()
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
        let blocks = blocks_of(start, length);
        // Before the level is asked: what is here now may have to go for what is not.
        self.copy_pages(&bytes);
        let asked = UpperRequest {
            client: reader.client,
            file: self.site.number as u64,
            blocks,
            within: Interval::of(0, self.site.length / PAGE),
            purpose: Purpose::Demand,
            direction: Direction::Read,
        };
        let id = RequestId(reader.key as u64);
        self.level.submit(now, id, asked)?;
        let key = reader.key;
        self.readers.push(PendingRead { key, bytes });
        self.take_fetches(reader);
        self.take_answers();
        Ok(())
    }

    /// The next answer to a read.
    pub fn poll_answer(&mut self) -> Option<ServedRead> {
        self.answered.pop_front()
    }

    /// Copies the parts of these bytes that are in pages.
    fn copy_pages(&self, to: &VolumeBytes) {
        if to.memory.length == 0 {
            return;
        }
        for block in blocks_of(to.start, to.memory.length as u64).blocks() {
            let frame = self.level.residency().frame(block);
            if let Some(place) = frame.and_then(|frame| self.pages.of(frame)) {
                VolumeBytes::page(block, self.pages.memory(place)).copy_to(to);
            }
        }
    }

    /// Frees the pages of evicted blocks.
    fn take_departures(&mut self) {
        while let Some(departed) = self.level.poll_departed() {
            let Some(place) = self.pages.part(departed.frame) else {
                continue;
            };
            let unwritten = self.unwritten.as_mut();
            if !unwritten.is_some_and(|unwritten| unwritten.leave(place, departed.block)) {
                self.pages.put_back(place);
            }
        }
    }

    fn take_answers(&mut self) {
        while let Some(answered) = self.level.poll_finished() {
            let key = answered.id.0 as usize;
            let place = self.readers.iter().position(|reader| reader.key == key);
            self.readers.swap_remove(place.expect("it reads"));
            let ending = answered.ending;
            self.answered.push_back(ServedRead { key, ending });
        }
    }
}

/// The age at which an unwritten page is written. A choice: a fifth of the period of Linux
/// (dirty_writeback_centisecs, 5 s), so that little is lost without flushes.
const AGE: Duration = Duration::from_secs(1);

/// The blocks that have any of these bytes.
fn blocks_of(start: u64, length: u64) -> Interval {
    match length {
        0 => Interval::EMPTY,
        _ => Interval::new(start / PAGE, (start + length - 1) / PAGE),
    }
}

fn common(one: Interval, other: Interval) -> Interval {
    match one.is_empty() || other.is_empty() {
        true => Interval::EMPTY,
        false => Interval::new(one.first.max(other.first), one.last.min(other.last)),
    }
}

fn overlap(one: Interval, other: Interval) -> bool {
    !common(one, other).is_empty()
}

#[cfg(test)]
mod tests;
