//! Combined requests: pieces whose footprints touch the same blocks, in the order of arrival.
//!
//! ```text
//!   blocks      0 . . . . . . . . . . . . . . . . . . . . . . . . .
//!   combined    [======= A, B, C =====]     [== D ==]     [=== E, F ===]
//!   members     [ A  ]        [  C    ]     [   D   ]     [  E  ]
//!                   [    B     ]                             [   F     ]
//! ```
//!
//! Footprints are disjoint, so that a sorted index finds by one look to the left whether a new piece
//! overlaps anything. A piece alone in its footprint costs no more than that.
//! Among the members only those wait for each other that really have blocks in common, one of them
//! being a write: two that a third one joined stay free of each other. A footprint is taken apart
//! again after as many ends as it has members left.

use crate::policy::PieceId;
use block::Extent;

use super::piece::{List, NONE, Pieces, Thread};
use footprints::{Footprint, FootprintIndex, Footprints};

mod footprints;

/// All combined requests, by their first block.
#[derive(Clone, Debug, Default)]
pub(super) struct Combined {
    footprints: Footprints,
    /// The members of one that is taken apart.
    apart: Vec<PieceId>,
}

impl Combined {
    /// Takes the newest piece in; the answer is how many earlier ones it has to wait for.
    pub(super) fn enter(&mut self, pieces: &mut Pieces, piece: PieceId) -> u32 {
        let extent = pieces.get(piece).pending.extent;
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
        self.footprints.insert_after(place, joined);
        earlier(pieces, piece)
    }

    /// A piece has ended or is taken back; `released` gains those that waited for it last.
    pub(super) fn leave(
        &mut self,
        pieces: &mut Pieces,
        piece: PieceId,
        released: &mut Vec<PieceId>,
    ) {
        let place = self.place_of(pieces.get(piece).pending.extent);
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

    /// `new` are parts that were cut off `piece`, whose extent was `whole` before: all are counted
    /// anew, and so are those that wait for them.
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

    /// The pieces of `owner` that have a block of `extent`, oldest first, into `found`.
    pub(super) fn pieces_of(
        &self,
        pieces: &Pieces,
        owner: u32,
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
                if entry.owner == owner && entry.pending.extent.overlaps(extent) {
                    found.push(member);
                }
                member = entry.newer(Thread::Combined);
            }
            end = footprint.start;
        }
    }

    /// Where the footprint is that has these blocks of a piece that has not ended.
    fn place_of(&self, extent: Extent) -> FootprintIndex {
        self.footprints
            .last_before(extent.start().0 + 1)
            .expect("a piece that has not ended is in a footprint")
    }

    /// The members form footprints of their own wherever they no longer touch.
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

/// How many earlier members a piece has to wait for.
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

/// One list of two, in the order of arrival.
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
