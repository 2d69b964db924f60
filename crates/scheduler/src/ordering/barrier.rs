//! Barriers: a write after a barrier begins when all writes before it have ended.
//!
//! ```text
//!   writes     w w w | w w | w        |  a barrier
//!   epoch        0      1    2 = now
//!           eligible   wait  wait
//! ```
//!
//! A barrier opens an epoch, whether or not writes are waiting. Only writes of the oldest epoch are
//! eligible. When all of them have ended, the next epoch is the oldest.

use crate::policy::PieceId;
use std::collections::VecDeque;

use super::level::PriorityLevel;
use super::piece::{List, NONE, Pieces, Thread};

/// The epochs that have not ended.
#[derive(Clone, Debug)]
pub(super) struct Barriers {
    epochs: VecDeque<Epoch>,
    /// The number of the oldest epoch.
    oldest: u64,
}

/// The writes between two barriers.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// The number of writes that have not ended.
    unended: u32,
    /// The writes that wait.
    waiting: List,
    /// The least urgency of all waiting writes, once a barrier has closed the epoch.
    raised: PriorityLevel,
}

impl Epoch {
    const EMPTY: Epoch = Epoch {
        unended: 0,
        waiting: List::EMPTY,
        raised: PriorityLevel::BACKGROUND,
    };

    /// Raises a waiting write: it may have been at the drive when the epoch was raised.
    fn raise(self, pieces: &mut Pieces, write: PieceId) {
        let level = &mut pieces.get_mut(write).level;
        *level = (*level).min(self.raised);
    }
}

impl Barriers {
    pub(super) fn new() -> Self {
        Barriers {
            epochs: VecDeque::from([Epoch::EMPTY]),
            oldest: 0,
        }
    }

    /// Opens an epoch: writes that enter from now on wait for all that have not ended.
    pub(super) fn place(&mut self) {
        if self.epochs.back().is_some_and(|last| last.unended > 0) {
            self.epochs.push_back(Epoch::EMPTY);
        }
    }

    /// Adds a write, and returns its epoch.
    pub(super) fn enter(&mut self, pieces: &mut Pieces, piece: PieceId) -> u64 {
        let epoch = self.oldest + self.epochs.len() as u64 - 1;
        self.enter_at(pieces, piece, epoch);
        epoch
    }

    /// Adds a part of a write of `epoch`.
    pub(super) fn enter_at(&mut self, pieces: &mut Pieces, piece: PieceId, epoch: u64) {
        let epoch = self.epoch(epoch);
        epoch.unended += 1;
        pieces.push(&mut epoch.waiting, Thread::Epoch, piece);
        epoch.raise(pieces, piece);
    }

    /// Adds a write that was given back to the waiting ones, in its place among them: behind the others, two
    /// of them would be the oldest by turns.
    pub(super) fn wait(&mut self, pieces: &mut Pieces, piece: PieceId, epoch: u64) {
        let epoch = self.epoch(epoch);
        let order = pieces.get(piece).pending.order;
        let (mut older, mut next) = (NONE, epoch.waiting.oldest);
        while next != NONE && pieces.get(next).pending.order < order {
            (older, next) = (next, pieces.get(next).newer(Thread::Epoch));
        }
        pieces.insert(&mut epoch.waiting, Thread::Epoch, piece, older);
        epoch.raise(pieces, piece);
    }

    /// Removes a write from the waiting ones.
    pub(super) fn waited(&mut self, pieces: &mut Pieces, piece: PieceId, epoch: u64) {
        pieces.unlink(&mut self.epoch(epoch).waiting, Thread::Epoch, piece);
    }

    /// Notes the end of a write that does not wait. Returns the waiting writes of the next epoch if
    /// the oldest one has ended.
    pub(super) fn ended(&mut self, epoch: u64) -> Option<List> {
        self.epoch(epoch).unended -= 1;
        let before = self.oldest;
        while self.epochs.len() > 1 && self.epochs[0].unended == 0 {
            self.epochs.pop_front();
            self.oldest += 1;
        }
        (self.oldest > before).then(|| self.epochs[0].waiting)
    }

    /// Whether writes of this epoch wait for earlier epochs.
    pub(super) fn bars(&self, epoch: u64) -> bool {
        epoch > self.oldest
    }

    /// The waiting writes of the oldest epoch, for which all others wait.
    pub(super) fn first(&self) -> List {
        self.epochs[0].waiting
    }

    /// Raises the epoch before `epoch` to `level`, and returns its waiting writes. `None` if it is
    /// as urgent already, and then all earlier ones are, too.
    pub(super) fn raise_before(&mut self, epoch: u64, level: PriorityLevel) -> Option<List> {
        let before = self
            .epochs
            .get_mut(epoch.checked_sub(self.oldest + 1)? as usize)?;
        if before.raised <= level {
            return None;
        }
        before.raised = level;
        Some(before.waiting)
    }

    fn epoch(&mut self, epoch: u64) -> &mut Epoch {
        &mut self.epochs[(epoch - self.oldest) as usize]
    }
}
