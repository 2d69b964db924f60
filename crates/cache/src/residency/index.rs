//! The index of entries by block: a table with open addressing, for lookups only.
//!
//! ```text
//!   slot:   | some bits of the hash | entry |      32 bits, 0 = empty
//!
//!   lines:  | 16 slots | 16 slots | 16 slots | ...   one for the blocks of a group of neighbours
//!               |          ^
//!               `----------'  a search steps to the next slot of the next line, up to an empty one
//! ```
//!
//! Requests ask for neighbouring blocks. The hash of a group selects a line, and permutes the group's blocks in
//! it: a run of blocks reads one line of the processor's cache, and blocks of any stride spread over all slots.
//! The steps visit all slots. A removal moves later slots back, so that there are no tombstones.
//!
//! A slot has four bytes, and at most every third one is occupied. A miss usually reads one slot, a hit also
//! the entry. The bits that an entry's number leaves of the 32 store a part of the hash, so that entries of
//! other blocks are seldom read. The order of slots is not visible from outside: the same calls give the same
//! results on every machine.

use super::{FrameEntry, MAX_BLOCK};

/// The multiplier of the hash: 2^64 over the golden ratio, made odd (Knuth, TAOCP 3, 6.4).
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Prevents group 0 and its neighbours from hashing to their own numbers. Any odd constant works.
const SALT: u64 = 0xD1B5_4A32_D192_ED03;

/// The least number of slots per entry; there are up to twice as many. With half of them a miss passes another
/// block's slot twice as often, each time with a mispredicted branch.
const SPREAD: usize = 3;

/// Slots of a line, and blocks of a group, as a power of two: 64 bytes, a line of the processor's cache.
pub(super) const LINE_BITS: u32 = 4;
const LINE: usize = 1 << LINE_BITS;

/// The distance of a step: to the next line, and to the next slot there. It is odd, so that steps visit all slots.
const STEP: usize = LINE + 1;

/// The number of steps to the next slot, modulo any number of slots: the inverse of [`STEP`].
const INVERSE: usize = 0xF0F0_F0F0_F0F0_F0F1_u64 as usize;
const _: () = assert!(STEP.wrapping_mul(INVERSE) == 1);

/// The hash of a block's group: both halves of the product, so that all bits count.
const fn hash(block: u64) -> u64 {
    let product = ((block >> LINE_BITS ^ SALT) as u128) * (MULTIPLIER as u128);
    (product >> 64) as u64 ^ product as u64
}

/// A group of blocks in the index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    hash: u64,
    /// The home slot of the group's first block.
    first: usize,
}

/// A map from block numbers to entries; entry 0 stands for none.
#[derive(Clone, Debug)]
pub(super) struct Index {
    slots: Box<[u32]>,
    /// The slot at which the first line begins.
    begin: usize,
    /// The number of slots in lines, less one.
    mask: usize,
    /// The shift from a hash to a slot.
    shift: u32,
    /// The mask of the entry's number in a slot.
    entry: u32,
}

impl Index {
    /// An empty index for at most `entries` entries.
    pub(super) fn new(entries: usize) -> Self {
        let count = (entries * SPREAD).next_power_of_two().max(LINE);
        let slots = vec![0; count + LINE - 1].into_boxed_slice();
        Self {
            // A place that is no multiple of a line would only be slower.
            begin: slots.as_ptr().align_offset(size_of::<[u32; LINE]>()) % LINE,
            slots,
            mask: count - 1,
            shift: u64::BITS - count.trailing_zeros(),
            entry: u32::MAX >> (entries as u32).leading_zeros(),
        }
    }

    /// Where the entries of the block's group are.
    #[inline]
    pub(super) fn group(&self, block: u64) -> Group {
        let hash = hash(block);
        Group {
            hash,
            first: (hash >> self.shift) as usize,
        }
    }

    /// The entry in the block's home slot: usually the block's own.
    #[inline]
    pub(super) fn first_entry(&self, block: u64) -> u32 {
        self.at(self.group(block).home(block)) & self.entry
    }

    /// The block's entry.
    #[inline]
    pub(super) fn find(&self, entries: &[FrameEntry], block: u64) -> Option<u32> {
        self.find_in(entries, self.group(block), block)
    }

    /// The entry of a block of this group. Usually it is in the home slot, or that slot is empty.
    #[inline]
    pub(super) fn find_in(&self, entries: &[FrameEntry], group: Group, block: u64) -> Option<u32> {
        let mut place = group.home(block);
        loop {
            let found = self.at(place);
            if found == 0 {
                return None;
            }
            let entry = found & self.entry;
            if self.slot(group, entry) == found && entries[entry as usize].word & MAX_BLOCK == block
            {
                return Some(entry);
            }
            place = self.next(place);
        }
    }

    /// Adds the entry of an absent block.
    #[inline]
    pub(super) fn insert(&mut self, block: u64, entry: u32) {
        let group = self.group(block);
        let mut place = group.home(block);
        while self.at(place) != 0 {
            place = self.next(place);
        }
        self.set(place, self.slot(group, entry));
    }

    /// Removes the block's entry. The entries must still store the blocks that they were added for.
    #[inline]
    pub(super) fn remove(&mut self, entries: &[FrameEntry], block: u64, entry: u32) {
        let group = self.group(block);
        let sought = self.slot(group, entry);
        let mut gap = group.home(block);
        while self.at(gap) != sought {
            assert!(self.at(gap) != 0, "block {block} has no entry {entry}");
            gap = self.next(gap);
        }
        let next = self.next(gap);
        if self.at(next) != 0 {
            gap = self.fill(entries, gap, next);
        }
        self.set(gap, 0);
    }

    /// Moves later slots back into the gap, unless their home is after it. Returns the final gap.
    #[cold]
    fn fill(&mut self, entries: &[FrameEntry], mut gap: usize, mut from: usize) -> usize {
        while self.at(from) != 0 {
            let moved = self.at(from);
            let block = entries[(moved & self.entry) as usize].word & MAX_BLOCK;
            let home = self.group(block).home(block);
            if self.steps(home, from) >= self.steps(gap, from) {
                self.set(gap, moved);
                gap = from;
            }
            from = self.next(from);
        }
        gap
    }

    /// The place after this one in a search.
    #[inline]
    fn next(&self, place: usize) -> usize {
        (place + STEP) & self.mask
    }

    /// The steps of a search from one place to another.
    fn steps(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from).wrapping_mul(INVERSE) & self.mask
    }

    #[inline]
    fn at(&self, place: usize) -> u32 {
        self.slots[self.begin + place]
    }

    #[inline]
    fn set(&mut self, place: usize, slot: u32) {
        self.slots[self.begin + place] = slot;
    }

    /// The slot for an entry of a block of this group.
    #[inline]
    fn slot(&self, group: Group, entry: u32) -> u32 {
        group.hash as u32 & !self.entry | entry
    }
}

impl Group {
    /// The home slot of a block of this group.
    #[inline]
    fn home(self, block: u64) -> usize {
        self.first ^ (block as usize % LINE)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::{FrameEntry, Index};

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
            let mut total = 0;
            for number in 0..1 << 12 {
                let block = number * stride;
                index.insert(block, number as u32 + 1);
                let sought = index.slot(index.group(block), number as u32 + 1);
                let mut place = index.group(block).home(block);
                while index.at(place) != sought {
                    place = index.next(place);
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
