//! What waits, and what of it may be served: the mechanism that no policy can break (ABISS 3.6).
//!
//! ```text
//!   enter --> behind an overlapping one or a barrier?
//!               | no                      | yes, until these have ended
//!               v                         v
//!   level 0  [ given back | released | the policy's ]   real-time
//!         1  [            |          |              ]   best-effort 0
//!         :                                               :
//!         8  [            |          |              ]   background
//!               |
//!               '--> choose --> give --> (drive) --> end
//! ```
//!
//! - Two pieces with a block in common, one of them a write, are served in the order of arrival:
//!   what is read and written is what it would be first come, first served.
//! - A write that comes after a barrier begins when all writes before the barrier have ended.
//! - The most urgent level that has something to serve is served; in it what was given back, then
//!   what was released from behind another, then what its policy picks.
//! - What something urgent waits for is as urgent.
//! - Who has waited longer than the patience goes before levels and policies.
//!
//! A policy is told of a piece when it may be served. Its answers are checked.

use std::iter::once;

use block::{Direction, Duration, Extent, Instant};
use drive::SeekTarget;

mod barrier;
mod choice;
mod combined;
mod level;
mod phases;
mod piece;
mod queue;
mod raise;

pub use level::PriorityLevel;
pub use phases::Phases;
pub use piece::PieceState;

use crate::policy::{EligibleRequest, PieceId, Policy, Sight};
use barrier::Barriers;
use combined::Combined;
use phases::PhaseTurn;
use piece::{List, NONE, Pieces, QueuePart, RequestPiece, Thread, Transition};
use queue::LevelQueue;

/// What holds for the order, whatever the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderingRules {
    /// How reads and writes share the drive.
    pub phases: Phases,
    /// How long a request that is not in the background waits before it goes first.
    pub patience: Duration,
    /// How many pieces are held at most: at the bound a request is raised as a whole, not split.
    pub pieces: usize,
}

/// A request, or a part of it, on its way in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewPiece {
    /// Whose it is: the answer to [`Ordering::owner`].
    pub owner: u32,
    /// Which way the bytes go.
    pub direction: Direction,
    /// Which blocks.
    pub extent: Extent,
    /// How urgent.
    pub level: PriorityLevel,
    /// Where it begins on the medium, by belief.
    pub target: SeekTarget,
}

/// What is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextPiece {
    /// This piece. It is chosen: [`Ordering::give`] or [`Ordering::put_back`] must follow.
    Piece(PieceId),
    /// Nothing before something happens, or this moment has come.
    Nothing(Option<Instant>),
}

/// Whether the drive has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveActivity {
    /// It stands still: something has to be served, or waited for until a moment.
    Idle,
    /// It has commands.
    Busy,
}

/// How long a piece waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    /// From its arrival until it was given to the drive for the last time.
    pub all: Duration,
    /// The part of it before it could have been served: behind others and barriers.
    pub order: Duration,
}

/// Everything that waits or is at the drive, in its order.
pub struct Ordering {
    rules: OrderingRules,
    sight: Sight,
    pieces: Pieces,
    combined: Combined,
    barriers: Barriers,
    /// By area, then level.
    queues: Vec<LevelQueue>,
    /// By area, the levels whose queues are not empty, a bit each.
    ready: [u16; 2],
    /// The waiting that have patience, by the moment since which it counts.
    ages: List,
    turn: PhaseTurn,
    arrived: u64,
    divided: u64,
    waiting: usize,
    /// Real-time pieces in a row that went before one out of patience.
    passed: u32,
    overruled: u64,
    /// Those that the piece which leaves releases.
    released: Vec<PieceId>,
    /// Those whose predecessors are still to be raised.
    raising: Vec<PieceId>,
}

impl Ordering {
    /// Nothing waits; each level gets a policy of its own.
    pub fn new(policy: &dyn Fn() -> Box<dyn Policy>, rules: OrderingRules) -> Self {
        let first = policy();
        let sight = first.sight();
        let others = (1..rules.phases.areas() * PriorityLevel::COUNT).map(|_| policy());
        Ordering {
            rules,
            sight,
            pieces: Pieces::default(),
            combined: Combined::default(),
            barriers: Barriers::new(),
            queues: once(first).chain(others).map(LevelQueue::new).collect(),
            ready: [0; 2],
            ages: List::EMPTY,
            turn: PhaseTurn::FIRST,
            arrived: 0,
            divided: 0,
            waiting: 0,
            passed: 0,
            overruled: 0,
            released: Vec::new(),
            raising: Vec::new(),
        }
    }

    /// What the policy decides by.
    pub fn sight(&self) -> Sight {
        self.sight
    }

    /// Another policy sorts what waits, from now on. What was given back or released keeps its
    /// place.
    pub fn adopt(&mut self, policy: &dyn Fn() -> Box<dyn Policy>) {
        let first = policy();
        self.sight = first.sight();
        let others = (1..self.queues.len()).map(|_| policy());
        for (queue, policy) in self.queues.iter_mut().zip(once(first).chain(others)) {
            queue.adopt(policy);
        }
        for piece in self.pieces.sorted() {
            let (area, level) = self.place(piece);
            self.queues[area * PriorityLevel::COUNT + level].tell(&self.pieces, piece);
        }
    }

    /// Pieces that wait, and are not chosen.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// How often a policy answered what cannot be: a piece that it may not serve, a wait that was
    /// over, or nothing while the drive stood idle. The first that had arrived was served instead.
    pub fn overruled(&self) -> u64 {
        self.overruled
    }

    /// Where a piece stands.
    pub fn stage(&self, piece: PieceId) -> PieceState {
        self.pieces.stage(piece)
    }

    /// Whose a piece is.
    pub fn owner(&self, piece: PieceId) -> u32 {
        self.pieces.get(piece).owner
    }

    /// Which way the bytes of a piece go, and which blocks they are.
    pub fn blocks(&self, piece: PieceId) -> (Direction, Extent) {
        let pending = &self.pieces.get(piece).pending;
        (pending.direction, pending.extent)
    }

    /// How urgent a piece is: as its class, or as the most urgent that waits for it.
    pub fn level(&self, piece: PieceId) -> PriorityLevel {
        self.pieces.get(piece).level
    }

    /// When a piece entered.
    pub fn entered(&self, piece: PieceId) -> Instant {
        self.pieces.get(piece).entered
    }

    /// When a piece was given to the drive last.
    pub fn given(&self, piece: PieceId) -> Instant {
        self.pieces.get(piece).given
    }

    /// How long a piece waited that was given to the drive, or is about to leave unserved.
    pub fn waited(&self, piece: PieceId) -> Waited {
        let piece = self.pieces.get(piece);
        Waited {
            all: piece.given.since(piece.entered),
            order: piece.ordered,
        }
    }

    /// How often a piece was requeued.
    pub fn requeued(&self, piece: PieceId) -> u8 {
        self.pieces.get(piece).requeued
    }

    /// Whether a real-time piece may be served that a chosen one, which is not, keeps waiting.
    pub fn overtakes(&self, chosen: PieceId) -> bool {
        let bit = 1 << PriorityLevel::REAL_TIME.index();
        let level = self.pieces.get(chosen).level;
        level != PriorityLevel::REAL_TIME && (self.ready[0] | self.ready[1]) & bit != 0
    }

    /// Whether something may be served that is more urgent than a piece.
    pub fn is_outranked(&self, piece: PieceId) -> bool {
        let more_urgent = (1 << self.pieces.get(piece).level.index()) - 1;
        (self.ready[0] | self.ready[1]) & more_urgent != 0
    }

    /// Whether a piece has waited longer than the patience.
    pub fn is_out_of_patience(&self, now: Instant, piece: PieceId) -> bool {
        let entry = self.pieces.get(piece);
        entry.is_patient && entry.since + self.rules.patience <= now
    }

    /// Takes a piece in; it waits. The answer names it until it has left.
    pub fn enter(&mut self, now: Instant, new_piece: NewPiece) -> PieceId {
        let pending = EligibleRequest {
            ticket: NONE,
            order: self.arrived << DIVISION_BITS,
            submitted: now,
            direction: new_piece.direction,
            extent: new_piece.extent,
            target: new_piece.target,
        };
        self.arrived += 1;
        let entry = RequestPiece::new(pending, new_piece.owner, new_piece.level, now);
        let piece = self.pieces.enter(entry);
        self.waiting += 1;
        let conflicts = self.combined.enter(&mut self.pieces, piece);
        self.pieces.get_mut(piece).conflicts = conflicts;
        if new_piece.direction == Direction::Write {
            let epoch = self.barriers.enter(&mut self.pieces, piece);
            self.pieces.get_mut(piece).epoch = epoch;
        }
        if new_piece.level != PriorityLevel::BACKGROUND {
            self.pieces.get_mut(piece).is_patient = true;
            self.pieces.push(&mut self.ages, Thread::Age, piece);
        }
        if self.may_be_served(piece) {
            self.queue_up(piece, QueuePart::Sorted);
        } else {
            self.raise_predecessors(piece);
        }
        piece
    }

    /// Writes that enter from now on begin when all that entered before have ended.
    pub fn barrier(&mut self) {
        self.barriers.place();
    }

    /// A chosen piece is given to the drive.
    pub fn give(&mut self, now: Instant, piece: PieceId) {
        self.pieces.step(piece, Transition::Give);
        self.pieces.get_mut(piece).given = now;
    }

    /// A chosen piece is not given to the drive: it waits again, before what its level's policy
    /// has.
    pub fn put_back(&mut self, piece: PieceId) {
        self.pieces.step(piece, Transition::PutBack);
        self.wait_again(piece, QueuePart::Requeued);
    }

    /// A chosen piece is not given to the drive: it waits again, among what its level's policy has.
    pub fn unchoose(&mut self, piece: PieceId) {
        self.pieces.step(piece, Transition::PutBack);
        self.wait_again(piece, QueuePart::Sorted);
    }

    /// A piece at the drive was given back undone: it waits again, before what its level's policy
    /// has.
    pub fn requeue(&mut self, piece: PieceId) {
        self.pieces.step(piece, Transition::Requeue);
        self.pieces.get_mut(piece).requeued += 1;
        self.wait_again(piece, QueuePart::Requeued);
    }

    /// A piece of which a part was served steps aside: it waits again, before what its level's policy
    /// has.
    pub fn step_aside(&mut self, piece: PieceId) {
        self.pieces.step(piece, Transition::Requeue);
        self.wait_again(piece, QueuePart::Requeued);
    }

    /// A piece at the drive has ended.
    pub fn end(&mut self, now: Instant, piece: PieceId) {
        self.leave(now, piece, Transition::End);
    }

    /// A waiting piece is taken back, and will not be served.
    pub fn withdraw(&mut self, now: Instant, piece: PieceId) {
        self.pieces.get_mut(piece).given = now;
        if self.pieces.get(piece).part != QueuePart::Out {
            self.withdraw_from_queue(piece);
        }
        self.no_longer_waits(piece);
        self.leave(now, piece, Transition::Withdraw);
    }

    /// The pieces of `owner` that have a block of `extent`, into `found`.
    pub fn pieces_of(&self, owner: u32, extent: Extent, found: &mut Vec<PieceId>) {
        self.combined.pieces_of(&self.pieces, owner, extent, found);
    }

    /// A piece is gone, and what waited for it alone may be served.
    fn leave(&mut self, now: Instant, piece: PieceId, step: Transition) {
        self.pieces.step(piece, step);
        let mut released = std::mem::take(&mut self.released);
        self.combined.leave(&mut self.pieces, piece, &mut released);
        for &later in &released {
            if self.may_be_served(later) {
                self.release(now, later, QueuePart::Bound);
            }
        }
        released.clear();
        self.released = released;
        let entry = self.pieces.get(piece);
        let epoch = entry.epoch;
        if entry.is_write()
            && let Some(waiting) = self.barriers.ended(epoch)
        {
            let mut write = waiting.oldest;
            while write != NONE {
                // None of them is in a queue: until now the barrier was before all of them.
                if self.may_be_served(write) {
                    self.release(now, write, QueuePart::Sorted);
                }
                write = self.pieces.get(write).newer(Thread::Epoch);
            }
        }
    }

    fn release(&mut self, now: Instant, piece: PieceId, part: QueuePart) {
        let entry = self.pieces.get_mut(piece);
        entry.ordered = now.since(entry.entered);
        self.queue_up(piece, part);
    }

    /// Whether nothing is left that a piece has to wait for.
    fn may_be_served(&self, piece: PieceId) -> bool {
        let entry = self.pieces.get(piece);
        entry.conflicts == 0 && !(entry.is_write() && self.barriers.bars(entry.epoch))
    }

    /// A piece may be served from now on.
    fn queue_up(&mut self, piece: PieceId, part: QueuePart) {
        let (area, level) = self.place(piece);
        self.queues[area * PriorityLevel::COUNT + level].add(&mut self.pieces, piece, part);
        self.ready[area] |= 1 << level;
    }

    /// A waiting piece is taken out of its queue, which has not chosen it.
    fn withdraw_from_queue(&mut self, piece: PieceId) {
        let (area, level) = self.place(piece);
        self.queues[area * PriorityLevel::COUNT + level].withdraw(&mut self.pieces, piece);
        self.look_at(area, level);
    }

    /// A queue may have become empty.
    fn look_at(&mut self, area: usize, level: usize) {
        if self.queues[area * PriorityLevel::COUNT + level].is_empty() {
            self.ready[area] &= !(1 << level);
        }
    }

    /// The area and the level of a piece, as places in tables.
    fn place(&self, piece: PieceId) -> (usize, usize) {
        let entry = self.pieces.get(piece);
        let area = self.rules.phases.area(entry.pending.direction);
        (area, entry.level.index())
    }

    /// A piece is chosen or withdrawn.
    fn no_longer_waits(&mut self, piece: PieceId) {
        self.waiting -= 1;
        let entry = self.pieces.get(piece);
        let (is_patient, is_write, epoch) = (entry.is_patient, entry.is_write(), entry.epoch);
        if is_patient {
            self.pieces.unlink(&mut self.ages, Thread::Age, piece);
        }
        if is_write {
            self.barriers.waited(&mut self.pieces, piece, epoch);
        }
    }

    /// A piece that had been chosen waits again.
    fn wait_again(&mut self, piece: PieceId, part: QueuePart) {
        self.waiting += 1;
        let entry = *self.pieces.get(piece);
        if entry.is_write() {
            self.barriers.wait(&mut self.pieces, piece, entry.epoch);
        }
        if entry.is_patient {
            // It is one of the oldest.
            let mut older = NONE;
            let mut next = self.ages.oldest;
            while next != NONE && self.pieces.get(next).since <= entry.since {
                older = next;
                next = self.pieces.get(next).newer(Thread::Age);
            }
            self.pieces
                .insert(&mut self.ages, Thread::Age, piece, older);
        }
        self.queue_up(piece, part);
    }
}

/// The parts of a divided request are numbered in the low bits of its number in the order of
/// arrival. A choice: 2^48 arrivals, a million a second for nine years.
const DIVISION_BITS: u32 = 16;

#[cfg(test)]
mod tests;
