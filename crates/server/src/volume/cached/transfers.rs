//! Transfers between a cache and the engine: fetches of the level, and writes of pages, in pieces.
//!
//! ```text
//!   fetch   | past the cache | into frames ........................ |
//!   pieces  |-- at most LONGEST_PIECE blocks --|---------------|----|
//!                       a request of the engine each, in memory of its own until it ends
//! ```
//!
//! A fetch has ended when all its pieces have. Short pieces that wait for the engine are combined.

use std::collections::VecDeque;
use std::io;

use block::{Class, Direction, Durability, Extent, Interval, Owner, Request, RequestId};
use cache::coordinator::Purpose;
use cache::level::FetchId;
use slab::Slab;

use super::volume::CachedVolume;
use crate::arena::{Arena, Buffer, Memory};
use crate::cache_setting::PAGE;

/// Memory for pieces in flight. A choice: sixteen of the longest. Further pieces wait.
const STAGING: usize = 16 << 20;

/// The largest number of blocks of a piece (1 MiB). A choice: a sixteenth of the staging memory, and more
/// than prefetchers want at once.
pub(super) const LONGEST_PIECE: u64 = 256;

/// The largest number of blocks of a combined request: 128 sectors, as in Linux 2.6, which earlier work on
/// such caches imitates. A reader of one block waits for all.
const COMBINED: u64 = 16;

/// The largest number of writes in flight. A choice: enough for an order by position.
const WRITES: usize = 8;

/// The pieces that are in flight or wait.
pub(super) struct CacheTransfers {
    /// Memory of transfers between the engine and pages.
    staging: Arena,
    pieces: Slab<CachePiece>,
    /// Pieces that were not submitted.
    waiting: WaitingPieces,
    /// The fetches, by the level's numbers.
    fetches: Vec<FetchProgress>,
    /// The number of pieces that are being written.
    writes: usize,
    /// The largest number of blocks of a piece.
    longest: u64,
}

/// The indices of pieces that were not submitted, in the order of the engine's use.
#[derive(Default)]
struct WaitingPieces {
    demanded: VecDeque<usize>,
    prefetched: VecDeque<usize>,
}

/// The progress of a fetch of the level.
#[derive(Clone, Copy, Debug)]
pub(super) struct FetchProgress {
    /// The number of pieces that have not ended.
    pub(super) left: u32,
    /// The blocks that go into frames.
    pub(super) framed: Interval,
    pub(super) outcome: FetchOutcome,
}

/// The outcome of a fetch, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FetchOutcome {
    /// No piece has failed.
    Good,
    /// A read failed.
    Failed,
    /// The blocks have changed outside the engine's order.
    Void,
}

/// A request of the engine, or a part of one.
pub(super) struct CachePiece {
    pub(super) work: PieceWork,
    pub(super) blocks: Interval,
    pub(super) class: Class,
    /// The export in whose name the piece is transferred.
    export: usize,
    /// The program that waits for it. That of the first piece of a combined request is the owner of the request.
    owner: Owner,
    /// The memory, once the request was submitted. The first piece of a combined request has it.
    pub(super) buffer: Option<Buffer>,
    /// All blocks of the combined request.
    combined: Interval,
    /// The next piece of the combined request.
    pub(super) next: Option<usize>,
}

/// The client in whose name a piece is transferred.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requester {
    pub(super) class: Class,
    /// The index of the export.
    pub(super) export: usize,
    pub(super) owner: Owner,
}

/// The purpose of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceWork {
    /// Reads blocks of a fetch.
    Fetch(FetchId),
    /// Writes pages. The oldest of them has this serial.
    Write {
        /// The serial of the write that was stored first.
        serial: u64,
    },
}

/// A new urgency of a piece in flight, see [`engine::Engine::upgrade`].
pub struct Upgrade {
    /// The engine's request.
    pub id: RequestId,
    /// The blocks of the request.
    pub extent: Extent,
    /// The new class.
    pub class: Class,
}

impl WaitingPieces {
    fn of(&mut self, purpose: Purpose) -> &mut VecDeque<usize> {
        match purpose {
            Purpose::Demand => &mut self.demanded,
            Purpose::Prefetch => &mut self.prefetched,
        }
    }

    /// Removes the first piece that fits; demanded pieces are first.
    fn take(&mut self, fits: impl Fn(&usize) -> bool) -> Option<usize> {
        let mut queues = [&mut self.demanded, &mut self.prefetched].into_iter();
        queues.find_map(|queue| queue.remove(queue.iter().position(&fits)?))
    }
}

impl CacheTransfers {
    /// No transfers.
    ///
    /// # Errors
    /// If there is no memory.
    pub(super) fn new() -> io::Result<Self> {
        Ok(CacheTransfers {
            staging: Arena::map(STAGING)?,
            pieces: Slab::new(),
            waiting: WaitingPieces::default(),
            fetches: Vec::new(),
            writes: 0,
            longest: LONGEST_PIECE,
        })
    }

    /// Whether no piece is in flight or waits.
    pub(super) fn is_idle(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The largest number of blocks of a piece.
    pub(super) fn longest(&self) -> u64 {
        self.longest
    }

    /// Limits the blocks of a piece, so that tests have several with little memory.
    #[cfg(test)]
    pub(super) fn set_longest(&mut self, blocks: u64) {
        self.longest = blocks;
    }

    /// A piece, in the hands of a test.
    #[cfg(test)]
    pub(super) fn piece(&mut self, piece: usize) -> &mut CachePiece {
        &mut self.pieces[piece]
    }

    /// Begins a fetch without pieces. `framed` are its blocks that go into frames.
    pub(super) fn begin_fetch(&mut self, id: FetchId, framed: Interval) {
        let progress = FetchProgress {
            left: 0,
            framed,
            outcome: FetchOutcome::Good,
        };
        match self.fetches.get_mut(id.0 as usize) {
            Some(fetch) => *fetch = progress,
            // Numbers are reused: they grow one by one.
            None => self.fetches.push(progress),
        }
    }

    /// Adds a piece with the first of these blocks of a fetch, and removes them from `blocks`. The piece has
    /// to be queued, or joined to another read. `None` if there are no blocks.
    pub(super) fn add_piece(
        &mut self,
        id: FetchId,
        blocks: &mut Interval,
        whose: Requester,
    ) -> Option<(usize, Interval)> {
        if blocks.is_empty() {
            return None;
        }
        let piece = Interval::new(
            blocks.first,
            blocks.last.min(blocks.first + self.longest - 1),
        );
        blocks.first = piece.last + 1;
        self.fetches[id.0 as usize].left += 1;
        let number = self.pieces.insert(CachePiece {
            work: PieceWork::Fetch(id),
            blocks: piece,
            class: whose.class,
            export: whose.export,
            owner: whose.owner,
            buffer: None,
            combined: piece,
            next: None,
        });
        Some((number, piece))
    }

    /// Queues a piece for the engine.
    pub(super) fn queue(&mut self, piece: usize, purpose: Purpose) {
        self.waiting.of(purpose).push_back(piece);
    }

    /// The next read, if the engine has room for its class and there is memory. The caller submits it at once.
    pub(super) fn next_read(
        &mut self,
        volume: &CachedVolume,
        has_room: &dyn Fn(Class) -> bool,
    ) -> Option<Request> {
        for purpose in [Purpose::Demand, Purpose::Prefetch] {
            let Some(&number) = self.waiting.of(purpose).front() else {
                continue;
            };
            let piece = &self.pieces[number];
            if !has_room(piece.class) {
                continue;
            }
            let length = piece.blocks.len().max(COMBINED) * PAGE;
            if let Some(mut buffer) = self.staging.allocate(length as usize) {
                self.waiting.of(purpose).pop_front();
                self.combine(number);
                let piece = &mut self.pieces[number];
                buffer.show((piece.combined.len() * PAGE) as usize);
                piece.buffer = Some(buffer);
                return Some(self.request(volume, number));
            }
        }
        None
    }

    /// Combines a piece with waiting pieces of the same class that continue it. If their owners differ, the request is
    /// nobody's.
    fn combine(&mut self, number: usize) {
        let CachePiece {
            blocks,
            class,
            mut owner,
            ..
        } = self.pieces[number];
        let (mut combined, mut last) = (blocks, number);
        loop {
            let pieces = &self.pieces;
            let continues = |other: &usize| {
                let other = &pieces[*other];
                let length = combined.len() + other.blocks.len();
                other.blocks.first == combined.last + 1
                    && other.class == class
                    && length <= COMBINED
            };
            let Some(next) = self.waiting.take(continues) else {
                break;
            };
            self.pieces[last].next = Some(next);
            combined.last = self.pieces[next].blocks.last;
            owner = owner.combined(self.pieces[next].owner);
            last = next;
        }
        self.pieces[number].combined = combined;
        self.pieces[number].owner = owner;
    }

    /// The request of a piece.
    pub(super) fn request(&self, volume: &CachedVolume, piece: usize) -> Request {
        let id = volume.request_id(piece);
        let piece = &self.pieces[piece];
        Request {
            id,
            direction: match piece.work {
                PieceWork::Fetch(_) => Direction::Read,
                PieceWork::Write { .. } => Direction::Write,
            },
            extent: volume.extent_of(piece.combined),
            class: piece.class,
            durability: Durability::Volatile,
            owner: piece.owner,
        }
    }

    /// The memory of some blocks of a piece's request.
    pub(super) fn memory_of(&self, volume: &CachedVolume, piece: usize, part: Extent) -> Memory {
        let piece = &self.pieces[piece];
        let block = u64::from(volume.block_bytes);
        let before = part.start().0 - volume.extent_of(piece.combined).start().0;
        let buffer = piece.buffer.as_ref().expect("a submitted piece");
        let length = (part.length().0 * block) as usize;
        buffer.memory().part((before * block) as usize, length)
    }

    /// The export in whose name a piece is transferred.
    pub(super) fn export_of(&self, piece: usize) -> usize {
        self.pieces[piece].export
    }

    /// The purpose of a piece.
    pub(super) fn work_of(&self, piece: usize) -> PieceWork {
        self.pieces[piece].work
    }

    /// Makes a piece that is not in flight at least as urgent as `class`.
    pub(super) fn raise(&mut self, piece: usize, class: Class) {
        let piece = &mut self.pieces[piece];
        piece.class = piece.class.min(class);
    }

    /// Raises the urgency of queued and submitted reads of these blocks. Queued pieces change at once; `to`
    /// gets the upgrades of submitted ones.
    pub(super) fn hasten(
        &mut self,
        volume: &CachedVolume,
        blocks: Interval,
        class: Class,
        to: &mut Vec<Upgrade>,
    ) {
        let WaitingPieces {
            demanded,
            prefetched,
        } = &mut self.waiting;
        prefetched.retain(|&number| {
            let piece = &mut self.pieces[number];
            let is_demanded = piece.blocks.overlaps(blocks);
            if is_demanded {
                piece.class = piece.class.min(class);
                demanded.push_back(number);
            }
            !is_demanded
        });
        self.upgrade(volume, class, to, |piece| {
            let is_read = matches!(piece.work, PieceWork::Fetch(_)) && piece.buffer.is_some();
            is_read && piece.combined.overlaps(blocks)
        });
    }

    /// Raises the urgency of writes in flight.
    pub(super) fn hasten_writes(
        &mut self,
        volume: &CachedVolume,
        class: Class,
        to: &mut Vec<Upgrade>,
    ) {
        self.upgrade(volume, class, to, |piece| {
            matches!(piece.work, PieceWork::Write { .. })
        });
    }

    /// Raises the class of such pieces, in the order of their numbers, and collects the upgrades.
    fn upgrade(
        &mut self,
        volume: &CachedVolume,
        class: Class,
        to: &mut Vec<Upgrade>,
        such: impl Fn(&CachePiece) -> bool,
    ) {
        for (number, piece) in &mut self.pieces {
            if piece.class > class && such(piece) {
                piece.class = class;
                to.push(Upgrade {
                    id: volume.request_id(number),
                    extent: volume.extent_of(piece.combined),
                    class,
                });
            }
        }
    }

    /// Voids the fetches under way of these blocks: they have changed outside the engine's order.
    pub(super) fn void(&mut self, blocks: Interval) {
        for (_, piece) in &self.pieces {
            if let PieceWork::Fetch(id) = piece.work
                && piece.blocks.overlaps(blocks)
            {
                self.fetches[id.0 as usize].outcome = FetchOutcome::Void;
            }
        }
        // Pieces that have ended, of fetches that have not.
        for fetch in &mut self.fetches {
            if fetch.left > 0 && fetch.framed.overlaps(blocks) {
                fetch.outcome = FetchOutcome::Void;
            }
        }
    }

    /// Whether another write of pages may begin.
    pub(super) fn has_room_for_write(&self) -> bool {
        self.writes < WRITES
    }

    /// Adds a write of pages: its piece, and the memory for its bytes. `None` if there is no memory now. The
    /// caller fills the memory and submits the piece at once.
    pub(super) fn begin_write(
        &mut self,
        blocks: Interval,
        serial: u64,
        whose: Requester,
    ) -> Option<(usize, Memory)> {
        let buffer = self.staging.allocate((blocks.len() * PAGE) as usize)?;
        let memory = buffer.memory();
        self.writes += 1;
        let piece = self.pieces.insert(CachePiece {
            work: PieceWork::Write { serial },
            blocks,
            class: whose.class,
            export: whose.export,
            owner: whose.owner,
            buffer: Some(buffer),
            combined: blocks,
            next: None,
        });
        Some((piece, memory))
    }

    /// Removes a piece that has ended. Its buffer has to be freed.
    pub(super) fn remove(&mut self, piece: usize) -> CachePiece {
        let piece = self.pieces.remove(piece);
        if let PieceWork::Write { .. } = piece.work {
            self.writes -= 1;
        }
        piece
    }

    /// Frees the buffer of a request that has ended.
    pub(super) fn free(&mut self, buffer: Option<Buffer>) {
        if let Some(buffer) = buffer {
            self.staging.free(buffer);
        }
    }

    /// Counts the end of a piece of a fetch, and returns the fetch's progress.
    pub(super) fn end_piece<E>(&mut self, id: FetchId, result: Result<(), E>) -> FetchProgress {
        let fetch = &mut self.fetches[id.0 as usize];
        if result.is_err() {
            fetch.outcome = FetchOutcome::Failed;
        }
        fetch.left -= 1;
        *fetch
    }
}

#[cfg(test)]
mod tests {
    use block::{Lba, Sectors};
    use proptest::prelude::*;

    use super::*;

    const VOLUME: CachedVolume = CachedVolume {
        offset: 0,
        length: 1 << 30,
        block_bytes: 4096,
        number: 0,
        export: 0,
    };

    /// Queues a fetch of these blocks.
    fn fetch(transfers: &mut CacheTransfers, id: u32, blocks: Interval, class: Class) {
        fetch_for(transfers, Owner::NOBODY, id, blocks, class);
    }

    fn fetch_for(
        transfers: &mut CacheTransfers,
        owner: Owner,
        id: u32,
        mut blocks: Interval,
        class: Class,
    ) {
        let id = FetchId(id);
        let whose = Requester {
            class,
            export: 0,
            owner,
        };
        transfers.begin_fetch(id, blocks);
        while let Some((piece, _)) = transfers.add_piece(id, &mut blocks, whose) {
            transfers.queue(piece, Purpose::Demand);
        }
    }

    /// Ends a request; the numbers of the fetches that have ended with it, and their outcomes.
    fn end(
        transfers: &mut CacheTransfers,
        request: &Request,
        result: Result<(), ()>,
    ) -> Vec<(u32, FetchOutcome)> {
        let mut next = super::super::volume::owner(request.id).map(|(_, piece)| piece);
        let mut ended = Vec::new();
        while let Some(number) = next {
            let mut piece = transfers.remove(number);
            transfers.free(piece.buffer.take());
            let PieceWork::Fetch(id) = piece.work else {
                unreachable!("only fetches are queued");
            };
            let progress = transfers.end_piece(id, result);
            if progress.left == 0 {
                ended.push((id.0, progress.outcome));
            }
            next = piece.next;
        }
        ended
    }

    proptest! {
        /// Every block of every fetch is read once, in pieces of at most the longest or combined ones.
        #[test]
        fn every_fetch_ends_once_and_is_read_wholly(
            fetches in prop::collection::vec((0..40u64, 1..30u64, 0..2u8), 1..20),
        ) {
            let mut transfers = CacheTransfers::new().expect("memory");
            transfers.set_longest(7);
            for (id, &(first, count, class)) in (0u32..).zip(&fetches) {
                let blocks = Interval::of(first, count);
                fetch(&mut transfers, id, blocks, Class::BestEffort(class));
            }
            let (mut read, mut ended) = (0, Vec::new());
            while let Some(request) = transfers.next_read(&VOLUME, &|_| true) {
                prop_assert!(request.extent.length().0 <= COMBINED);
                read += request.extent.length().0;
                ended.extend(end(&mut transfers, &request, Ok(())));
            }
            prop_assert_eq!(read, fetches.iter().map(|fetch| fetch.1).sum::<u64>());
            ended.sort_unstable_by_key(|&(id, _)| id);
            let all = (0..fetches.len() as u32).map(|id| (id, FetchOutcome::Good));
            prop_assert!(ended.into_iter().eq(all));
            prop_assert!(transfers.is_idle());
        }
    }

    #[test]
    fn one_piece_decides_that_a_fetch_has_failed_or_is_void() {
        let mut transfers = CacheTransfers::new().expect("memory");
        transfers.set_longest(16);
        let class = Class::BestEffort(0);
        fetch(&mut transfers, 0, Interval::of(0, 32), class);
        fetch(&mut transfers, 1, Interval::of(100, 32), class);
        let mut next = || transfers.next_read(&VOLUME, &|_| true).expect("a piece");
        let requests = [next(), next(), next(), next()];
        let extent = Extent::new(Lba(16), Sectors(16)).expect("blocks");
        assert_eq!(requests[1].extent, extent);
        assert_eq!(end(&mut transfers, &requests[0], Err(())), []);
        let failed = (0, FetchOutcome::Failed);
        assert_eq!(end(&mut transfers, &requests[1], Ok(())), [failed]);
        assert_eq!(end(&mut transfers, &requests[2], Ok(())), []);
        // A block of the piece that has ended.
        transfers.void(Interval::of(100, 1));
        let void = (1, FetchOutcome::Void);
        assert_eq!(end(&mut transfers, &requests[3], Ok(())), [void]);
    }

    #[test]
    fn a_combined_read_is_of_the_owner_of_its_pieces_or_of_nobody() {
        let mut transfers = CacheTransfers::new().expect("memory");
        let class = Class::BestEffort(0);
        let [one, other] = [Owner::connection(1), Owner::connection(2)];
        for (id, owner, first) in [
            (0, one, 0),
            (1, one, 4),
            (2, one, 100),
            (3, other, 104),
            (4, one, 108),
            (5, other, 200),
        ] {
            fetch_for(&mut transfers, owner, id, Interval::of(first, 4), class);
        }
        let mut next = || transfers.next_read(&VOLUME, &|_| true).expect("a request");
        let read: Vec<(u64, Owner)> = (0..3)
            .map(|_| next())
            .map(|request| (request.extent.length().0, request.owner))
            .collect();
        assert_eq!(read, [(8, one), (12, Owner::NOBODY), (4, other)]);
    }

    #[test]
    fn without_memory_pieces_wait_and_writes_do_not_begin() {
        let mut transfers = CacheTransfers::new().expect("memory");
        let class = Class::BestEffort(0);
        let all = STAGING as u64 / PAGE;
        fetch(&mut transfers, 0, Interval::of(0, all + 1), class);
        let next = |transfers: &mut CacheTransfers| transfers.next_read(&VOLUME, &|_| true);
        let requests: Vec<Request> = std::iter::from_fn(|| next(&mut transfers)).collect();
        assert_eq!(requests.len() as u64, all / LONGEST_PIECE);
        let write = |transfers: &mut CacheTransfers| {
            let whose = Requester {
                class,
                export: 0,
                owner: Owner::NOBODY,
            };
            transfers.begin_write(Interval::of(0, 1), 1, whose)
        };
        assert!(write(&mut transfers).is_none());
        end(&mut transfers, &requests[0], Ok(()));
        assert!(write(&mut transfers).is_some());
        assert!(next(&mut transfers).is_some());
    }
}
