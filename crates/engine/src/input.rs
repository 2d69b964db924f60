//! The inputs of an engine as one type, for captures, replays and fuzzers.

use block::{Class, Command, CommandId, Extent, Instant, Outcome, Request, RequestId};
use drive::Geometry;
use scheduler::background::{Order, TaskId};
use scheduler::freeblock::{DecodeError, WantedBlocks};
use serde::{Deserialize, Serialize};
use stream::LocationMap;
use stream::streams::{Attach, StreamId};

use crate::{Engine, StreamInput, TaskChange};

/// One input of an engine: a call of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input {
    /// [`Engine::poll`].
    Poll,
    /// [`Engine::complete`].
    Complete(Outcome),
    /// [`Engine::submit`].
    Submit(Request),
    /// [`Engine::flush`].
    Flush(RequestId),
    /// [`Engine::barrier`].
    Barrier,
    /// [`Engine::upgrade`].
    Upgrade(RequestId, Extent, Class),
    /// [`Engine::abort`].
    Abort(RequestId),
    /// [`Engine::begin_task`].
    BeginTask(EncodedOrder),
    /// [`Engine::begin_standing_task`].
    BeginStandingTask(u8),
    /// [`Engine::change_task`].
    ChangeTask(TaskId, TaskChange),
    /// [`Engine::set_impact_budget`].
    SetImpactBudget(u32),
    /// [`Engine::stream`].
    Stream(StreamId, StreamInput),
    /// [`Engine::narrow_task`].
    NarrowTask(TaskId, Vec<Extent>),
    /// [`Engine::attach`]. No capture has it: the engine of a capture has no guarantees.
    #[serde(skip)]
    Attach(Attach),
    /// [`Engine::refresh`]. No capture has it, either.
    #[serde(skip)]
    Refresh(StreamId, LocationMap),
}

/// The answer of an engine to an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The input was accepted.
    Taken,
    /// The input was refused.
    Refused,
    /// The next command, or none.
    Command(Option<Command>),
}

/// The order of a background task, with its blocks as [`WantedBlocks::encode`] writes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncodedOrder {
    wanted: Vec<u8>,
    priority: u8,
    deadline: Option<Instant>,
}

/// An input that is impossible in the state of this engine.
#[derive(Debug, thiserror::Error)]
pub enum Impossible {
    /// The outcome of a command that is not at the drive.
    #[error("command {} ends, which is not at the drive", .0.0)]
    NotAtDrive(CommandId),
    /// A background task of an engine without them.
    #[error("a background task of an engine without them")]
    NoTasks,
    /// A barrier of an engine of two actuators.
    #[error("a barrier of an engine of two actuators")]
    NoBarriers,
    /// The blocks of a task are not a set of blocks of the drive.
    #[error("the blocks of a task: {0}")]
    Wanted(#[from] DecodeError),
}

impl Engine {
    /// Makes the call of an input.
    ///
    /// # Errors
    /// If the input is impossible: the call would panic.
    ///
    /// # Panics
    /// If `now` lies before that of an earlier call.
    pub fn apply(&mut self, now: Instant, input: &Input) -> Result<Reply, Impossible> {
        let is_of_task = matches!(
            input,
            Input::BeginTask(_)
                | Input::BeginStandingTask(_)
                | Input::ChangeTask(..)
                | Input::NarrowTask(..)
        );
        if is_of_task && !self.background().is_on() {
            return Err(Impossible::NoTasks);
        }
        if matches!(input, Input::Barrier) && !self.has_barriers() {
            return Err(Impossible::NoBarriers);
        }
        Ok(match input {
            Input::Poll => Reply::Command(self.poll(now)),
            Input::Complete(outcome) => {
                if !self.is_at_drive(outcome.id) {
                    return Err(Impossible::NotAtDrive(outcome.id));
                }
                self.complete(now, outcome.id, *outcome);
                Reply::Taken
            }
            Input::Submit(request) => Reply::from(&self.submit(now, *request)),
            Input::Flush(id) => Reply::from(&self.flush(now, *id)),
            Input::Barrier => {
                self.barrier(now);
                Reply::Taken
            }
            Input::Upgrade(id, part, class) => Reply::from(&self.upgrade(now, *id, *part, *class)),
            Input::Abort(id) => Reply::from(&self.abort(now, *id)),
            Input::BeginTask(order) => {
                let order = order.decode(&self.profile().geometry)?;
                Reply::from(&self.begin_task(now, order))
            }
            Input::BeginStandingTask(priority) => {
                Reply::from(&self.begin_standing_task(now, *priority))
            }
            Input::ChangeTask(id, change) => Reply::from(&self.change_task(now, *id, *change)),
            Input::NarrowTask(id, extents) => Reply::from(&self.narrow_task(now, *id, extents)),
            Input::SetImpactBudget(ppm) => {
                self.set_impact_budget(now, *ppm);
                Reply::Taken
            }
            Input::Stream(stream, input) => Reply::from(&self.stream(now, *stream, *input)),
            Input::Attach(attach) => Reply::from(&self.attach(now, attach.clone())),
            Input::Refresh(stream, map) => Reply::from(&self.refresh(now, *stream, map.clone())),
        })
    }
}

impl<T, E> From<&Result<T, E>> for Reply {
    fn from(result: &Result<T, E>) -> Self {
        match result {
            Ok(_) => Reply::Taken,
            Err(_) => Reply::Refused,
        }
    }
}

impl From<&Order> for EncodedOrder {
    fn from(order: &Order) -> Self {
        let mut wanted = Vec::new();
        let encoded = order.wanted.encode(&mut wanted);
        encoded.expect("memory takes everything");
        EncodedOrder {
            wanted,
            priority: order.priority,
            deadline: order.deadline,
        }
    }
}

impl EncodedOrder {
    fn decode(&self, geometry: &Geometry) -> Result<Order, DecodeError> {
        Ok(Order {
            wanted: WantedBlocks::decode(geometry, &self.wanted[..])?,
            priority: self.priority,
            deadline: self.deadline,
        })
    }
}
