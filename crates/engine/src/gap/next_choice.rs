//! The choice of the request after the next, which is made when the free read before that has ended.
//!
//! ```text
//!   drive    |= A =|---- seek ---|= X =|---- seek ----|= B =|      C
//!   bus                                |== X ==|
//!   engine         B given                     C chosen
//!                                              |- electronics -|  late if it ends after B
//! ```

use block::{Duration, Instant};
use scheduler::freeblock::{Conservatism, Gap, GapPlan, Kind, PlanKind, SlowBus, Stop};

use crate::context::StageContext;
use crate::forecast::{Course, Head};

/// The end of a command with free blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadEnd {
    pub(super) at: Instant,
    /// By how much the free blocks may have delayed it, if they were merged with a request.
    pub(super) merged: Option<Duration>,
}

/// A request is chosen that is believed to go like `course`, behind what leaves the head as `head`.
/// Without the free read that has just ended, it would have been chosen before that, in time. Returns
/// the kind of that read's plan.
pub(super) fn charge_late_choice(
    (read_end, conservatism): (Option<ReadEnd>, &mut Conservatism),
    cx: &StageContext<'_>,
    head: &Head,
    course: &Course,
) -> Option<PlanKind> {
    let read = read_end.filter(|read| read.at == cx.now)?;
    let last = cx.dispatch.last()?;
    let late = course.start.since(head.free);
    let late = read.merged.map_or(late, |most| late.min(most));
    // Whoever follows the requests at the drive waits for it, too.
    let behind = 1 + cx.dispatch.pieces().count() + cx.ordering.waiting_foreground();
    conservatism.delayed(late * behind as u64);
    if read.merged.is_some() {
        conservatism.learn_late_choice(late);
    }
    let kind = match (read.merged, last.route) {
        (None, Some(before)) => PlanKind::before(before.direction()),
        _ => PlanKind::Merged,
    };
    Some(kind)
}

/// How much later the drive takes up the command after the request because of a plan: it is chosen
/// when the last free read has ended. The request leaves the medium at `ends`.
pub(super) fn late_choice(gap: &Gap, ends: Instant, plan: &GapPlan) -> Duration {
    let own = plan.stops().filter(|stop| stop.kind != Kind::Merged);
    let Some(last) = own.last() else {
        return Duration::ZERO;
    };
    let bus = gap.bus.map(|bus| after(bus, last));
    // The handover has the last block on the bus.
    let carried = bus.map_or(last.ends, |bus| bus.free.saturating_sub(bus.block));
    let ready = last.ends.max(carried) + gap.handover;
    ready.since(ends)
}

/// How much later the bus has carried the request because of the free blocks that are merged with it.
pub(super) fn later_on_bus(gap: &Gap, ends: Instant, plan: &GapPlan) -> Duration {
    let merged = plan.stops().find(|stop| stop.kind == Kind::Merged);
    let (Some(bus), Some(merged)) = (gap.bus, merged) else {
        return Duration::ZERO;
    };
    let own = gap.extent.length().0;
    let alone = bus.after((gap.begins, ends), own);
    let all = own + merged.extent.length().0;
    let both = bus.after((merged.begins, ends), all);
    both.free.since(alone.free)
}

/// The bus after a free read.
fn after(bus: SlowBus, stop: &Stop) -> SlowBus {
    bus.after((stop.begins, stop.ends), stop.extent.length().0)
}
