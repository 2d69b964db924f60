//! The queue of one level: pieces that were given back, then released ones, then the policy's.

use super::piece::{List, NONE, Pieces, QueuePart, Thread};
use crate::policy::PieceId;
use crate::policy::{Choice, Policy, View};

/// The eligible pieces of one level in one area.
pub(super) struct LevelQueue {
    requeued: List,
    bound: List,
    /// The number of pieces that are with the policy.
    sorted: u32,
    policy: Box<dyn Policy>,
}

impl LevelQueue {
    pub(super) fn new(policy: Box<dyn Policy>) -> Self {
        LevelQueue {
            requeued: List::EMPTY,
            bound: List::EMPTY,
            sorted: 0,
            policy,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requeued.is_empty() && self.bound.is_empty() && self.sorted == 0
    }

    /// Adds an eligible piece.
    pub(super) fn add(&mut self, pieces: &mut Pieces, piece: PieceId, part: QueuePart) {
        pieces.get_mut(piece).part = part;
        match part {
            QueuePart::Sorted => {
                self.sorted += 1;
                self.policy.add(&pieces.get(piece).pending);
            }
            _ => pieces.push(self.list(part), Thread::Queue, piece),
        }
    }

    /// Removes a piece. If the policy has it, the policy has not chosen it.
    pub(super) fn withdraw(&mut self, pieces: &mut Pieces, piece: PieceId) {
        if pieces.get(piece).part == QueuePart::Sorted {
            self.policy.withdraw(&pieces.get(piece).pending);
        }
        self.forget(pieces, piece);
    }

    /// Removes a piece that the policy has forgotten.
    pub(super) fn forget(&mut self, pieces: &mut Pieces, piece: PieceId) {
        match std::mem::replace(&mut pieces.get_mut(piece).part, QueuePart::Out) {
            QueuePart::Sorted => self.sorted -= 1,
            part => pieces.unlink(self.list(part), Thread::Queue, piece),
        }
    }

    /// The first piece that goes before the policy's.
    pub(super) fn first(&self) -> Option<PieceId> {
        [self.requeued.newest, self.bound.oldest]
            .into_iter()
            .find(|&piece| piece != NONE)
    }

    /// Replaces the policy. The caller adds the pieces of the former policy again.
    pub(super) fn adopt(&mut self, policy: Box<dyn Policy>) {
        self.policy = policy;
    }

    /// Adds a piece that is counted already to the policy.
    pub(super) fn add_to_policy(&mut self, pieces: &Pieces, piece: PieceId) {
        self.policy.add(&pieces.get(piece).pending);
    }

    /// The policy's selection.
    pub(super) fn select(&mut self, view: &View) -> Choice {
        self.policy.select(view)
    }

    fn list(&mut self, part: QueuePart) -> &mut List {
        match part {
            QueuePart::Requeued => &mut self.requeued,
            QueuePart::Bound => &mut self.bound,
            QueuePart::Out | QueuePart::Sorted => {
                panic!("what is {part:?} is in no list of a queue")
            }
        }
    }
}
