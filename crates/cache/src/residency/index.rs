//! Where a block's entry is: a table with open addressing that is asked, never listed.
//!
//! ```text
//!   slot:  | some bits of the hash | entry |      32 bits, 0 = empty
//!
//!   home = the upper bits of the hash; from there upwards to the first empty slot.
//!   A removed slot is filled from behind it, so that no marks of removed ones are left.
//! ```
//!
//! A slot is four bytes and at most every third one is taken: a lookup that finds nothing reads one
//! slot most often, one that finds its block reads the entry besides. What an entry's number leaves of
//! the 32 bits keeps some of the hash, so that entries of other blocks are seldom read. No order of slots is
//! ever seen from outside: the same calls give the same answers on every machine.

use super::{FrameEntry, MAX_BLOCK};

/// The multiplier of the hash: 2^64 over the golden ratio, made odd (Knuth, TAOCP 3, 6.4).
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Keeps block 0 and its neighbours from hashing to their own numbers; any odd constant would do.
const SALT: u64 = 0xD1B5_4A32_D192_ED03;

/// So many slots there are for each entry, and up to twice as many. With half of them a demand that misses
/// steps over another block's slot twice as often, each time a branch that the processor did not expect.
const SPREAD: usize = 3;

/// The hash of a block's number: both halves of the product, so that all bits count.
const fn hash(block: u64) -> u64 {
    let product = ((block ^ SALT) as u128) * (MULTIPLIER as u128);
    (product >> 64) as u64 ^ product as u64
}

/// From block numbers to entries; entry 0 is none.
#[derive(Clone, Debug)]
pub(super) struct Index {
    slots: Box<[u32]>,
    /// How far a hash is shifted to be the number of its home.
    shift: u32,
    /// The bits of a slot that are the entry's number.
    entry: u32,
}

impl Index {
    /// For at most so many entries.
    pub(super) fn new(entries: usize) -> Self {
        let slots = (entries * SPREAD).next_power_of_two().max(2);
        Self {
            slots: vec![0; slots].into_boxed_slice(),
            shift: u64::BITS - slots.trailing_zeros(),
            entry: u32::MAX >> (entries as u32).leading_zeros(),
        }
    }

    /// The entry in the slot where the search for the block begins: most often the block's own.
    #[inline]
    pub(super) fn first_entry(&self, block: u64) -> u32 {
        self.slots[self.home(hash(block))] & self.entry
    }

    /// The block's entry. Most often it is in the first slot, or that is empty.
    #[inline]
    pub(super) fn find(&self, entries: &[FrameEntry], block: u64) -> Option<u32> {
        let hash = hash(block);
        let mask = self.slots.len() - 1;
        let mut at = self.home(hash);
        loop {
            let found = self.slots[at];
            if found == 0 {
                return None;
            }
            let entry = found & self.entry;
            if self.slot(hash, entry) == found && entries[entry as usize].word & MAX_BLOCK == block
            {
                return Some(entry);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds the entry of a block that has none.
    #[inline]
    pub(super) fn insert(&mut self, block: u64, entry: u32) {
        let hash = hash(block);
        let mask = self.slots.len() - 1;
        let mut at = self.home(hash);
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = self.slot(hash, entry);
    }

    /// Takes the block's entry out; the other entries are of the blocks that they were added for.
    #[inline]
    pub(super) fn remove(&mut self, entries: &[FrameEntry], block: u64, entry: u32) {
        let hash = hash(block);
        let mask = self.slots.len() - 1;
        let sought = self.slot(hash, entry);
        let mut gap = self.home(hash);
        while self.slots[gap] != sought {
            assert!(self.slots[gap] != 0, "block {block} has no entry {entry}");
            gap = (gap + 1) & mask;
        }
        let next = (gap + 1) & mask;
        if self.slots[next] != 0 {
            gap = self.fill(entries, gap, next);
        }
        self.slots[gap] = 0;
    }

    /// What stands behind the gap moves into it unless its home lies behind the gap. Says where the gap is
    /// in the end.
    #[cold]
    fn fill(&mut self, entries: &[FrameEntry], mut gap: usize, mut at: usize) -> usize {
        let mask = self.slots.len() - 1;
        while self.slots[at] != 0 {
            let next = self.slots[at];
            let block = entries[(next & self.entry) as usize].word & MAX_BLOCK;
            let home = self.home(hash(block));
            let is_reachable = at.wrapping_sub(home) & mask >= at.wrapping_sub(gap) & mask;
            if is_reachable {
                self.slots[gap] = next;
                gap = at;
            }
            at = (at + 1) & mask;
        }
        gap
    }

    /// Where the search for a hash begins.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    /// A slot for the entry of a hash.
    #[inline]
    fn slot(&self, hash: u64, entry: u32) -> u32 {
        hash as u32 & !self.entry | entry
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{FrameEntry, Index, hash};

    const FREE: FrameEntry = FrameEntry {
        word: 0,
        newer: 0,
        older: 0,
    };

    proptest! {
        /// Few slots and neighbouring numbers: long runs of slots, also around the end.
        #[test]
        fn it_finds_what_a_map_finds(
            operations in prop::collection::vec((0_u64..24, any::<bool>()), 1..400),
            stride in prop::sample::select(vec![1_u64, 8, 1597, 1 << 20, 1 << 44]),
        ) {
            let mut entries = [FREE; 14];
            let mut index = Index::new(entries.len() - 1);
            let mut free: Vec<u32> = (1..entries.len() as u32).collect();
            let mut map = BTreeMap::new();
            for (number, is_insert) in operations {
                let block = number * stride;
                if let Some(entry) = map.get(&block).copied() {
                    if !is_insert {
                        index.remove(&entries, block, entry);
                        map.remove(&block);
                        free.push(entry);
                    }
                } else if is_insert && let Some(entry) = free.pop() {
                    entries[entry as usize].word = block;
                    index.insert(block, entry);
                    map.insert(block, entry);
                }
                for number in 0..24 {
                    let block = number * stride;
                    prop_assert_eq!(index.find(&entries, block), map.get(&block).copied());
                }
            }
        }
    }

    #[test]
    fn neighbours_and_strides_stay_near_their_homes() {
        for stride in [1, 2, 8, 64, 1000, 1597, 4096, 1 << 20, 1 << 40] {
            let mut index = Index::new(1 << 12);
            let mask = index.slots.len() - 1;
            let mut total = 0;
            for number in 0..1 << 12 {
                let block = number * stride;
                index.insert(block, number as u32 + 1);
                let sought = index.slot(hash(block), number as u32 + 1);
                let mut at = index.home(hash(block));
                while index.slots[at] != sought {
                    at = (at + 1) & mask;
                    total += 1;
                }
            }
            assert!(
                total < 1 << 12,
                "stride {stride}: {total} steps for 4096 blocks"
            );
        }
    }
}
