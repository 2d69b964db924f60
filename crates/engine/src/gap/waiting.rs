//! What free reads before a request cost those that are more urgent than it.
//!
//! ```text
//!   held back   |. . . . . . . . . |---- seek ----|landing|== B ==|      A urgent one may still overtake
//!   a detour    |-- seek --|== X ==|---- seek ----|.......|== B ==|      between the two commands
//!   merged      |------------ seek ----------|== X ====|..|== B ==|      nowhere
//! ```

use block::{Duration, Instant};
use scheduler::PieceId;
use scheduler::freeblock::{Gap, GapPlan, Kind};
use scheduler::ordering::PriorityLevel;
use scheduler::preemption::{When, Worth};

use super::slack::{HeldBack, slack};
use crate::context::StageContext;
use crate::forecast::Course;
use crate::preemption::Transfers;

/// How much longer others wait because of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    worth: Worth,
    level: PriorityLevel,
    /// When a command before the request's own begins.
    leaves: Instant,
    /// When the request's own one begins, if nothing comes before it.
    departs: Instant,
    /// When the request's first command ends.
    ends: Instant,
    /// How long more urgent ones wait for it in the mean without a plan, in nanoseconds.
    alone: f64,
    /// The requests that are served later if something goes between a detour and the request.
    behind: usize,
}

impl Waiting {
    /// How much longer others wait with this plan than without it, all together, by expectation.
    pub(crate) fn because_of(&self, plan: &GapPlan) -> Duration {
        let own = plan.stops().filter(|stop| stop.kind != Kind::Merged);
        let waiting = |held| self.worth.waiting(self.level, held);
        let with = match own.last() {
            None => waiting(self.ends.since(self.departs)),
            Some(last) => {
                // Whoever comes during a detour makes it a way that the request never needed.
                let detour = waiting(last.ends.since(self.leaves));
                detour * (1 + self.behind) as f64 + waiting(self.ends.since(last.ends))
            }
        };
        Duration::from_nanos((with - self.alone).max(0.0) as u64)
    }
}

/// What plans for `gap` before the request of `course` cost others; `None` if nothing more urgent is
/// reckoned with.
pub(super) fn waiting_beside(
    cx: &StageContext<'_>,
    preemption: &Transfers,
    piece: PieceId,
    gap: &Gap,
    course: &Course,
) -> Option<Waiting> {
    let rules = preemption.rules()?;
    if rules.when == When::Always || !preemption.may_be_outranked(cx, piece) {
        return None;
    }
    let level = cx.ordering.level(piece);
    let takes = course.pass.total();
    let slack = slack(cx, preemption, level, course, HeldBack::No);
    let alone = takes.saturating_sub(slack);
    Some(Waiting {
        worth: preemption.worth.clone(),
        level,
        leaves: gap.leaves,
        departs: course.start,
        ends: course.start + takes,
        alone: preemption.worth.waiting(level, alone),
        behind: 1 + cx.ordering.waiting_foreground(),
    })
}

#[cfg(test)]
mod tests;
