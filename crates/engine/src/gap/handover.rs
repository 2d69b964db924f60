//! From one command to the next: when it is given to the drive, and when the bus is free for its blocks.

use block::{Direction, Duration, Instant};
use drive::Profile;
use drive::mechanics::Pass;
use scheduler::freeblock::SlowBus;

use crate::context::StageContext;
use crate::forecast::{Head, Route};

/// The earliest start of a request's positioning, if a free read comes before it: it is given
/// to the drive when a command has ended. `slow_block` is for how long a bus that is slower than the
/// medium carries a block.
pub(super) fn follows(
    cx: &StageContext<'_>,
    head: &Head,
    direction: Direction,
    slow_block: Option<Duration>,
) -> Instant {
    given_after(cx, head, slow_block) + electronics(cx.profile(), direction)
}

/// When a request is given to the drive, if another command that is given now comes before it.
pub(super) fn given_after(
    cx: &StageContext<'_>,
    head: &Head,
    slow_block: Option<Duration>,
) -> Instant {
    let belief = cx.profile();
    let last = cx.dispatch.last().and_then(|sent| sent.route.as_ref());
    let is_full = cx.dispatch.at_drive() + 1 >= cx.intake.limits.commands_at_drive;
    match last.filter(|_| is_full) {
        Some(route) => {
            let pass = Pass {
                transfer: route.sweep(belief),
                ..Default::default()
            };
            let ends = head.free + route.tail(belief, &pass);
            match (slow_block, route.direction()) {
                (Some(_), Direction::Read) => {
                    let carried = route.carried(belief, head.free, cx.now);
                    ends.max(carried + belief.overheads.read_completion)
                }
                _ => ends,
            }
        }
        None => cx.now,
    }
}

/// The bus between the command before and a request whose first sector comes at `begins`, if it
/// is slower than the medium and carries a block in `slow_block`.
pub(super) fn slow_bus(
    cx: &StageContext<'_>,
    head: &Head,
    route: &Route,
    begins: Instant,
    slow_block: Option<Duration>,
) -> Option<SlowBus> {
    let block = slow_block?;
    let belief = cx.profile();
    let last = cx.dispatch.last().and_then(|sent| sent.route.as_ref());
    let free = last.map_or(cx.now, |last| last.carried(belief, head.free, cx.now));
    let needed = match route.direction() {
        Direction::Read => begins + route.held(),
        Direction::Write => begins.saturating_sub(route.lag(belief)),
    };
    Some(SlowBus {
        block,
        watermark: belief.buffer.read_watermark,
        reselect: belief.overheads.read_reselect,
        free,
        needed,
    })
}

/// From the end of a free read on the medium until a request that is given to the drive at
/// its completion can begin: the read's last block goes over the bus first.
pub(super) fn handover(belief: &Profile, direction: Direction) -> Duration {
    let tail = belief.bus.read_block + belief.overheads.read_completion;
    tail + electronics(belief, direction)
}

/// What the electronics take before a request that comes after a read.
fn electronics(belief: &Profile, direction: Direction) -> Duration {
    match direction {
        Direction::Read => belief.overheads.read_miss.read,
        Direction::Write => belief.overheads.write_miss.read,
    }
}
