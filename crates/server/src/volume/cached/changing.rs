//! What happens to pages when the volume changes.

use block::Interval;
use block::RequestId;
use cache::residency::State;

use super::fetching::{Fate, Work};
use super::pages::Bytes;
use super::{Cached, Change, PAGE, blocks_of, overlap};
use crate::arena::Memory;

impl Cached {
    /// The engine has just been asked to write this memory from byte `start` of the volume on. It stays
    /// as it is until [`Cached::changed`].
    pub fn changing(&mut self, id: RequestId, start: u64, memory: Memory) {
        let bytes = Bytes { start, memory };
        self.overtake(blocks_of(start, memory.length as u64));
        for block in blocks_of(start, memory.length as u64).blocks() {
            let frame = self.level.residency().frame(block);
            if let Some(place) = frame.and_then(|frame| self.pages.of(frame)) {
                bytes.copy_to(&Bytes::page(block, self.pages.memory(place)));
            }
        }
        if let Some(unwritten) = &self.unwritten {
            for left in unwritten.left() {
                let memory = self.pages.memory(left.place);
                bytes.copy_to(&Bytes::page(left.block, memory));
            }
        }
        self.changes.push(Change { id, bytes });
    }

    /// That write has ended. If it failed nobody knows what the volume has.
    pub fn changed<E>(&mut self, id: RequestId, result: Result<(), E>) {
        let Some(place) = self.changes.iter().position(|change| change.id == id) else {
            return;
        };
        let Change { bytes, .. } = self.changes.remove(place);
        if result.is_err() {
            self.void(bytes.start, bytes.memory.length as u64);
        }
    }

    /// What was read of the volume without regard to pages gets what is newer: what the engine was asked
    /// to write since, and what it was not. A page may be gone whose write is still behind the read.
    pub fn renew(&self, start: u64, memory: Memory) {
        let bytes = Bytes { start, memory };
        // From the oldest to the newest: what has left is not asked for yet, and pages are newer still.
        for change in &self.changes {
            change.bytes.copy_to(&bytes);
        }
        if let Some(unwritten) = &self.unwritten {
            for left in unwritten.left() {
                let memory = self.pages.memory(left.place);
                Bytes::page(left.block, memory).copy_to(&bytes);
            }
        }
        self.copy_pages(&bytes);
    }

    /// Prepares a trim or zeroes of these bytes, which the engine does not order with writes: unwritten pages
    /// of them are written soon. The answer is whether it has to wait for writes.
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

    /// Nobody knows what the volume has here, but for what is not written yet: pages go, and what is
    /// being fetched is not used.
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

    /// Takes what is here and written of these blocks out of the cache.
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
        if residency.frame_state(frame) != State::Valid {
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

    /// The volume may have lost what it had not on its medium.
    pub fn forget(&mut self) {
        self.void(0, u64::MAX);
    }

    /// The volume has another length. Of what is beyond it nothing is kept and nothing is written.
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
