//! The index of entries by block: a table with open addressing, for lookups only.
//!
//! ```text
//!   slot:  | some bits of the hash | entry |      32 bits, 0 = empty
//!
//!   home = the upper bits of the hash; from there upwards to the first empty slot.
//!   A removal moves later slots back, so that there are no tombstones.
//! ```
//!
//! A slot has four bytes, and at most every third one is occupied. A miss usually reads one slot, a hit also
//! the entry. The bits that an entry's number leaves of the 32 store a part of the hash, so that entries of
//! other blocks are seldom read. The order of slots is not visible from outside: the same calls give the same
//! results on every machine.

use super::{FrameEntry, MAX_BLOCK};

/// The multiplier of the hash: 2^64 over the golden ratio, made odd (Knuth, TAOCP 3, 6.4).
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Prevents block 0 and its neighbours from hashing to their own numbers. Any odd constant works.
const SALT: u64 = 0xD1B5_4A32_D192_ED03;

/// The least number of slots per entry; there are up to twice as many. With half of them a miss passes another
/// block's slot twice as often, each time with a mispredicted branch.
const SPREAD: usize = 3;

/// The hash of a block's number: both halves of the product, so that all bits count.
const fn hash(block: u64) -> u64 {
    let product = ((block ^ SALT) as u128) * (MULTIPLIER as u128);
    (product >> 64) as u64 ^ product as u64
}

/// A map from block numbers to entries; entry 0 stands for none.
#[derive(Clone, Debug)]
pub(super) struct Index {
    slots: Box<[u32]>,
    /// The shift from a hash to its home slot.
    shift: u32,
    /// The mask of the entry's number in a slot.
    entry: u32,
}

impl Index {
    /// An empty index for at most `entries` entries.
    pub(super) fn new(entries: usize) -> Self {
        let slots = (entries * SPREAD).next_power_of_two().max(2);
        Self {
            slots: vec![0; slots].into_boxed_slice(),
            shift: u64::BITS - slots.trailing_zeros(),
            entry: u32::MAX >> (entries as u32).leading_zeros(),
        }
    }

    /// The entry in the block's home slot: usually the block's own.
    #[inline]
    pub(super) fn first_entry(&self, block: u64) -> u32 {
        self.slots[self.home(hash(block))] & self.entry
    }

    /// The block's entry. Usually it is in the home slot, or that slot is empty.
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

    /// Adds the entry of an absent block.
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

    /// Removes the block's entry. The entries must still store the blocks that they were added for.
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

    /// Moves later slots back into the gap, unless their home is after it. Returns the final gap.
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

    /// The home slot of a hash.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    /// The slot value for an entry and a hash.
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
