//! Demands for what is just being read in the background: they wait for that read.
//!
//! ```text
//!   background read at the drive      | 8  9  10  11 |
//!   fetch                                    | 10  11  12  13 |
//!   pieces                                   | joins  || asks |
//! ```
//!
//! A read that is at the drive is nearer than any command that could be asked for now. What joins it is a piece
//! as any other, for which the engine is not asked; the level knows of no difference. It gets the read's bytes,
//! or goes the way of all pieces: when the read fails, and at once when something changes its blocks, because
//! background reads are not ordered with changes. It cannot wait for longer than the command is at the drive.

use block::Interval;
use block::{Class, Instant};

use super::wishing::Read;
use super::{Cached, Passing, common, overlap};
use crate::arena::Memory;

/// A piece that waits for a background read, all of whose blocks that has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joined {
    /// The piece.
    pub(super) place: usize,
    pub(super) read: Read,
    /// Where it waits for the engine if nothing comes of that.
    pub(super) queue: usize,
}

impl Cached {
    /// Divides what is to be fetched: its beginning and its end may join reads, what is between them the engine
    /// is asked for. What is read of its middle is read twice: it would make two commands of one.
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

    /// A read has ended with these bytes, or without any.
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

    /// These blocks change: whoever waits for what is being read of them asks the engine, which knows the order.
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

    /// What has joined reads and is now wanted more urgently goes on as urgently if nothing comes of them.
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
