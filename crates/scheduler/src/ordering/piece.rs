//! The pieces of requests that a drive is given one by one, where they stand, and the lists in
//! which they are threaded. Nothing is allocated while no more pieces are held than before.
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

/// No piece: the end of a list.
pub(super) const NONE: PieceId = PieceId(u32::MAX);

/// Where a piece stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceState {
    /// The place holds no piece.
    Free,
    /// It waits: behind others, or in a queue.
    Waiting,
    /// It is next, and not given to the drive yet.
    Chosen,
    /// Its command is at the drive.
    AtDrive,
}

/// What happens to a piece.
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

/// All legal steps.
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

/// The same by stage and step.
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

/// In which part of a queue a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueuePart {
    /// In none: it waits behind others or is not waiting.
    Out,
    /// Given back, by the drive or before it got there; the last one goes first.
    Requeued,
    /// Released from behind an overlapping one; the first one goes first.
    Bound,
    /// With the policy.
    Sorted,
}

/// Who threads pieces into a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thread {
    /// Those that go before a policy's.
    Queue,
    /// Those with patience.
    Age,
    /// A combined request.
    Combined,
    /// The waiting writes between two barriers.
    Epoch,
}

/// A piece of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestPiece {
    /// What a policy is told of it; the ticket is its place.
    pub(super) pending: EligibleRequest,
    /// Whose piece it is.
    pub(super) owner: u32,
    pub(super) level: PriorityLevel,
    pub(super) stage: PieceState,
    pub(super) part: QueuePart,
    /// Whether it is threaded by age.
    pub(super) is_patient: bool,
    /// How often it was requeued.
    pub(super) requeued: u8,
    /// Earlier pieces that overlap it, with a write among the two, and have not ended.
    pub(super) conflicts: u32,
    /// Between which barriers, if it is a write.
    pub(super) epoch: u64,
    pub(super) entered: Instant,
    /// Since when its patience counts.
    pub(super) since: Instant,
    pub(super) given: Instant,
    /// How long it waited behind others.
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
    /// Where `step` leads from here.
    ///
    /// # Panics
    /// If the step is not in [`LEGAL`]: a piece would be lost, or end twice.
    pub(super) fn after(self, step: Transition) -> PieceState {
        AFTER[self as usize][step as usize]
            .unwrap_or_else(|| panic!("a piece that is {self:?} cannot {step:?}"))
    }
}

impl RequestPiece {
    pub(super) fn new(
        pending: EligibleRequest,
        owner: u32,
        level: PriorityLevel,
        now: Instant,
    ) -> Self {
        RequestPiece {
            pending,
            owner,
            level,
            stage: PieceState::Free,
            part: QueuePart::Out,
            is_patient: false,
            requeued: 0,
            conflicts: 0,
            epoch: 0,
            entered: now,
            since: now,
            given: now,
            ordered: Duration::ZERO,
            links: [PieceLink::NOWHERE; 4],
        }
    }

    /// A piece like this one, for other blocks, that has not entered and is in no list.
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

    /// Whether the two may not be at the drive at once.
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
    /// How many there are.
    pub(super) fn held(&self) -> usize {
        self.pieces.len() - self.free.len()
    }

    /// The stage of a place; one that was never used is free.
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

    /// Takes a piece in; it gets a place, which is its ticket.
    pub(super) fn enter(&mut self, piece: RequestPiece) -> PieceId {
        let place = match self.free.pop() {
            Some(place) => {
                self.pieces[place.index()] = piece;
                place
            }
            None => {
                self.pieces.push(piece);
                PieceId(self.pieces.len() as u32 - 1)
            }
        };
        let entry = self.get_mut(place);
        entry.pending.ticket = place;
        entry.stage = entry.stage.after(Transition::Enter);
        place
    }

    /// Whether a policy knows the piece and may serve it; any number may be asked for.
    pub(super) fn is_sorted(&self, piece: PieceId) -> bool {
        let piece = self.pieces.get(piece.index());
        piece.is_some_and(|piece| piece.part == QueuePart::Sorted)
    }

    /// All that a policy knows, in the order of their arrival.
    pub(super) fn sorted(&self) -> Vec<PieceId> {
        let sorted = self
            .pieces
            .iter()
            .filter(|piece| piece.part == QueuePart::Sorted);
        let mut sorted: Vec<&RequestPiece> = sorted.collect();
        sorted.sort_by_key(|piece| piece.pending.order);
        sorted.iter().map(|piece| piece.pending.ticket).collect()
    }

    /// Of those with a policy for which `is_there` holds, the one that arrived first.
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

    /// Threads a piece into a list as its newest.
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

    /// Threads a piece into a list, next to `older`; before all others if that is [`NONE`].
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

    /// Takes a piece out of a list.
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
