//! Write-back: acknowledged pages that the volume does not have yet.
//!
//! A write that fits is stored in pages. Pages are written when they are a second old, when there are many,
//! when they are evicted, or when a flush waits. The oldest page goes first, together with the pages that
//! follow it on the volume. A page that changes while it is being written is unwritten again.

use block::{Class, Instant, Request};
use cache::level::Stored;
use cache::residency::BlockState;
use cache::write_back::{Lost, StoreSlot, Unwritten, WriteBackTarget};
use tracing::error;

use super::fetching::{CachePiece, PIECE, Upgrade, Work};
use super::pages::VolumeBytes;
use super::{Cached, Change, PAGE, Writes, blocks_of};
use crate::arena::Memory;
use block::operation::OperationError;

/// The largest number of writes in flight. A choice: enough for an order by position.
const AT_A_TIME: usize = 8;

impl Cached {
    /// Whether writes are acknowledged before the volume has them.
    pub fn writes_back(&self) -> bool {
        self.setting.writes == Writes::Back
    }

    /// Stores a write from byte `start` of the volume on, under a serial. The answer is whether it was
    /// stored; otherwise the write goes to the volume.
    pub fn store(&mut self, now: Instant, serial: u64, start: u64, memory: Memory) -> bool {
        let bytes = VolumeBytes { start, memory };
        let blocks = blocks_of(start, memory.length as u64);
        let Some(unwritten) = &self.unwritten else {
            return false;
        };
        if blocks.len() > PIECE || !unwritten.has_room(blocks.len()) {
            return false;
        }
        let ends = [blocks.first, blocks.last];
        let is_part = |block: u64| start > block * PAGE || bytes.end() < (block + 1) * PAGE;
        let state = |block| self.level.residency().state(block);
        let lacks = |&block: &u64| is_part(block) && state(block) != BlockState::Valid;
        if ends.iter().any(lacks) || blocks.blocks().any(|b| state(b) == BlockState::InFlight) {
            return false;
        }
        // Those that have to be there first: others come in their places.
        let parts = ends.into_iter().filter(|&block| is_part(block));
        let whole = blocks.blocks().filter(|&block| !is_part(block));
        for block in parts.chain(whole) {
            let Stored::In(frame) = self.level.store(block) else {
                return false;
            };
            self.take_departures();
            let place = self.pages.give(frame);
            bytes.copy_to(&VolumeBytes::page(block, self.pages.memory(place)));
            if let Some(unwritten) = &mut self.unwritten {
                unwritten.store(now, place, block, serial);
            }
        }
        true
    }

    /// Whether a write up to this serial is unwritten.
    pub fn has_unwritten(&self, serial: u64) -> bool {
        let unwritten = self.unwritten.as_ref();
        unwritten.is_some_and(|unwritten| unwritten.has_unwritten(serial))
    }

    /// Writes all pages as soon as possible, for a flush of this class.
    pub fn urge(&mut self, class: Class, to: &mut Vec<Upgrade>) {
        let Some(unwritten) = &mut self.unwritten else {
            return;
        };
        unwritten.urge();
        for place in 0..self.pieces.capacity() {
            if let Some(piece) = self.pieces.get_mut(place)
                && matches!(piece.work, Work::Write { .. })
                && piece.class > class
            {
                piece.class = class;
                to.push(self.upgrade(place));
            }
        }
    }

    /// Ends [`Cached::urge`]: no flush waits.
    pub fn calm(&mut self) {
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.calm();
        }
    }

    /// Whether a write has failed since the last call.
    pub fn take_failure(&mut self) -> bool {
        let unwritten = self.unwritten.as_mut();
        unwritten.is_some_and(Unwritten::take_failure)
    }

    /// The time at which the oldest page has to be written.
    pub fn next_wakeup(&self, now: Instant) -> Option<Instant> {
        let then = self.unwritten.as_ref()?.next_due()?;
        // What is due and cannot be written waits for something to end.
        (then > now).then_some(then)
    }

    /// The next request that writes pages, if one is due, the engine has room and there is memory.
    pub(super) fn next_write(
        &mut self,
        now: Instant,
        has_room: &dyn Fn(Class) -> bool,
    ) -> Option<Request> {
        let unwritten = self.unwritten.as_mut()?;
        if !unwritten.is_due(now) || self.writing == AT_A_TIME {
            return None;
        }
        let class = match unwritten.is_urgent() {
            true => Class::BestEffort(0),
            false => self.setting.ahead,
        };
        if !has_room(class) {
            return None;
        }
        let most = (self.longest, self.site.length / PAGE);
        let next = self
            .unwritten
            .as_ref()?
            .next(most, |block| self.place_of(block))?;
        let blocks = next.blocks();
        let buffer = self.staging.allocate((blocks.len() * PAGE) as usize)?;
        let staged = VolumeBytes::page(blocks.first, buffer.memory());
        self.stage(&next, &staged);
        let place = self.pieces.insert(CachePiece {
            work: Work::Write {
                serial: next.serial(),
            },
            blocks,
            class,
            export: self.site.export,
            buffer: Some(buffer),
            whole: blocks,
            next: None,
        });
        self.writing += 1;
        let id = self.id_of(place);
        self.overtake(blocks);
        self.changes.push(Change { id, bytes: staged });
        Some(self.request(place))
    }

    /// The slot of a block's page.
    fn place_of(&self, block: u64) -> Option<StoreSlot> {
        let frame = self.level.residency().frame(block)?;
        self.pages.of(frame)
    }

    /// Copies pages to the memory from which they are written.
    fn stage(&mut self, next: &WriteBackTarget, to: &VolumeBytes) {
        let page = |block, place| VolumeBytes::page(block, self.pages.memory(place));
        match *next {
            WriteBackTarget::Evicted(left) => page(left.block, left.place).copy_to(to),
            WriteBackTarget::Run { blocks, .. } => {
                for block in blocks.blocks() {
                    let place = self.place_of(block).expect("it is unwritten");
                    page(block, place).copy_to(to);
                }
            }
        }
        let Some(mut unwritten) = self.unwritten.take() else {
            return;
        };
        unwritten.begin(next, |block| self.place_of(block));
        self.unwritten = Some(unwritten);
        if let WriteBackTarget::Evicted(left) = next {
            self.pages.put_back(left.place);
        }
    }

    /// A write of pages has ended.
    pub(super) fn written(&mut self, place: usize, result: Result<(), OperationError>) {
        let id = self.id_of(place);
        let piece = self.pieces.remove(place);
        self.writing -= 1;
        if let (Some(unwritten), Work::Write { serial }) = (&mut self.unwritten, piece.work) {
            unwritten.ended(serial, piece.blocks.len(), result.map_err(|_| Lost));
        }
        if let Err(failed) = result {
            error!(
                first = piece.blocks.first * PAGE,
                bytes = piece.blocks.len() * PAGE,
                %failed,
                "what was acknowledged could not be written, and the next flush fails"
            );
        }
        self.changed(id, result);
        if let Some(buffer) = piece.buffer {
            self.staging.free(buffer);
        }
    }
}
