//! Changes of the volume, and their effect on pages.

use block::Interval;
use block::RequestId;
use cache::residency::BlockState;

use super::fetching::{Fate, Work};
use super::pages::VolumeBytes;
use super::{Cached, Change, PAGE, blocks_of, overlap};
use crate::arena::Memory;

impl Cached {
    /// A write of this memory from byte `start` of the volume on was submitted. The memory stays unchanged
    /// until [`Cached::changed`].
    pub fn changing(&mut self, id: RequestId, start: u64, memory: Memory) {
        let bytes = VolumeBytes { start, memory };
        self.overtake(blocks_of(start, memory.length as u64));
        for block in blocks_of(start, memory.length as u64).blocks() {
            let frame = self.level.residency().frame(block);
            if let Some(place) = frame.and_then(|frame| self.pages.of(frame)) {
                bytes.copy_to(&VolumeBytes::page(block, self.pages.memory(place)));
            }
        }
        if let Some(unwritten) = &self.unwritten {
            for left in unwritten.left() {
                let memory = self.pages.memory(left.place);
                bytes.copy_to(&VolumeBytes::page(left.block, memory));
            }
        }
        self.changes.push(Change { id, bytes });
    }

    /// The write has ended. After a failure the content of the volume is unknown.
    pub fn changed<E>(&mut self, id: RequestId, result: Result<(), E>) {
        let Some(place) = self.changes.iter().position(|change| change.id == id) else {
            return;
        };
        let Change { bytes, .. } = self.changes.remove(place);
        if result.is_err() {
            self.void(bytes.start, bytes.memory.length as u64);
        }
    }

    /// Copies newer bytes over bytes that were read past the cache: submitted writes, and unwritten pages.
    /// An evicted page may be gone while its write is still in flight.
    pub fn renew(&self, start: u64, memory: Memory) {
        let bytes = VolumeBytes { start, memory };
        // From the oldest to the newest: what has left is not asked for yet, and pages are newer still.
        for change in &self.changes {
            change.bytes.copy_to(&bytes);
        }
        if let Some(unwritten) = &self.unwritten {
            for left in unwritten.left() {
                let memory = self.pages.memory(left.place);
                VolumeBytes::page(left.block, memory).copy_to(&bytes);
            }
        }
        self.copy_pages(&bytes);
    }

    /// Prepares a trim or zeroes of these bytes, which the engine does not order with writes. Unwritten
    /// pages of them are written soon. The answer is whether the operation has to wait for writes.
    pub fn prepare_punch(&mut self, start: u64, length: u64) -> bool {
        let blocks = blocks_of(start, length);
        let is_under_way = |change: &Change| overlap(change.blocks(), blocks);
        let is_unwritten = match &mut self.unwritten {
            None => false,
            Some(unwritten) => {
                let is_any = unwritten.has_any(blocks);
                if is_any {
                    unwritten.urge();
                }
                is_any
            }
        };
        is_unwritten || self.changes.iter().any(is_under_way)
    }

    /// Drops pages and voids fetches of these bytes, except for unwritten pages: the content of the volume
    /// is unknown.
    pub fn void(&mut self, start: u64, length: u64) {
        let blocks = blocks_of(start, length);
        self.overtake(blocks);
        for place in 0..self.pieces.capacity() {
            if let Some(piece) = self.pieces.get(place)
                && let Work::Fetch(id) = piece.work
                && overlap(piece.blocks, blocks)
            {
                self.fetches[id.0 as usize].fate = Fate::Void;
            }
        }
        // Pieces that have ended, of fetches that have not.
        for number in 0..self.fetches.len() {
            if self.fetches[number].is_under_way() && overlap(self.fetches[number].framed, blocks) {
                self.fetches[number].fate = Fate::Void;
            }
        }
        self.withdraw(blocks);
    }

    /// Drops written pages of these blocks.
    fn withdraw(&mut self, blocks: Interval) {
        let frames = self.level.residency().frame_ids() as u64;
        if blocks.len() <= frames {
            blocks.blocks().for_each(|block| self.withdraw_block(block));
            return;
        }
        let residency = self.level.residency();
        let all = residency.frames().map(|frame| residency.block(frame));
        let all: Vec<u64> = all.filter(|&block| blocks.contains(block)).collect();
        all.into_iter().for_each(|block| self.withdraw_block(block));
    }

    fn withdraw_block(&mut self, block: u64) {
        let residency = self.level.residency();
        let Some(frame) = residency.frame(block) else {
            return;
        };
        if residency.frame_state(frame) != BlockState::Valid {
            // Of a fetch some of which has come: its frames stay until all has.
            return self.take_pages(Interval::new(block, block));
        }
        let place = self.pages.of(frame).expect("a page of a valid block");
        let unwritten = self.unwritten.as_ref();
        if unwritten.is_some_and(|unwritten| unwritten.has(place)) {
            return;
        }
        self.level.withdraw(block);
        self.pages.part(frame);
        self.pages.put_back(place);
    }

    /// Drops everything that the volume may have lost because it was not on the medium.
    pub fn forget(&mut self) {
        self.void(0, u64::MAX);
    }

    /// Changes the length of the volume. Pages beyond its end are dropped and never written.
    pub fn resize(&mut self, length: u64) {
        let shorter = self.site.length.min(length);
        self.site.length = length;
        if let Some(unwritten) = &mut self.unwritten {
            let left = unwritten.cut(shorter / PAGE).into_iter();
            left.for_each(|place| self.pages.put_back(place));
        }
        self.void(shorter, u64::MAX - shorter);
    }
}
