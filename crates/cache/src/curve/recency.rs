//! The order of last demands: a bit for each slot, and counts of them for ranges of slots.
//!
//! ```text
//!   bits:    | 512 slots | 512 slots | 512 slots | ..      a set bit is a block's last demand
//!   counts:  a Fenwick tree over these chunks              (Fenwick, Software: Practice and Experience 1994)
//! ```

/// Slots of a chunk: a few words are counted in less time than a step in the tree takes. A choice.
const CHUNK: u32 = 512;

/// Words of a chunk.
const WORDS: usize = CHUNK as usize / 64;

/// The least number of slots. A choice: 8 KiB of bits.
const LEAST: u32 = 1 << 16;

/// The slots of last demands, in the order of the demands.
#[derive(Clone, Debug, Default)]
pub(super) struct Recency {
    bits: Vec<u64>,
    /// `tree[i - 1]` has the set bits of as many chunks before chunk `i` as the lowest bit of `i` says.
    tree: Vec<u32>,
    /// The next slot.
    next: u32,
    /// The number of set bits.
    set: u32,
}

impl Recency {
    /// Whether no slot is left.
    pub(super) fn is_full(&self) -> bool {
        self.next as usize == self.bits.len() * 64
    }

    /// Takes the next slot, and sets its bit.
    ///
    /// # Panics
    /// If none is left.
    pub(super) fn next_slot(&mut self) -> u32 {
        let slot = self.next;
        self.next += 1;
        self.set += 1;
        self.bits[slot as usize / 64] |= 1 << (slot % 64);
        self.change(slot / CHUNK, 1);
        slot
    }

    /// The number of set bits after this slot and before the newest one.
    pub(super) fn later_than(&self, slot: u32) -> u64 {
        // The newest is not later than itself.
        u64::from(self.set - 1 - self.up_to(slot))
    }

    /// Clears the bit of a slot, which is set.
    pub(super) fn clear(&mut self, slot: u32) {
        self.set -= 1;
        self.bits[slot as usize / 64] &= !(1 << (slot % 64));
        self.change(slot / CHUNK, u32::MAX);
    }

    /// Renumbers the set bits without gaps, and `slots`, which are theirs. At least as many slots are free then.
    pub(super) fn compact(&mut self, slots: &mut [u32]) {
        for slot in slots {
            *slot = self.up_to(*slot) - 1;
        }
        let count = (self.set.saturating_mul(2).max(LEAST)).next_multiple_of(CHUNK);
        self.bits.clear();
        self.bits.resize(count as usize / 64, 0);
        self.tree.clear();
        self.tree.resize((count / CHUNK) as usize, 0);
        let (whole, rest) = (self.set as usize / 64, self.set % 64);
        self.bits[..whole].fill(u64::MAX);
        if rest > 0 {
            self.bits[whole] = (1 << rest) - 1;
        }
        for chunk in 0..self.tree.len() {
            let words = &self.bits[chunk * WORDS..(chunk + 1) * WORDS];
            let set: u32 = words.iter().map(|word| word.count_ones()).sum();
            if set > 0 {
                self.change(chunk as u32, set);
            }
        }
        self.next = self.set;
    }

    /// The number of set bits up to this slot and with it.
    fn up_to(&self, slot: u32) -> u32 {
        let chunk = (slot / CHUNK) as usize;
        let word = slot as usize / 64;
        let here = self.bits[word] & (u64::MAX >> (63 - slot % 64));
        let words = &self.bits[chunk * WORDS..word];
        let mut set = here.count_ones() + words.iter().map(|word| word.count_ones()).sum::<u32>();
        let mut at = chunk;
        while at > 0 {
            set += self.tree[at - 1];
            at &= at - 1;
        }
        set
    }

    /// Adds to the count of a chunk; `u32::MAX` subtracts one.
    fn change(&mut self, chunk: u32, by: u32) {
        let mut at = chunk as usize + 1;
        while at <= self.tree.len() {
            self.tree[at - 1] = self.tree[at - 1].wrapping_add(by);
            at += at & at.wrapping_neg();
        }
    }
}
