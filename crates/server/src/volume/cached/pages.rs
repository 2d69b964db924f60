//! The pages of a cache: one mapping, with a slot for each block whose bytes are there.
//!
//! ```text
//!   frame  --slot-->  | page | page | page | ...      slots without a frame are free, or hold
//!   (of the level)                                    evicted blocks that are not written yet
//! ```

#![allow(
    unsafe_code,
    reason = "copies between pages and the memory of requests, which are known by address"
)]

use std::io;

use block::Interval;
use cache::FrameId;
use cache::write_back::StoreSlot;

use super::volume::blocks_of;
use crate::arena::{Arena, Memory};
use crate::cache_setting::PAGE;

/// The pages.
pub(super) struct Pages {
    memory: Memory,
    /// The slots, by frame.
    slots: Box<[u32]>,
    free: Vec<u32>,
    count: usize,
    /// The owner of the mapping.
    _arena: Arena,
}

/// The mark of a frame without a slot.
const NONE: u32 = u32::MAX;

impl Pages {
    /// `count` pages, for frames whose numbers are less than `frame_ids`. Memory is used when it is
    /// written.
    ///
    /// # Errors
    /// If the kernel has no such mapping.
    pub(super) fn new(count: usize, frame_ids: usize) -> io::Result<Self> {
        let arena = Arena::map(count * PAGE as usize)?;
        let region = arena.region();
        Ok(Pages {
            memory: Memory {
                at: region.iov_base.cast(),
                length: region.iov_len,
            },
            slots: vec![NONE; frame_ids].into_boxed_slice(),
            free: (0..count as u32).rev().collect(),
            count,
            _arena: arena,
        })
    }

    /// The number of slots.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The number of slots in use.
    pub(super) fn used(&self) -> usize {
        self.count - self.free.len()
    }

    /// The slot of a frame, if it has one.
    pub(super) fn slot_of(&self, frame: FrameId) -> Option<StoreSlot> {
        let slot = self.slots[frame.index()];
        (slot != NONE).then_some(StoreSlot(slot))
    }

    /// Allocates a page for the frame, unless it has one. The content is undefined.
    pub(super) fn allocate(&mut self, frame: FrameId) -> StoreSlot {
        self.slot_of(frame).unwrap_or_else(|| {
            let slot = self.free.pop().expect("a page for each frame");
            self.slots[frame.index()] = slot;
            StoreSlot(slot)
        })
    }

    /// Takes the page from a frame. The page is free only after [`Pages::release`].
    pub(super) fn detach(&mut self, frame: FrameId) -> Option<StoreSlot> {
        let slot = self.slot_of(frame)?;
        self.slots[frame.index()] = NONE;
        Some(slot)
    }

    /// Frees a page.
    pub(super) fn release(&mut self, slot: StoreSlot) {
        self.free.push(slot.0);
    }

    /// The bytes of a page.
    pub(super) fn memory(&self, slot: StoreSlot) -> Memory {
        self.memory
            .part(slot.index() * PAGE as usize, PAGE as usize)
    }
}

/// A range of a volume's bytes in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct VolumeBytes {
    /// The first byte in the volume.
    pub(super) start: u64,
    pub(super) memory: Memory,
}

impl VolumeBytes {
    /// The page of a block.
    pub(super) fn page(block: u64, memory: Memory) -> Self {
        VolumeBytes {
            start: block * PAGE,
            memory,
        }
    }

    /// The blocks that have any of the bytes.
    pub(super) fn blocks(&self) -> Interval {
        blocks_of(self.start, self.memory.length as u64)
    }

    /// The byte after the last.
    pub(super) fn end(&self) -> u64 {
        self.start + self.memory.length as u64
    }

    /// Copies the common range. No other party uses either memory: requests own theirs while they are in
    /// flight, and all copies are made on the loop's thread.
    pub(super) fn copy_to(&self, to: &VolumeBytes) {
        let (start, end) = (self.start.max(to.start), self.end().min(to.end()));
        if start >= end {
            return;
        }
        let length = (end - start) as usize;
        let from = self.memory.part((start - self.start) as usize, length);
        let to = to.memory.part((start - to.start) as usize, length);
        // SAFETY: both are `length` bytes long, as `part` asserts, and are different memory: pages,
        // buffers of requests and staged blocks never overlap. Their owners keep them while what is
        // known here of them is.
        unsafe { std::ptr::copy_nonoverlapping(from.at, to.at, length) }
    }
}
