//! Lists through the entries, from newest to oldest.
//!
//! ```text
//!        .------- newer -------.
//!        v                     |
//!      head <-> newest <-> ... oldest <-> head
//! ```

use super::{FrameId, MAX_BLOCK, Residency};

/// A ring of entries with a head. An entry is in one list at a time; the list does not check that a
/// given entry is its own.
#[derive(Clone, Copy, Debug)]
pub struct List {
    head: u32,
    len: u32,
}

impl List {
    /// The policy's list with this number, which is empty.
    pub const fn numbered(head: u32) -> Self {
        Self { head, len: 0 }
    }

    /// The number of entries.
    #[inline]
    pub fn len(self) -> u32 {
        self.len
    }

    /// Whether the list is empty.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The newest entry: the end for insertions.
    #[inline]
    pub fn newest(self, residency: &Residency) -> Option<FrameId> {
        self.older(residency, FrameId(self.head))
    }

    /// The oldest entry: the end for evictions.
    #[inline]
    pub fn oldest(self, residency: &Residency) -> Option<FrameId> {
        self.newer(residency, FrameId(self.head))
    }

    /// The next newer entry.
    #[inline]
    pub fn newer(self, residency: &Residency, frame: FrameId) -> Option<FrameId> {
        self.unless_head(residency.entries[frame.index()].newer)
    }

    /// The next older entry.
    #[inline]
    pub fn older(self, residency: &Residency, frame: FrameId) -> Option<FrameId> {
        self.unless_head(residency.entries[frame.index()].older)
    }

    /// The oldest entry whose read is complete. Entries in flight keep their places.
    #[inline]
    pub fn oldest_valid(self, residency: &Residency) -> Option<FrameId> {
        let mut at = self.oldest(residency);
        while let Some(frame) = at {
            if !residency.is_in_flight(frame) {
                return at;
            }
            at = self.newer(residency, frame);
        }
        None
    }

    /// The newest entry whose read is complete.
    #[inline]
    pub fn newest_valid(self, residency: &Residency) -> Option<FrameId> {
        let mut at = self.newest(residency);
        while let Some(frame) = at {
            if !residency.is_in_flight(frame) {
                return at;
            }
            at = self.older(residency, frame);
        }
        None
    }

    /// Prefetches the memory that the eviction of the oldest entry needs into the processor's cache:
    /// the block's slot in the index, and the next entry.
    #[inline]
    pub fn warm_oldest(self, residency: &Residency) -> u64 {
        let oldest = residency.entries[self.head as usize].newer as usize;
        let entry = &residency.entries[oldest];
        let slot = residency.index.first_entry(entry.word & MAX_BLOCK);
        let next = residency.entries[entry.newer as usize].newer;
        u64::from(slot ^ next)
    }

    /// Adds an entry that is in no list at the newest end.
    #[inline]
    pub fn push_newest(&mut self, residency: &mut Residency, frame: FrameId) {
        let older = residency.entries[self.head as usize].older;
        link(residency, self.head, frame.0, older);
        self.len += 1;
    }

    /// Adds an entry that is in no list at the oldest end.
    #[inline]
    pub fn push_oldest(&mut self, residency: &mut Residency, frame: FrameId) {
        let newer = residency.entries[self.head as usize].newer;
        link(residency, newer, frame.0, self.head);
        self.len += 1;
    }

    /// Removes the entry.
    #[inline]
    pub fn remove(&mut self, residency: &mut Residency, frame: FrameId) {
        unlink(residency, frame.0);
        self.len -= 1;
    }

    /// Removes the oldest entry.
    #[inline]
    pub fn pop_oldest(&mut self, residency: &mut Residency) -> Option<FrameId> {
        let oldest = self.oldest(residency)?;
        self.remove(residency, oldest);
        Some(oldest)
    }

    /// Moves the oldest entry to the newest end of another list.
    #[inline]
    pub fn hand_oldest(&mut self, residency: &mut Residency, to: &mut Self) -> Option<FrameId> {
        let oldest = self.oldest(residency)?.0;
        let entries = &mut *residency.entries;
        let next = entries[oldest as usize].newer;
        entries[self.head as usize].newer = next;
        entries[next as usize].older = self.head;
        let newest = std::mem::replace(&mut entries[to.head as usize].older, oldest);
        entries[newest as usize].newer = oldest;
        let entry = &mut entries[oldest as usize];
        entry.newer = to.head;
        entry.older = newest;
        self.len -= 1;
        to.len += 1;
        Some(FrameId(oldest))
    }

    /// Moves an entry of the list to the newest end.
    #[inline]
    pub fn move_to_newest(self, residency: &mut Residency, frame: FrameId) {
        let newest = residency.entries[self.head as usize].older;
        if newest != frame.0 {
            unlink(residency, frame.0);
            link(residency, self.head, frame.0, newest);
        }
    }

    #[inline]
    fn unless_head(self, at: u32) -> Option<FrameId> {
        (at != self.head).then_some(FrameId(at))
    }
}

/// Inserts an entry between two neighbours.
#[inline]
fn link(residency: &mut Residency, newer: u32, entry: u32, older: u32) {
    residency.entries[newer as usize].older = entry;
    residency.entries[older as usize].newer = entry;
    let entry = &mut residency.entries[entry as usize];
    entry.newer = newer;
    entry.older = older;
}

/// Links the neighbours of an entry.
#[inline]
fn unlink(residency: &mut Residency, entry: u32) {
    let entry = residency.entries[entry as usize];
    residency.entries[entry.newer as usize].older = entry.older;
    residency.entries[entry.older as usize].newer = entry.newer;
}
