//! What happens to an engine, as one type: what a capture records, and what replays and fuzzers make.

use block::{Class, Command, CommandId, Extent, Instant, Outcome, Request, RequestId};
use drive::Geometry;
use scheduler::background::{Order, TaskId};
use scheduler::freeblock::{DecodeError, WantedBlocks};
use serde::{Deserialize, Serialize};
use stream::streams::StreamId;

use crate::{Engine, StreamInput, TaskChange};

/// One input of an engine. Each is a call of the same name; streams are granted by [`Engine::attach`]
/// alone.
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
}

/// What an engine answers to an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The engine took it.
    Taken,
    /// The engine refused it.
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

/// An input that cannot happen to this engine.
#[derive(Debug, thiserror::Error)]
pub enum Impossible {
    /// The end of a command that it did not give.
    #[error("command {} ends, which is not at the drive", .0.0)]
    NotAtDrive(CommandId),
    /// A background task, and it takes none.
    #[error("a background task of an engine without them")]
    NoTasks,
    /// The blocks of a task are not those of its drive.
    #[error("the blocks of a task: {0}")]
    Wanted(#[from] DecodeError),
}

impl Engine {
    /// Makes the call that an input stands for.
    ///
    /// # Errors
    /// If the input cannot happen: the call would stop the program.
    pub fn apply(&mut self, now: Instant, input: &Input) -> Result<Reply, Impossible> {
        let is_of_task = matches!(
            input,
            Input::BeginTask(_) | Input::BeginStandingTask(_) | Input::ChangeTask(..)
        );
        if is_of_task && !self.background().is_on() {
            return Err(Impossible::NoTasks);
        }
        Ok(match input {
            Input::Poll => Reply::Command(self.poll(now)),
            Input::Complete(outcome) => {
                if !self.dispatch().is_at_drive(outcome.id) {
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
                let order = order.decode(&self.belief().profile().geometry)?;
                Reply::from(&self.begin_task(now, order))
            }
            Input::BeginStandingTask(priority) => {
                Reply::from(&self.begin_standing_task(now, *priority))
            }
            Input::ChangeTask(id, change) => Reply::from(&self.change_task(now, *id, *change)),
            Input::SetImpactBudget(ppm) => {
                self.set_impact_budget(now, *ppm);
                Reply::Taken
            }
            Input::Stream(stream, input) => Reply::from(&self.stream(now, *stream, *input)),
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
