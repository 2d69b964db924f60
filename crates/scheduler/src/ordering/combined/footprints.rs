//! Disjoint footprints: a few in fixed slots, many in short sorted rows.
//!
//! ```text
//!   slots   [ 70..78 ][        ][ 12..20 ][ 40..44 ]        up to 16, in no order
//!   rows    [ 12..20 | 40..44 | 70..78 ] [ 90..98 | ... ]   in the order of their blocks
//! ```
//!
//! Slots are looked through one after the other, and nothing is moved. In rows a lookup is a binary search over the rows
//! and one in a row, and an insertion or removal moves less than a row. This is twice as fast as the library's B-tree for
//! the usual 10 to 100 pieces. Empty rows are reused.

use block::Extent;

use crate::ordering::piece::List;

/// One combined request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Footprint {
    /// Its first block.
    pub(super) start: u64,
    /// The block after its last.
    pub(super) end: u64,
    /// The members in the order of arrival.
    pub(super) members: List,
    pub(super) count: u32,
    /// Members that have ended since the last division.
    pub(super) ended: u32,
}

/// Disjoint footprints.
#[derive(Clone, Debug, Default)]
pub(super) struct Footprints {
    few: Few,
    /// No row is empty. If there is a row, the slots are empty.
    rows: Vec<Vec<Footprint>>,
    spare: Vec<Vec<Footprint>>,
}

/// Footprints in fixed slots.
#[derive(Clone, Debug)]
struct Few {
    slots: [Footprint; SLOTS],
    /// A bit for each slot that is used. The others are empty footprints.
    used: u32,
}

/// The index of a footprint, valid until the next insertion or removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FootprintIndex {
    row: u32,
    index: u32,
}

/// Slots. A choice: more than the drive's queue of a usual closed load holds; looking through them takes as long as a
/// search in a row.
const SLOTS: usize = 16;

/// The row of a footprint that is in a slot.
const SLOT: u32 = u32::MAX;

/// Footprints per row. A choice: 2 KiB, of which an insertion moves at most half.
const LONGEST: usize = 64;

impl Footprint {
    const EMPTY: Footprint = Footprint {
        start: 0,
        end: 0,
        members: List::EMPTY,
        count: 0,
        ended: 0,
    };
}

impl Default for Few {
    fn default() -> Self {
        Few {
            slots: [Footprint::EMPTY; SLOTS],
            used: 0,
        }
    }
}

impl Few {
    /// The slots up to the last one that is used.
    #[inline]
    fn slots(&self) -> &[Footprint] {
        &self.slots[..(u32::BITS - self.used.leading_zeros()) as usize]
    }

    /// Whether a footprint overlaps an extent.
    #[inline]
    fn overlaps(&self, extent: Extent) -> bool {
        let (start, end) = (extent.start().0, extent.end().0);
        let mut any = false;
        for slot in self.slots() {
            any |= (slot.start < end) & (start < slot.end);
        }
        any
    }

    /// The last footprint that starts before `block`.
    fn last_before(&self, block: u64) -> Option<usize> {
        let present = self.slots().iter().enumerate();
        let before = present.filter(|(_, slot)| slot.start < block && slot.start < slot.end);
        before.max_by_key(|(_, slot)| slot.start).map(|(at, _)| at)
    }
}

impl FootprintIndex {
    fn of_slot(slot: usize) -> Self {
        FootprintIndex {
            row: SLOT,
            index: slot as u32,
        }
    }
}

impl Footprints {
    /// Whether a footprint is known to overlap no other one. In rows that is not known.
    #[inline]
    pub(super) fn is_apart(&self, extent: Extent) -> bool {
        self.rows.is_empty() && !self.few.overlaps(extent)
    }

    /// The last footprint that starts before `block`.
    pub(super) fn last_before(&self, block: u64) -> Option<FootprintIndex> {
        let row = match self.rows.len() {
            0 => return self.few.last_before(block).map(FootprintIndex::of_slot),
            1 => 0,
            _ => {
                let after = self.rows.partition_point(|row| row[0].start < block);
                after.checked_sub(1)?
            }
        };
        let after = self.rows[row].partition_point(|footprint| footprint.start < block);
        Some(FootprintIndex {
            row: row as u32,
            index: after.checked_sub(1)? as u32,
        })
    }

    /// The footprint with a block, if it is where it was inserted.
    #[inline]
    pub(super) fn at_hint(&self, hint: u32, block: u64) -> Option<FootprintIndex> {
        let slot = self.few.slots.get(hint as usize)?;
        (slot.start <= block && block < slot.end).then_some(FootprintIndex {
            row: SLOT,
            index: hint,
        })
    }

    #[inline]
    pub(super) fn get(&self, place: FootprintIndex) -> &Footprint {
        match place.row {
            SLOT => &self.few.slots[place.index as usize],
            row => &self.rows[row as usize][place.index as usize],
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: FootprintIndex) -> &mut Footprint {
        match place.row {
            SLOT => &mut self.few.slots[place.index as usize],
            row => &mut self.rows[row as usize][place.index as usize],
        }
    }

    /// Inserts a footprint. The answer is a hint where to look for it.
    #[inline]
    pub(super) fn insert(&mut self, footprint: Footprint) -> u32 {
        if self.rows.is_empty() {
            let slot = self.few.used.trailing_ones();
            if slot < SLOTS as u32 {
                self.few.slots[slot as usize] = footprint;
                self.few.used |= 1 << slot;
                return slot;
            }
            self.leave_slots();
        }
        self.insert_into_rows(footprint);
        SLOT
    }

    #[inline]
    pub(super) fn remove(&mut self, place: FootprintIndex) -> Footprint {
        if place.row == SLOT {
            self.few.used &= !(1 << place.index);
            let slot = &mut self.few.slots[place.index as usize];
            return std::mem::replace(slot, Footprint::EMPTY);
        }
        let row = place.row as usize;
        let removed = self.rows[row].remove(place.index as usize);
        if self.rows[row].is_empty() {
            self.spare.push(self.rows.remove(row));
        }
        removed
    }

    /// Moves what is in slots to rows, where it stays until no row is left.
    #[cold]
    fn leave_slots(&mut self) {
        let few = std::mem::take(&mut self.few);
        for footprint in few.slots {
            self.insert_into_rows(footprint);
        }
    }

    fn insert_into_rows(&mut self, footprint: Footprint) {
        let left = match self.rows.is_empty() {
            true => None,
            false => self.last_before(footprint.start),
        };
        let (row, index) = match left {
            Some(FootprintIndex { row, index }) => (row as usize, index as usize + 1),
            None => {
                if self.rows.is_empty() {
                    let row = self.spare.pop().unwrap_or_default();
                    self.rows.push(row);
                }
                (0, 0)
            }
        };
        self.rows[row].insert(index, footprint);
        if self.rows[row].len() > LONGEST {
            let mut half = self.spare.pop().unwrap_or_default();
            half.extend(self.rows[row].drain(LONGEST / 2..));
            self.rows.insert(row + 1, half);
        }
    }
}

#[cfg(test)]
mod tests {
    use block::{Lba, Sectors};
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        /// A footprint of so many blocks, unless it overlaps another one.
        Insert(u64, u64),
        /// The footprint at this place of the model leaves.
        Remove(usize),
        /// Nothing is left.
        Empty,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (0..900u64, 1..12u64).prop_map(|(start, blocks)| Step::Insert(start, blocks)),
            3 => any::<usize>().prop_map(Step::Remove),
            1 => Just(Step::Empty),
        ]
    }

    fn found(footprints: &Footprints, place: Option<FootprintIndex>) -> Option<(u64, u64)> {
        let footprint = footprints.get(place?);
        Some((footprint.start, footprint.end))
    }

    proptest! {
        /// Compares with a list, among few footprints and many.
        #[test]
        fn footprints_are_found_by_their_blocks(steps in prop::collection::vec(step(), 0..160)) {
            let mut footprints = Footprints::default();
            let mut model: Vec<(u64, u64, u32)> = Vec::new();
            for step in steps {
                match step {
                    Step::Insert(start, blocks) => {
                        let end = start + blocks;
                        let extent = Extent::new(Lba(start), Sectors(blocks)).expect("blocks");
                        let overlaps = model.iter().any(|other| other.0 < end && start < other.1);
                        prop_assert!(!(overlaps && footprints.is_apart(extent)));
                        if model.len() < SLOTS && footprints.rows.is_empty() {
                            prop_assert_eq!(footprints.is_apart(extent), !overlaps);
                        }
                        if !overlaps {
                            let hint = footprints.insert(Footprint { start, end, count: 1, ..Footprint::EMPTY });
                            model.push((start, end, hint));
                        }
                    }
                    Step::Remove(at) if !model.is_empty() => {
                        let (start, end, hint) = model.swap_remove(at % model.len());
                        let place = footprints.at_hint(hint, start).or_else(|| footprints.last_before(start + 1));
                        prop_assert_eq!(found(&footprints, place), Some((start, end)));
                        footprints.remove(place.expect("it is there"));
                    }
                    Step::Remove(_) => (),
                    Step::Empty => {
                        for (start, ..) in model.drain(..) {
                            let place = footprints.last_before(start + 1).expect("it is there");
                            footprints.remove(place);
                        }
                        prop_assert!(footprints.rows.is_empty(), "slots are used again");
                    }
                }
                for block in (0..920).step_by(7) {
                    let before = model.iter().filter(|other| other.0 < block);
                    let last = before.max_by_key(|other| other.0).map(|other| (other.0, other.1));
                    prop_assert_eq!(found(&footprints, footprints.last_before(block)), last);
                }
            }
        }
    }
}
