//! Reads of hastened tasks, for which a client waits: in turn with the commands of the foreground.
//!
//! ```text
//!   requests wait     request | hastened | hastened | request | hastened | hastened | ...
//!   no request waits            hastened | hastened | hastened | ...
//! ```

use block::{Direction, Sectors};
use scheduler::background::Means;

use super::GapStage;
use crate::command::{BackgroundRead, Draft, StageAnswer};
use crate::context::StageContext;
use crate::guarantees::{FOREGROUND_BYTES, Guarantees};

/// Reads of a hastened task between two commands of the foreground. With one, a task took 2.2 to 2.5 times as long as a client
/// that reads the same blocks with 4 or 16 requests in flight (docs/results/sets.md); the goal is at most twice.
const IN_A_ROW: u8 = 2;

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
        let before = std::mem::take(&mut self.hastened);
        if before >= IN_A_ROW && cx.ordering.waiting() > 0 {
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
        self.hastened = before.saturating_add(1);
        StageAnswer::Give(Draft::Background(BackgroundRead::of(&stop, Means::Paid)))
    }
}
