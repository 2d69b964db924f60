//! Fetches on their way through the engine, in pieces.
//!
//! ```text
//!   fetch   | past the cache | into frames ........................ |
//!   pieces  |---- at most PIECE bytes ----|--------------------|----|
//!                       a request of the engine each, in memory of its own until it ends
//! ```
//!
//! When a piece has ended its bytes get the changes that are still under way, then they go to pages and
//! to whoever reads them. When all pieces have ended the level learns of it.

use block::Interval;
use block::{Class, Direction, Durability, Extent, Instant, Lba, Request, RequestId, Sectors};
use cache::coordinator::Purpose;
use cache::level::{Ending, FetchId};

use super::joining::Joined;
use super::pages::Bytes;
use super::{CacheRead, Cached, NUMBER_SHIFT, OURS, PAGE, common, overlap};
use crate::arena::{Buffer, Memory};
use block::operation::Failed;

/// A fetch of the level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fetching {
    /// Pieces that have not ended.
    left: u32,
    /// Which of its blocks go into frames.
    pub(super) framed: Interval,
    /// What came is not what is on the volume, or did not come.
    pub(super) fate: Fate,
}

impl Fetching {
    pub(super) fn is_under_way(&self) -> bool {
        self.left > 0
    }
}

/// What is to become of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    /// Something of it could not be read.
    Failed,
    /// What it reads has changed, without the engine knowing in which order.
    Void,
}

/// A request of the engine.
pub(super) struct Piece {
    pub(super) work: Work,
    pub(super) blocks: Interval,
    pub(super) class: Class,
    pub(super) export: usize,
    /// Once the engine was asked, and this is the first of those for which it was asked together.
    pub(super) buffer: Option<Buffer>,
    /// All blocks for which the engine was asked together.
    pub(super) whole: Interval,
    /// The piece behind this one, for which the engine was asked together with it.
    pub(super) next: Option<usize>,
}

/// What a piece is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Fetch(FetchId),
    /// Writes pages of which the oldest has this serial.
    Write {
        serial: u64,
    },
}

/// The most blocks of a piece (1 MiB). A choice: a sixteenth of the memory for them, and more than
/// prefetchers ask for at once.
pub(super) const PIECE: u64 = 256;

/// Neighbours are asked for together as long as that is no more than so many blocks: 128 sectors, as in
/// Linux 2.6, which earlier work on such caches imitates. Who waits for one of them waits for all.
const TOGETHER: u64 = 16;

/// An urgency that a piece under way is to have: [`engine::Engine::upgrade`].
pub struct Upgrade {
    /// The engine's request.
    pub id: RequestId,
    /// All of it.
    pub extent: Extent,
    /// How urgent.
    pub class: Class,
}

impl Cached {
    /// Takes what the level wants, in pieces.
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
                    let place = self.pieces.insert(Piece {
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

    /// What the engine is to be asked next, if it has room for the class and there is memory. It has
    /// to be asked at once.
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

    /// Takes those that wait, are as urgent, and go on where this one ends, one after the other.
    fn gather(&mut self, place: usize) {
        let Piece { blocks, class, .. } = self.pieces[place];
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

    /// Where the bytes of a part of a piece's request are.
    pub fn memory_of(&self, place: usize, part: Extent) -> Memory {
        let piece = &self.pieces[place];
        let block = u64::from(self.site.block_bytes);
        let before = part.start().0 - self.extent_of(piece.whole).start().0;
        let buffer = piece.buffer.as_ref().expect("it is under way");
        let length = (part.length().0 * block) as usize;
        buffer.memory().part((before * block) as usize, length)
    }

    /// The export for which a piece is under way.
    pub fn export_of(&self, place: usize) -> usize {
        self.pieces[place].export
    }

    /// What of this volume is under way or waits, is read, and is wanted more urgently than it is. What
    /// waits here is as urgent at once.
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

    /// A piece's request has ended.
    pub fn ended(&mut self, now: Instant, place: usize, result: Result<(), Failed>) {
        match self.pieces[place].work {
            Work::Fetch(_) => self.fetched(now, place, result),
            Work::Write { .. } => self.written(place, result),
        }
    }

    /// All pieces for which the engine was asked together have ended.
    fn fetched(&mut self, now: Instant, place: usize, result: Result<(), Failed>) {
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
        piece: &Piece,
        memory: Memory,
        result: Result<(), Failed>,
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
            let came = Bytes::page(piece.blocks.first, memory);
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

    /// Bytes have come: they get what has changed meanwhile, then pages and readers get them.
    fn deliver(&mut self, came: &Bytes, framed: Interval) {
        self.renew(came.start, came.memory);
        for block in framed.blocks() {
            let frame = self.level.residency().frame(block);
            let place = self.pages.give(frame.expect("a frame in flight stays"));
            came.copy_to(&Bytes::page(block, self.pages.memory(place)));
        }
        for reader in &self.readers {
            came.copy_to(&reader.bytes);
        }
    }

    /// Frames have no pages any more.
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
