//! The row of stages that [`ArmEngine::poll`](super::ArmEngine::poll) asks, in its order.

use super::ArmEngine;
use crate::command::StageAnswer;
use crate::context::StageContext;
use crate::gap::GapStage;
use crate::guarantees::Guarantees;
use crate::preemption::Transfers;

/// The stages, and the state that all of them read.
pub(super) struct Stages<'a> {
    pub(super) cx: StageContext<'a>,
    pub(super) guarantees: &'a mut Guarantees,
    pub(super) preemption: &'a mut Transfers,
    pub(super) gap: &'a mut GapStage,
}

/// Asks a stage: whatever it answers but `Pass` is the answer of the row.
macro_rules! ask {
    ($stage:expr) => {
        match $stage {
            StageAnswer::Pass => {}
            answer => return answer,
        }
    };
}

impl Stages<'_> {
    /// Asks the stages in their order, until one gives a command or waits.
    pub(super) fn ask(&mut self) -> StageAnswer {
        let Stages {
            cx,
            guarantees,
            preemption,
            gap,
        } = self;
        // Transfers of streams whose round has come wait among the requests.
        guarantees.freeze_rounds(cx);
        // The drive may have as many commands as it should.
        ask!(
            cx.dispatch
                .room(cx.now, &cx.intake.limits, preemption.taking_up())
        );
        // Streams are in time, or the drive is left to them.
        let restriction = guarantees.restrict(cx, preemption.in_progress());
        ask!(preemption.obey(cx, guarantees, restriction));
        // A chosen request that waits for its moment may be overtaken.
        preemption.let_urgent_pass(cx);
        if cx.dispatch.chosen.is_empty() {
            ask!(cx.intake.flushes.next());
            // Nothing has changed since the stages had nothing to give.
            ask!(cx.dispatch.rest(cx.now));
            // The transfer that is under way continues, or steps aside for a piece that it chooses.
            ask!(preemption.go_on(cx, guarantees));
        }
        if cx.dispatch.chosen.is_empty() {
            // A task for which a client waits has its turn.
            ask!(gap.hasten(cx, guarantees));
            // Without requests, calibration and background reads go by themselves.
            ask!(gap.idle(cx, guarantees));
            // The policy chooses.
            ask!(preemption.choose(cx, guarantees));
        }
        // All batches are in time after what is chosen, or it is given up for them.
        let restriction = guarantees.check_chosen(cx, preemption.in_progress());
        ask!(preemption.obey(cx, guarantees, restriction));
        // What is chosen is given, or what fits before it; while it is held back, only a flush.
        match gap.depart(cx, guarantees, preemption) {
            StageAnswer::WaitUntil(then) => {
                ask!(cx.intake.flushes.next());
                StageAnswer::WaitUntil(then)
            }
            answer => answer,
        }
    }
}

impl ArmEngine {
    /// The stages, and the state that they share.
    pub(super) fn stages(&mut self) -> Stages<'_> {
        Stages {
            cx: StageContext {
                now: self.now,
                intake: &mut self.intake,
                ordering: &mut self.ordering,
                belief: &mut self.belief,
                dispatch: &mut self.dispatch,
            },
            guarantees: &mut self.guarantees,
            preemption: &mut self.preemption,
            gap: &mut self.gap,
        }
    }
}
