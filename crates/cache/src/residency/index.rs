//! Where a block's entry is: a table with open addressing that is asked, never listed.
//!
//! ```text
//!   slot:  | hash, 32 bits | entry, 32 bits |      0 = empty
//!
//!   home = the upper bits of the hash; from there upwards to the first empty slot.
//!   A removed slot is filled from behind it, so that no marks of removed ones are left.
//! ```
//!
//! A slot is eight bytes and at most every second one is taken: a lookup that finds nothing reads
//! one line of the processor's cache, one that finds its block reads the entry besides. The hash is
//! kept in the slot, so that moving slots reads no entries. No order of slots is ever seen from
//! outside: the same calls give the same answers on every machine.

/// The multiplier of the hash: 2^64 over the golden ratio, made odd (Knuth, TAOCP 3, 6.4).
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Keeps block 0 and its neighbours from hashing to their own numbers; any odd constant would do.
const SALT: u64 = 0xD1B5_4A32_D192_ED03;

/// A slot for the entry of a hash.
const fn slot(hash: u32, entry: u32) -> u64 {
    ((hash as u64) << 32) | entry as u64
}

/// The hash of a block's number: both halves of the product, so that all bits count.
const fn hash(block: u64) -> u32 {
    let product = ((block ^ SALT) as u128) * (MULTIPLIER as u128);
    let folded = (product >> 64) as u64 ^ product as u64;
    (folded >> 32) as u32
}

/// From block numbers to entries; entry 0 is none.
#[derive(Clone, Debug)]
pub(super) struct Index {
    slots: Box<[u64]>,
    /// How far a hash is shifted to be the number of its home.
    shift: u32,
}

impl Index {
    /// For at most so many entries.
    pub(super) fn new(entries: usize) -> Self {
        let slots = (entries * 2).next_power_of_two().max(2);
        Self {
            slots: vec![0; slots].into_boxed_slice(),
            shift: 32 - slots.trailing_zeros().min(32),
        }
    }

    /// The entry in the slot where the search for the block begins: most often the block's own.
    pub(super) fn first_entry(&self, block: u64) -> u32 {
        self.slots[self.home(hash(block))] as u32
    }

    /// The block's entry; `is_block` says whether an entry is of the block. Most often it is in the first
    /// slot, or that is empty.
    #[inline]
    pub(super) fn find(&self, block: u64, is_block: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = hash(block);
        let home = self.home(hash);
        let found = self.slots[home];
        if (found >> 32) as u32 == hash && found != 0 && is_block(found as u32) {
            return Some(found as u32);
        }
        match found {
            0 => None,
            _ => self.find_behind(home, hash, is_block),
        }
    }

    /// The entry in the slots behind the home.
    #[cold]
    fn find_behind(&self, home: usize, hash: u32, is_block: impl Fn(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = home;
        loop {
            at = (at + 1) & mask;
            let found = self.slots[at];
            if found == 0 {
                return None;
            }
            if (found >> 32) as u32 == hash && is_block(found as u32) {
                return Some(found as u32);
            }
        }
    }

    /// Adds the entry of a block that has none.
    pub(super) fn insert(&mut self, block: u64, entry: u32) {
        let hash = hash(block);
        let mask = self.slots.len() - 1;
        let mut at = self.home(hash) & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot(hash, entry);
    }

    /// Takes the block's entry out.
    pub(super) fn remove(&mut self, block: u64, entry: u32) {
        let hash = hash(block);
        let mask = self.slots.len() - 1;
        let sought = slot(hash, entry);
        let mut gap = self.home(hash) & mask;
        while self.slots[gap] != sought {
            assert!(self.slots[gap] != 0, "block {block} has no entry {entry}");
            gap = (gap + 1) & mask;
        }
        // What stands behind the gap moves into it unless its home lies behind the gap.
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let next = self.slots[at];
            if next == 0 {
                break;
            }
            let home = self.home((next >> 32) as u32);
            let is_reachable = at.wrapping_sub(home) & mask >= at.wrapping_sub(gap) & mask;
            if is_reachable {
                self.slots[gap] = next;
                gap = at;
            }
        }
        self.slots[gap] = 0;
    }

    /// Where the search for a hash begins.
    fn home(&self, hash: u32) -> usize {
        (hash >> self.shift) as usize
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::Index;

    /// The entry's blocks, as the owner of an index keeps them.
    struct Owner {
        index: Index,
        blocks: Vec<u64>,
    }

    impl Owner {
        fn find(&self, block: u64) -> Option<u32> {
            let blocks = &self.blocks;
            self.index
                .find(block, |entry| blocks[entry as usize] == block)
        }
    }

    proptest! {
        /// Few slots and neighbouring numbers: long runs of slots, also around the end.
        #[test]
        fn it_finds_what_a_map_finds(
            operations in prop::collection::vec((0_u64..24, any::<bool>()), 1..400),
            stride in prop::sample::select(vec![1_u64, 8, 1597, 1 << 20, 1 << 44]),
        ) {
            let entries = 13;
            let mut owner = Owner { index: Index::new(entries), blocks: vec![u64::MAX; entries + 1] };
            let mut free: Vec<u32> = (1..=entries as u32).collect();
            let mut map = BTreeMap::new();
            for (number, is_insert) in operations {
                let block = number * stride;
                if let Some(entry) = map.get(&block).copied() {
                    if !is_insert {
                        owner.index.remove(block, entry);
                        map.remove(&block);
                        free.push(entry);
                    }
                } else if is_insert && let Some(entry) = free.pop() {
                    owner.blocks[entry as usize] = block;
                    owner.index.insert(block, entry);
                    map.insert(block, entry);
                }
                for number in 0..24 {
                    let block = number * stride;
                    prop_assert_eq!(owner.find(block), map.get(&block).copied());
                }
            }
        }
    }

    #[test]
    fn neighbours_and_strides_stay_near_their_homes() {
        for stride in [1, 2, 8, 64, 1000, 1597, 4096, 1 << 20, 1 << 40] {
            let mut index = Index::new(1 << 12);
            for number in 0..1 << 12 {
                index.insert(number * stride, number as u32 + 1);
            }
            let mask = index.slots.len() - 1;
            let far =
                |(at, slot): (usize, &u64)| at.wrapping_sub(index.home((slot >> 32) as u32)) & mask;
            let taken = index
                .slots
                .iter()
                .enumerate()
                .filter(|(_, slot)| **slot != 0);
            let total: usize = taken.map(far).sum();
            assert!(
                total < 2 << 12,
                "stride {stride}: {total} steps for 4096 blocks"
            );
        }
    }
}
