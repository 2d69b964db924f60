//! The state that all stages of an engine read: requests, their order, the belief and the commands.

use block::{Direction, Extent, Instant, Request};
use drive::Profile;
use scheduler::PieceId;
use scheduler::ordering::{DriveActivity, NextPiece};
use scheduler::{Ordering, Sight};

use crate::belief::DriveBelief;
use crate::command::Draft;
use crate::dispatch::Dispatch;
use crate::forecast::{Head, Route};
use crate::intake::Intake;

/// The state that stages share: requests, their order, the belief, and the commands.
pub(crate) struct StageContext<'a> {
    pub(crate) now: Instant,
    pub(crate) intake: &'a mut Intake,
    /// The pieces of the requests that wait or are at the drive.
    pub(crate) ordering: &'a mut Ordering,
    pub(crate) belief: &'a mut DriveBelief,
    pub(crate) dispatch: &'a mut Dispatch,
}

impl StageContext<'_> {
    /// What is believed of the drive.
    pub(crate) fn profile(&self) -> &Profile {
        self.belief.profile()
    }

    /// Whether the position of the head is of use.
    pub(crate) fn sight(&self) -> Sight {
        self.belief.sight(self.ordering)
    }

    /// The head when all commands at the drive will have ended.
    pub(crate) fn expected_head(&self) -> Head {
        let head = self.belief.head;
        if self.sight() == Sight::Order {
            return head;
        }
        let belief = self.profile();
        let mut head = head;
        for sent in self.dispatch.commands() {
            if let Some(route) = &sent.route {
                head = sent.course(&head, belief, route).head;
            }
        }
        head
    }

    /// The request of a piece.
    pub(crate) fn request(&self, piece: PieceId) -> &Request {
        &self
            .intake
            .slots
            .get(self.ordering.request_slot(piece))
            .request
    }

    /// Where a piece lies.
    pub(crate) fn route(&self, piece: PieceId) -> &Route {
        self.belief.route(piece)
    }

    /// Whether a command at the drive writes some of these blocks.
    pub(crate) fn is_being_written(&self, extent: Extent) -> bool {
        self.dispatch.pieces().any(|piece| {
            let (direction, blocks) = self.ordering.blocks(piece);
            direction == Direction::Write && blocks.overlaps(extent)
        })
    }

    /// Which piece is next. It must be given or put back.
    pub(crate) fn choose(&mut self) -> Option<PieceId> {
        let head = self.expected_head();
        let drive = match self.dispatch.at_drive() {
            0 => DriveActivity::Idle,
            _ => DriveActivity::Busy,
        };
        let view = head.view(self.belief.profile(), self.now);
        match self.ordering.choose(self.now, &view, drive) {
            NextPiece::Piece(piece) => Some(piece),
            NextPiece::Nothing(until) => {
                self.dispatch.wakeup = until;
                None
            }
        }
    }

    /// Divides a waiting piece, which keeps only the blocks of `part`. As many pieces are held as may be: then nothing is
    /// divided.
    pub(crate) fn divide(&mut self, piece: PieceId, part: Extent) {
        let (sight, belief) = (self.sight(), &mut *self.belief);
        let mut enter = |piece, direction, extent| {
            let route = Route::seen(sight, belief.profile(), extent, direction);
            let route = route.expect("a part of what the belief maps is mapped");
            belief.keep(piece, route.as_ref())
        };
        let cut = self.ordering.divide(self.now, piece, part, &mut enter);
        let more = cut.iter().flatten().count() as u32;
        let slot = self.ordering.request_slot(piece);
        self.intake.slots.divided(slot, more);
    }

    /// The choice is given up: the chosen piece waits again, and what came before it is not read.
    pub(crate) fn put_back_chosen(&mut self) {
        if let Some(piece) = self.dispatch.chosen_piece() {
            self.ordering.put_back(piece);
            self.clear_chosen();
        }
    }

    /// Nothing is chosen any more. The chosen piece has been given back; background requests before it wait again.
    pub(crate) fn clear_chosen(&mut self) {
        while !self.dispatch.chosen.is_empty() {
            self.leave_out_first();
        }
        self.dispatch.settled = false;
    }

    /// The first draft is not given to the drive: a background request waits again.
    pub(crate) fn leave_out_first(&mut self) {
        if let Some(Draft::InGap { piece }) = self.dispatch.chosen.pop_front() {
            self.ordering.unchoose(piece);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
