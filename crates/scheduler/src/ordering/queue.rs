//! The queue of one level: what was given back, what was released from behind another, and what the
//! policy sorts, in this order.

use super::piece::{List, NONE, Pieces, QueuePart, Thread};
use crate::policy::PieceId;
use crate::policy::{Choice, Policy, View};

/// What may be served at one level of one area.
pub(super) struct LevelQueue {
    requeued: List,
    bound: List,
    /// How many the policy knows.
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

    /// A piece may be served from now on.
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

    /// A piece is taken out that the policy, if it is with the policy, has not chosen.
    pub(super) fn withdraw(&mut self, pieces: &mut Pieces, piece: PieceId) {
        if pieces.get(piece).part == QueuePart::Sorted {
            self.policy.withdraw(&pieces.get(piece).pending);
        }
        self.forget(pieces, piece);
    }

    /// A piece is taken out that the policy has forgotten.
    pub(super) fn forget(&mut self, pieces: &mut Pieces, piece: PieceId) {
        match std::mem::replace(&mut pieces.get_mut(piece).part, QueuePart::Out) {
            QueuePart::Sorted => self.sorted -= 1,
            part => pieces.unlink(self.list(part), Thread::Queue, piece),
        }
    }

    /// What goes before the policy's.
    pub(super) fn first(&self) -> Option<PieceId> {
        [self.requeued.newest, self.bound.oldest]
            .into_iter()
            .find(|&piece| piece != NONE)
    }

    /// Another policy sorts from now on; it has still to be told of what the one before knew.
    pub(super) fn adopt(&mut self, policy: Box<dyn Policy>) {
        self.policy = policy;
    }

    /// Tells the policy of a piece that it is to sort, and that is counted already.
    pub(super) fn tell(&mut self, pieces: &Pieces, piece: PieceId) {
        self.policy.add(&pieces.get(piece).pending);
    }

    /// Asks the policy.
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
