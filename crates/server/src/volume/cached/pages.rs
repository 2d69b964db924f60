//! The pages of a cache: one mapping, a place in it for each block whose bytes are there.
//!
//! ```text
//!   frame   --place-->  | page | page | page | ...        those of no frame are free, or hold what
//!   (the level's)                                         left and is not yet written
//! ```

#![allow(
    unsafe_code,
    reason = "copies between pages and the memory of requests, which are known by address"
)]

use std::io;

use cache::FrameId;
use cache::write_back::Place;

use crate::arena::{Arena, Memory};
use crate::cache_setting::PAGE;

/// The pages.
pub(super) struct Pages {
    memory: Memory,
    /// By frame.
    places: Box<[u32]>,
    free: Vec<u32>,
    count: usize,
    /// Kept for the mapping, which ends with it.
    _arena: Arena,
}

/// No place.
const NONE: u32 = u32::MAX;

impl Pages {
    /// So many, for frames whose numbers are less than `frame_ids`. Memory is taken up as it is used.
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
            places: vec![NONE; frame_ids].into_boxed_slice(),
            free: (0..count as u32).rev().collect(),
            count,
            _arena: arena,
        })
    }

    /// How many places there are.
    pub(super) fn places(&self) -> usize {
        self.count
    }

    /// How many of them are in use.
    pub(super) fn used(&self) -> usize {
        self.count - self.free.len()
    }

    /// Where the frame's page is, if it has one.
    pub(super) fn of(&self, frame: FrameId) -> Option<Place> {
        let place = self.places[frame.index()];
        (place != NONE).then_some(Place(place))
    }

    /// Gives the frame a page, if it has none. What is in it is anything.
    pub(super) fn give(&mut self, frame: FrameId) -> Place {
        self.of(frame).unwrap_or_else(|| {
            let place = self.free.pop().expect("a page for each frame");
            self.places[frame.index()] = place;
            Place(place)
        })
    }

    /// The frame has no page any more. The page is free only when it is put back.
    pub(super) fn part(&mut self, frame: FrameId) -> Option<Place> {
        let place = self.of(frame)?;
        self.places[frame.index()] = NONE;
        Some(place)
    }

    /// Nobody wants the page's bytes any more.
    pub(super) fn put_back(&mut self, place: Place) {
        self.free.push(place.0);
    }

    /// The bytes of a page.
    pub(super) fn memory(&self, place: Place) -> Memory {
        self.memory
            .part(place.index() * PAGE as usize, PAGE as usize)
    }
}

/// Some bytes of a volume, in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes {
    /// The first one's place in the volume.
    pub(super) start: u64,
    pub(super) memory: Memory,
}

impl Bytes {
    /// A whole block.
    pub(super) fn page(block: u64, memory: Memory) -> Self {
        Bytes {
            start: block * PAGE,
            memory,
        }
    }

    /// The place behind the last one.
    pub(super) fn end(&self) -> u64 {
        self.start + self.memory.length as u64
    }

    /// Copies what both have. Nobody else looks at either meanwhile: the memory of requests is theirs
    /// while they are under way, and the loop's thread is the only one that does anything to it.
    pub(super) fn copy_to(&self, to: &Bytes) {
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
