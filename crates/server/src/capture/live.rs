//! The engine of an event loop. A capture, if there is one, records each of the engine's inputs.

use std::ops::Deref;

use block::{
    Class, Command, CommandId, Extent, Finished, Instant, Outcome, Refused, Request, RequestId,
};
use engine::streams::{NotGranted, StreamEvent};
use engine::{
    EncodedOrder, Engine, Flushed, Input, LegFailure, LegKept, LegState, Reply, Side, StreamInput,
    TaskChange, Unchanged, WrittenLegs,
};
use scheduler::background::{NotWanted, Order, TaskId, TaskRefused, UnknownTask};

use stream::LocationMap;
use stream::location::Change;
use stream::playout::{AccessId, NotTaken};
use stream::quota;
use stream::streams::{Attach, Attached, StreamId};

use super::event::Event;
use super::recorder::Recorder;

/// An engine with an optional capture. All inputs pass through its methods; queries do not.
pub struct LiveEngine {
    engine: Engine,
    recorder: Option<Recorder>,
    /// The tasks since the start. Each new task removes those that have ended.
    tasks: Vec<TaskId>,
    /// Whether another engine is to take its place.
    is_leaving: bool,
}

impl LiveEngine {
    /// An engine without a capture.
    pub fn new(engine: Engine) -> Self {
        LiveEngine {
            engine,
            recorder: None,
            tasks: Vec::new(),
            is_leaving: false,
        }
    }

    /// Whether the limits permit another request of this class. An engine that leaves has room for none.
    pub fn has_room(&self, class: Class) -> bool {
        !self.is_leaving && self.engine.has_room(class)
    }

    /// The engine has no room from now on, so that another one can take its place.
    pub(crate) fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// The engine goes on: no other one takes its place.
    pub(crate) fn stay(&mut self) {
        self.is_leaving = false;
    }

    /// Puts another engine in its place. A capture ends here: it is of one engine.
    ///
    /// # Panics
    /// If the engine holds a request, a flush or a command.
    pub(crate) fn replace(&mut self, next: Engine) {
        assert!(self.engine.is_idle(), "an engine in use is replaced");
        if self.recorder.is_some() {
            tracing::info!("the capture ends: a belief is taken up");
        }
        *self = LiveEngine::new(next);
    }

    /// The engine with a capture. It must not have had any input yet.
    #[must_use]
    pub fn with_capture(mut self, recorder: Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// See [`Engine::submit`].
    ///
    /// # Errors
    /// The engine's.
    pub fn submit(&mut self, now: Instant, request: Request) -> Result<(), Refused> {
        let result = self.engine.submit(now, request);
        self.record(now, &result, || Input::Submit(request));
        result
    }

    /// See [`Engine::submit_to`]. Mirrors have no capture.
    ///
    /// # Errors
    /// The engine's.
    pub fn submit_to(
        &mut self,
        now: Instant,
        request: Request,
        legs: WrittenLegs,
    ) -> Result<(), Refused> {
        self.engine.submit_to(now, request, legs)
    }

    /// See [`Engine::flush`].
    ///
    /// # Errors
    /// The engine's.
    pub fn flush(&mut self, now: Instant, id: RequestId) -> Result<(), Refused> {
        let result = self.engine.flush(now, id);
        self.record(now, &result, || Input::Flush(id));
        result
    }

    /// See [`Engine::set_leg`]. Mirrors have no capture.
    ///
    /// # Errors
    /// The engine's.
    pub fn set_leg(&mut self, now: Instant, leg: Side, state: LegState) -> Result<(), LegKept> {
        self.engine.set_leg(now, leg, state)
    }

    /// See [`Engine::poll_leg_failure`].
    pub fn poll_leg_failure(&mut self) -> Option<LegFailure> {
        self.engine.poll_leg_failure()
    }

    /// See [`Engine::barrier`].
    pub fn barrier(&mut self, now: Instant) {
        self.engine.barrier(now);
        self.record_call(now, || Input::Barrier);
    }

    /// See [`Engine::upgrade`].
    ///
    /// # Errors
    /// The engine's.
    pub fn upgrade(
        &mut self,
        now: Instant,
        id: RequestId,
        part: Extent,
        class: Class,
    ) -> Result<(), Unchanged> {
        let result = self.engine.upgrade(now, id, part, class);
        self.record(now, &result, || Input::Upgrade(id, part, class));
        result
    }

    /// See [`Engine::abort`].
    ///
    /// # Errors
    /// The engine's.
    pub fn abort(&mut self, now: Instant, id: RequestId) -> Result<(), Unchanged> {
        let result = self.engine.abort(now, id);
        self.record(now, &result, || Input::Abort(id));
        result
    }

    /// See [`Engine::begin_task`].
    ///
    /// # Errors
    /// The engine's.
    pub fn begin_task(&mut self, now: Instant, order: Order) -> Result<TaskId, TaskRefused> {
        let captured = self.recorder.as_ref().map(|_| EncodedOrder::from(&order));
        let result = self.engine.begin_task(now, order);
        self.tasks.retain(|&id| self.engine.task(id).is_some());
        self.tasks.extend(result.as_ref().ok());
        if let Some(order) = captured {
            self.record(now, &result, || Input::BeginTask(order));
        }
        result
    }

    /// See [`Engine::begin_standing_task`].
    ///
    /// # Errors
    /// The engine's.
    pub fn begin_standing_task(
        &mut self,
        now: Instant,
        priority: u8,
    ) -> Result<TaskId, TaskRefused> {
        let result = self.engine.begin_standing_task(now, priority);
        self.tasks.extend(result.as_ref().ok());
        self.record(now, &result, || Input::BeginStandingTask(priority));
        result
    }

    /// Adds blocks to those that a standing task wants, see [`TaskChange::Want`].
    ///
    /// # Errors
    /// The engine's.
    pub fn want(&mut self, now: Instant, id: TaskId, extent: Extent) -> Result<(), NotWanted> {
        self.change_task(now, id, TaskChange::Want(extent))
    }

    /// Removes blocks from those that a standing task wants, see [`TaskChange::Unwant`].
    ///
    /// # Errors
    /// The engine's.
    pub fn unwant(&mut self, now: Instant, id: TaskId, extent: Extent) -> Result<(), NotWanted> {
        self.change_task(now, id, TaskChange::Unwant(extent))
    }

    /// Suspends a task, see [`TaskChange::Suspend`].
    ///
    /// # Errors
    /// The engine's.
    pub fn suspend_task(&mut self, now: Instant, id: TaskId) -> Result<(), NotWanted> {
        self.change_task(now, id, TaskChange::Suspend)
    }

    /// Resumes a suspended task, see [`TaskChange::Resume`].
    ///
    /// # Errors
    /// The engine's.
    pub fn resume_task(&mut self, now: Instant, id: TaskId) -> Result<(), NotWanted> {
        self.change_task(now, id, TaskChange::Resume)
    }

    /// Aborts a task, see [`TaskChange::Abort`].
    ///
    /// # Errors
    /// The engine's.
    pub fn abort_task(&mut self, now: Instant, id: TaskId) -> Result<(), NotWanted> {
        self.change_task(now, id, TaskChange::Abort)
    }

    /// Aborts all tasks.
    pub fn abort_tasks(&mut self, now: Instant) {
        for id in std::mem::take(&mut self.tasks) {
            // The engine refuses for tasks that have ended.
            let _ = self.abort_task(now, id);
        }
    }

    /// Changes the priority of a task, see [`TaskChange::Promote`].
    ///
    /// # Errors
    /// The engine's.
    pub fn promote_task(
        &mut self,
        now: Instant,
        id: TaskId,
        priority: u8,
    ) -> Result<(), NotWanted> {
        self.change_task(now, id, TaskChange::Promote(priority))
    }

    /// Finishes a task of which enough was read, see [`TaskChange::Finish`].
    ///
    /// # Errors
    /// The engine's.
    pub fn finish_task(&mut self, now: Instant, id: TaskId) -> Result<(), NotWanted> {
        self.change_task(now, id, TaskChange::Finish)
    }

    /// Takes blocks off a task, see [`Engine::narrow_task`].
    ///
    /// # Errors
    /// The engine's.
    pub fn narrow_task(
        &mut self,
        now: Instant,
        id: TaskId,
        extents: Vec<Extent>,
    ) -> Result<(), UnknownTask> {
        let result = self.engine.narrow_task(now, id, &extents);
        self.record(now, &result, || Input::NarrowTask(id, extents));
        result
    }

    /// Hastens a task for which a client waits, see [`TaskChange::Hasten`].
    ///
    /// # Errors
    /// The engine's.
    pub fn hasten_task(&mut self, now: Instant, id: TaskId) -> Result<(), NotWanted> {
        self.change_task(now, id, TaskChange::Hasten)
    }

    /// See [`Engine::set_impact_budget`].
    pub fn set_impact_budget(&mut self, now: Instant, impact_ppm: u32) {
        self.engine.set_impact_budget(now, impact_ppm);
        self.record_call(now, || Input::SetImpactBudget(impact_ppm));
    }

    /// See [`Engine::poll`].
    pub fn poll(&mut self, now: Instant) -> Option<Command> {
        let command = self.engine.poll(now);
        if let Some(recorder) = &mut self.recorder {
            recorder.record_input(now, Input::Poll, Reply::Command(command));
        }
        command
    }

    /// See [`Engine::complete`].
    ///
    /// # Panics
    /// As the engine does.
    pub fn complete(&mut self, now: Instant, id: CommandId, outcome: Outcome) {
        self.engine.complete(now, id, outcome);
        self.record_call(now, || Input::Complete(outcome));
    }

    /// See [`Engine::poll_finished`].
    pub fn poll_finished(&mut self) -> Option<Finished> {
        let finished = self.engine.poll_finished()?;
        if let Some(recorder) = &mut self.recorder {
            recorder.record(&Event::Finished(finished));
        }
        Some(finished)
    }

    /// See [`Engine::poll_flushed`].
    pub fn poll_flushed(&mut self) -> Option<Flushed> {
        let flushed = self.engine.poll_flushed()?;
        if let Some(recorder) = &mut self.recorder {
            recorder.record(&Event::Flushed(flushed));
        }
        Some(flushed)
    }

    /// See [`Engine::attach`]. An engine with a capture has no guarantees and refuses all streams.
    ///
    /// # Errors
    /// The engine's.
    pub fn attach(&mut self, now: Instant, attach: Attach) -> Result<Attached, NotGranted> {
        match self.recorder {
            None => self.engine.attach(now, attach),
            Some(_) => Err(NotGranted::NoPromise),
        }
    }

    /// Reports the position of a stream, see [`StreamInput::Position`].
    ///
    /// # Errors
    /// The engine's.
    pub fn position(&mut self, now: Instant, stream: StreamId, point: u64) -> Result<(), NotTaken> {
        let input = StreamInput::Position(point);
        self.engine.stream(now, stream, input)
    }

    /// Counts a stream of a user without a guarantee against his quota.
    ///
    /// # Errors
    /// The engine's.
    pub fn claim(&mut self, user: u32, name: &str) -> Result<quota::Taken, NotGranted> {
        self.engine.guarantees_mut().claim(user, name)
    }

    /// Releases a claim of [`LiveEngine::claim`].
    pub fn release_claim(&mut self, taken: quota::Taken) {
        self.engine.guarantees_mut().give_back(taken);
    }

    /// Reads bytes of a stream, see [`StreamInput::Read`].
    ///
    /// # Errors
    /// The engine's.
    pub fn stream_read(
        &mut self,
        now: Instant,
        stream: StreamId,
        access: AccessId,
        range: (u64, u64),
    ) -> Result<(), NotTaken> {
        let input = StreamInput::Read(access, range);
        self.engine.stream(now, stream, input)
    }

    /// Writes bytes of a stream, see [`StreamInput::Write`].
    ///
    /// # Errors
    /// The engine's.
    pub fn stream_write(
        &mut self,
        now: Instant,
        stream: StreamId,
        access: AccessId,
        range: (u64, u64),
    ) -> Result<(), NotTaken> {
        let input = StreamInput::Write(access, range);
        self.engine.stream(now, stream, input)
    }

    /// See [`Engine::refresh`].
    ///
    /// # Errors
    /// The engine's.
    pub fn refresh(
        &mut self,
        now: Instant,
        stream: StreamId,
        map: LocationMap,
    ) -> Result<Change, NotGranted> {
        self.engine.refresh(now, stream, map)
    }

    /// Ends a stream, see [`StreamInput::Detach`].
    ///
    /// # Errors
    /// The engine's.
    pub fn detach(&mut self, now: Instant, stream: StreamId) -> Result<(), NotTaken> {
        self.engine.stream(now, stream, StreamInput::Detach)
    }

    /// See [`Engine::poll_stream`].
    pub fn poll_stream(&mut self) -> Option<StreamEvent> {
        self.engine.poll_stream()
    }

    fn change_task(
        &mut self,
        now: Instant,
        id: TaskId,
        change: TaskChange,
    ) -> Result<(), NotWanted> {
        let result = self.engine.change_task(now, id, change);
        self.record(now, &result, || Input::ChangeTask(id, change));
        result
    }

    fn record<T, E>(&mut self, now: Instant, result: &Result<T, E>, input: impl FnOnce() -> Input) {
        if let Some(recorder) = &mut self.recorder {
            recorder.record_input(now, input(), Reply::from(result));
        }
    }

    fn record_call(&mut self, now: Instant, input: impl FnOnce() -> Input) {
        if let Some(recorder) = &mut self.recorder {
            recorder.record_input(now, input(), Reply::Taken);
        }
    }
}

impl Deref for LiveEngine {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}
