//! The contents of a cache: which blocks it has, and their bytes.
//!
//! ```text
//!   level      block --> frame           which blocks are kept
//!   pages      frame --> bytes
//!   unwritten  the pages that the volume does not have yet, also of evicted blocks (write = "back")
//!   changes    the writes that are in flight
//! ```
//!
//! # Write-back
//!
//! A write that fits is stored in pages. Pages are written when they are a second old, when there are many,
//! when they are evicted, or when a flush waits. The oldest page goes first, together with the pages that
//! follow it on the volume. A page that changes while it is being written is unwritten again.

use std::io;

use block::operation::OperationError;
use block::{Class, Duration, Instant, Interval, RequestId};
use cache::coordinator::UpperRequest;
use cache::level::{Answered, Ending, Fetch, FetchId, LevelRefused, Stored, Wish};
use cache::residency::BlockState;
use cache::write_back::{Lost, StoreSlot, Unwritten, WriteBackTarget};
use cache::{Composition, Level};

use super::changes::ChangesInFlight;
use super::pages::{Pages, VolumeBytes};
use crate::cache_setting::{CacheSetting, PAGE, Readmore, Shares, Writes};

/// The largest number of reads in the level. A choice: the number of requests of an engine.
const READS: u32 = 1024;

/// The age at which an unwritten page is written. A choice: a fifth of the period of Linux
/// (dirty_writeback_centisecs, 5 s), so that little is lost without flushes.
const AGE: Duration = Duration::from_secs(1);

/// The blocks of a cache with their bytes.
///
/// It keeps one rule: *every page has what the volume will have when all requests of the engine are done.*
/// The engine executes overlapping requests in the order of their submission. So:
///
/// - A page changes when a write is submitted ([`CacheContents::submit_change`]), or stored.
/// - Fetched bytes get the writes in flight before they become pages ([`CacheContents::fill`]). The engine
///   orders a fetch with writes, so these are the writes after the fetch; earlier ones change nothing.
/// - Bytes of background reads, which the engine does not order, become pages only if no change has
///   overlapped them during the read ([`CacheContents::fill_wanted`], [`CacheContents::fill_ahead`]). Blocks
///   are not wanted, and not kept, while the volume lacks their latest bytes.
/// - After a trim, zeroes or a failed write the content of the volume is unknown. The caller discards the
///   pages ([`CacheContents::discard`]) and the fetches under way.
///
/// Unwritten pages are newer than the volume, and stay until they are written.
pub(super) struct CacheContents {
    level: Level,
    pages: Pages,
    unwritten: Option<Unwritten>,
    changes: ChangesInFlight,
}

impl CacheContents {
    /// No blocks.
    ///
    /// # Errors
    /// If the composition is invalid, or there is no memory for it.
    pub(super) fn new(setting: &CacheSetting) -> io::Result<Self> {
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
        Ok(CacheContents {
            level,
            unwritten: match setting.writes {
                Writes::Through => None,
                Writes::Back => Some(Unwritten::new(pages.count(), unwritten as usize, AGE)),
            },
            pages,
            changes: ChangesInFlight::default(),
        })
    }

    /// The level.
    pub(super) fn level(&self) -> &Level {
        &self.level
    }

    /// The unwritten pages, of a write-back cache.
    pub(super) fn unwritten(&self) -> Option<&Unwritten> {
        self.unwritten.as_ref()
    }

    /// The writes in flight.
    pub(super) fn changes(&self) -> &ChangesInFlight {
        &self.changes
    }

    /// The number of pages in use.
    pub(super) fn used_pages(&self) -> usize {
        self.pages.used()
    }

    /// Whether the level accepts another read.
    pub(super) fn has_room(&self) -> bool {
        self.level.pending() < READS as usize
    }

    /// Submits a read to the level.
    ///
    /// # Errors
    /// If too many reads are pending, or the volume has no such blocks.
    pub(super) fn submit(
        &mut self,
        now: Instant,
        id: RequestId,
        asked: UpperRequest,
    ) -> Result<(), LevelRefused> {
        self.level.submit(now, id, asked)?;
        self.release_evicted();
        Ok(())
    }

    /// The next fetch of the level, and its blocks that go into frames.
    pub(super) fn poll_fetch(&mut self) -> Option<(Fetch, Interval)> {
        let fetch = self.level.poll()?;
        Some((fetch, self.level.framed(fetch.id)))
    }

    /// Notes the end of a fetch.
    pub(super) fn complete(&mut self, now: Instant, id: FetchId, ending: Ending) {
        self.level.complete(now, id, ending);
    }

    /// The next read that the level has answered.
    pub(super) fn poll_answered(&mut self) -> Option<Answered> {
        self.level.poll_finished()
    }

    /// The next change of the wanted blocks. Blocks of which the volume lacks the latest bytes are not wanted.
    pub(super) fn poll_wanted(&mut self) -> Option<Wish> {
        loop {
            match self.level.next_wish()? {
                // The level reports the end of this wish too, which has no effect.
                Wish::Want(blocks) if self.are_newer(blocks) => self.level.unwish(blocks),
                wish => return Some(wish),
            }
        }
    }

    /// These blocks change, and are no longer wanted.
    pub(super) fn end_wanted(&mut self, blocks: Interval) {
        self.level.unwish(blocks);
    }

    /// Whether the volume does not have its latest bytes of these blocks yet.
    fn are_newer(&self, blocks: Interval) -> bool {
        let unwritten = self.unwritten.as_ref();
        unwritten.is_some_and(|unwritten| unwritten.has_any(blocks))
            || self.changes.have_any(blocks)
    }

    /// The slot of a block's page.
    fn slot_of(&self, block: u64) -> Option<StoreSlot> {
        let frame = self.level.residency().frame(block)?;
        self.pages.slot_of(frame)
    }

    /// The page of a block.
    fn page(&self, block: u64) -> Option<VolumeBytes> {
        let slot = self.slot_of(block)?;
        Some(VolumeBytes::page(block, self.pages.memory(slot)))
    }

    /// The pages of evicted blocks that are not written yet, in the order of their eviction.
    fn evicted_pages(&self) -> impl Iterator<Item = VolumeBytes> {
        let evicted = self
            .unwritten
            .iter()
            .flat_map(|unwritten| unwritten.evicted());
        evicted
            .map(move |evicted| VolumeBytes::page(evicted.block, self.pages.memory(evicted.slot)))
    }

    /// Copies the parts of these bytes that are in pages.
    pub(super) fn copy_to(&self, to: &VolumeBytes) {
        for block in to.blocks().blocks() {
            if let Some(page) = self.page(block) {
                page.copy_to(to);
            }
        }
    }

    /// Copies newer bytes over bytes that were read from the volume: writes in flight, and unwritten pages.
    /// An evicted page may be gone while its write is still in flight.
    pub(super) fn apply_newer(&self, read: &VolumeBytes) {
        // From the oldest to the newest: an evicted page was not submitted yet, and pages in frames are newer.
        self.changes.copy_to(read);
        for page in self.evicted_pages() {
            page.copy_to(read);
        }
        self.copy_to(read);
    }

    /// Fetched bytes get the newer ones, and pages of those blocks that go into frames.
    pub(super) fn fill(&mut self, fetched: &VolumeBytes, framed: Interval) {
        self.apply_newer(fetched);
        for block in fetched.blocks().intersection(framed).blocks() {
            let frame = self.level.residency().frame(block);
            let slot = self.pages.allocate(frame.expect("a frame in flight stays"));
            fetched.copy_to(&VolumeBytes::page(block, self.pages.memory(slot)));
        }
    }

    /// Bytes of a background read, whole blocks: those that are still wanted become pages.
    pub(super) fn fill_wanted(&mut self, read: &VolumeBytes) {
        for block in read.blocks().blocks() {
            if self.level.wished() == 0 {
                return;
            }
            // A wish that was not polled may be for a block whose evicted page is not written yet.
            if self.are_newer(Interval::new(block, block)) {
                continue;
            }
            if let Some(frame) = self.level.offer(block) {
                self.release_evicted();
                let slot = self.pages.allocate(frame);
                read.copy_to(&VolumeBytes::page(block, self.pages.memory(slot)));
            }
        }
    }

    /// Bytes that were read ahead, whole blocks: absent ones become pages, as prefetched ones do.
    pub(super) fn fill_ahead(&mut self, read: &VolumeBytes) {
        for block in read.blocks().blocks() {
            if self.are_newer(Interval::new(block, block)) {
                continue;
            }
            if let Some(frame) = self.level.offer_ahead(block) {
                self.release_evicted();
                let slot = self.pages.allocate(frame);
                read.copy_to(&VolumeBytes::page(block, self.pages.memory(slot)));
            }
        }
    }

    /// A write was submitted. Its memory stays unchanged until [`CacheContents::end_change`].
    pub(super) fn submit_change(&mut self, id: RequestId, bytes: VolumeBytes) {
        for block in bytes.blocks().blocks() {
            if let Some(page) = self.page(block) {
                bytes.copy_to(&page);
            }
        }
        for page in self.evicted_pages() {
            bytes.copy_to(&page);
        }
        self.changes.submit(id, bytes);
    }

    /// A write has ended; its bytes. `None` if no such write is in flight.
    pub(super) fn end_change(&mut self, id: RequestId) -> Option<VolumeBytes> {
        self.changes.end(id)
    }

    /// Prepares a trim or zeroes of these blocks, which the engine does not order with writes. Unwritten
    /// pages of them are written soon. The answer is whether the operation has to wait for writes.
    pub(super) fn prepare_punch(&mut self, blocks: Interval) -> bool {
        if let Some(unwritten) = &mut self.unwritten
            && unwritten.has_any(blocks)
        {
            unwritten.set_urgent();
            return true;
        }
        self.changes.have_any(blocks)
    }

    /// Frees the pages of evicted blocks, except unwritten ones.
    fn release_evicted(&mut self) {
        while let Some(departed) = self.level.poll_departed() {
            let Some(slot) = self.pages.detach(departed.frame) else {
                continue;
            };
            let unwritten = self.unwritten.as_mut();
            if !unwritten.is_some_and(|unwritten| unwritten.evict(slot, departed.block)) {
                self.pages.release(slot);
            }
        }
    }

    /// Drops the pages of these blocks, except unwritten ones.
    pub(super) fn discard(&mut self, blocks: Interval) {
        let frames = self.level.residency().frame_ids() as u64;
        if blocks.len() <= frames {
            blocks.blocks().for_each(|block| self.discard_block(block));
            return;
        }
        let residency = self.level.residency();
        let all = residency.frames().map(|frame| residency.block(frame));
        let all: Vec<u64> = all.filter(|&block| blocks.contains(block)).collect();
        all.into_iter().for_each(|block| self.discard_block(block));
    }

    fn discard_block(&mut self, block: u64) {
        let residency = self.level.residency();
        let Some(frame) = residency.frame(block) else {
            return;
        };
        if residency.frame_state(frame) != BlockState::Valid {
            // A part of its fetch has ended: the frames stay until all parts have.
            return self.discard_fetched(Interval::new(block, block));
        }
        let slot = self.pages.slot_of(frame).expect("a page of a valid block");
        let unwritten = self.unwritten.as_ref();
        if unwritten.is_some_and(|unwritten| unwritten.has(slot)) {
            return;
        }
        self.level.withdraw(block);
        self.pages.detach(frame);
        self.pages.release(slot);
    }

    /// Drops the pages of blocks in flight, whose fetch has failed or is void.
    pub(super) fn discard_fetched(&mut self, blocks: Interval) {
        for block in blocks.blocks() {
            let frame = self.level.residency().frame(block);
            if let Some(slot) = frame.and_then(|frame| self.pages.detach(frame)) {
                if let Some(unwritten) = &mut self.unwritten {
                    unwritten.forget(slot);
                }
                self.pages.release(slot);
            }
        }
    }

    /// Unwritten pages from block `end` on are never written: the volume ends there.
    pub(super) fn cut_unwritten(&mut self, end: u64) {
        if let Some(unwritten) = &mut self.unwritten {
            let freed = unwritten.cut(end).into_iter();
            freed.for_each(|slot| self.pages.release(slot));
        }
    }

    /// Stores a write of at most `longest` blocks under a serial. The answer is whether it was stored.
    pub(super) fn store(
        &mut self,
        now: Instant,
        serial: u64,
        bytes: &VolumeBytes,
        longest: u64,
    ) -> bool {
        let blocks = bytes.blocks();
        let Some(unwritten) = &self.unwritten else {
            return false;
        };
        if blocks.len() > longest || !unwritten.has_room(blocks.len()) {
            return false;
        }
        let ends = [blocks.first, blocks.last];
        let is_part = |block: u64| bytes.start > block * PAGE || bytes.end() < (block + 1) * PAGE;
        let state = |block| self.level.residency().state(block);
        let lacks = |&block: &u64| is_part(block) && state(block) != BlockState::Valid;
        if ends.iter().any(lacks) || blocks.blocks().any(|b| state(b) == BlockState::InFlight) {
            return false;
        }
        // Partly written blocks first: they have to be resident, and whole blocks may evict them.
        let parts = ends.into_iter().filter(|&block| is_part(block));
        let whole = blocks.blocks().filter(|&block| !is_part(block));
        for block in parts.chain(whole) {
            let Stored::In(frame) = self.level.store(block) else {
                return false;
            };
            self.release_evicted();
            let slot = self.pages.allocate(frame);
            bytes.copy_to(&VolumeBytes::page(block, self.pages.memory(slot)));
            if let Some(unwritten) = &mut self.unwritten {
                unwritten.store(now, slot, block, serial);
            }
        }
        true
    }

    /// Whether a stored write up to this serial is unwritten.
    pub(super) fn has_unwritten(&self, serial: u64) -> bool {
        let unwritten = self.unwritten.as_ref();
        unwritten.is_some_and(|unwritten| unwritten.has_unwritten(serial))
    }

    /// A flush waits for all unwritten pages.
    pub(super) fn begin_flush(&mut self) {
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.set_urgent();
        }
    }

    /// No flush waits any more.
    pub(super) fn end_flush(&mut self) {
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.clear_urgent();
        }
    }

    /// Whether a write has failed since the last call.
    pub(super) fn take_failure(&mut self) -> bool {
        let unwritten = self.unwritten.as_mut();
        unwritten.is_some_and(Unwritten::take_failure)
    }

    /// The class of the next write of pages, if one is due: that of other writes in time is `ahead`.
    pub(super) fn due_class(&mut self, now: Instant, ahead: Class) -> Option<Class> {
        let unwritten = self.unwritten.as_mut()?;
        unwritten.is_due(now).then(|| match unwritten.is_urgent() {
            true => Class::BestEffort(0),
            false => ahead,
        })
    }

    /// The pages of the next write: at most `longest` blocks before block `end`.
    pub(super) fn next_write(&self, (longest, end): (u64, u64)) -> Option<WriteBackTarget> {
        let unwritten = self.unwritten.as_ref()?;
        unwritten.next((longest, end), |block| self.slot_of(block))
    }

    /// A write of pages begins with this id. They are copied to the memory from which they are written.
    pub(super) fn begin_write(&mut self, id: RequestId, next: &WriteBackTarget, to: VolumeBytes) {
        match *next {
            WriteBackTarget::Evicted(evicted) => {
                let memory = self.pages.memory(evicted.slot);
                VolumeBytes::page(evicted.block, memory).copy_to(&to);
            }
            WriteBackTarget::Run { blocks, .. } => {
                for block in blocks.blocks() {
                    let page = self.page(block).expect("an unwritten page in a frame");
                    page.copy_to(&to);
                }
            }
        }
        let (level, pages) = (&self.level, &self.pages);
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.begin(next, |block| pages.slot_of(level.residency().frame(block)?));
        }
        if let WriteBackTarget::Evicted(evicted) = next {
            self.pages.release(evicted.slot);
        }
        self.changes.submit(id, to);
    }

    /// A write of `blocks` pages that began under `serial` has ended.
    pub(super) fn end_write(
        &mut self,
        serial: u64,
        blocks: u64,
        result: Result<(), OperationError>,
    ) {
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.ended(serial, blocks, result.map_err(|_| Lost));
        }
    }
}

#[cfg(test)]
mod tests {
    use block::Direction;
    use cache::coordinator::Purpose;
    use proptest::prelude::*;

    use super::*;
    use crate::arena::{Arena, Buffer};

    const BLOCKS: u64 = 12;

    /// What happens next.
    #[derive(Clone, Debug)]
    enum Step {
        /// A read of a block, whose fetch ends at once and may evict another block.
        Read(u64),
        /// A write of a block is stored, if it fits, or goes to the volume.
        Store(u64),
        /// A write of a block goes to the volume.
        Through(u64),
        /// The next write of pages begins.
        Begin,
        /// The oldest write in flight ends.
        End,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..BLOCKS).prop_map(Step::Read),
            4 => (0..BLOCKS).prop_map(Step::Store),
            1 => (0..BLOCKS).prop_map(Step::Through),
            2 => Just(Step::Begin),
            3 => Just(Step::End),
        ]
    }

    /// Contents over a volume, each of whose blocks has one value.
    struct Owner {
        contents: CacheContents,
        arena: Arena,
        /// What the volume has, and what it will have.
        volume: [u8; BLOCKS as usize],
        latest: [u8; BLOCKS as usize],
        writes: Vec<WriteInFlight>,
        serial: u64,
    }

    struct WriteInFlight {
        id: RequestId,
        blocks: Interval,
        buffer: Buffer,
        /// The serial of a write of pages.
        pages: Option<u64>,
    }

    impl Owner {
        fn take_step(&mut self, step: &Step) {
            self.serial += 1;
            let (id, serial) = (RequestId(self.serial), self.serial);
            match *step {
                Step::Read(block) => self.read(id, block),
                Step::Store(block) | Step::Through(block) => {
                    let value = (serial % 250) as u8 + 1;
                    let mut buffer = self.arena.allocate(PAGE as usize).expect("memory");
                    buffer.bytes_mut().fill(value);
                    let bytes = VolumeBytes::page(block, buffer.memory());
                    self.latest[block as usize] = value;
                    let may_store = matches!(step, Step::Store(_));
                    if may_store && self.contents.store(Instant::ZERO, serial, &bytes, 1) {
                        return self.arena.free(buffer);
                    }
                    self.contents.submit_change(id, bytes);
                    self.writes.push(WriteInFlight {
                        id,
                        blocks: bytes.blocks(),
                        buffer,
                        pages: None,
                    });
                }
                Step::Begin => {
                    let Some(next) = self.contents.next_write((3, BLOCKS)) else {
                        return;
                    };
                    let blocks = next.blocks();
                    let length = (blocks.len() * PAGE) as usize;
                    let buffer = self.arena.allocate(length).expect("memory");
                    let to = VolumeBytes::page(blocks.first, buffer.memory());
                    self.contents.begin_write(id, &next, to);
                    self.writes.push(WriteInFlight {
                        id,
                        blocks,
                        buffer,
                        pages: Some(next.serial()),
                    });
                }
                Step::End if self.writes.is_empty() => {}
                Step::End => {
                    let ended = self.writes.remove(0);
                    let values = ended
                        .buffer
                        .bytes()
                        .chunks(PAGE as usize)
                        .map(|page| page[0]);
                    for (block, value) in ended.blocks.blocks().zip(values) {
                        self.volume[block as usize] = value;
                    }
                    if let Some(serial) = ended.pages {
                        self.contents.end_write(serial, ended.blocks.len(), Ok(()));
                    }
                    assert!(self.contents.end_change(ended.id).is_some());
                    self.arena.free(ended.buffer);
                }
            }
        }

        fn read(&mut self, id: RequestId, block: u64) {
            let asked = UpperRequest {
                client: 0,
                file: 0,
                blocks: Interval::new(block, block),
                within: Interval::of(0, BLOCKS),
                purpose: Purpose::Demand,
                direction: Direction::Read,
            };
            self.contents
                .submit(Instant::ZERO, id, asked)
                .expect("room");
            while let Some((fetch, framed)) = self.contents.poll_fetch() {
                let mut buffer = self.arena.allocate(PAGE as usize).expect("memory");
                buffer.bytes_mut().fill(self.volume[block as usize]);
                let fetched = VolumeBytes::page(block, buffer.memory());
                self.contents.fill(&fetched, framed);
                self.contents
                    .complete(Instant::ZERO, fetch.id, Ending::Done);
                self.arena.free(buffer);
            }
            assert!(self.contents.poll_answered().is_some());
        }

        /// Bytes that are read from the volume now get the latest values, and pages have them.
        fn check(&mut self) {
            for block in 0..BLOCKS {
                let latest = self.latest[block as usize];
                let mut buffer = self.arena.allocate(PAGE as usize).expect("memory");
                let read = VolumeBytes::page(block, buffer.memory());
                buffer.bytes_mut().fill(self.volume[block as usize]);
                self.contents.apply_newer(&read);
                assert!(buffer.bytes().iter().all(|&byte| byte == latest), "{block}");
                buffer.bytes_mut().fill(latest);
                self.contents.copy_to(&read);
                assert!(buffer.bytes().iter().all(|&byte| byte == latest), "{block}");
                self.arena.free(buffer);
            }
        }
    }

    fn owner(setting: &CacheSetting) -> Owner {
        Owner {
            contents: CacheContents::new(setting).expect("contents"),
            arena: Arena::map(4 << 20).expect("memory"),
            volume: [0; BLOCKS as usize],
            latest: [0; BLOCKS as usize],
            writes: Vec::new(),
            serial: 0,
        }
    }

    /// A background read ends after its block was wished, and before the wish is polled. The page of the block
    /// is evicted, and not written yet.
    #[test]
    fn a_background_read_of_an_unwritten_block_becomes_no_page() {
        let mut owner = owner(&CacheSetting {
            bytes: 8 * PAGE,
            replacement: "lru".to_owned(),
            prefetch: "none".to_owned(),
            coordinator: "pfc(actions=readmore,queue=100)".to_owned(),
            readmore: Readmore::Free,
            writes: Writes::Back,
            ahead: Class::BestEffort(6),
        });
        owner.take_step(&Step::Store(8));
        let is_resident = |owner: &Owner| owner.contents.slot_of(8).is_some();
        assert!(is_resident(&owner), "the write is stored");
        for block in 0..BLOCKS {
            if is_resident(&owner) && block != 8 {
                owner.take_step(&Step::Read(block));
            }
        }
        assert!(!is_resident(&owner), "its page is evicted");
        while owner.contents.poll_wanted().is_some() {}
        // A reader in order, so that the coordinator wishes for what follows.
        (0..8).for_each(|block| owner.take_step(&Step::Read(block)));
        assert!(owner.contents.level.wished() > 0);
        let mut buffer = owner.arena.allocate(PAGE as usize).expect("memory");
        buffer.bytes_mut().fill(owner.volume[8]);
        let read = VolumeBytes::page(8, buffer.memory());
        owner.check();
        owner.contents.fill_wanted(&read);
        owner.check();
    }

    proptest! {
        #[test]
        fn what_is_read_and_what_is_in_pages_is_what_the_volume_will_have(
            pages in 2..16u64,
            steps in prop::collection::vec(step(), 1..60),
        ) {
            let setting = CacheSetting {
                bytes: pages * PAGE,
                replacement: "lru".to_owned(),
                prefetch: "none".to_owned(),
                coordinator: "none".to_owned(),
                readmore: Readmore::Ordinary,
                writes: Writes::Back,
                ahead: Class::BestEffort(6),
            };
            let mut owner = owner(&setting);
            for step in &steps {
                owner.take_step(step);
                owner.check();
            }
        }
    }
}
