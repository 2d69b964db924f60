//! Reads of hastened tasks, for which a client waits: in turn with the commands of the foreground.
//!
//! ```text
//!   requests wait     request | hastened | request | hastened | ...
//!   no request waits            hastened | hastened | hastened | ...
//! ```

use block::{Direction, Sectors};
use scheduler::background::Means;

use super::GapStage;
use crate::command::{BackgroundRead, Draft, StageAnswer};
use crate::context::StageContext;
use crate::guarantees::{FOREGROUND_BYTES, Guarantees};

/// Whose turn it is while a task is hastened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Turn {
    /// A request that waits goes first.
    Request,
    /// The hastened task goes first.
    #[default]
    Hastened,
}

impl GapStage {
    /// A read of a hastened task, if it is its turn: the one with the most wanted blocks for its head time
    /// near the expected end of the commands at the drive. It is no longer than a part of a request beside
    /// streams, and never reads blocks that are being written.
    pub(crate) fn hasten(
        &mut self,
        cx: &mut StageContext<'_>,
        guarantees: &Guarantees,
    ) -> StageAnswer {
        let Some(free) = self.free.as_deref_mut() else {
            return StageAnswer::Pass;
        };
        if !free.tasks.is_any_hastened() {
            return StageAnswer::Pass;
        }
        let turn = std::mem::take(&mut self.turn);
        if turn == Turn::Request && cx.ordering.waiting() > 0 {
            return StageAnswer::Pass;
        }
        let head = cx.expected_head();
        let leaves = head.view(cx.profile(), cx.now).start(Direction::Read);
        let most = FOREGROUND_BYTES / u64::from(cx.profile().block_bytes);
        let wanted = free.tasks.hastened();
        let stop = wanted.and_then(|wanted| {
            let most = Sectors(most.max(1));
            free.planner.idle(wanted, head.position, leaves, most)
        });
        let Some(stop) = stop.filter(|stop| {
            !cx.is_being_written(stop.extent) && guarantees.leaves_room(cx, stop.extent)
        }) else {
            return StageAnswer::Pass;
        };
        self.turn = Turn::Request;
        StageAnswer::Give(Draft::Background(BackgroundRead::of(&stop, Means::Paid)))
    }
}
