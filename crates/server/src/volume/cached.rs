//! The cache of a volume: a level decides what is kept and fetched, the pages here hold the bytes.
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
//! What keeps contents right is one rule: *every page has what the volume will have when all that the
//! engine has been asked has been done.* The engine does overlapping requests in the order in which it
//! is asked. So a page changes when the engine is asked for a write, and what is read into a page gets
//! the changes that were asked for after it, which are still under way then. What does not go through
//! the engine (trims, zeroes without bytes) is kept apart from writes to the same blocks, and makes what
//! is being fetched of them void. What is read in the background is not ordered with anything: no block is
//! taken of it that changed meanwhile (`wishing`), and whoever waits for it (`joining`) asks the engine then.
//!
//! Nobody else may change the volume: not another client of a server behind, not another drive's volume
//! of the same file.

use std::collections::VecDeque;
use std::io;

use block::Interval;
use block::{Class, Direction, Duration, Instant, RequestId};
use cache::coordinator::{Asked, Purpose};
use cache::level::{Ending, Refused};
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
use fetching::{Fetching, PIECE, Piece};
use joining::Joined;
use pages::{Bytes, Pages};
use wishing::Passing;
pub use wishing::Wanted;

/// Where the volume is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// In bytes of the drive.
    pub offset: u64,
    /// In bytes; a multiple of [`PAGE`].
    pub length: u64,
    /// Bytes of the drive's blocks: they divide [`PAGE`].
    pub block_bytes: u32,
    /// The place of the cache among those of the loop.
    pub number: usize,
    /// An export of the volume, in read name it is written to later.
    pub export: usize,
}

/// One cache.
pub struct Cached {
    setting: CacheSetting,
    site: Site,
    level: Level,
    pages: Pages,
    /// Where bytes are on their way between the engine and pages.
    staging: Arena,
    readers: Vec<Reader>,
    /// By the level's numbers of them.
    fetches: Vec<Fetching>,
    pieces: Slab<Piece>,
    /// Pieces that the engine has not been asked for: what somebody waits for, and what is fetched
    /// ahead.
    waiting: [VecDeque<usize>; 2],
    /// What the engine was asked to write and has not, in the order in which it was asked.
    changes: Vec<Change>,
    /// Background reads at the drive, if something is wished of them.
    passing: Vec<Passing>,
    /// Pieces that wait for one of these.
    joined: Vec<Joined>,
    /// What had not to be read by itself because it had joined one.
    joined_blocks: u64,
    /// The most blocks of a piece.
    longest: u64,
    unwritten: Option<Unwritten>,
    /// Pieces under way that write.
    writing: usize,
    /// Who has an answer.
    answered: VecDeque<Answer>,
}

/// A read that waits.
struct Reader {
    key: usize,
    /// Where its bytes go; of no bytes if it only wants them to be here.
    bytes: Bytes,
}

/// A write under way.
struct Change {
    id: RequestId,
    bytes: Bytes,
}

impl Change {
    fn blocks(&self) -> Interval {
        blocks_of(self.bytes.start, self.bytes.memory.length as u64)
    }
}

/// A read has all its bytes, or has to be read anew without the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// CacheRead.
    pub key: usize,
    /// How.
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

/// So many reads may be in the level at a time. A choice: as many requests as an engine holds.
const READS: u32 = 1024;

/// Memory for pieces under way. A choice: sixteen of the longest; where it is used up they wait.
const STAGING: usize = 16 << 20;

/// Requests of caches have this in their numbers; those of operations are places, and much smaller.
const OURS: u64 = 1 << 63;
const NUMBER_SHIFT: u32 = 32;

/// The cache and the piece to which a request of the engine belongs, if it is a cache's.
pub fn owner(id: RequestId) -> Option<(usize, usize)> {
    let place = id.0 & ((1 << NUMBER_SHIFT) - 1);
    let number = (id.0 & !OURS) >> NUMBER_SHIFT;
    (id.0 & OURS != 0).then_some((number as usize, place as usize))
}

impl Cached {
    /// An empty one.
    ///
    /// # Errors
    /// If it cannot be composed so, or there is no memory for it.
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

    /// Where its volume is.
    pub fn site(&self) -> Site {
        self.site
    }

    /// Whether it may be asked for another read.
    pub fn has_room(&self) -> bool {
        self.level.pending() < READS as usize
    }

    /// Whether nothing of it is under way or waits to be.
    pub fn is_at_rest(&self) -> bool {
        self.pieces.is_empty()
    }

    /// A read of `memory.length` bytes from byte `start` of the volume on, or of `length` bytes that
    /// nobody gets. The answer comes by [`Cached::poll_answer`].
    ///
    /// # Errors
    /// If too much is being read, or there are no such blocks.
    pub fn read(
        &mut self,
        now: Instant,
        reader: &CacheRead,
        (start, length): (u64, u64),
        memory: Memory,
    ) -> Result<(), Refused> {
        let bytes = Bytes { start, memory };
        let blocks = blocks_of(start, length);
        // Before the level is asked: what is here now may have to go for what is not.
        self.copy_pages(&bytes);
        let asked = Asked {
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
        self.readers.push(Reader { key, bytes });
        self.take_fetches(reader);
        self.take_answers();
        Ok(())
    }

    /// The next read that has its answer.
    pub fn poll_answer(&mut self) -> Option<Answer> {
        self.answered.pop_front()
    }

    /// Copies what pages have of these bytes.
    fn copy_pages(&self, to: &Bytes) {
        if to.memory.length == 0 {
            return;
        }
        for block in blocks_of(to.start, to.memory.length as u64).blocks() {
            let frame = self.level.residency().frame(block);
            if let Some(place) = frame.and_then(|frame| self.pages.of(frame)) {
                Bytes::page(block, self.pages.memory(place)).copy_to(to);
            }
        }
    }

    /// Takes the pages of blocks that have gone.
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
            self.answered.push_back(Answer { key, ending });
        }
    }
}

/// A page that is not older than this is not written of itself. A choice: a fifth of what Linux waits
/// before it looks (dirty_writeback_centisecs, 5 s), so that little is lost where nobody flushes.
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
