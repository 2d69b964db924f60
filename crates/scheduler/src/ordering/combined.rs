//! Combined requests: pieces whose footprints overlap, in the order of arrival.
//!
//! ```text
//!   blocks      0 . . . . . . . . . . . . . . . . . . . . . . . . .
//!   combined    [======= A, B, C =====]     [== D ==]     [=== E, F ===]
//!   members     [ A  ]        [  C    ]     [   D   ]     [  E  ]
//!                   [    B     ]                             [   F     ]
//! ```
//!
//! Footprints are disjoint: one lookup to the left in a sorted index finds every overlap of a new
//! piece. A piece alone in its footprint costs no more than that.
//!
//! Members wait for each other only if their blocks overlap and one of them is a write. Two members
//! that a third one joined stay independent. A footprint is divided again after as many ends as it
//! has members left.

use crate::policy::PieceId;
use block::Extent;

use super::piece::{List, NONE, Pieces, Thread};
use footprints::{Footprint, FootprintIndex, Footprints};

mod footprints;

/// All combined requests, by their first block.
#[derive(Clone, Debug, Default)]
pub(super) struct Combined {
    footprints: Footprints,
    /// The members of a footprint that is being divided.
    apart: Vec<PieceId>,
}

impl Combined {
    /// Adds the newest piece, and returns the number of its predecessors.
    pub(super) fn enter(&mut self, pieces: &mut Pieces, piece: PieceId) -> u32 {
        let extent = pieces.get(piece).pending.extent;
        if self.footprints.is_apart(extent) {
            let alone = Footprint {
                start: extent.start().0,
                end: extent.end().0,
                members: List {
                    oldest: piece,
                    newest: piece,
                },
                count: 1,
                ended: 0,
            };
            pieces.get_mut(piece).footprint = self.footprints.insert(alone);
            return 0;
        }
        let mut joined = Footprint {
            start: extent.start().0,
            end: extent.end().0,
            members: List::EMPTY,
            count: 0,
            ended: 0,
        };
        let mut place = self.footprints.last_before(extent.end().0);
        while let Some(overlapping) = place
            && self.footprints.get(overlapping).end > extent.start().0
        {
            let left = self.footprints.remove(overlapping);
            joined.start = joined.start.min(left.start);
            joined.end = joined.end.max(left.end);
            joined.count += left.count;
            joined.ended += left.ended;
            joined.members = merge(pieces, joined.members, left.members);
            place = self.footprints.last_before(extent.end().0);
        }
        pieces.push(&mut joined.members, Thread::Combined, piece);
        joined.count += 1;
        pieces.get_mut(piece).footprint = self.footprints.insert(joined);
        earlier(pieces, piece)
    }

    /// Removes a piece that has ended or was withdrawn; `released` gains the pieces that waited for
    /// it last.
    pub(super) fn leave(
        &mut self,
        pieces: &mut Pieces,
        piece: PieceId,
        released: &mut Vec<PieceId>,
    ) {
        let left = pieces.get(piece);
        let hint = (left.footprint, left.pending.extent.start().0);
        let place = match self.footprints.at_hint(hint.0, hint.1) {
            Some(place) => place,
            None => self.place_of(left.pending.extent),
        };
        let footprint = self.footprints.get_mut(place);
        if footprint.count == 1 {
            self.footprints.remove(place);
            return;
        }
        let left = *pieces.get(piece);
        pieces.unlink(&mut footprint.members, Thread::Combined, piece);
        footprint.count -= 1;
        footprint.ended += 1;
        let mut later = left.newer(Thread::Combined);
        while later != NONE {
            let entry = pieces.get_mut(later);
            if entry.conflicts_with(&left) {
                entry.conflicts -= 1;
                if entry.conflicts == 0 {
                    released.push(later);
                }
            }
            later = entry.newer(Thread::Combined);
        }
        if footprint.ended >= footprint.count {
            let members = footprint.members;
            self.footprints.remove(place);
            self.take_apart(pieces, members);
        }
    }

    /// Adds the parts `new` that were cut off `piece`, whose extent was `whole`. The conflicts of
    /// all parts, and of the pieces behind them, are counted again.
    pub(super) fn divide(
        &mut self,
        pieces: &mut Pieces,
        piece: PieceId,
        whole: Extent,
        new: [Option<PieceId>; 2],
    ) {
        let place = self.place_of(whole);
        let footprint = self.footprints.get_mut(place);
        let mut before = *pieces.get(piece);
        before.pending.extent = whole;
        let mut last = piece;
        for part in new.into_iter().flatten() {
            pieces.insert(&mut footprint.members, Thread::Combined, part, last);
            footprint.count += 1;
            last = part;
        }
        let mut later = pieces.get(last).newer(Thread::Combined);
        while later != NONE {
            let entry = *pieces.get(later);
            if entry.conflicts_with(&before) {
                let parts = [Some(piece), new[0], new[1]].into_iter().flatten();
                let with = parts.filter(|&part| entry.conflicts_with(pieces.get(part)));
                let with = with.count() as u32;
                pieces.get_mut(later).conflicts += with;
                pieces.get_mut(later).conflicts -= 1;
            }
            later = entry.newer(Thread::Combined);
        }
        for part in [Some(piece), new[0], new[1]].into_iter().flatten() {
            pieces.get_mut(part).conflicts = earlier(pieces, part);
        }
    }

    /// Appends to `found` the pieces of a request that overlap `extent`, oldest first.
    pub(super) fn pieces_of(
        &self,
        pieces: &Pieces,
        request_slot: u32,
        extent: Extent,
        found: &mut Vec<PieceId>,
    ) {
        let mut end = extent.end().0;
        while let Some(place) = self.footprints.last_before(end)
            && self.footprints.get(place).end > extent.start().0
        {
            let footprint = self.footprints.get(place);
            let mut member = footprint.members.oldest;
            while member != NONE {
                let entry = pieces.get(member);
                if entry.request_slot == request_slot && entry.pending.extent.overlaps(extent) {
                    found.push(member);
                }
                member = entry.newer(Thread::Combined);
            }
            end = footprint.start;
        }
    }

    /// The footprint of an unended piece with these blocks.
    fn place_of(&self, extent: Extent) -> FootprintIndex {
        self.footprints
            .last_before(extent.start().0 + 1)
            .expect("a piece that has not ended is in a footprint")
    }

    /// Divides the members into footprints wherever they no longer overlap.
    fn take_apart(&mut self, pieces: &mut Pieces, members: List) {
        let mut apart = std::mem::take(&mut self.apart);
        let mut member = members.oldest;
        while member != NONE {
            apart.push(member);
            member = pieces.get(member).newer(Thread::Combined);
        }
        apart.sort_unstable_by_key(|&member| pieces.get(member).pending.extent);
        let mut rest = apart.as_mut_slice();
        while let Some(&first) = rest.first() {
            let extent = pieces.get(first).pending.extent;
            let mut end = extent.end().0;
            let mut touching = 1;
            while let Some(&next) = rest.get(touching)
                && pieces.get(next).pending.extent.start().0 < end
            {
                end = end.max(pieces.get(next).pending.extent.end().0);
                touching += 1;
            }
            let (together, others) = rest.split_at_mut(touching);
            together.sort_unstable_by_key(|&member| key(pieces, member));
            let mut footprint = Footprint {
                start: extent.start().0,
                end,
                members: List::EMPTY,
                count: touching as u32,
                ended: 0,
            };
            for &member in &*together {
                pieces.push(&mut footprint.members, Thread::Combined, member);
            }
            self.footprints.insert(footprint);
            rest = others;
        }
        apart.clear();
        self.apart = apart;
    }
}

/// The order of arrival.
fn key(pieces: &Pieces, piece: PieceId) -> (u64, PieceId) {
    (pieces.get(piece).pending.order, piece)
}

/// The number of earlier members that conflict with a piece.
fn earlier(pieces: &Pieces, piece: PieceId) -> u32 {
    let entry = pieces.get(piece);
    let mut conflicts = 0;
    let mut member = entry.older(Thread::Combined);
    while member != NONE {
        let other = pieces.get(member);
        conflicts += u32::from(other.conflicts_with(entry));
        member = other.older(Thread::Combined);
    }
    conflicts
}

/// Merges two lists in the order of arrival.
fn merge(pieces: &mut Pieces, mut a: List, mut b: List) -> List {
    let mut merged = List::EMPTY;
    loop {
        let list = match (a.oldest, b.oldest) {
            (NONE, NONE) => return merged,
            (NONE, _) => &mut b,
            (_, NONE) => &mut a,
            (x, y) if key(pieces, x) < key(pieces, y) => &mut a,
            _ => &mut b,
        };
        let next = list.oldest;
        pieces.unlink(list, Thread::Combined, next);
        pieces.push(&mut merged, Thread::Combined, next);
    }
}
