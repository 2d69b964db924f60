//! Raising a waiting piece. The piece is divided, so that only the wanted blocks and their
//! predecessors are raised. (ABISS raises all of a merged request and calls that a flaw.)
//!
//! ```text
//!   piece at level 4       [=========================]
//!   wanted at level 0              [=====]
//!   afterwards             [== 4 ==][= 0 =][=== 4 ===]
//! ```

use crate::policy::PieceId;
use block::{Direction, Extent, Instant, Lba, Sectors};
use drive::SeekTarget;

use super::level::PriorityLevel;
use super::piece::{NONE, PieceState, QueuePart, Thread};
use super::{DIVISION_BITS, Ordering};

impl Ordering {
    /// Divides a waiting piece, which keeps only the blocks of `wanted`. Returns the pieces before
    /// and after them. Nothing is divided if that would exceed the largest number of pieces.
    /// `target` locates the first block of a piece on the medium.
    ///
    /// # Panics
    /// If the piece does not wait, or does not overlap `wanted`.
    pub fn divide(
        &mut self,
        now: Instant,
        piece: PieceId,
        wanted: Extent,
        target: &mut dyn FnMut(PieceId, Direction, Extent) -> SeekTarget,
    ) -> [Option<PieceId>; 2] {
        assert_eq!(
            self.pieces.stage(piece),
            PieceState::Waiting,
            "only what waits is divided"
        );
        let whole = self.pieces.get(piece).pending.extent;
        let wanted = whole.intersection(wanted);
        let wanted = wanted.expect("the wanted blocks are among those of the piece");
        let around = [
            between(whole.start().0, wanted.start().0),
            between(wanted.end().0, whole.end().0),
        ];
        let new = around.iter().flatten().count();
        if new == 0 || self.pieces.held() + new > self.rules.pieces {
            return [None; 2];
        }
        let part = self.pieces.get(piece).part;
        if part != QueuePart::Out {
            self.withdraw_from_queue(piece);
        }
        let entry = &mut self.pieces.get_mut(piece).pending;
        entry.extent = wanted;
        entry.target = target(piece, entry.direction, wanted);
        let cut = around.map(|extent| extent.map(|extent| self.cut_off(piece, extent, target)));
        self.combined.divide(&mut self.pieces, piece, whole, cut);
        for waiting in [Some(piece), cut[0], cut[1]].into_iter().flatten() {
            if self.is_eligible(waiting) {
                match part {
                    // Only the blocks of other parts held it back.
                    QueuePart::Out => self.release(now, waiting, QueuePart::Bound),
                    _ => self.queue_up(waiting, part),
                }
            }
        }
        cut
    }

    /// Raises a waiting piece and all its predecessors to `level` at least.
    pub fn raise(&mut self, now: Instant, piece: PieceId, level: PriorityLevel) {
        let entry = self.pieces.get_mut(piece);
        if !entry.is_patient && level != PriorityLevel::BACKGROUND {
            entry.is_patient = true;
            entry.since = now;
            if entry.stage == PieceState::Waiting {
                self.pieces.push(&mut self.ages, Thread::Age, piece);
            }
        }
        if self.pieces.get(piece).level > level {
            self.set_level(piece, level);
            self.raise_predecessors(piece);
        }
    }

    /// Raises all predecessors of a piece to its level. A predecessor that is urgent enough has
    /// only predecessors that are, too.
    pub(super) fn raise_predecessors(&mut self, piece: PieceId) {
        let level = self.pieces.get(piece).level;
        let mut raising = std::mem::take(&mut self.raising);
        raising.push(piece);
        while let Some(piece) = raising.pop() {
            let entry = *self.pieces.get(piece);
            let mut member = entry.older(Thread::Combined);
            while member != NONE {
                let other = self.pieces.get(member);
                let next = other.older(Thread::Combined);
                if other.level > level && other.conflicts_with(&entry) {
                    self.set_level(member, level);
                    raising.push(member);
                }
                member = next;
            }
            if !entry.is_write() {
                continue;
            }
            let mut epoch = entry.epoch;
            while let Some(waiting) = self.barriers.raise_before(epoch, level) {
                let mut write = waiting.oldest;
                while write != NONE {
                    if self.pieces.get(write).level > level {
                        self.set_level(write, level);
                        raising.push(write);
                    }
                    write = self.pieces.get(write).newer(Thread::Epoch);
                }
                epoch -= 1;
            }
        }
        self.raising = raising;
    }

    fn set_level(&mut self, piece: PieceId, level: PriorityLevel) {
        let part = self.pieces.get(piece).part;
        if part == QueuePart::Out {
            self.pieces.get_mut(piece).level = level;
        } else {
            self.withdraw_from_queue(piece);
            self.pieces.get_mut(piece).level = level;
            self.queue_up(piece, part);
        }
    }

    /// Adds a part of a divided piece, except to the combined requests.
    fn cut_off(
        &mut self,
        piece: PieceId,
        extent: Extent,
        target: &mut dyn FnMut(PieceId, Direction, Extent) -> SeekTarget,
    ) -> PieceId {
        let from = *self.pieces.get(piece);
        let number = 1 + self.divided % ((1 << DIVISION_BITS) - 1);
        self.divided += 1;
        let mut pending = from.pending;
        pending.order = (pending.order >> DIVISION_BITS << DIVISION_BITS) | number;
        pending.extent = extent;
        let cut = self.pieces.enter(|| from.anew(pending));
        self.pieces.get_mut(cut).pending.target = target(cut, pending.direction, extent);
        self.waiting += 1;
        if from.is_write() {
            self.barriers.enter_at(&mut self.pieces, cut, from.epoch);
        }
        if from.is_patient {
            self.pieces.insert(&mut self.ages, Thread::Age, cut, piece);
        }
        cut
    }
}

/// The blocks from `start` to before `end`, if there are any.
fn between(start: u64, end: u64) -> Option<Extent> {
    Extent::new(Lba(start), Sectors(end.checked_sub(start)?)).ok()
}
