//! What a client may still change about requests that wait: their urgency, and whether they are
//! done at all.

use block::{Class, Extent, RequestId, Status};
use scheduler::PieceId;
use scheduler::ordering::PieceState;

use super::level_of;
use super::slots::{End, Parts};
use crate::belief::forecast::Route;
use crate::context::{StageContext, Stages};

/// Why a request was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unchanged {
    /// No request of this name is held.
    #[error("request {} is not held: it ended, or never came", id.0)]
    Unknown {
        /// What was asked for.
        id: RequestId,
    },
    /// All that was asked for is at the drive or has ended.
    #[error("request {} no longer waits: expected one that was not given to the drive", id.0)]
    NotWaiting {
        /// What was asked for.
        id: RequestId,
    },
    /// The request has none of the blocks.
    #[error("{part} are not of request {}, which has {extent}", id.0)]
    Outside {
        /// Whose blocks they should be.
        id: RequestId,
        /// What was asked for.
        part: Extent,
        /// The blocks of the request.
        extent: Extent,
    },
    /// There is no such best-effort priority.
    #[error("best-effort priority {priority}: expected 0 (most urgent) to 6")]
    Priority {
        /// What was asked for.
        priority: u8,
    },
}

/// The waiting blocks of `part` become as urgent as `class`, if they are not: a request is divided, and
/// what it waits for is raised with it.
pub(crate) fn upgrade(
    stages: &mut Stages<'_>,
    (id, part, class): (RequestId, Extent, Class),
) -> Result<(), Unchanged> {
    let Stages {
        cx,
        guarantees,
        preemption,
        ..
    } = stages;
    let level = level_of(class).map_err(|priority| Unchanged::Priority { priority })?;
    let slot = cx.intake.find(id, |slot| !guarantees.is_of_stream(slot))?;
    let extent = cx.intake.slots.get(slot).request.extent;
    if !extent.overlaps(part) {
        return Err(Unchanged::Outside { id, part, extent });
    }
    let waiting = waiting_pieces(cx, slot, part);
    let answer = match waiting.is_empty() {
        true => Err(Unchanged::NotWaiting { id }),
        false => Ok(()),
    };
    for &piece in &waiting {
        // What has begun is raised as a whole: the rest of it is what is wanted.
        if cx.ordering.level(piece) > level && !preemption.has_begun(piece) {
            divide(cx, slot, piece, part);
        }
        cx.ordering.raise(cx.now, piece, level);
        cx.dispatch.settled = false;
    }
    cx.intake.found = waiting;
    answer
}

/// A request is taken back: what of it waits is not done, and it ends as [`Status::Aborted`]. What is
/// at the drive ends there first.
pub(crate) fn abort(stages: &mut Stages<'_>, id: RequestId) -> Result<(), Unchanged> {
    let Stages {
        cx,
        guarantees,
        preemption,
        ..
    } = stages;
    let slot = cx.intake.find(id, |slot| !guarantees.is_of_stream(slot))?;
    let extent = cx.intake.slots.get(slot).request.extent;
    let waiting = waiting_pieces(cx, slot, extent);
    let answer = match waiting.is_empty() {
        true => Err(Unchanged::NotWaiting { id }),
        false => Ok(()),
    };
    for &piece in &waiting {
        cx.ordering.withdraw(cx.now, piece);
        preemption.forget(piece);
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
    cx.intake.found = waiting;
    cx.dispatch.settled = false;
    answer
}

/// The pieces of a request that wait and have a block of `part`.
fn waiting_pieces(cx: &mut StageContext<'_>, slot: u32, part: Extent) -> Vec<PieceId> {
    // What is chosen is not at the drive yet.
    cx.put_back_chosen();
    let mut found = std::mem::take(&mut cx.intake.found);
    found.clear();
    cx.ordering.pieces_of(slot, part, &mut found);
    found.retain(|&piece| cx.ordering.stage(piece) == PieceState::Waiting);
    found
}

fn divide(cx: &mut StageContext<'_>, slot: u32, piece: PieceId, part: Extent) {
    let (sight, belief) = (cx.sight(), &mut *cx.belief);
    let mut enter = |piece, direction, extent| {
        let route = Route::seen(sight, belief.profile(), extent, direction);
        belief.keep(
            piece,
            route.expect("a part of what the belief maps is mapped"),
        )
    };
    let cut = cx.ordering.divide(cx.now, piece, part, &mut enter);
    let more = cut.iter().flatten().count() as u32;
    cx.intake.slots.divided(slot, more);
}
