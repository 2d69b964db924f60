//! The choice of the next piece, in this order: patience, levels and turns, pieces before the
//! policy, the policy.

use block::Instant;

use super::level::PriorityLevel;
use super::phases::PhaseWork;
use super::piece::{NONE, PieceState, Thread, Transition};
use super::{DriveActivity, NextPiece, Ordering};
use crate::policy::{Choice, PieceId, View};

impl Ordering {
    /// Chooses the next piece.
    pub fn choose(&mut self, now: Instant, view: &View, drive: DriveActivity) -> NextPiece {
        let overdue = self.overdue(now);
        if overdue.is_none() {
            self.passed = 0;
        }
        let is_real_time = (self.ready[0] | self.ready[1]) & REAL_TIME != 0;
        if let Some(piece) = overdue
            && (!is_real_time || self.passed >= MOST_PASSED)
        {
            self.passed = 0;
            return self.choose_past_policy(now, piece);
        }
        let Some((area, level)) = self.queue_in_turn(now) else {
            return NextPiece::Nothing(None);
        };
        let selected = match self.graced(level, now, drive) {
            Some(until) => NextPiece::Nothing(until),
            None => self.select_from(area, level, now, view, drive),
        };
        let until = match selected {
            NextPiece::Nothing(until) => until,
            chosen => {
                self.passed += u32::from(overdue.is_some());
                return chosen;
            }
        };
        // The most urgent queue waits on purpose; the overdue piece goes meanwhile.
        if let Some(piece) = overdue {
            return self.choose_past_policy(now, piece);
        }
        let turn = self.turn.ends(self.rules.phases);
        let turn = turn.filter(|_| self.ready[0] != 0 && self.ready[1] != 0);
        let moments = [until, self.out_of_patience(now), turn];
        NextPiece::Nothing(moments.into_iter().flatten().filter(|&t| t > now).min())
    }

    /// Chooses a piece, or a predecessor of it, whatever levels and policies say. `None` if the
    /// piece does not wait, or if all its predecessors are at the drive.
    pub fn choose_for(&mut self, piece: PieceId) -> Option<PieceId> {
        if self.pieces.stage(piece) != PieceState::Waiting {
            return None;
        }
        let first = self.first_eligible(piece)?;
        self.withdraw_from_queue(first);
        self.no_longer_waits(first);
        self.pieces.step(first, Transition::Choose);
        Some(first)
    }

    /// The oldest wanted piece with patience, or its first eligible predecessor, for
    /// [`Ordering::choose_for`]. `None` also if all such predecessors are at the drive.
    pub fn oldest(&self, is_wanted: impl Fn(PieceId) -> bool) -> Option<PieceId> {
        let mut next = self.ages.oldest;
        while next != NONE {
            let piece = next;
            next = self.pieces.get(piece).newer(Thread::Age);
            if is_wanted(piece)
                && let Some(first) = self.first_eligible(piece)
            {
                return Some(first);
            }
        }
        None
    }

    /// The piece to serve for the oldest overdue piece: itself or a predecessor. `None` also if all
    /// predecessors are at the drive.
    fn overdue(&self, now: Instant) -> Option<PieceId> {
        let oldest = self.ages.oldest;
        if oldest == NONE || self.pieces.get(oldest).since + self.rules.patience > now {
            return None;
        }
        self.first_eligible(oldest)
    }

    /// The moment at which the oldest piece becomes overdue, if that is later than `now`.
    fn out_of_patience(&self, now: Instant) -> Option<Instant> {
        let oldest = self.ages.oldest;
        (oldest != NONE)
            .then(|| self.pieces.get(oldest).since + self.rules.patience)
            .filter(|&then| then > now)
    }

    /// The piece, or an eligible predecessor. Each step leads to an earlier arrival.
    fn first_eligible(&self, mut piece: PieceId) -> Option<PieceId> {
        loop {
            let entry = self.pieces.get(piece);
            let before = if entry.conflicts > 0 {
                self.oldest_waiting_predecessor(piece)
            } else if entry.is_write() && self.barriers.bars(entry.epoch) {
                self.barriers.first().oldest
            } else {
                return Some(piece);
            };
            if before == NONE {
                return None;
            }
            piece = before;
        }
    }

    /// The oldest waiting piece that conflicts with a later one.
    fn oldest_waiting_predecessor(&self, piece: PieceId) -> PieceId {
        let entry = self.pieces.get(piece);
        let mut oldest = NONE;
        let mut member = entry.older(Thread::Combined);
        while member != NONE {
            let other = self.pieces.get(member);
            if other.stage == PieceState::Waiting && other.conflicts_with(entry) {
                oldest = member;
            }
            member = other.older(Thread::Combined);
        }
        oldest
    }

    /// The area and the level of the queue whose turn it is.
    fn queue_in_turn(&mut self, now: Instant) -> Option<(usize, usize)> {
        let tier = [REAL_TIME, BEST_EFFORT, BACKGROUND]
            .into_iter()
            .find(|tier| (self.ready[0] | self.ready[1]) & tier != 0)?;
        let ready = self.ready.map(|levels| levels & tier);
        let area = if tier == REAL_TIME {
            usize::from(ready[0] == 0)
        } else {
            let work = ready.map(|levels| match levels {
                0 => PhaseWork::None,
                _ => PhaseWork::Some,
            });
            self.turn.area(self.rules.phases, now, work)
        };
        Some((area, ready[area].trailing_zeros() as usize))
    }

    /// Until when a background piece waits although nothing else is eligible; `None` if it does not.
    fn graced(&self, level: usize, now: Instant, drive: DriveActivity) -> Option<Option<Instant>> {
        let grace = self
            .rules
            .grace
            .filter(|_| level == PriorityLevel::BACKGROUND.index())?;
        // One at a time while somebody may come: whoever does waits for one at most.
        if drive == DriveActivity::Busy {
            return (self.grace.alone_from(grace) > now).then_some(None);
        }
        let opens = self.grace.opens(grace);
        (opens > now).then_some(Some(opens))
    }

    /// Selects a piece of one queue, and checks the policy's answer. Only an invalid answer costs a
    /// search through all pieces.
    fn select_from(
        &mut self,
        area: usize,
        level: usize,
        now: Instant,
        view: &View,
        drive: DriveActivity,
    ) -> NextPiece {
        let queue = &mut self.queues[area * PriorityLevel::COUNT + level];
        if let Some(piece) = queue.first() {
            return self.choose_past_policy(now, piece);
        }
        match queue.select(view) {
            Choice::Serve(piece)
                if self.pieces.is_sorted(piece) && self.place(piece) == (area, level) =>
            {
                self.queues[area * PriorityLevel::COUNT + level].forget(&mut self.pieces, piece);
                self.left_queue(area, level, piece);
                return self.mark_chosen(now, piece);
            }
            Choice::WaitUntil(then) if then > now => return NextPiece::Nothing(Some(then)),
            Choice::Nothing if drive == DriveActivity::Busy => return NextPiece::Nothing(None),
            Choice::Serve(_) | Choice::WaitUntil(_) | Choice::Nothing => {}
        }
        self.overruled += 1;
        let phases = self.rules.phases;
        let first = self.pieces.first_sorted(|piece| {
            (phases.area(piece.pending.direction), piece.level.index()) == (area, level)
        });
        self.choose_past_policy(now, first.expect("a queue that has something to serve"))
    }

    /// Chooses a queued piece without its policy.
    pub(super) fn choose_past_policy(&mut self, now: Instant, piece: PieceId) -> NextPiece {
        self.withdraw_from_queue(piece);
        self.mark_chosen(now, piece)
    }

    /// Marks a piece that has left its queue as chosen.
    fn mark_chosen(&mut self, now: Instant, piece: PieceId) -> NextPiece {
        if self.pieces.get(piece).level == PriorityLevel::BACKGROUND {
            self.grace.note_background(now);
        }
        self.no_longer_waits(piece);
        self.pieces.step(piece, Transition::Choose);
        NextPiece::Piece(piece)
    }
}

/// The most consecutive real-time pieces before an overdue one. At most a fifth of the pieces are
/// overdue ones. A choice.
const MOST_PASSED: u32 = 4;

/// The bit of the real-time level.
const REAL_TIME: u16 = 1 << PriorityLevel::REAL_TIME.index();

/// The bit of the background level.
pub(super) const BACKGROUND: u16 = 1 << PriorityLevel::BACKGROUND.index();

/// The bits of all levels between.
const BEST_EFFORT: u16 = BACKGROUND - 1 - REAL_TIME;
