//! Gaps of a full ring: places whose blocks were used again.

use super::GroupQueue;
use super::parts::marks;

/// The head of a bucket without places, while gaps are cleared.
const NONE: u32 = u32::MAX;

impl GroupQueue {
    /// Compacts the ring in order, so that all gaps are at the end: at least one, because there are more places
    /// than blocks. All buckets are rebuilt, which costs less than a search for each place.
    #[cold]
    pub(super) fn clear_gaps(&mut self) {
        self.note_buckets();
        let layout = self.layout;
        let mut from = self.oldest;
        // All places are in use: the age of the oldest is one lap.
        let taken = std::mem::take(&mut self.taken);
        self.next = self.void();
        for _ in 0..taken {
            let word = std::mem::take(&mut self.ring[from]);
            if marks(word) != 0 {
                let bucket = layout.link(word) as usize;
                let older = match self.heads[bucket] {
                    NONE => self.void(),
                    head => head,
                };
                let to = self.place_of(self.next);
                self.ring[to] = layout.linked(word, older);
                self.heads[bucket] = self.next;
                self.next = self.step_behind(self.next);
                self.taken += 1;
            }
            from += 1;
            if from == self.ring.len() {
                from = 0;
            }
        }
        let void = self.void();
        for head in self.heads.iter_mut().filter(|head| **head == NONE) {
            *head = void;
        }
    }

    /// Replaces the link of each place in use by its bucket's number, and clears all heads. A place holds only a
    /// part of its hash, so that only the walk from the head identifies its bucket.
    fn note_buckets(&mut self) {
        let layout = self.layout;
        for bucket in 0..self.heads.len() {
            let mut step = std::mem::replace(&mut self.heads[bucket], NONE);
            while self.is_used(step) {
                let place = self.place_of(step);
                let word = &mut self.ring[place];
                step = layout.link(*word);
                *word = layout.linked(*word, bucket as u32);
            }
        }
    }
}
