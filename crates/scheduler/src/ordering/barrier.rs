//! Barriers: a write that comes after one begins only when all writes before it have ended.
//!
//! ```text
//!   writes     w w w | w w | w        |  a barrier
//!   epoch        0      1    2 = now
//!               may    wait  wait
//! ```
//!
//! A barrier is placed by opening an epoch, whatever is waiting. Only the oldest epoch's writes may
//! be served; when all of them have ended, the next one is the oldest.

use crate::policy::PieceId;
use std::collections::VecDeque;

use super::level::PriorityLevel;
use super::piece::{List, Pieces, Thread};

/// The epochs that have not ended.
#[derive(Clone, Debug)]
pub(super) struct Barriers {
    epochs: VecDeque<Epoch>,
    /// The number of the oldest.
    oldest: u64,
}

/// The writes between two barriers.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Writes that have not ended.
    unended: u32,
    /// Those of them that wait.
    waiting: List,
    /// All of the waiting are at least as urgent, once a barrier has closed the epoch.
    raised: PriorityLevel,
}

impl Epoch {
    const EMPTY: Epoch = Epoch {
        unended: 0,
        waiting: List::EMPTY,
        raised: PriorityLevel::BACKGROUND,
    };
}

impl Barriers {
    pub(super) fn new() -> Self {
        Barriers {
            epochs: VecDeque::from([Epoch::EMPTY]),
            oldest: 0,
        }
    }

    /// Writes that enter from now on wait for all that have not ended.
    pub(super) fn place(&mut self) {
        if self.epochs.back().is_some_and(|last| last.unended > 0) {
            self.epochs.push_back(Epoch::EMPTY);
        }
    }

    /// A write enters; the answer is its epoch.
    pub(super) fn enter(&mut self, pieces: &mut Pieces, piece: PieceId) -> u64 {
        let epoch = self.oldest + self.epochs.len() as u64 - 1;
        self.enter_at(pieces, piece, epoch);
        epoch
    }

    /// A part of a write of `epoch` enters.
    pub(super) fn enter_at(&mut self, pieces: &mut Pieces, piece: PieceId, epoch: u64) {
        self.epoch(epoch).unended += 1;
        self.wait(pieces, piece, epoch);
    }

    /// A write that has not ended waits.
    pub(super) fn wait(&mut self, pieces: &mut Pieces, piece: PieceId, epoch: u64) {
        let epoch = self.epoch(epoch);
        pieces.push(&mut epoch.waiting, Thread::Epoch, piece);
        // What was chosen or at the drive when the epoch was raised, and is given back.
        let level = &mut pieces.get_mut(piece).level;
        *level = (*level).min(epoch.raised);
    }

    /// A write no longer waits.
    pub(super) fn waited(&mut self, pieces: &mut Pieces, piece: PieceId, epoch: u64) {
        pieces.unlink(&mut self.epoch(epoch).waiting, Thread::Epoch, piece);
    }

    /// A write that does not wait has ended. The answer are the waiting of the epoch whose turn it
    /// is now, if it is another one.
    pub(super) fn ended(&mut self, epoch: u64) -> Option<List> {
        self.epoch(epoch).unended -= 1;
        let before = self.oldest;
        while self.epochs.len() > 1 && self.epochs[0].unended == 0 {
            self.epochs.pop_front();
            self.oldest += 1;
        }
        (self.oldest > before).then(|| self.epochs[0].waiting)
    }

    /// Whether writes of this epoch wait for earlier ones.
    pub(super) fn bars(&self, epoch: u64) -> bool {
        epoch > self.oldest
    }

    /// The waiting writes for which all others wait.
    pub(super) fn first(&self) -> List {
        self.epochs[0].waiting
    }

    /// Marks the epoch before `epoch` as raised to `level`; the answer are its waiting writes.
    /// `None` if it is already, and then all before it are, too.
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
