//! The order in which bytes of the same blocks move.
//!
//! ```text
//!   read of a b c   |=====|
//!   write of c d    .......|====|        common blocks: it waits
//!   trim of x       |==|                 no common blocks
//!   read of c       ............|==|
//! ```
//!
//! A drive reads and writes whole sectors, whatever else is in its queue. A file system promises no such thing of
//! an image: a read beside a write may find a part of a sector that is old, and a part that is new.

use block::{Direction, Extent};

/// What moves bytes, or waits to, in the order of its arrival.
#[derive(Default)]
pub(super) struct Turns {
    all: Vec<Turn>,
    numbers: u64,
}

#[derive(Clone, Copy)]
struct Turn {
    number: u64,
    blocks: Extent,
    direction: Direction,
}

impl Turns {
    /// Something that reads or changes blocks has arrived: its number.
    pub(super) fn arrive(&mut self, blocks: Extent, direction: Direction) -> u64 {
        self.numbers += 1;
        self.all.push(Turn {
            number: self.numbers,
            blocks,
            direction,
        });
        self.numbers
    }

    /// Whether its bytes may move: nothing that came before has common blocks, unless both read them.
    pub(super) fn may_move(&self, number: u64) -> bool {
        let place = self.all.partition_point(|turn| turn.number < number);
        let (earlier, Some(turn)) = (&self.all[..place], self.all.get(place)) else {
            return true;
        };
        let both_read = |other: &Turn| [turn.direction, other.direction] == [Direction::Read; 2];
        let mut earlier = earlier.iter();
        !earlier.any(|other| other.blocks.overlaps(turn.blocks) && !both_read(other))
    }

    /// Its bytes have moved.
    pub(super) fn end(&mut self, number: u64) {
        self.all.retain(|turn| turn.number != number);
    }
}

#[cfg(test)]
mod tests {
    use block::{Lba, Sectors};
    use proptest::prelude::*;

    use super::*;

    fn blocks(first: u64, count: u64) -> Extent {
        Extent::new(Lba(first), Sectors(count)).expect("blocks")
    }

    #[test]
    fn what_comes_later_waits_for_common_blocks_unless_both_read() {
        let mut turns = Turns::default();
        let read = turns.arrive(blocks(0, 8), Direction::Read);
        let write = turns.arrive(blocks(4, 8), Direction::Write);
        let beside = turns.arrive(blocks(2, 2), Direction::Read);
        let after = turns.arrive(blocks(10, 1), Direction::Read);
        let may_move =
            |turns: &Turns| [read, write, beside, after].map(|turn| turns.may_move(turn));
        assert_eq!(may_move(&turns), [true, false, true, false]);
        turns.end(read);
        assert_eq!(may_move(&turns)[1..], [true, true, false]);
        turns.end(write);
        assert!(turns.may_move(after));
    }

    proptest! {
        /// Of two with a common block that one of them changes, the later one moves after the earlier one has ended;
        /// and whatever comes, the first that is left may move.
        #[test]
        fn none_overtakes_and_none_waits_for_ever(
            all in prop::collection::vec((0u64..8, 1u64..4, any::<bool>(), any::<prop::sample::Index>()), 1..30),
        ) {
            let mut turns = Turns::default();
            let mut left: Vec<(u64, Extent, Direction)> = Vec::new();
            for (first, count, reads, ends) in all {
                let direction = if reads { Direction::Read } else { Direction::Write };
                let extent = blocks(first, count);
                left.push((turns.arrive(extent, direction), extent, direction));
                for (place, (number, extent, direction)) in left.iter().enumerate() {
                    let conflicts = left[..place].iter().any(|(_, other, theirs)| {
                        let common = other.start() < extent.end() && extent.start() < other.end();
                        common && !(*theirs == Direction::Read && *direction == Direction::Read)
                    });
                    prop_assert_eq!(turns.may_move(*number), !conflicts);
                }
                prop_assert!(turns.may_move(left[0].0));
                let ready: Vec<u64> = left
                    .iter()
                    .map(|turn| turn.0)
                    .filter(|number| turns.may_move(*number))
                    .collect();
                if reads {
                    let number = ready[ends.index(ready.len())];
                    turns.end(number);
                    left.retain(|turn| turn.0 != number);
                }
            }
        }
    }
}
