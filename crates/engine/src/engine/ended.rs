//! The end of a command: the belief learns, background blocks are delivered, and the piece ends or waits
//! again.

use block::{Outcome, Status};
use drive::Certainty;
use scheduler::PieceId;
use scheduler::freeblock::ObservedSeek;

use super::row::Stages;
use crate::belief::explanation::Whose;
use crate::belief::following::Learned;
use crate::command::{Approach, Purpose, SentCommand};
use crate::context::StageContext;
use crate::forecast::Route;
use crate::intake::slots::{End, Parts};
use crate::preemption::{Remainder, WaitsAgain};

impl Stages<'_> {
    /// Completes a command that has left the drive.
    pub(super) fn complete(&mut self, sent: &SentCommand, outcome: &Outcome) {
        let now = self.cx.now;
        if self.cx.belief.is_logging() {
            let whose = whose(&self.cx, sent);
            self.cx.belief.log_end(now, sent, whose, outcome);
        }
        let is_own = self.guarantees.note_end(&self.cx, sent);
        if matches!(sent.purpose, Purpose::Flush) {
            self.cx.intake.busy = now;
            let flushes = &mut self.cx.intake.flushes;
            return match is_own {
                true => flushes.end_own(now, outcome.status),
                false => flushes.end(now, outcome.status),
            };
        }
        let late = match &sent.route {
            Some(route) => self.learn(sent, route),
            None => 0,
        };
        self.cx.belief.note_end(now);
        self.cx.belief.count_calibration(sent, outcome);
        let lost = self.gap.account_for(&self.cx, (sent, late), outcome);
        let Some(piece) = sent.purpose.piece() else {
            return;
        };
        self.cx.intake.busy = now;
        let Some(end) = self.end_part(piece, sent, outcome) else {
            return;
        };
        let slot = self.cx.ordering.request_slot(piece);
        self.cx.ordering.end(now, piece);
        if !self.guarantees.is_of_stream(slot) {
            self.gap.charge(&self.cx, slot, lost);
        }
        if self.cx.intake.slots.part_ended(slot, end) == Parts::All {
            self.guarantees.end_request(&mut self.cx, slot);
        }
    }

    /// Locates the head at the end of a command, and corrects the belief. The answer is by how many nanoseconds
    /// the head was free later than believed.
    fn learn(&mut self, sent: &SentCommand, route: &Route) -> i64 {
        let cx = &mut self.cx;
        let before = cx.belief.head;
        let delivery = before.delivery(cx.profile(), sent.given, route.direction());
        let course = cx.belief.resync(cx.now, sent, route);
        let free = cx.belief.head.free;
        let delay = free.as_nanos() as i64 - course.head.free.as_nanos() as i64;
        cx.dispatch.resync(sent.id, free);
        // Guessed blocks teach nothing, and a way from there to known ones only where the platter is.
        let is_guessed = route.certainty() == Certainty::Guessed;
        if sent.is_buffered || sent.approach != Approach::Seek || is_guessed {
            cx.belief.track_silently();
            return delay;
        }
        // Without a seek there is nothing to learn, and inside its blocks the head waits for none.
        let has_waited = !course.pass.seek.is_zero()
            && course.waits_for_sector(cx.profile())
            && course.certainty == Certainty::Known;
        let is_asked = self.preemption.rules().is_some() || self.gap.is_on();
        let late = (has_waited && is_asked).then(|| cx.belief.revolutions(cx.now, &course, route));
        if let Some(revolutions) = late.flatten() {
            let period = cx.profile().spindle.period();
            self.preemption
                .note_landing(sent, course.pass.rotation, period, revolutions);
            if let Some(guards) = self.gap.conservatism_mut() {
                guards.observe(&ObservedSeek {
                    direction: route.direction(),
                    delivery,
                    distance: course.distance,
                    wait: course.pass.rotation,
                    revolutions,
                });
            }
        }
        let given = (sent.given, &before);
        if let Some(learned) = cx.belief.track(cx.now, given, &course, route) {
            self.adapt(&learned);
        }
        delay
    }

    /// Adapts the other stages to a corrected belief.
    pub(super) fn adapt(&mut self, learned: &Learned) {
        let cx = &mut self.cx;
        if learned.policy.is_some() || learned.is_refined || learned.is_delayed {
            // What was chosen by the belief is chosen again, unless its free read has been given for it.
            if learned.policy.is_some() || !cx.dispatch.is_read_given() {
                cx.put_back_chosen();
            }
            cx.dispatch.settled = false;
        }
        if let Some(policy) = learned.policy {
            cx.ordering.adopt(&|| policy.make());
        }
        if let Some(guards) = self.gap.conservatism_mut() {
            guards.widen(learned.caution);
            if learned.is_delayed {
                guards.doubt_arrivals();
            }
        }
        if learned.is_turned {
            self.gap.turn(cx.belief);
        }
        if learned.is_refined {
            self.gap.refine(cx.belief);
        }
        if learned.is_refined || learned.is_delayed {
            self.guarantees.relearn(cx.now, cx.belief);
        }
    }

    /// The end of a piece, if `sent` was its last command; otherwise the piece may wait again.
    fn end_part(&mut self, piece: PieceId, sent: &SentCommand, outcome: &Outcome) -> Option<End> {
        let cx = &mut self.cx;
        // The drive gave it back undone, or what failed may have been the free blocks that were merged
        // with it.
        let is_merged = matches!(sent.purpose, Purpose::Merged { .. });
        let is_undone =
            outcome.status == Status::TimedOut || (is_merged && outcome.status != Status::Good);
        // A second try was not counted when the batch was promised.
        let is_tried_again = is_undone
            && !self.guarantees.is_batch(cx, piece)
            && cx.ordering.requeued(piece) < RETRIES;
        let waited = cx.ordering.waited(piece);
        let ended = (outcome.status, outcome.account);
        let rest =
            self.preemption
                .part_ended(cx.now, (piece, waited.all), sent, ended, is_tried_again);
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
}

fn whose(cx: &StageContext<'_>, sent: &SentCommand) -> Whose {
    match sent.purpose {
        Purpose::Request { piece, .. }
        | Purpose::Merged { piece, .. }
        | Purpose::InGap { piece } => {
            let slot = cx.intake.slots.get(cx.ordering.request_slot(piece));
            let (direction, whole) = cx.ordering.blocks(piece);
            Whose::Request {
                id: slot.request.id,
                submitted: slot.submitted,
                class: slot.request.class,
                level: cx.ordering.level(piece),
                direction,
                extent: sent.part.unwrap_or(whole),
            }
        }
        Purpose::Background(read) => Whose::Task(read.means),
        Purpose::ReadAhead => Whose::Ahead,
        Purpose::Hop => Whose::Hop,
        Purpose::Calibration => Whose::Calibration,
        Purpose::Flush => Whose::Flush,
    }
}

/// How often a command is given again that the drive gave back undone. A choice: once shows whether
/// it was bad luck.
const RETRIES: u8 = 1;
