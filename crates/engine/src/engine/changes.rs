//! Changes that a client makes to requests that wait: urgency, and abortion.

use block::{Class, Extent, RequestId, Status};
use scheduler::PieceId;
use scheduler::ordering::PieceState;

use super::row::Stages;
use crate::context::StageContext;
use crate::intake::slots::{End, Parts};
use crate::intake::{Unchanged, level_of};

impl Stages<'_> {
    /// Raises the waiting blocks of `part` to `class`: the request is divided, and its dependencies are
    /// raised with it.
    pub(super) fn upgrade(
        &mut self,
        id: RequestId,
        part: Extent,
        class: Class,
    ) -> Result<(), Unchanged> {
        let level = level_of(class).map_err(|priority| Unchanged::Priority { priority })?;
        let slot = self.slot_of(id)?;
        let cx = &mut self.cx;
        let extent = cx.intake.slots.get(slot).request.extent;
        if !extent.overlaps(part) {
            return Err(Unchanged::Outside { id, part, extent });
        }
        // What is chosen is not at the drive yet.
        cx.put_back_chosen();
        let waiting = waiting_pieces(cx, slot, part);
        for &piece in &waiting {
            // What has begun is raised as a whole: the rest of it is what is wanted.
            if cx.ordering.level(piece) > level && !self.preemption.has_begun(piece) {
                cx.divide(piece, part);
            }
            cx.ordering.raise(cx.now, piece, level);
            cx.dispatch.settled = false;
        }
        cx.intake.give_back_found(id, waiting)
    }

    /// Aborts the pieces of a request that wait. Those at the drive end there first.
    pub(super) fn abort(&mut self, id: RequestId) -> Result<(), Unchanged> {
        let slot = self.slot_of(id)?;
        let cx = &mut self.cx;
        let extent = cx.intake.slots.get(slot).request.extent;
        // Another request that is chosen stays so, with what was planned before it.
        let is_of_it = |piece| cx.ordering.request_slot(piece) == slot;
        if cx.dispatch.chosen_pieces().any(is_of_it) {
            cx.put_back_chosen();
        }
        let waiting = waiting_pieces(cx, slot, extent);
        for &piece in &waiting {
            cx.ordering.withdraw(cx.now, piece);
            self.preemption.forget(piece);
            let waited = cx.ordering.waited(piece);
            let end = End {
                at: cx.now,
                status: Status::Aborted,
                waited: waited.all,
                waited_order: waited.order,
                account: None,
            };
            if cx.intake.slots.part_ended(slot, end) == Parts::All {
                cx.intake.ended.push_back(slot);
            }
        }
        cx.dispatch.settled = false;
        cx.intake.give_back_found(id, waiting)
    }

    /// The slot of a request that a client names: none of a stream's transfer.
    fn slot_of(&mut self, id: RequestId) -> Result<u32, Unchanged> {
        let slot = self.cx.intake.slots.find(id);
        let slot = slot.filter(|&slot| !self.guarantees.is_of_stream(slot));
        slot.ok_or(Unchanged::Unknown { id })
    }
}

/// The pieces of a request that wait and have a block of `part`.
fn waiting_pieces(cx: &mut StageContext<'_>, slot: u32, part: Extent) -> Vec<PieceId> {
    let mut found = std::mem::take(&mut cx.intake.found);
    found.clear();
    cx.ordering.pieces_of(slot, part, &mut found);
    found.retain(|&piece| cx.ordering.stage(piece) == PieceState::Waiting);
    found
}
