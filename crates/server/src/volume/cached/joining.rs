//! Demanded blocks in a background read in flight: their pieces wait for that read.
//!
//! ```text
//!   background read at the drive      | 8  9  10  11 |
//!   fetch                                    | 10  11  12  13 |
//!   pieces                                   | joins  || asks |
//! ```
//!
//! A command at the drive ends before any command that is submitted now. A joined piece is like any other,
//! except that the engine has no request of it. The level does not know the difference. The piece gets the
//! bytes of the read. If the read fails, or its blocks change, the piece is submitted: background reads are
//! not ordered with changes. It waits no longer than the command is at the drive.

use block::Interval;
use block::{Class, Instant};

use super::wishing::Read;
use super::{Cached, Passing, common, overlap};
use crate::arena::Memory;

/// A piece that waits for a background read, which has all its blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joined {
    /// The index of the piece.
    pub(super) place: usize,
    pub(super) read: Read,
    /// The queue of the piece if the read fails.
    pub(super) queue: usize,
}

impl Cached {
    /// Divides the blocks of a fetch. Its begin and its end may join background reads, and its middle is
    /// submitted. A background read in the middle is repeated, since it would divide the middle into two
    /// commands.
    pub(super) fn divide(&self, blocks: Interval) -> [(Interval, Option<Read>); 3] {
        let at = |block: u64| {
            let mut passing = self.passing.iter();
            passing.find(|passing| passing.blocks.contains(block))
        };
        let (mut first, mut middle, mut last) = (Interval::EMPTY, blocks, Interval::EMPTY);
        let head = at(blocks.first);
        if let Some(passing) = head {
            first = common(blocks, passing.blocks);
            middle = Interval::new(first.last + 1, blocks.last);
        }
        let tail = at(blocks.last).filter(|_| !middle.is_empty());
        if let Some(passing) = tail {
            last = common(middle, passing.blocks);
            middle = Interval::new(middle.first, last.first - 1);
        }
        let read = |passing: Option<&Passing>| passing.map(|passing| passing.read);
        [(first, read(head)), (middle, None), (last, read(tail))]
    }

    /// A background read has ended, with these bytes or with none.
    pub(super) fn leave_read(&mut self, now: Instant, read: Read, memory: Option<Memory>) {
        let is_of_it = |joined: &Joined| joined.read == read;
        while let Some(number) = self.joined.iter().position(is_of_it) {
            let joined = self.joined.remove(number);
            let Some(memory) = memory else {
                self.waiting[joined.queue].push_back(joined.place);
                continue;
            };
            let piece = self.pieces.remove(joined.place);
            let part = self.part_of(read, memory, piece.blocks);
            self.joined_blocks += piece.blocks.len();
            self.piece_fetched(now, &piece, part, Ok(()));
        }
        self.take_answers();
    }

    /// These blocks change. Pieces that wait for a read of them are submitted, because the engine knows the
    /// order.
    pub(super) fn leave_overtaken(&mut self, blocks: Interval) {
        let (pieces, waiting) = (&self.pieces, &mut self.waiting);
        self.joined.retain(|joined| {
            let is_overtaken = overlap(pieces[joined.place].blocks, blocks);
            if is_overtaken {
                waiting[joined.queue].push_back(joined.place);
            }
            !is_overtaken
        });
    }

    /// Raises the urgency of joined pieces, in case their reads fail.
    pub(super) fn hasten_joined(&mut self, blocks: Interval, class: Class) {
        for joined in &mut self.joined {
            let piece = &mut self.pieces[joined.place];
            if overlap(piece.blocks, blocks) {
                piece.class = piece.class.min(class);
                joined.queue = 0;
            }
        }
    }
}
