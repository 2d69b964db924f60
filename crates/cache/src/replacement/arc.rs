//! ARC: a list of blocks with one demand, and a list of blocks with more. Their remembered blocks
//! determine the division of the cache (Megiddo, Modha, FAST 2003).
//!
//! ```text
//!       B1 <-- T1  |  T2 --> B2        T: resident, B: remembered
//!        `-- more --> p <-- more --'   p: the target size of T1
//! ```
//!
//! Not for loads whose best division changes faster than the remembered blocks show.

use super::{GhostTag, Pattern, Replacement, Touch};
use crate::residency::{FrameId, List, Needs, Residency};

/// The list of a block: the marks of its entry, and the numbers of the lists.
const T1: u8 = 0;
const T2: u8 = 1;
const B1: u8 = 2;
const B2: u8 = 3;

/// The [`GhostTag`] of a block that was in B2.
const WAS_IN_B2: GhostTag = GhostTag(B2);

/// An ARC policy: four lists and the target.
#[derive(Debug)]
pub struct Arc {
    lists: [List; 4],
    capacity: u32,
    /// The target size of T1: the paper's p, a real number.
    target: f64,
}

impl Arc {
    /// A policy for `capacity` frames.
    pub fn new(capacity: u32) -> Self {
        Self {
            lists: [0, 1, 2, 3].map(List::numbered),
            capacity,
            target: 0.0,
        }
    }

    fn len(&self, list: u8) -> u32 {
        self.lists[usize::from(list)].len()
    }

    fn take(&mut self, residency: &mut Residency, frame: FrameId) -> u8 {
        let list = residency.marks(frame);
        self.lists[usize::from(list)].remove(residency, frame);
        list
    }

    fn put(&mut self, residency: &mut Residency, frame: FrameId, list: u8) {
        residency.set_marks(frame, list);
        self.lists[usize::from(list)].push_newest(residency, frame);
    }

    /// Forgets the oldest block of a list of remembered ones.
    fn drop_oldest(&mut self, residency: &mut Residency, list: u8) {
        if let Some(oldest) = self.lists[usize::from(list)].pop_oldest(residency) {
            residency.forget(oldest);
        }
    }
}

impl Replacement for Arc {
    fn needs(&self) -> Needs {
        Needs {
            remembered: self.capacity,
            lists: 4,
        }
    }

    #[inline]
    fn touch(&mut self, residency: &mut Residency, frame: FrameId, touch: Touch, _: Pattern) {
        let list = residency.marks(frame);
        if touch == Touch::Again && list == T1 {
            self.take(residency, frame);
            self.put(residency, frame, T2);
        } else {
            self.lists[usize::from(list)].move_to_newest(residency, frame);
        }
    }

    #[inline]
    fn recall(&mut self, residency: &mut Residency, frame: FrameId) -> GhostTag {
        let (b1, b2) = (f64::from(self.len(B1)), f64::from(self.len(B2)));
        let list = self.take(residency, frame);
        self.target = if list == B1 {
            (self.target + (b2 / b1).max(1.0)).min(f64::from(self.capacity))
        } else {
            (self.target - (b1 / b2).max(1.0)).max(0.0)
        };
        GhostTag(list)
    }

    /// The paper's REPLACE. Its case of a T1 that fills the cache needs no separate rule: T2 is empty
    /// then, and the block that enters the empty B1 is dropped at the new block's admission.
    #[inline]
    fn victim(&mut self, residency: &mut Residency, coming: GhostTag) -> Option<FrameId> {
        let t1 = f64::from(self.len(T1));
        let is_above = t1 > self.target || (coming == WAS_IN_B2 && t1 == self.target);
        let [first, second] = match t1 >= 1.0 && is_above {
            true => [T1, T2],
            false => [T2, T1],
        };
        let oldest = |list: u8| self.lists[usize::from(list)].oldest_valid(residency);
        oldest(first).or_else(|| oldest(second))
    }

    #[inline]
    fn evict(&mut self, residency: &mut Residency, frame: FrameId) {
        let list = self.take(residency, frame);
        residency.remember(frame);
        self.put(residency, frame, if list == T1 { B1 } else { B2 });
    }

    #[inline]
    fn insert(&mut self, residency: &mut Residency, frame: FrameId, _: Pattern, memory: GhostTag) {
        if memory != GhostTag::NONE {
            return self.put(residency, frame, T2);
        }
        let known: u32 = self.lists.iter().map(|list| list.len()).sum();
        if self.len(T1) + self.len(B1) >= self.capacity {
            self.drop_oldest(residency, B1);
        } else if known >= 2 * self.capacity {
            self.drop_oldest(residency, B2);
        }
        self.put(residency, frame, T1);
    }

    fn refresh(&mut self, residency: &mut Residency, frame: FrameId, _: Pattern) {
        let list = usize::from(residency.marks(frame));
        self.lists[list].move_to_newest(residency, frame);
    }

    fn withdraw(&mut self, residency: &mut Residency, frame: FrameId) {
        self.take(residency, frame);
        residency.forget(frame);
    }
}
