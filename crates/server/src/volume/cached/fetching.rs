//! Fetches of the level, as requests of the engine.
//!
//! ```text
//!   fetch   | past the cache | into frames ........................ |
//!   pieces  |---- at most PIECE bytes ----|--------------------|----|
//!                       a request of the engine each, in memory of its own until it ends
//! ```
//!
//! The bytes of an ended piece get the changes that are in flight, then go to pages and readers. The level
//! is notified when all pieces have ended.

use block::Interval;
use block::{Class, Direction, Durability, Extent, Instant, Lba, Request, RequestId, Sectors};
use cache::coordinator::Purpose;
use cache::level::{Ending, FetchId};

use super::joining::Joined;
use super::pages::VolumeBytes;
use super::{CacheRead, Cached, NUMBER_SHIFT, OURS, PAGE, common, overlap};
use crate::arena::{Buffer, Memory};
use block::operation::OperationError;

/// A fetch of the level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetching {
    /// The number of pieces that have not ended.
    left: u32,
    /// The blocks that go into frames.
    pub(super) framed: Interval,
    /// The use of the bytes.
    pub(super) fate: Fate,
}

impl Fetching {
    pub(super) fn is_under_way(&self) -> bool {
        self.left > 0
    }
}

/// The use of a fetch's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    /// A read failed.
    Failed,
    /// The blocks have changed outside the engine's order.
    Void,
}

/// A request of the engine.
pub(super) struct CachePiece {
    pub(super) work: Work,
    pub(super) blocks: Interval,
    pub(super) class: Class,
    pub(super) export: usize,
    /// The memory, once the request was submitted. The first piece of a combined request has it.
    pub(super) buffer: Option<Buffer>,
    /// All blocks of the combined request.
    pub(super) whole: Interval,
    /// The next piece of the combined request.
    pub(super) next: Option<usize>,
}

/// The purpose of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Fetch(FetchId),
    /// Writes pages. The oldest of them has this serial.
    Write {
        serial: u64,
    },
}

/// The largest number of blocks of a piece (1 MiB). A choice: a sixteenth of the staging memory, and more
/// than prefetchers want at once.
pub(super) const PIECE: u64 = 256;

/// The largest number of blocks of a combined request: 128 sectors, as in Linux 2.6, which earlier work on
/// such caches imitates. A reader of one block waits for all.
const TOGETHER: u64 = 16;

/// A new urgency of a piece in flight, see [`engine::Engine::upgrade`].
pub struct Upgrade {
    /// The engine's request.
    pub id: RequestId,
    /// The blocks of the request.
    pub extent: Extent,
    /// The new class.
    pub class: Class,
}

impl Cached {
    /// Divides the level's new fetches into pieces.
    pub(super) fn take_fetches(&mut self, reader: &CacheRead) {
        self.take_departures();
        while let Some(fetch) = self.level.poll() {
            let (class, queue) = match fetch.asked.purpose {
                Purpose::Demand => (reader.class, 0),
                Purpose::Prefetch => (self.setting.ahead.max(reader.class), 1),
            };
            let mut left = 0;
            for (blocks, read) in self.divide(fetch.asked.blocks) {
                let mut first = blocks.first;
                while first <= blocks.last {
                    let last = blocks.last.min(first + self.longest - 1);
                    let place = self.pieces.insert(CachePiece {
                        work: Work::Fetch(fetch.id),
                        blocks: Interval::new(first, last),
                        class,
                        export: reader.export,
                        buffer: None,
                        whole: Interval::new(first, last),
                        next: None,
                    });
                    match read {
                        Some(read) => self.joined.push(Joined { place, read, queue }),
                        None => self.waiting[queue].push_back(place),
                    }
                    first = last + 1;
                    left += 1;
                }
            }
            let number = fetch.id.0 as usize;
            let fetching = Fetching {
                left,
                framed: self.level.framed(fetch.id),
                fate: Fate::Done,
            };
            match self.fetches.get_mut(number) {
                Some(fetch) => *fetch = fetching,
                // Numbers are used again: they grow one by one.
                None => self.fetches.push(fetching),
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
        for queue in 0..self.waiting.len() {
            if let Some(&place) = self.waiting[queue].front() {
                let (class, length) = {
                    let piece = &self.pieces[place];
                    (piece.class, piece.blocks.len().max(TOGETHER) * PAGE)
                };
                if has_room(class)
                    && let Some(mut buffer) = self.staging.allocate(length as usize)
                {
                    self.waiting[queue].pop_front();
                    self.gather(place);
                    let piece = &mut self.pieces[place];
                    buffer.show((piece.whole.len() * PAGE) as usize);
                    piece.buffer = Some(buffer);
                    return Some(self.request(place));
                }
            }
        }
        self.next_write(now, has_room)
    }

    /// Combines waiting pieces of the same urgency that continue the last one.
    fn gather(&mut self, place: usize) {
        let CachePiece { blocks, class, .. } = self.pieces[place];
        let (mut whole, mut last) = (blocks, place);
        loop {
            let pieces = &self.pieces;
            let goes_on = |other: &usize| {
                let other = &pieces[*other];
                let together = whole.len() + other.blocks.len();
                other.blocks.first == whole.last + 1 && other.class == class && together <= TOGETHER
            };
            let mut queues = self.waiting.iter_mut();
            let found = queues.find_map(|queue| queue.remove(queue.iter().position(goes_on)?));
            let Some(next) = found else {
                break;
            };
            self.pieces[last].next = Some(next);
            whole.last = self.pieces[next].blocks.last;
            last = next;
        }
        self.pieces[place].whole = whole;
    }

    /// The request of a piece.
    pub(super) fn request(&self, place: usize) -> Request {
        let piece = &self.pieces[place];
        Request {
            id: self.id_of(place),
            direction: match piece.work {
                Work::Fetch(_) => Direction::Read,
                Work::Write { .. } => Direction::Write,
            },
            extent: self.extent_of(piece.whole),
            class: piece.class,
            durability: Durability::Volatile,
        }
    }

    pub(super) fn id_of(&self, place: usize) -> RequestId {
        RequestId(OURS | (self.site.number as u64) << NUMBER_SHIFT | place as u64)
    }

    pub(super) fn extent_of(&self, blocks: Interval) -> Extent {
        let block = u64::from(self.site.block_bytes);
        let start = (self.site.offset + blocks.first * PAGE) / block;
        let length = Sectors(blocks.len() * PAGE / block);
        Extent::new(Lba(start), length).expect("at least one block")
    }

    /// The memory of some blocks of a piece's request.
    pub fn memory_of(&self, place: usize, part: Extent) -> Memory {
        let piece = &self.pieces[place];
        let block = u64::from(self.site.block_bytes);
        let before = part.start().0 - self.extent_of(piece.whole).start().0;
        let buffer = piece.buffer.as_ref().expect("it is under way");
        let length = (part.length().0 * block) as usize;
        buffer.memory().part((before * block) as usize, length)
    }

    /// The export in whose name a piece is transferred.
    pub fn export_of(&self, place: usize) -> usize {
        self.pieces[place].export
    }

    /// Raises the urgency of reads of these bytes, in flight or waiting. Waiting pieces change at once.
    pub fn hasten(&mut self, (start, length): (u64, u64), class: Class, to: &mut Vec<Upgrade>) {
        let blocks = super::blocks_of(start, length);
        self.hasten_joined(blocks, class);
        let [demanded, ahead] = &mut self.waiting;
        ahead.retain(|&place| {
            let piece = &mut self.pieces[place];
            let is_wanted = overlap(piece.blocks, blocks);
            if is_wanted {
                piece.class = piece.class.min(class);
                demanded.push_back(place);
            }
            !is_wanted
        });
        for place in 0..self.pieces.capacity() {
            let Some(piece) = self.pieces.get(place) else {
                continue;
            };
            let is_read = matches!(piece.work, Work::Fetch(_)) && piece.buffer.is_some();
            if is_read && piece.class > class && overlap(piece.whole, blocks) {
                self.pieces[place].class = class;
                to.push(self.upgrade(place));
            }
        }
    }

    pub(super) fn upgrade(&self, place: usize) -> Upgrade {
        let request = self.request(place);
        Upgrade {
            id: request.id,
            extent: request.extent,
            class: request.class,
        }
    }

    /// The request of a piece has ended.
    pub fn ended(&mut self, now: Instant, place: usize, result: Result<(), OperationError>) {
        match self.pieces[place].work {
            Work::Fetch(_) => self.fetched(now, place, result),
            Work::Write { .. } => self.written(place, result),
        }
    }

    /// All pieces of a combined request have ended.
    fn fetched(&mut self, now: Instant, place: usize, result: Result<(), OperationError>) {
        let first = self.pieces[place].blocks.first;
        let buffer = self.pieces[place].buffer.take();
        let buffer = buffer.expect("it was under way");
        let mut next = Some(place);
        while let Some(place) = next {
            let piece = self.pieces.remove(place);
            let (before, length) = (piece.blocks.first - first, piece.blocks.len());
            let memory = buffer
                .memory()
                .part((before * PAGE) as usize, (length * PAGE) as usize);
            self.piece_fetched(now, &piece, memory, result);
            next = piece.next;
        }
        self.staging.free(buffer);
        self.take_answers();
    }

    pub(super) fn piece_fetched(
        &mut self,
        now: Instant,
        piece: &CachePiece,
        memory: Memory,
        result: Result<(), OperationError>,
    ) {
        let Work::Fetch(id) = piece.work else {
            return;
        };
        let is_beyond = (piece.blocks.last + 1) * PAGE > self.site.length;
        let fetch = &mut self.fetches[id.0 as usize];
        if result.is_err() || is_beyond {
            fetch.fate = Fate::Failed;
        }
        fetch.left -= 1;
        let (fate, left, framed) = (fetch.fate, fetch.left, fetch.framed);
        if fate == Fate::Done {
            let came = VolumeBytes::page(piece.blocks.first, memory);
            self.deliver(&came, common(piece.blocks, framed));
        }
        if left > 0 {
            return;
        }
        if fate != Fate::Done {
            self.take_pages(framed);
        }
        let ending = match fate {
            Fate::Done => Ending::Done,
            Fate::Failed | Fate::Void => Ending::Failed,
        };
        self.level.complete(now, id, ending);
    }

    /// Distributes fetched bytes: changes in flight are applied, then pages and readers get them.
    fn deliver(&mut self, came: &VolumeBytes, framed: Interval) {
        self.renew(came.start, came.memory);
        for block in framed.blocks() {
            let frame = self.level.residency().frame(block);
            let place = self.pages.give(frame.expect("a frame in flight stays"));
            came.copy_to(&VolumeBytes::page(block, self.pages.memory(place)));
        }
        for reader in &self.readers {
            came.copy_to(&reader.bytes);
        }
    }

    /// Frees the pages of these blocks.
    pub(super) fn take_pages(&mut self, blocks: Interval) {
        for block in blocks.blocks() {
            let frame = self.level.residency().frame(block);
            if let Some(place) = frame.and_then(|frame| self.pages.part(frame)) {
                if let Some(unwritten) = &mut self.unwritten {
                    unwritten.forget(place);
                }
                self.pages.put_back(place);
            }
        }
    }
}
