//! Background reads at the drive that have wanted blocks, and the pieces of fetches that wait for them.
//!
//! ```text
//!   a read at the drive     | 8  9  10  11 |
//!   a write of half of 10          ==           submitted meanwhile
//!   unchanged blocks        | 8  9 |  | 11 |
//! ```
//!
//! Background reads are not ordered with changes of the volume. A read loses the blocks that a change
//! overlaps while the read is at the drive. Its other blocks are what the volume has and will have.
//!
//! A demand for unchanged blocks joins the read:
//!
//! ```text
//!   background read at the drive      | 8  9  10  11 |
//!   fetch                                    | 10  11  12  13 |
//!   pieces                                   | joins  || asks |
//! ```
//!
//! A command at the drive ends before any command that is submitted now. A joined piece is like any other,
//! except that the engine has no request of it. If the read fails, or the blocks of the piece change, the
//! piece is submitted. It waits no longer than the command is at the drive.

use block::Interval;
use cache::coordinator::Purpose;

use super::volume::{BackgroundReadId, BackgroundReadKind};

/// Background reads in flight, and the pieces that wait for them.
#[derive(Default)]
pub(super) struct BackgroundReads {
    /// Several entries of one read have different blocks.
    in_flight: Vec<UnchangedBlocks>,
    joined: Vec<JoinedPiece>,
    /// Blocks of pieces that a read has served.
    served: u64,
}

/// Blocks of a background read at the drive that no change has overlapped.
#[derive(Clone, Copy, Debug)]
struct UnchangedBlocks {
    read: BackgroundReadId,
    kind: BackgroundReadKind,
    blocks: Interval,
}

/// A piece that waits for a background read, which has all its blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct JoinedPiece {
    /// The index of the piece.
    pub(super) piece: usize,
    pub(super) read: BackgroundReadId,
    pub(super) blocks: Interval,
    /// The urgency of the piece if the read fails.
    pub(super) purpose: Purpose,
}

impl BackgroundReads {
    /// A read of these blocks is dispatched while these writes are in flight.
    pub(super) fn dispatched(
        &mut self,
        (read, kind): (BackgroundReadId, BackgroundReadKind),
        blocks: Interval,
        changes: impl Iterator<Item = Interval>,
    ) {
        self.in_flight.push(UnchangedBlocks { read, kind, blocks });
        changes.for_each(|changed| self.discard(changed));
    }

    /// The next unchanged blocks of a read that has ended, if there are any.
    pub(super) fn take_unchanged(
        &mut self,
        read: BackgroundReadId,
    ) -> Option<(Interval, BackgroundReadKind)> {
        let place = self.in_flight.iter().position(|other| other.read == read)?;
        let unchanged = self.in_flight.remove(place);
        Some((unchanged.blocks, unchanged.kind))
    }

    /// Divides the blocks of a fetch. Its begin and its end may join background reads, and its middle is
    /// submitted. A background read in the middle is repeated, since it would divide the middle into two
    /// commands.
    pub(super) fn divide(&self, blocks: Interval) -> [(Interval, Option<BackgroundReadId>); 3] {
        let at = |block: u64| {
            self.in_flight
                .iter()
                .find(|read| read.blocks.contains(block))
        };
        let (mut first, mut middle, mut last) = (Interval::EMPTY, blocks, Interval::EMPTY);
        let head = at(blocks.first);
        if let Some(read) = head {
            first = blocks.intersection(read.blocks);
            middle = Interval::new(first.last + 1, blocks.last);
        }
        let tail = at(blocks.last).filter(|_| !middle.is_empty());
        if let Some(read) = tail {
            last = middle.intersection(read.blocks);
            middle = Interval::new(middle.first, last.first - 1);
        }
        let id = |unchanged: Option<&UnchangedBlocks>| unchanged.map(|unchanged| unchanged.read);
        [(first, id(head)), (middle, None), (last, id(tail))]
    }

    /// Makes a piece wait for a read.
    pub(super) fn join(&mut self, joined: JoinedPiece) {
        self.joined.push(joined);
    }

    /// The next piece that waits for a read that has ended.
    pub(super) fn take_joined(&mut self, read: BackgroundReadId) -> Option<JoinedPiece> {
        let place = self.joined.iter().position(|joined| joined.read == read)?;
        Some(self.joined.remove(place))
    }

    /// Counts the blocks of a piece that got the bytes of its read.
    pub(super) fn count_served(&mut self, blocks: u64) {
        self.served += blocks;
    }

    /// Blocks that needed no read of their own, because they had joined a background read.
    pub(super) fn served(&self) -> u64 {
        self.served
    }

    /// These blocks change: reads in flight lose them, and `submit` gets the pieces that wait for any of
    /// them, because the engine orders requests with changes.
    pub(super) fn change(&mut self, blocks: Interval, mut submit: impl FnMut(usize, Purpose)) {
        self.discard(blocks);
        self.joined.retain(|joined| {
            let is_unchanged = !joined.blocks.overlaps(blocks);
            if !is_unchanged {
                submit(joined.piece, joined.purpose);
            }
            is_unchanged
        });
    }

    /// Removes blocks from the reads in flight.
    fn discard(&mut self, blocks: Interval) {
        let in_flight = &mut self.in_flight;
        for place in (0..in_flight.len()).rev() {
            let one = in_flight[place];
            if !one.blocks.overlaps(blocks) {
                continue;
            }
            // What is swapped into this place was compared before, or is a remainder.
            in_flight.swap_remove(place);
            if one.blocks.first < blocks.first {
                let blocks = Interval::new(one.blocks.first, blocks.first - 1);
                in_flight.push(UnchangedBlocks { blocks, ..one });
            }
            if blocks.last < one.blocks.last {
                let blocks = Interval::new(blocks.last + 1, one.blocks.last);
                in_flight.push(UnchangedBlocks { blocks, ..one });
            }
        }
    }

    /// These blocks are demanded: `raise` gets each piece of them, in case its read fails.
    pub(super) fn hasten(&mut self, blocks: Interval, mut raise: impl FnMut(usize)) {
        for joined in &mut self.joined {
            if joined.blocks.overlaps(blocks) {
                joined.purpose = Purpose::Demand;
                raise(joined.piece);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn joined(&mut self) -> &mut [JoinedPiece] {
        &mut self.joined
    }

    #[cfg(test)]
    pub(super) fn are_none_in_flight(&self) -> bool {
        self.in_flight.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use block::CommandId;
    use proptest::prelude::*;

    use super::*;

    fn read(number: u64) -> BackgroundReadId {
        BackgroundReadId {
            command: CommandId(number),
            start: 0,
        }
    }

    fn interval() -> impl Strategy<Value = Interval> {
        (0..30u64, 1..12u64).prop_map(|(first, count)| Interval::of(first, count))
    }

    proptest! {
        /// Beside a set of blocks for each read.
        #[test]
        fn a_read_keeps_the_blocks_that_no_change_overlapped(
            reads in prop::collection::vec(interval(), 1..4),
            before in prop::collection::vec(interval(), 0..2),
            changes in prop::collection::vec(interval(), 0..5),
        ) {
            let mut background = BackgroundReads::default();
            for (number, &blocks) in reads.iter().enumerate() {
                let task = (read(number as u64), BackgroundReadKind::Task);
                background.dispatched(task, blocks, before.iter().copied());
            }
            for &blocks in &changes {
                background.change(blocks, |_, _| unreachable!("no piece has joined"));
            }
            for (number, blocks) in reads.iter().enumerate() {
                let is_changed = |block: &u64| {
                    before.iter().chain(&changes).any(|change| change.contains(*block))
                };
                let expected: BTreeSet<u64> =
                    blocks.blocks().filter(|block| !is_changed(block)).collect();
                let mut found = BTreeSet::new();
                while let Some((blocks, _)) = background.take_unchanged(read(number as u64)) {
                    prop_assert!(blocks.blocks().all(|block| found.insert(block)));
                }
                prop_assert_eq!(found, expected);
            }
            prop_assert!(background.are_none_in_flight());
        }

        /// The parts of a fetch are the fetch, in order; a part that joins a read has only its blocks.
        #[test]
        fn the_parts_of_a_fetch_are_all_of_it(
            reads in prop::collection::vec(interval(), 0..4),
            fetch in interval(),
        ) {
            let mut background = BackgroundReads::default();
            for (number, &blocks) in reads.iter().enumerate() {
                let task = (read(number as u64), BackgroundReadKind::Task);
                background.dispatched(task, blocks, std::iter::empty());
            }
            let parts = background.divide(fetch);
            let all = parts.iter().flat_map(|(blocks, _)| blocks.blocks());
            prop_assert!(all.eq(fetch.blocks()));
            for (blocks, joined) in parts {
                if let Some(BackgroundReadId { command, .. }) = joined {
                    let has = reads[command.0 as usize];
                    prop_assert!(blocks.blocks().all(|block| has.contains(block)));
                }
            }
        }
    }

    #[test]
    fn a_joined_piece_is_submitted_once_its_blocks_change() {
        let mut background = BackgroundReads::default();
        let task = (read(0), BackgroundReadKind::Task);
        background.dispatched(task, Interval::new(0, 9), std::iter::empty());
        for (piece, block) in [(5, 2), (6, 4)] {
            background.join(JoinedPiece {
                piece,
                read: read(0),
                blocks: Interval::new(block, block),
                purpose: Purpose::Prefetch,
            });
        }
        let mut raised = Vec::new();
        background.hasten(Interval::new(4, 4), |piece| raised.push(piece));
        assert_eq!(raised, [6]);
        let mut submitted = Vec::new();
        background.change(Interval::new(3, 4), |piece, purpose| {
            submitted.push((piece, purpose))
        });
        assert_eq!(submitted, [(6, Purpose::Demand)]);
        let left = background.take_joined(read(0)).map(|joined| joined.piece);
        assert_eq!(left, Some(5));
        assert!(background.take_joined(read(0)).is_none());
    }
}
