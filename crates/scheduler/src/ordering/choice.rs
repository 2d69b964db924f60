//! Which piece is next: patience, then levels and turns, then what goes before the policy, then the
//! policy.

use block::Instant;

use super::level::PriorityLevel;
use super::phases::PhaseWork;
use super::piece::{NONE, PieceState, Thread, Transition};
use super::{DriveActivity, NextPiece, Ordering};
use crate::policy::{Choice, PieceId, View};

impl Ordering {
    /// Which piece is next.
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
            return self.take_unasked(piece);
        }
        let Some((area, level)) = self.queue_in_turn(now) else {
            return NextPiece::Nothing(None);
        };
        let until = match self.ask(area, level, now, view, drive) {
            NextPiece::Nothing(until) => until,
            chosen => {
                self.passed += u32::from(overdue.is_some());
                return chosen;
            }
        };
        // The most urgent want to wait: whoever is out of patience need not.
        if let Some(piece) = overdue {
            return self.take_unasked(piece);
        }
        let turn = self.turn.ends(self.rules.phases);
        let turn = turn.filter(|_| self.ready[0] != 0 && self.ready[1] != 0);
        let moments = [until, self.out_of_patience(now), turn];
        NextPiece::Nothing(moments.into_iter().flatten().filter(|&t| t > now).min())
    }

    /// This piece is next, or one that it waits for; `None` if it does not wait, or all that it waits
    /// for is at the drive. For what has to go whatever levels and policies say.
    pub fn choose_for(&mut self, piece: PieceId) -> Option<PieceId> {
        if self.pieces.stage(piece) != PieceState::Waiting {
            return None;
        }
        let first = self.first_of_its_way(piece)?;
        self.withdraw_from_queue(first);
        self.no_longer_waits(first);
        self.pieces.step(first, Transition::Choose);
        Some(first)
    }

    /// The one that has waited for longest of those that have patience and that `is_asked_for` is true
    /// of, or what it waits for: to be given to [`Ordering::choose_for`]. `None` also if for each of
    /// them that is all at the drive.
    pub fn oldest(&self, is_asked_for: impl Fn(PieceId) -> bool) -> Option<PieceId> {
        let mut next = self.ages.oldest;
        while next != NONE {
            let piece = next;
            next = self.pieces.get(piece).newer(Thread::Age);
            if is_asked_for(piece)
                && let Some(first) = self.first_of_its_way(piece)
            {
                return Some(first);
            }
        }
        None
    }

    /// What has to be served for the oldest that is out of patience: itself, or what it waits for.
    /// `None` also if that is all at the drive.
    fn overdue(&self, now: Instant) -> Option<PieceId> {
        let oldest = self.ages.oldest;
        if oldest == NONE || self.pieces.get(oldest).since + self.rules.patience > now {
            return None;
        }
        self.first_of_its_way(oldest)
    }

    /// When the oldest will be out of patience, if it is not.
    fn out_of_patience(&self, now: Instant) -> Option<Instant> {
        let oldest = self.ages.oldest;
        (oldest != NONE)
            .then(|| self.pieces.get(oldest).since + self.rules.patience)
            .filter(|&then| then > now)
    }

    /// The piece itself, or one that may be served and without which it never may. Each step leads
    /// to an earlier arrival.
    fn first_of_its_way(&self, mut piece: PieceId) -> Option<PieceId> {
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

    /// The oldest piece that waits and overlaps a later one.
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

    /// The area and the level of the queue from which the next piece should come.
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

    /// Asks one queue, and checks its policy's answer: it may make us slow, never wrong. Only for
    /// a policy that breaks its contract all pieces are looked through.
    fn ask(
        &mut self,
        area: usize,
        level: usize,
        now: Instant,
        view: &View,
        drive: DriveActivity,
    ) -> NextPiece {
        let queue = &mut self.queues[area * PriorityLevel::COUNT + level];
        if let Some(piece) = queue.first() {
            return self.take_unasked(piece);
        }
        match queue.select(view) {
            Choice::Serve(piece)
                if self.pieces.is_sorted(piece) && self.place(piece) == (area, level) =>
            {
                self.queues[area * PriorityLevel::COUNT + level].forget(&mut self.pieces, piece);
                self.look_at(area, level);
                return self.take(piece);
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
        self.take_unasked(first.expect("a queue that has something to serve"))
    }

    /// A piece in a queue is next, whatever its policy thinks.
    fn take_unasked(&mut self, piece: PieceId) -> NextPiece {
        self.withdraw_from_queue(piece);
        self.take(piece)
    }

    /// A piece that is no longer in a queue is next.
    fn take(&mut self, piece: PieceId) -> NextPiece {
        self.no_longer_waits(piece);
        self.pieces.step(piece, Transition::Choose);
        NextPiece::Piece(piece)
    }
}

/// How many real-time pieces in a row may go before one that is out of patience: at most a fifth of
/// the drive goes to the impatient. A choice.
const MOST_PASSED: u32 = 4;

/// The level of real-time requests, as a bit.
const REAL_TIME: u16 = 1 << PriorityLevel::REAL_TIME.index();

/// The level of background requests, as a bit.
const BACKGROUND: u16 = 1 << PriorityLevel::BACKGROUND.index();

/// All levels between.
const BEST_EFFORT: u16 = BACKGROUND - 1 - REAL_TIME;
