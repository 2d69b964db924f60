//! A command of the drive that has ended, for observers of a run.

use block::{Action, Command, Extent, Instant, Outcome};
use engine::Engine;

/// A command of the drive that has ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedCommand {
    /// The arm of a drive of two, or the drive of a mirror; else 0.
    pub arm: u32,
    /// The action.
    pub action: Action,
    /// Its role.
    pub role: CommandRole,
    /// Its earliest possible start: its dispatch or the end of the command before.
    pub began: Instant,
    /// Its end, and its phases.
    pub outcome: Outcome,
}

/// The role of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandRole {
    /// It serves a request.
    Request,
    /// It serves a request, and reads these free blocks of the track before it.
    Merged(Extent),
    /// It serves a stream.
    Stream,
    /// It serves a background task, or calibrates, while requests wait.
    Gap,
    /// The same without waiting requests.
    Idle,
}

impl CommandRole {
    /// The role of a command at the drive.
    pub(super) fn of(engine: &Engine, command: &Command) -> Self {
        match (
            engine.request_of(command.id),
            engine.background_of(command.id),
        ) {
            (Some(_), Some(free)) => CommandRole::Merged(free),
            (Some(_), None) => CommandRole::Request,
            (None, _) => match (engine.stream_of(command.id), engine.held()) {
                (Some(_), _) => CommandRole::Stream,
                (None, 0) => CommandRole::Idle,
                (None, _) => CommandRole::Gap,
            },
        }
    }
}
