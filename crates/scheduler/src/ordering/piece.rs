//! The pieces of requests, their states, and the linked lists that thread them. Memory is allocated
//! only when the number of pieces reaches a new maximum.
//!
//! ```text
//!               enter            choose           give            end
//!   (free) ----------> waiting ---------> chosen ------> at drive ----> (free)
//!                       |  ^ ^  put back    |               |
//!              withdraw |  | '--------------'               |
//!   (free) <------------'  '--------------- requeue --------'
//! ```

use crate::policy::PieceId;
use block::{Direction, Duration, Instant};

use super::level::PriorityLevel;
use crate::policy::EligibleRequest;

/// The absent piece, which ends a list.
pub(super) const NONE: PieceId = PieceId(u32::MAX);

/// The state of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceState {
    /// The slot holds no piece.
    Free,
    /// The piece waits for predecessors, or in a queue.
    Waiting,
    /// The piece is next, and not at the drive yet.
    Chosen,
    /// The piece's command is at the drive.
    AtDrive,
}

/// A change of a piece's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transition {
    Enter,
    Withdraw,
    Choose,
    PutBack,
    Give,
    Requeue,
    End,
}

/// All legal transitions.
pub(super) const LEGAL: &[(PieceState, Transition, PieceState)] = &[
    (PieceState::Free, Transition::Enter, PieceState::Waiting),
    (PieceState::Waiting, Transition::Choose, PieceState::Chosen),
    (PieceState::Chosen, Transition::Give, PieceState::AtDrive),
    (PieceState::AtDrive, Transition::End, PieceState::Free),
    (PieceState::Chosen, Transition::PutBack, PieceState::Waiting),
    (
        PieceState::AtDrive,
        Transition::Requeue,
        PieceState::Waiting,
    ),
    (PieceState::Waiting, Transition::Withdraw, PieceState::Free),
];

/// The same as a table by state and transition.
const AFTER: [[Option<PieceState>; 7]; 4] = {
    let mut after = [[None; 7]; 4];
    let mut row = 0;
    while row < LEGAL.len() {
        let (from, step, to) = LEGAL[row];
        after[from as usize][step as usize] = Some(to);
        row += 1;
    }
    after
};

/// The part of a queue in which a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueuePart {
    /// The piece is in no queue.
    Out,
    /// The piece was given back, by the drive or before it got there. The last such piece goes
    /// first.
    Requeued,
    /// The piece was released by an overlapping one. The first such piece goes first.
    Bound,
    /// The piece is with the policy.
    Sorted,
}

/// The purpose of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thread {
    /// Pieces that go before the policy's.
    Queue,
    /// Pieces with patience.
    Age,
    /// The members of a combined request.
    Combined,
    /// The waiting writes between two barriers.
    Epoch,
}

/// A piece of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestPiece {
    /// The policy's view of the piece. Its ticket is the piece's slot.
    pub(super) pending: EligibleRequest,
    /// The number of the piece's request.
    pub(super) request_slot: u32,
    pub(super) level: PriorityLevel,
    pub(super) stage: PieceState,
    pub(super) part: QueuePart,
    /// Whether the piece is in the list by age.
    pub(super) is_patient: bool,
    /// The number of times that the piece was requeued.
    pub(super) requeued: u8,
    /// A hint where its footprint is.
    pub(super) footprint: u32,
    /// The number of earlier, unended pieces that overlap it, one of each pair being a write.
    pub(super) conflicts: u32,
    /// The epoch of a write.
    pub(super) epoch: u64,
    pub(super) entered: Instant,
    /// The moment at which the patience begins.
    pub(super) since: Instant,
    pub(super) given: Instant,
    /// The time for which overlapping pieces or barriers held it back.
    pub(super) ordered: Duration,
    links: [PieceLink; 4],
}

/// The neighbours in a list.
#[derive(Clone, Copy, Debug)]
struct PieceLink {
    older: PieceId,
    newer: PieceId,
}

/// The ends of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub(super) oldest: PieceId,
    pub(super) newest: PieceId,
}

/// All pieces.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces {
    pieces: Vec<RequestPiece>,
    free: Vec<PieceId>,
}

impl PieceState {
    /// The state after `step`.
    ///
    /// # Panics
    /// If the transition is not in [`LEGAL`]: a piece would be lost, or end twice.
    pub(super) fn after(self, step: Transition) -> PieceState {
        AFTER[self as usize][step as usize]
            .unwrap_or_else(|| panic!("a piece that is {self:?} cannot {step:?}"))
    }
}

impl RequestPiece {
    #[inline]
    pub(super) fn new(
        pending: EligibleRequest,
        request_slot: u32,
        level: PriorityLevel,
        now: Instant,
    ) -> Self {
        RequestPiece {
            pending,
            request_slot,
            level,
            stage: PieceState::Free,
            part: QueuePart::Out,
            is_patient: false,
            requeued: 0,
            footprint: 0,
            conflicts: 0,
            epoch: 0,
            entered: now,
            since: now,
            given: now,
            ordered: Duration::ZERO,
            links: [PieceLink::NOWHERE; 4],
        }
    }

    /// A new piece of the same request for other blocks, in no list.
    pub(super) fn anew(&self, pending: EligibleRequest) -> Self {
        RequestPiece {
            pending,
            stage: PieceState::Free,
            part: QueuePart::Out,
            conflicts: 0,
            links: [PieceLink::NOWHERE; 4],
            ..*self
        }
    }

    pub(super) fn is_write(&self) -> bool {
        self.pending.direction == Direction::Write
    }

    /// Whether the two pieces must not be at the drive at once.
    pub(super) fn conflicts_with(&self, other: &RequestPiece) -> bool {
        (self.is_write() || other.is_write()) && self.pending.extent.overlaps(other.pending.extent)
    }

    pub(super) fn older(&self, thread: Thread) -> PieceId {
        self.links[thread as usize].older
    }

    pub(super) fn newer(&self, thread: Thread) -> PieceId {
        self.links[thread as usize].newer
    }
}

impl PieceLink {
    const NOWHERE: PieceLink = PieceLink {
        older: NONE,
        newer: NONE,
    };
}

impl List {
    pub(super) const EMPTY: List = List {
        oldest: NONE,
        newest: NONE,
    };

    pub(super) fn is_empty(self) -> bool {
        self.oldest == NONE
    }
}

impl Pieces {
    /// The number of pieces.
    pub(super) fn held(&self) -> usize {
        self.pieces.len() - self.free.len()
    }

    /// The state of a slot; a slot that was never used is free.
    pub(super) fn stage(&self, piece: PieceId) -> PieceState {
        self.pieces
            .get(piece.index())
            .map_or(PieceState::Free, |piece| piece.stage)
    }

    pub(super) fn get(&self, piece: PieceId) -> &RequestPiece {
        &self.pieces[piece.index()]
    }

    pub(super) fn get_mut(&mut self, piece: PieceId) -> &mut RequestPiece {
        &mut self.pieces[piece.index()]
    }

    /// Adds a piece, and returns its slot, which is its ticket.
    #[inline]
    pub(super) fn enter(&mut self, piece: impl FnOnce() -> RequestPiece) -> PieceId {
        // Pieces are large, and are made where they stay.
        let place = match self.free.pop() {
            Some(place) => {
                self.pieces[place.index()] = piece();
                place
            }
            None => {
                self.pieces.push(piece());
                PieceId(self.pieces.len() as u32 - 1)
            }
        };
        let entry = self.get_mut(place);
        entry.pending.ticket = place;
        entry.stage = entry.stage.after(Transition::Enter);
        place
    }

    /// Whether the piece is with a policy. Any number is a valid argument.
    pub(super) fn is_sorted(&self, piece: PieceId) -> bool {
        let piece = self.pieces.get(piece.index());
        piece.is_some_and(|piece| piece.part == QueuePart::Sorted)
    }

    /// All pieces that are with a policy, in the order of arrival.
    pub(super) fn sorted(&self) -> Vec<PieceId> {
        let sorted = self
            .pieces
            .iter()
            .filter(|piece| piece.part == QueuePart::Sorted);
        let mut sorted: Vec<&RequestPiece> = sorted.collect();
        sorted.sort_by_key(|piece| piece.pending.order);
        sorted.iter().map(|piece| piece.pending.ticket).collect()
    }

    /// The oldest piece that is with a policy and satisfies `is_there`.
    pub(super) fn first_sorted(&self, is_there: impl Fn(&RequestPiece) -> bool) -> Option<PieceId> {
        self.pieces
            .iter()
            .filter(|piece| piece.part == QueuePart::Sorted && is_there(piece))
            .map(|piece| (piece.pending.order, piece.pending.ticket))
            .min()
            .map(|(_, piece)| piece)
    }

    pub(super) fn step(&mut self, piece: PieceId, step: Transition) {
        let entry = &mut self.pieces[piece.index()];
        entry.stage = entry.stage.after(step);
        if entry.stage == PieceState::Free {
            self.free.push(piece);
        }
    }

    /// Appends a piece to a list as its newest.
    pub(super) fn push(&mut self, list: &mut List, thread: Thread, piece: PieceId) {
        let newest = list.newest;
        self.get_mut(piece).links[thread as usize] = PieceLink {
            older: newest,
            newer: NONE,
        };
        match newest {
            NONE => list.oldest = piece,
            newest => self.get_mut(newest).links[thread as usize].newer = piece,
        }
        list.newest = piece;
    }

    /// Inserts a piece into a list after `older`, or first if `older` is [`NONE`].
    pub(super) fn insert(
        &mut self,
        list: &mut List,
        thread: Thread,
        piece: PieceId,
        older: PieceId,
    ) {
        let newer = match older {
            NONE => list.oldest,
            older => self.get(older).newer(thread),
        };
        if newer == NONE {
            return self.push(list, thread, piece);
        }
        self.get_mut(piece).links[thread as usize] = PieceLink { older, newer };
        self.get_mut(newer).links[thread as usize].older = piece;
        match older {
            NONE => list.oldest = piece,
            older => self.get_mut(older).links[thread as usize].newer = piece,
        }
    }

    /// Removes a piece from a list.
    pub(super) fn unlink(&mut self, list: &mut List, thread: Thread, piece: PieceId) {
        let PieceLink { older, newer } = self.get(piece).links[thread as usize];
        match older {
            NONE => list.oldest = newer,
            older => self.get_mut(older).links[thread as usize].newer = newer,
        }
        match newer {
            NONE => list.newest = older,
            newer => self.get_mut(newer).links[thread as usize].older = older,
        }
    }
}
