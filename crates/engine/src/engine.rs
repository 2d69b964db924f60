//! One drive, a belief and a policy: requests in, commands out, outcomes in, ends out.

use std::sync::Arc;

use block::{
    Class, Command, CommandId, Extent, Finished, Instant, Outcome, Refused, Request, RequestId,
};
use drive::Profile;
use scheduler::background::{NotWanted, Order, TaskId, TaskRefused};
use scheduler::ordering::NewPiece;
use scheduler::policy::NamedPolicy;
use scheduler::preemption::Preemption;
use scheduler::{Ordering, Policy};
use stream::LocationMap;
use stream::head_times::NoPoints;
use stream::location::Change;
use stream::playout::NotTaken;
use stream::streams::{Attach, Attached, StreamId};

use crate::belief::explanation::Known;
use crate::belief::forecast::Route;
use crate::belief::{DriveBelief, target};
use crate::context::{StageAnswer, StageContext, Stages, ask};
use crate::dispatch::{Dispatch, ended, give};
use crate::gap::{GapStage, Rules, TaskChange};
use crate::guarantees::streams::{NotGranted, Promise, StreamEvent, StreamTransfer};
use crate::guarantees::{Guarantees, StreamInput};
use crate::intake::{Intake, changes};
use crate::preemption::Transfers;
use crate::{Flushed, Limits, Unchanged};

/// The state machine between clients and one drive: a row of stages, each of which owns its state.
///
/// ```text
///   inputs                      the row, asked by poll                        outputs
///
///   submit, flush ----> intake -----.   guarantees   streams first, or others?
///   upgrade, abort                  |   preemption   a more urgent request overtakes
///   attach, stream ---> guarantees -+   gap          the chosen command, or what fits before it
///   begin_task -------> gap         |   intake       a flush                  --> poll: a command
///                                   |   preemption   the transfer under way
///   complete --> belief, dispatch --'   gap          nothing here: idle reads --> poll_finished
///                                       ordering     the policy chooses       --> poll_flushed
///                                       gap          the chosen command       --> poll_stream
/// ```
///
/// The order of calls: after any input, or at [`Engine::next_wakeup`], the owner calls
/// [`Engine::poll`] until `None`, then [`Engine::poll_finished`], [`Engine::poll_flushed`] and
/// [`Engine::poll_stream`] until `None`; the next wakeup then lies in the future. A call too many is
/// harmless. `now` never goes backwards. Every accepted request comes back exactly once.
///
/// The order of decisions: guarantees restrict, priorities order, rotation picks, free blocks fill. The
/// same inputs at the same moments give the same outputs.
pub struct Engine {
    now: Instant,
    /// Requests and flushes, from acceptance until their ends are told.
    intake: Intake,
    /// The pieces of the requests that wait or are at the drive, and the policies.
    ordering: Ordering,
    /// Where the head is, and what was learned of the drive.
    belief: DriveBelief,
    /// What is chosen, and what is at the drive.
    dispatch: Dispatch,
    /// Streams, and what may be given without breaking a promise to them.
    guarantees: Guarantees,
    /// Requests in parts, which step aside.
    preemption: Transfers,
    /// What comes before a request, and what goes by itself.
    gap: GapStage,
}

impl Engine {
    /// An engine with nothing to do, on a drive of which `belief` is believed. Each level of
    /// urgency gets a policy of its own from `policy`.
    ///
    /// # Panics
    /// If the limits are such that nothing could ever be served.
    pub fn new(belief: Arc<Profile>, policy: &dyn Fn() -> Box<dyn Policy>, limits: Limits) -> Self {
        Engine {
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

    /// The engine, with background tasks under these rules.
    ///
    /// # Panics
    /// If fewer than two commands may be at the drive: free reads are given while the command
    /// before them is in service. If requests are already here.
    pub fn with_background(mut self, rules: Rules) -> Self {
        assert!(
            self.limits().commands_at_drive >= 2,
            "free blocks need two commands at the drive"
        );
        assert_eq!(self.held(), 0, "background tasks come before requests");
        self.gap = GapStage::by(rules, &self.belief);
        self.belief.watch_head();
        self
    }

    /// The engine, following its drive; `policy` chooses while positions can be trusted.
    ///
    /// # Panics
    /// If requests are already here.
    pub fn with_tracking(mut self, policy: NamedPolicy) -> Self {
        assert_eq!(self.held(), 0, "tracking begins before requests come");
        self.belief.follow(self.now, policy);
        self
    }

    /// The engine, whose larger requests step aside under these rules.
    ///
    /// # Panics
    /// If requests are already here.
    pub fn with_preemption(mut self, rules: Preemption) -> Self {
        assert_eq!(self.held(), 0, "rules come before requests");
        self.preemption = Transfers::by(rules, self.belief.profile(), self.now);
        self.belief.watch_head();
        self
    }

    /// The engine, with guarantees for streams. While there are streams, larger requests are given in parts
    /// of at most [`FOREGROUND_BYTES`](crate::guarantees::FOREGROUND_BYTES), with other rules or without.
    ///
    /// # Errors
    /// If the belief has no seek curve.
    ///
    /// # Panics
    /// If requests are already here.
    pub fn with_guarantees(mut self, promise: Promise) -> Result<Self, NoPoints> {
        self.guarantees = Guarantees::by(promise, &self.belief, self.now)?;
        self.belief.watch_head();
        Ok(match self.preemption.rules() {
            Some(_) => self,
            None => self.with_preemption(Transfers::WHOLE),
        })
    }

    /// The engine, able to say where the time of a request went. What it does stays the same.
    pub fn with_explanations(mut self, known: Known) -> Self {
        self.belief.remember(known);
        self
    }

    /// What is believed of the drive.
    pub fn belief(&self) -> &DriveBelief {
        &self.belief
    }

    /// The streams, and the promises to them.
    pub fn guarantees(&self) -> &Guarantees {
        &self.guarantees
    }

    /// The same, to claim and give back what a user may have without a stream.
    pub fn guarantees_mut(&mut self) -> &mut Guarantees {
        &mut self.guarantees
    }

    /// The requests that are given in parts.
    pub fn preemption(&self) -> &Transfers {
        &self.preemption
    }

    /// Background tasks, and what came of the gaps.
    pub fn background(&self) -> &GapStage {
        &self.gap
    }

    /// The commands at the drive.
    pub fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    /// The bounds.
    pub fn limits(&self) -> Limits {
        self.intake.limits
    }

    /// Requests held: accepted, and their end not yet told.
    pub fn held(&self) -> usize {
        self.intake.slots.held() - self.guarantees.transfers()
    }

    /// Whether a request of this class would be accepted, if its extent is on the drive.
    pub fn has_room(&self, class: Class) -> bool {
        self.held() < self.intake.limits.open_to(class)
    }

    /// The pieces of requests that wait, in their order.
    pub fn ordering(&self) -> &Ordering {
        &self.ordering
    }

    /// The request of which a command at the drive is a piece; `None` for a background or
    /// calibration read, for a flush, and for a stream's transfer: see [`Engine::stream_of`].
    ///
    /// # Panics
    /// If the command is not at the drive.
    pub fn request_of(&self, id: CommandId) -> Option<Request> {
        let slot = self.ordering.owner(self.dispatch.find(id).purpose.piece()?);
        (!self.guarantees.is_of_stream(slot)).then(|| self.intake.slots.get(slot).request)
    }

    /// The bytes of a stream that a command at the drive moves; none if it is not a stream's.
    ///
    /// # Panics
    /// If the command is not at the drive.
    pub fn stream_of(&self, id: CommandId) -> Option<StreamTransfer> {
        if !self.guarantees.is_on() {
            return None;
        }
        let sent = self.dispatch.find(id);
        let slot = self.ordering.owner(sent.purpose.piece()?);
        let block = self.belief.profile().block_bytes;
        self.guarantees.transfer_of(slot, sent, block)
    }

    /// A client asks for something.
    ///
    /// # Errors
    /// If as many requests are held as may be, the extent is not on the drive, or the class does
    /// not exist.
    pub fn submit(&mut self, now: Instant, request: Request) -> Result<(), Refused> {
        self.advance(now);
        let (direction, extent) = (request.direction, request.extent);
        let level = self.intake.admit(&request, self.held())?;
        let sight = self.belief.sight(&self.ordering);
        let route = Route::seen(sight, self.belief.profile(), extent, direction);
        let route = route.ok_or_else(|| self.intake.past_end(&request))?;
        self.preemption.note_arrival(now, level);
        let new_piece = NewPiece {
            owner: self.intake.slots.accept(now, request),
            direction,
            extent,
            level,
            target: target(route.as_ref()),
        };
        let piece = self.ordering.enter(now, new_piece);
        self.belief.keep(piece, route);
        self.intake.busy = now;
        self.dispatch.settled = false;
        Ok(())
    }

    /// A client wants all writes whose ends it was told to be on the medium.
    ///
    /// # Errors
    /// If as many flushes are held as requests may be.
    pub fn flush(&mut self, now: Instant, id: RequestId) -> Result<(), Refused> {
        self.advance(now);
        self.intake
            .flushes
            .accept(id, self.intake.limits.requests)?;
        self.intake.busy = now;
        Ok(())
    }

    /// Writes that are accepted from now on begin when all that were accepted before have ended.
    pub fn barrier(&mut self, now: Instant) {
        self.advance(now);
        self.ordering.barrier();
    }

    /// The waiting blocks of `part` become as urgent as `class`, if they are not: a request is
    /// divided, and what it waits for is raised with it. The request ends when all of it has.
    ///
    /// # Errors
    /// If nothing of it waits.
    pub fn upgrade(
        &mut self,
        now: Instant,
        id: RequestId,
        part: Extent,
        class: Class,
    ) -> Result<(), Unchanged> {
        self.advance(now);
        changes::upgrade(&mut self.stages(), (id, part, class))
    }

    /// Takes a request back: what of it waits is not done, and it ends as [`Status::Aborted`](block::Status::Aborted). What
    /// is at the drive ends there first.
    ///
    /// # Errors
    /// If nothing of it waits: then it ends as if it had not been taken back.
    pub fn abort(&mut self, now: Instant, id: RequestId) -> Result<(), Unchanged> {
        self.advance(now);
        changes::abort(&mut self.stages(), id)
    }

    /// Begins a background task.
    ///
    /// # Errors
    /// If there are too many, its deadline has passed, or its set is another drive's.
    ///
    /// # Panics
    /// If the engine was made without background tasks; so do the other calls about them.
    pub fn begin_task(&mut self, now: Instant, order: Order) -> Result<TaskId, TaskRefused> {
        self.advance(now);
        self.dispatch.settled = false;
        self.gap.begin(now, &self.belief, order)
    }

    /// Begins a task that stands: see [`Tasks::begin_standing`](scheduler::background::Tasks::begin_standing).
    ///
    /// # Errors
    /// If there is one.
    pub fn begin_standing_task(
        &mut self,
        now: Instant,
        priority: u8,
    ) -> Result<TaskId, TaskRefused> {
        self.advance(now);
        self.gap.begin_standing(now, &self.belief, priority)
    }

    /// Changes a background task.
    ///
    /// # Errors
    /// If it is not under way; for what a standing task wants, if it does not stand, or there are no
    /// such blocks.
    pub fn change_task(
        &mut self,
        now: Instant,
        id: TaskId,
        change: TaskChange,
    ) -> Result<(), NotWanted> {
        self.advance(now);
        let wants_more = self.gap.change(now, id, change);
        if change == TaskChange::Resume || wants_more == Ok(true) {
            self.dispatch.settled = false;
        }
        wants_more.map(|_| ())
    }

    /// Plans may lengthen foreground requests by so much on average from now on, in parts per million.
    /// An engine without background tasks or with a fixed guard keeps to no budget: nothing changes.
    pub fn set_impact_budget(&mut self, now: Instant, impact_ppm: u32) {
        self.advance(now);
        self.gap.set_impact_budget(impact_ppm);
    }

    /// Grants a stream, or says why not.
    ///
    /// # Errors
    /// The reason, and what would be granted instead.
    pub fn attach(&mut self, now: Instant, attach: Attach) -> Result<Attached, NotGranted> {
        self.advance(now);
        let attached = self.guarantees.attach(now, &self.belief, attach)?;
        self.dispatch.settled = false;
        Ok(attached)
    }

    /// A client does something with its stream.
    ///
    /// # Errors
    /// If there is no such stream, or the access cannot be taken; it is then not answered.
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

    /// The stream's file has grown, or lies elsewhere. Where it could not be granted it goes on at
    /// best effort, and is told.
    ///
    /// # Errors
    /// If there is no such stream, or the map is not of blocks where streams may be: it is then
    /// read and written where it was.
    pub fn refresh(
        &mut self,
        now: Instant,
        stream: StreamId,
        map: LocationMap,
    ) -> Result<Change, NotGranted> {
        self.advance(now);
        self.guarantees
            .refresh(now, (&self.belief, &mut self.dispatch), stream, map)
    }

    /// The next command for the drive, if it should have one now.
    pub fn poll(&mut self, now: Instant) -> Option<Command> {
        self.advance(now);
        match self.ask_stages() {
            StageAnswer::Give(draft) => return Some(give::give(&mut self.stages(), draft)),
            StageAnswer::WaitUntil(then) => self.dispatch.wakeup = then,
            StageAnswer::Pass => {}
        }
        None
    }

    /// The row of stages.
    fn ask_stages(&mut self) -> StageAnswer {
        let Stages {
            ref mut cx,
            guarantees,
            preemption,
            gap,
        } = self.stages();
        // Transfers of streams whose round has come wait among the requests.
        guarantees.freeze_rounds(cx);
        // The drive may have as many commands as it should.
        ask!(
            cx.dispatch
                .room(cx.now, &cx.intake.limits, preemption.taking_up())
        );
        // Streams are in time, or the drive is left to them.
        ask!(guarantees.restrict(cx, preemption));
        // A chosen request that waits for its moment may be overtaken.
        preemption.let_urgent_pass(cx);
        // What was chosen before goes, or what fits before it; while it is held back, only a flush.
        ask!(guarantees.check_chosen(cx, preemption));
        match gap.depart(cx, guarantees, preemption) {
            StageAnswer::WaitUntil(then) => cx.dispatch.wakeup = then,
            answer => ask!(answer),
        }
        ask!(cx.intake.flushes.next());
        // Nothing has changed since the stages had nothing to give.
        ask!(cx.dispatch.rest(cx.now));
        // The transfer that is under way goes on, or steps aside for a piece that it chooses.
        ask!(preemption.go_on(cx, guarantees));
        if cx.dispatch.chosen.is_empty() {
            // Without requests, calibration and background reads go by themselves.
            ask!(gap.idle(cx, guarantees));
            // The policy chooses.
            ask!(preemption.choose(cx, guarantees));
        }
        // What is chosen now goes, or what fits before it.
        ask!(guarantees.check_chosen(cx, preemption));
        gap.depart(cx, guarantees, preemption)
    }

    /// A command has ended, as the drive says.
    ///
    /// # Panics
    /// If the command is not at the drive.
    pub fn complete(&mut self, now: Instant, id: CommandId, outcome: Outcome) {
        self.advance(now);
        assert_eq!(id, outcome.id, "an outcome under another command's name");
        let sent = self.dispatch.take(id);
        ended::complete(&mut self.stages(), &sent, &outcome);
    }

    /// The next request that has ended.
    pub fn poll_finished(&mut self) -> Option<Finished> {
        self.intake.poll_finished()
    }

    /// The next flush that has ended.
    pub fn poll_flushed(&mut self) -> Option<Flushed> {
        self.intake.flushes.poll()
    }

    /// The next thing that streams, or the owner of their bytes, are to be told.
    pub fn poll_stream(&mut self) -> Option<StreamEvent> {
        self.guarantees.poll()
    }

    /// When `poll` should be called next, if nothing else happens.
    pub fn next_wakeup(&self) -> Option<Instant> {
        let moments = [self.dispatch.wakeup, self.guarantees.next_wakeup()];
        moments.into_iter().flatten().min()
    }

    fn advance(&mut self, now: Instant) {
        let before = self.now;
        assert!(now >= before, "time went back from {before:?} to {now:?}");
        self.now = now;
    }

    fn stages(&mut self) -> Stages<'_> {
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

#[cfg(test)]
mod tests;
