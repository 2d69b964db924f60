//! What a gap tells when its request ends: what was in it, and why.

use block::Duration;
use scheduler::freeblock::{Conservatism, Gap, GapGroup, GapUse, PlanKind, SlowBus};

use super::free_blocks::GapDecision;

/// The use of a gap before a request that waits for its sector for `latency`. If the request was chosen because
/// a free read had ended, `after` is the kind of that read's plan. A gap that a slow bus keeps from being filled
/// tells nothing: its request may be late for the same reason.
pub(super) fn gap_use(
    conservatism: &Conservatism,
    (gap, latency, period): (&Gap, Duration, Duration),
    (decided, after): (&GapDecision, Option<PlanKind>),
) -> GapUse {
    let in_time = || conservatism.expected_alone(gap, latency);
    let is_bus_busy = |bus: SlowBus| bus.needed.since(bus.free) * CALM_BUS < period;
    match (decided, conservatism.group(), after) {
        (GapDecision::Plan(paid), ..) => conservatism.gap_use(gap, latency, &paid.plan),
        (GapDecision::Withheld, GapGroup::Control, _) => GapUse::Withheld,
        (.., Some(after)) => GapUse::ChosenLate {
            after,
            in_time: in_time(),
        },
        _ if gap.bus.is_some_and(is_bus_busy) => GapUse::UnusedAtEdge,
        (_, GapGroup::Control, None) => GapUse::Control { in_time: in_time() },
        _ => GapUse::unused(latency, period),
    }
}

/// A bus is calm that is free by this part of a revolution before it is needed. A choice: about the blocks
/// of one request on a bus that is half as fast as the medium.
const CALM_BUS: u64 = 8;
