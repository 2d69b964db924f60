//! The engine of one arm: requests and outcomes in, commands and completions out.

use std::sync::Arc;

use block::{
    Class, Command, CommandId, Extent, Finished, Instant, Outcome, Refused, Request, RequestId,
};
use drive::Profile;
use scheduler::ordering::NewPiece;
use scheduler::policy::NamedPolicy;
use scheduler::preemption::Preemption;
use scheduler::{Ordering, Policy, Sight};
use stream::LocationMap;
use stream::head_times::NoPoints;
use stream::location::Change;
use stream::playout::NotTaken;
use stream::streams::{Attach, Attached, StreamId};

use crate::belief::explanation::Known;
use crate::belief::{DriveBelief, target};
use crate::command::StageAnswer;
use crate::dispatch::Dispatch;
use crate::forecast::Route;
use crate::gap::{GapStage, Rules};
use crate::guarantees::streams::{NotGranted, Promise, StreamEvent, StreamTransfer};
use crate::guarantees::{Guarantees, StreamInput};
use crate::intake::Intake;
use crate::preemption::Transfers;
use crate::{Flushed, Limits, Unchanged};

mod changes;
mod ended;
mod give;
mod mirrored;
mod policy_alone;
mod replacing;
mod row;
mod tasks;

/// The state machine between clients and one arm: a row of stages, each the owner of its state.
/// [`Engine`](crate::Engine) has one for each actuator of its drive.
///
/// ```text
///   inputs                      the row that poll asks                        outputs
///
///   submit, flush ----> intake -----.   guarantees   streams first, or others?
///   upgrade, abort                  |   preemption   a more urgent request overtakes
///   attach, stream ---> guarantees -+   intake       a flush                  --> poll: a command
///   begin_task -------> gap         |   preemption   the transfer under way
///                                   |   gap          no request: idle reads   --> poll_finished
///   complete --> belief, dispatch --'   preemption   the policy chooses       --> poll_flushed
///                                       guarantees   the choice is safe       --> poll_stream
///                                       gap          the choice, or free blocks before it
/// ```
///
/// Where the stages have nothing to decide, the policy alone is asked.
///
/// The order of calls: after any input, or at [`ArmEngine::next_wakeup`], the driver calls
/// [`ArmEngine::poll`] until `None`, then [`ArmEngine::poll_finished`], [`ArmEngine::poll_flushed`] and
/// [`ArmEngine::poll_stream`] until `None`. The next wakeup then lies in the future. An extra call is
/// harmless. `now` never goes backwards. Every accepted request comes back exactly once.
///
/// The order of decisions: guarantees restrict, priorities order, rotation picks, free blocks fill. The
/// same inputs at the same moments give the same outputs.
pub struct ArmEngine {
    now: Instant,
    /// Requests and flushes, from acceptance until their completion is reported.
    intake: Intake,
    /// The pieces of the requests that wait or are at the drive, and the policies.
    ordering: Ordering,
    /// The position of the head, and the corrected profile.
    belief: DriveBelief,
    /// Chosen commands, and commands at the drive.
    dispatch: Dispatch,
    /// Streams, and the safe set.
    guarantees: Guarantees,
    /// Requests in parts, and preempted ones.
    preemption: Transfers,
    /// The plan for the slack before a request, and background tasks.
    gap: GapStage,
}

impl ArmEngine {
    /// An idle engine of an arm. `policy` makes the policy of each priority level.
    ///
    /// # Panics
    /// If the limits permit no request or no command.
    pub fn new(belief: Arc<Profile>, policy: &dyn Fn() -> Box<dyn Policy>, limits: Limits) -> Self {
        ArmEngine {
            now: Instant::ZERO,
            intake: Intake::new(belief.geometry.sectors(), limits),
            ordering: Ordering::new(policy, limits.rules()),
            belief: DriveBelief::new(belief),
            dispatch: Dispatch::default(),
            guarantees: Guarantees::none(),
            preemption: Transfers::none(),
            gap: GapStage::none(),
        }
    }

    /// Enables background tasks under these rules.
    ///
    /// # Panics
    /// If the limits permit fewer than two commands at the drive: a free read is dispatched while the
    /// command before it is in service. If the engine holds requests.
    pub fn with_background(mut self, rules: Rules) -> Self {
        assert!(
            self.limits().commands_at_drive >= 2,
            "free blocks need two commands at the drive"
        );
        assert_eq!(self.held(), 0, "background tasks come before requests");
        self.gap = GapStage::by(rules, &self.belief);
        self.ordering.index_background();
        self.belief.watch_head();
        self
    }

    /// Writes in gaps are not divided.
    pub(crate) fn with_whole_writes(mut self) -> Self {
        self.intake.divides_writes = false;
        self
    }

    /// Enables tracking of the drive. `policy` chooses while positions can be trusted.
    ///
    /// # Panics
    /// If the engine holds requests.
    pub fn with_tracking(mut self, policy: NamedPolicy) -> Self {
        assert_eq!(self.held(), 0, "tracking begins before requests come");
        self.belief.follow(self.now, policy);
        if let Some(guards) = self.gap.conservatism_mut() {
            guards.expect_host();
        }
        self
    }

    /// Enables preemption of larger requests under these rules.
    ///
    /// # Panics
    /// If the engine holds requests.
    pub fn with_preemption(mut self, rules: Preemption) -> Self {
        assert_eq!(self.held(), 0, "rules come before requests");
        self.preemption = Transfers::by(rules, self.belief.profile(), self.now);
        self.belief.watch_head();
        self
    }

    /// Enables guarantees for streams. While there are streams, larger requests are dispatched in parts of
    /// at most [`FOREGROUND_BYTES`](crate::guarantees::FOREGROUND_BYTES), whatever the rules of preemption.
    ///
    /// # Errors
    /// If the belief has no seek curve.
    ///
    /// # Panics
    /// If the engine holds requests.
    pub fn with_guarantees(mut self, promise: Promise) -> Result<Self, NoPoints> {
        self.guarantees = Guarantees::by(promise, &self.belief, self.now)?;
        self.belief.watch_head();
        Ok(match self.preemption.rules() {
            Some(_) => self,
            None => self.with_preemption(Transfers::WHOLE),
        })
    }

    /// Enables explanations of response times. Decisions stay the same.
    pub fn with_explanations(mut self, known: Known) -> Self {
        self.belief.remember(known);
        self
    }

    /// The belief about the drive.
    pub fn belief(&self) -> &DriveBelief {
        &self.belief
    }

    /// The streams and their guarantees.
    pub fn guarantees(&self) -> &Guarantees {
        &self.guarantees
    }

    /// The guarantees, to claim and return what a user may have without a stream.
    pub fn guarantees_mut(&mut self) -> &mut Guarantees {
        &mut self.guarantees
    }

    /// The requests that are dispatched in parts.
    pub fn preemption(&self) -> &Transfers {
        &self.preemption
    }

    /// Background tasks, and the use of gaps.
    pub fn background(&self) -> &GapStage {
        &self.gap
    }

    /// Whether something waits for gaps: blocks of tasks, or requests of the background class.
    pub fn fills_gaps(&self) -> bool {
        let requests = !self.ordering().background().is_empty();
        self.gap.is_on() && (requests || self.gap.is_wanted())
    }

    /// The commands at the drive.
    pub fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    /// The bounds.
    #[inline]
    pub fn limits(&self) -> Limits {
        self.intake.limits
    }

    /// The number of requests that are accepted and not yet reported.
    #[inline]
    pub fn held(&self) -> usize {
        self.intake.slots.held() - self.guarantees.transfers()
    }

    /// The pieces of requests, and their order.
    pub fn ordering(&self) -> &Ordering {
        &self.ordering
    }

    /// The request of a command at the drive; `None` for a background or calibration read, a flush, and
    /// a stream's transfer ([`ArmEngine::stream_of`]).
    ///
    /// # Panics
    /// If the command is not at the drive.
    pub fn request_of(&self, id: CommandId) -> Option<Request> {
        let slot = self
            .ordering
            .request_slot(self.dispatch.find(id).purpose.piece()?);
        (!self.guarantees.is_of_stream(slot)).then(|| self.intake.slots.get(slot).request)
    }

    /// The bytes of a stream that a command at the drive transfers; `None` for other commands.
    ///
    /// # Panics
    /// If the command is not at the drive.
    #[inline]
    pub fn stream_of(&self, id: CommandId) -> Option<StreamTransfer> {
        match self.guarantees.is_on() {
            true => self.transfer_of(id),
            false => None,
        }
    }

    /// The bytes of a stream that a command transfers, where there may be streams.
    fn transfer_of(&self, id: CommandId) -> Option<StreamTransfer> {
        let sent = self.dispatch.find(id);
        let slot = self.ordering.request_slot(sent.purpose.piece()?);
        let block = self.belief.profile().block_bytes;
        self.guarantees.transfer_of(slot, sent, block)
    }

    /// Accepts a request of a client.
    ///
    /// # Errors
    /// If the limit is reached, the extent is not on the drive, or the class does not exist.
    pub fn submit(&mut self, now: Instant, request: Request) -> Result<(), Refused> {
        self.enter(now, request, self.held())
    }

    /// Accepts a request while `held` others count.
    pub(crate) fn enter(
        &mut self,
        now: Instant,
        request: Request,
        held: usize,
    ) -> Result<(), Refused> {
        self.advance(now);
        let (direction, extent) = (request.direction, request.extent);
        let level = self.intake.admit(&request, held)?;
        let sight = self.belief.sight(&self.ordering);
        // A route is large, and is copied once: to where it stays.
        let route = match sight {
            Sight::Order => None,
            Sight::Head => Route::new(self.belief.profile(), extent, direction),
        };
        if sight == Sight::Head && route.is_none() {
            return Err(self.intake.past_end(&request));
        }
        self.preemption.note_arrival(now, level);
        let new_piece = NewPiece {
            request_slot: self.intake.slots.accept(now, request),
            owner: request.owner,
            direction,
            extent,
            level,
            target: target(route.as_ref()),
        };
        let piece = self.ordering.enter(now, new_piece);
        self.belief.keep(piece, route.as_ref());
        self.intake.busy = now;
        self.dispatch.settled = false;
        Ok(())
    }

    /// Accepts a flush: it completes when all writes that were reported before are on the medium.
    ///
    /// # Errors
    /// If as many flushes are held as the limit of requests.
    pub fn flush(&mut self, now: Instant, id: RequestId) -> Result<(), Refused> {
        self.advance(now);
        self.intake
            .flushes
            .accept(id, self.intake.limits.requests)?;
        self.intake.busy = now;
        Ok(())
    }

    /// Places a barrier: writes that are accepted later begin after all earlier writes have ended.
    pub fn barrier(&mut self, now: Instant) {
        self.advance(now);
        self.ordering.barrier();
    }

    /// Raises the waiting blocks of `part` to the urgency of `class`. The request is divided, and its
    /// dependencies are raised with it. It ends when all of its pieces have.
    ///
    /// # Errors
    /// If no block of `part` waits.
    pub fn upgrade(
        &mut self,
        now: Instant,
        id: RequestId,
        part: Extent,
        class: Class,
    ) -> Result<(), Unchanged> {
        self.advance(now);
        self.stages().upgrade(id, part, class)
    }

    /// Aborts a request. Its waiting pieces end as [`Status::Aborted`](block::Status::Aborted); pieces at
    /// the drive end there first.
    ///
    /// # Errors
    /// If no piece waits: the request then ends as without this call.
    pub fn abort(&mut self, now: Instant, id: RequestId) -> Result<(), Unchanged> {
        self.advance(now);
        self.stages().abort(id)
    }

    /// Admits a stream.
    ///
    /// # Errors
    /// The reason of the refusal, and the terms that would be admitted.
    pub fn attach(&mut self, now: Instant, attach: Attach) -> Result<Attached, NotGranted> {
        self.advance(now);
        let attached = self.guarantees.attach(now, &self.belief, attach)?;
        self.dispatch.settled = false;
        Ok(attached)
    }

    /// Applies an input of a client to its stream.
    ///
    /// # Errors
    /// If there is no such stream, or the access is invalid; it then gets no answer.
    pub fn stream(
        &mut self,
        now: Instant,
        stream: StreamId,
        input: StreamInput,
    ) -> Result<(), NotTaken> {
        self.advance(now);
        self.dispatch.settled = false;
        self.guarantees.stream(now, stream, input)
    }

    /// Replaces the map of a stream's file, which has grown or moved. A stream that does not fit there
    /// continues at best effort, and its client receives a notice.
    ///
    /// # Errors
    /// If there is no such stream, or the map has blocks outside the place of streams: the old map stays.
    pub fn refresh(
        &mut self,
        now: Instant,
        stream: StreamId,
        map: LocationMap,
    ) -> Result<Change, NotGranted> {
        self.advance(now);
        self.dispatch.settled = false;
        self.guarantees.refresh(now, &self.belief, stream, map)
    }

    /// The next command for the drive, if one is due now: the answer of the row of stages.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<Command> {
        self.advance(now);
        // Without streams this is the first answer of the row, and the most frequent one.
        if !self.guarantees.is_on() && self.dispatch.is_full(&self.intake.limits) {
            self.dispatch.wakeup = None;
            return None;
        }
        self.ask()
    }

    /// Asks the row of stages.
    fn ask(&mut self) -> Option<Command> {
        if self.has_policy_alone() {
            return self.ask_policy();
        }
        let mut stages = self.stages();
        match stages.ask() {
            StageAnswer::Give(draft) => return Some(stages.give(draft)),
            StageAnswer::WaitUntil(then) => self.dispatch.wakeup = then,
            StageAnswer::Pass => {}
        }
        None
    }

    /// Takes in the outcome of a command.
    ///
    /// # Panics
    /// If the command is not at the drive.
    pub fn complete(&mut self, now: Instant, id: CommandId, outcome: Outcome) {
        self.advance(now);
        assert_eq!(id, outcome.id, "an outcome under another command's name");
        if !self.complete_alone(id, &outcome) {
            let sent = self.dispatch.take(id);
            self.stages().complete(&sent, &outcome);
        }
    }

    /// The next completed request.
    #[inline]
    pub fn poll_finished(&mut self) -> Option<Finished> {
        self.intake.poll_finished()
    }

    /// The next completed flush.
    #[inline]
    pub fn poll_flushed(&mut self) -> Option<Flushed> {
        self.intake.flushes.poll()
    }

    /// The next event for the clients of streams, or for the owner of their bytes.
    #[inline]
    pub fn poll_stream(&mut self) -> Option<StreamEvent> {
        self.guarantees.poll()
    }

    /// When to call [`ArmEngine::poll`] next, if there is no input before.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Instant> {
        let moments = [self.dispatch.wakeup, self.guarantees.next_wakeup()];
        moments.into_iter().flatten().min()
    }

    fn advance(&mut self, now: Instant) {
        let before = self.now;
        assert!(now >= before, "time went back from {before:?} to {now:?}");
        self.now = now;
    }
}

#[cfg(test)]
mod tests;
