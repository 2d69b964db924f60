//! What the end of a command tells each stage: the belief learns, background blocks are delivered, and
//! the piece ends or waits again.

use block::{Outcome, Status};
use scheduler::PieceId;

use super::sent::{Approach, Purpose, Sent};
use crate::belief::following::Learned;
use crate::belief::forecast::Route;
use crate::belief::log;
use crate::context::{StageContext, Stages};
use crate::guarantees::Guarantees;
use crate::intake::slots::{End, Parts};
use crate::preemption::{Remainder, Transfers, WaitsAgain};

/// A command has ended, as the drive says.
pub(crate) fn complete(stages: &mut Stages<'_>, sent: &Sent, outcome: &Outcome) {
    let now = stages.cx.now;
    log::remember(&mut stages.cx, sent, outcome);
    stages.guarantees.note_end(now, sent.id);
    if matches!(sent.purpose, Purpose::Flush) {
        stages.cx.intake.busy = now;
        stages.cx.intake.flushes.end(now, outcome.status);
        return;
    }
    if let Some(route) = &sent.route {
        learn(stages, sent, route);
    }
    let Stages {
        cx,
        guarantees,
        preemption,
        gap,
    } = stages;
    cx.belief.note_end(now);
    cx.belief.count_calibration(sent, outcome);
    let lost = gap.account_for(cx, sent, outcome);
    let Some(piece) = sent.purpose.piece() else {
        return;
    };
    cx.intake.busy = now;
    let Some(end) = end_part(cx, guarantees, preemption, piece, sent, outcome) else {
        return;
    };
    let slot = cx.ordering.owner(piece);
    cx.ordering.end(now, piece);
    if !guarantees.is_of_stream(slot) {
        gap.charge(cx, slot, lost);
    }
    if cx.intake.slots.part_ended(slot, end) == Parts::All {
        guarantees.end_request(cx, slot);
    }
}

/// The head is known again, and the belief learns from the end of a command.
fn learn(stages: &mut Stages<'_>, sent: &Sent, route: &Route) {
    let Stages {
        cx,
        preemption,
        gap,
        ..
    } = stages;
    let course = cx.belief.resync(cx.now, sent, route);
    cx.dispatch.resync(sent.id, cx.belief.head.free);
    if sent.is_buffered || sent.approach != Approach::Seek {
        cx.belief.track_silently();
        return;
    }
    // Without a seek there is nothing to learn, and inside its blocks the head waits for none.
    let has_waited = !course.pass.seek.is_zero() && course.pass.wrapped.is_zero();
    let late = has_waited.then(|| cx.belief.revolutions(cx.now, &course, route));
    if let Some(revolutions) = late.flatten() {
        let period = cx.profile().spindle.period();
        preemption.note_landing(sent, course.pass.rotation, period, revolutions);
        gap.observe(&course, route, revolutions);
    }
    if let Some(learned) = cx.belief.track(cx.now, &course, route) {
        adapt(stages, &learned);
    }
}

/// The belief has learned: the other stages adapt to it.
pub(crate) fn adapt(stages: &mut Stages<'_>, learned: &Learned) {
    let Stages {
        cx,
        guarantees,
        gap,
        ..
    } = stages;
    if learned.policy.is_some() || learned.is_refined {
        // What was chosen by the belief is chosen again.
        cx.put_back_chosen();
        cx.dispatch.settled = false;
    }
    if let Some(policy) = learned.policy {
        cx.ordering.adopt(&|| policy.make());
    }
    gap.widen(learned.caution);
    if learned.is_turned {
        gap.turn(cx.belief);
    }
    if learned.is_refined {
        gap.refine(cx.belief);
        guarantees.relearn(cx.now, cx.belief);
    }
}

/// A command of a piece has ended: the end of the piece, if it is the last one; otherwise the piece may
/// wait again.
fn end_part(
    cx: &mut StageContext<'_>,
    guarantees: &Guarantees,
    preemption: &mut Transfers,
    piece: PieceId,
    sent: &Sent,
    outcome: &Outcome,
) -> Option<End> {
    // The drive gave it back undone, or what failed may have been the free blocks that were merged
    // with it.
    let is_merged = matches!(sent.purpose, Purpose::Merged { .. });
    let is_undone =
        outcome.status == Status::TimedOut || (is_merged && outcome.status != Status::Good);
    // Another try was not counted when the batch was promised.
    let is_tried_again =
        is_undone && !guarantees.is_batch(cx, piece) && cx.ordering.requeued(piece) < RETRIES;
    let waited = cx.ordering.waited(piece);
    let ended = (outcome.status, outcome.account);
    let rest = preemption.part_ended(cx.now, (piece, waited.all), sent, ended, is_tried_again);
    match rest {
        Remainder::None(status, account, all) => Some(End {
            at: outcome.at,
            status,
            waited: all,
            waited_order: waited.order,
            account,
        }),
        Remainder::Waits(WaitsAgain::GivenBack) => {
            cx.dispatch.retried += 1;
            cx.ordering.requeue(piece);
            None
        }
        Remainder::Waits(WaitsAgain::SteppedAside) => {
            cx.ordering.step_aside(piece);
            None
        }
        Remainder::More => None,
    }
}

/// How often a command is given again that the drive gave back undone. A choice: once shows whether
/// it was bad luck.
const RETRIES: u8 = 1;
