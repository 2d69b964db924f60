//! The mechanism of ordering, which no policy can break (ABISS 3.6): pending pieces, and which of
//! them are eligible.
//!
//! ```text
//!   enter --> behind an overlapping piece or a barrier?
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
//! - Two overlapping pieces, one of them a write, are served in the order of arrival. Reads and
//!   writes then have the results of first come, first served.
//! - A write that arrives after a barrier begins when all writes before the barrier have ended.
//! - The most urgent level with an eligible piece is served. In a level, pieces that were given
//!   back go first, then released ones, then the policy's choice.
//! - The predecessors of an urgent piece are as urgent as the piece.
//! - A piece that has waited longer than the patience goes before levels and policies.
//! - A background piece begins when the others have been quiet for a grace period.
//!
//! A policy receives a piece when the piece becomes eligible. The mechanism checks the policy's
//! answers.

use std::iter::once;

use block::{Direction, Duration, Extent, Instant, Owner};
use drive::SeekTarget;

mod barrier;
mod choice;
mod combined;
mod grace;
mod in_gaps;
mod level;
mod phases;
mod piece;
mod queue;
mod raise;

pub use grace::Grace;
pub use level::PriorityLevel;
pub use phases::Phases;
pub use piece::PieceState;

use crate::policy::{EligibleRequest, PieceId, Policy, Sight};
use barrier::Barriers;
use combined::Combined;
use grace::GraceClock;
use in_gaps::InGaps;
use phases::PhaseTurn;
use piece::{List, NONE, Pieces, QueuePart, RequestPiece, Thread, Transition};
use queue::LevelQueue;

/// The rules of ordering that hold for every policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderingRules {
    /// How reads and writes share the drive.
    pub phases: Phases,
    /// The time after which a waiting piece goes first. Background pieces have no patience.
    pub patience: Duration,
    /// When background pieces begin; `None`: as soon as no other piece is eligible.
    pub grace: Option<Grace>,
    /// The largest number of pieces. At the bound a request is raised as a whole instead of
    /// divided.
    pub pieces: usize,
}

/// A request, or a part of one, before it enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewPiece {
    /// The number of its request, which [`Ordering::request_slot`] returns.
    pub request_slot: u32,
    /// The program that waits for it.
    pub owner: Owner,
    /// The direction of the transfer.
    pub direction: Direction,
    /// The blocks.
    pub extent: Extent,
    /// The urgency.
    pub level: PriorityLevel,
    /// The position of the first block on the medium, by belief.
    pub target: SeekTarget,
}

/// The answer of [`Ordering::choose`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextPiece {
    /// The piece is chosen: [`Ordering::give`] or [`Ordering::put_back`] must follow.
    Piece(PieceId),
    /// No piece is eligible before the next event or before this moment.
    Nothing(Option<Instant>),
}

/// Whether the drive has commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveActivity {
    /// The drive has none: a policy must serve a piece or wait until a moment.
    Idle,
    /// The drive has a command at least.
    Busy,
}

/// The waiting time of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    /// From the arrival to the last dispatch.
    pub all: Duration,
    /// The part of `all` in which overlapping pieces or barriers held the piece back.
    pub order: Duration,
}

/// All pieces that wait or are at the drive, in their order.
pub struct Ordering {
    rules: OrderingRules,
    sight: Sight,
    pieces: Pieces,
    combined: Combined,
    barriers: Barriers,
    /// By area, then by level.
    queues: Vec<LevelQueue>,
    /// By area: a bit for each level whose queue is not empty.
    ready: [u16; 2],
    /// The waiting pieces that have patience, oldest first.
    ages: List,
    turn: PhaseTurn,
    grace: GraceClock,
    in_gaps: InGaps,
    arrived: u64,
    divided: u64,
    waiting: usize,
    /// Consecutive real-time pieces that went before an overdue one.
    passed: u32,
    overruled: u64,
    /// The pieces that the leaving piece releases.
    released: Vec<PieceId>,
    /// The pieces whose predecessors are still to be raised.
    raising: Vec<PieceId>,
}

impl Ordering {
    /// An empty ordering in which each level has a policy of its own.
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
            grace: GraceClock::FIRST,
            in_gaps: InGaps::default(),
            arrived: 0,
            divided: 0,
            waiting: 0,
            passed: 0,
            overruled: 0,
            released: Vec::new(),
            raising: Vec::new(),
        }
    }

    /// The facts by which the policy decides.
    pub fn sight(&self) -> Sight {
        self.sight
    }

    /// Replaces the policy of all waiting pieces. Pieces that were given back or released keep
    /// their places.
    pub fn adopt(&mut self, policy: &dyn Fn() -> Box<dyn Policy>) {
        let first = policy();
        self.sight = first.sight();
        let others = (1..self.queues.len()).map(|_| policy());
        for (queue, policy) in self.queues.iter_mut().zip(once(first).chain(others)) {
            queue.adopt(policy);
        }
        for piece in self.pieces.sorted() {
            let (area, level) = self.place(piece);
            self.queues[area * PriorityLevel::COUNT + level].add_to_policy(&self.pieces, piece);
        }
    }

    /// The number of waiting pieces that are not chosen.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// The number of invalid answers of the policy: an ineligible piece, a wait that is over, or
    /// nothing for an idle drive. The oldest eligible piece was served instead.
    pub fn overruled(&self) -> u64 {
        self.overruled
    }

    /// The state of a piece.
    pub fn stage(&self, piece: PieceId) -> PieceState {
        self.pieces.stage(piece)
    }

    /// The number of a piece's request, as it entered.
    pub fn request_slot(&self, piece: PieceId) -> u32 {
        self.pieces.get(piece).request_slot
    }

    /// The direction and the blocks of a piece.
    pub fn blocks(&self, piece: PieceId) -> (Direction, Extent) {
        let pending = &self.pieces.get(piece).pending;
        (pending.direction, pending.extent)
    }

    /// The urgency of a piece: that of its class, or of the most urgent piece that waits for it.
    pub fn level(&self, piece: PieceId) -> PriorityLevel {
        self.pieces.get(piece).level
    }

    /// The moment at which a piece entered.
    pub fn entered(&self, piece: PieceId) -> Instant {
        self.pieces.get(piece).entered
    }

    /// The moment of a piece's last dispatch.
    pub fn given(&self, piece: PieceId) -> Instant {
        self.pieces.get(piece).given
    }

    /// The waiting time of a piece that was dispatched, or that is about to leave unserved.
    pub fn waited(&self, piece: PieceId) -> Waited {
        let piece = self.pieces.get(piece);
        Waited {
            all: piece.given.since(piece.entered),
            order: piece.ordered,
        }
    }

    /// The number of times that a piece was requeued.
    pub fn requeued(&self, piece: PieceId) -> u8 {
        self.pieces.get(piece).requeued
    }

    /// Whether a real-time piece is eligible and the chosen piece is not real-time.
    pub fn overtakes(&self, chosen: PieceId) -> bool {
        let bit = 1 << PriorityLevel::REAL_TIME.index();
        let level = self.pieces.get(chosen).level;
        level != PriorityLevel::REAL_TIME && (self.ready[0] | self.ready[1]) & bit != 0
    }

    /// Whether a more urgent piece is eligible.
    pub fn is_outranked(&self, piece: PieceId) -> bool {
        let more_urgent = (1 << self.pieces.get(piece).level.index()) - 1;
        (self.ready[0] | self.ready[1]) & more_urgent != 0
    }

    /// Whether a piece has waited longer than the patience.
    pub fn is_out_of_patience(&self, now: Instant, piece: PieceId) -> bool {
        let entry = self.pieces.get(piece);
        entry.is_patient && entry.since + self.rules.patience <= now
    }

    /// Adds a piece, which waits. Its number is valid until it has left.
    pub fn enter(&mut self, now: Instant, new_piece: NewPiece) -> PieceId {
        let pending = EligibleRequest {
            ticket: NONE,
            order: self.arrived << DIVISION_BITS,
            submitted: now,
            direction: new_piece.direction,
            extent: new_piece.extent,
            target: new_piece.target,
            owner: new_piece.owner,
        };
        self.arrived += 1;
        let NewPiece {
            request_slot,
            level,
            ..
        } = new_piece;
        let piece = self
            .pieces
            .enter(|| RequestPiece::new(pending, request_slot, level, now));
        self.waiting += 1;
        let conflicts = self.combined.enter(&mut self.pieces, piece);
        self.pieces.get_mut(piece).conflicts = conflicts;
        if new_piece.direction == Direction::Write {
            let epoch = self.barriers.enter(&mut self.pieces, piece);
            self.pieces.get_mut(piece).epoch = epoch;
        }
        if new_piece.level != PriorityLevel::BACKGROUND {
            self.grace.note_other(now);
            self.pieces.get_mut(piece).is_patient = true;
            self.pieces.push(&mut self.ages, Thread::Age, piece);
        }
        if self.is_eligible(piece) {
            self.note_first_background(now, piece);
            self.queue_up(piece, QueuePart::Sorted);
        } else {
            self.raise_predecessors(piece);
        }
        piece
    }

    /// Places a barrier: writes that enter from now on begin when all earlier writes have ended.
    pub fn barrier(&mut self) {
        self.barriers.place();
    }

    /// Dispatches a chosen piece to the drive.
    pub fn give(&mut self, now: Instant, piece: PieceId) {
        self.pieces.step(piece, Transition::Give);
        self.pieces.get_mut(piece).given = now;
    }

    /// Returns a chosen piece to its level, before the policy's pieces.
    pub fn put_back(&mut self, piece: PieceId) {
        self.pieces.step(piece, Transition::PutBack);
        self.wait_again(piece, QueuePart::Requeued);
    }

    /// Returns a chosen piece to its level's policy.
    pub fn unchoose(&mut self, piece: PieceId) {
        self.pieces.step(piece, Transition::PutBack);
        self.wait_again(piece, QueuePart::Sorted);
    }

    /// Returns a piece that the drive did not serve to its level, before the policy's pieces.
    pub fn requeue(&mut self, piece: PieceId) {
        self.pieces.step(piece, Transition::Requeue);
        self.pieces.get_mut(piece).requeued += 1;
        self.wait_again(piece, QueuePart::Requeued);
    }

    /// Returns a partly served piece to its level, before the policy's pieces.
    pub fn step_aside(&mut self, piece: PieceId) {
        self.pieces.step(piece, Transition::Requeue);
        self.wait_again(piece, QueuePart::Requeued);
    }

    /// Removes a piece that the drive has served.
    pub fn end(&mut self, now: Instant, piece: PieceId) {
        if self.pieces.get(piece).level != PriorityLevel::BACKGROUND {
            self.grace.note_other(now);
        }
        self.remove(now, piece, Transition::End);
    }

    /// Removes a waiting piece unserved.
    pub fn withdraw(&mut self, now: Instant, piece: PieceId) {
        self.pieces.get_mut(piece).given = now;
        if self.pieces.get(piece).part != QueuePart::Out {
            self.withdraw_from_queue(piece);
        }
        self.no_longer_waits(piece);
        self.remove(now, piece, Transition::Withdraw);
    }

    /// Appends to `found` the pieces of a request that overlap `extent`.
    pub fn pieces_of(&self, request_slot: u32, extent: Extent, found: &mut Vec<PieceId>) {
        let combined = &self.combined;
        combined.pieces_of(&self.pieces, request_slot, extent, found);
    }

    /// Removes a piece, and releases the pieces that waited for it alone.
    fn remove(&mut self, now: Instant, piece: PieceId, step: Transition) {
        self.pieces.step(piece, step);
        let mut released = std::mem::take(&mut self.released);
        self.combined.leave(&mut self.pieces, piece, &mut released);
        for &later in &released {
            if self.is_eligible(later) {
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
                if self.is_eligible(write) {
                    self.release(now, write, QueuePart::Sorted);
                }
                write = self.pieces.get(write).newer(Thread::Epoch);
            }
        }
    }

    fn release(&mut self, now: Instant, piece: PieceId, part: QueuePart) {
        let entry = self.pieces.get_mut(piece);
        entry.ordered = now.since(entry.entered);
        self.note_first_background(now, piece);
        self.queue_up(piece, part);
    }

    /// The grace period counts from a background piece that becomes eligible while no other one is.
    fn note_first_background(&mut self, now: Instant, piece: PieceId) {
        let ready = self.ready[0] | self.ready[1];
        if self.level(piece) == PriorityLevel::BACKGROUND && ready & choice::BACKGROUND == 0 {
            self.grace.note_background(now);
        }
    }

    /// Whether a piece has no predecessor left.
    pub fn is_eligible(&self, piece: PieceId) -> bool {
        let entry = self.pieces.get(piece);
        entry.conflicts == 0 && !(entry.is_write() && self.barriers.bars(entry.epoch))
    }

    /// Puts an eligible piece into its queue.
    fn queue_up(&mut self, piece: PieceId, part: QueuePart) {
        let (area, level) = self.place(piece);
        self.queues[area * PriorityLevel::COUNT + level].add(&mut self.pieces, piece, part);
        self.ready[area] |= 1 << level;
        if level == PriorityLevel::BACKGROUND.index() {
            let target = &self.pieces.get(piece).pending.target;
            self.in_gaps.enter(target, piece);
        }
    }

    /// Removes a waiting piece from its queue, which has not chosen it.
    fn withdraw_from_queue(&mut self, piece: PieceId) {
        let (area, level) = self.place(piece);
        self.queues[area * PriorityLevel::COUNT + level].withdraw(&mut self.pieces, piece);
        self.left_queue(area, level, piece);
    }

    /// A piece has left its queue, which may be empty now.
    fn left_queue(&mut self, area: usize, level: usize, piece: PieceId) {
        if level == PriorityLevel::BACKGROUND.index() {
            let target = &self.pieces.get(piece).pending.target;
            self.in_gaps.leave(target, piece);
        }
        if self.queues[area * PriorityLevel::COUNT + level].is_empty() {
            self.ready[area] &= !(1 << level);
        }
    }

    /// The area and the level of a piece, as indices.
    fn place(&self, piece: PieceId) -> (usize, usize) {
        let entry = self.pieces.get(piece);
        let area = self.rules.phases.area(entry.pending.direction);
        (area, entry.level.index())
    }

    /// Notes that a piece was chosen or withdrawn.
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

    /// Returns a chosen piece to the waiting ones.
    fn wait_again(&mut self, piece: PieceId, part: QueuePart) {
        self.waiting += 1;
        let entry = *self.pieces.get(piece);
        if entry.is_write() {
            self.barriers.wait(&mut self.pieces, piece, entry.epoch);
        }
        if entry.is_patient {
            // The piece is among the oldest.
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

/// Bits of the arrival number that number the parts of a divided request. A choice: 2^48 arrivals
/// are a million a second for nine years.
const DIVISION_BITS: u32 = 16;

#[cfg(test)]
mod tests;
