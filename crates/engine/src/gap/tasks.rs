//! Background tasks of the gaps: they begin, and change.

use block::{Extent, Instant};
use scheduler::background::{BackgroundTasks, NotWanted, Order, TaskId, TaskRefused, UnknownTask};

use super::GapStage;
use crate::belief::DriveBelief;

/// What becomes of a background task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum TaskChange {
    /// Its blocks are no longer looked for; what others read is taken along.
    Suspend,
    /// Its blocks are looked for again.
    Resume,
    /// It is given up.
    Abort,
    /// It gets another priority.
    Promote(u8),
    /// A standing task wants these blocks, too.
    Want(Extent),
    /// A standing task no longer wants these blocks.
    Unwant(Extent),
    /// Enough of it was read: it is finished.
    Finish,
    /// Its reads alternate with the commands of the foreground, because a client waits for it.
    Hasten,
}

impl GapStage {
    /// Begins a background task.
    pub(crate) fn begin(
        &mut self,
        now: Instant,
        belief: &DriveBelief,
        order: Order,
    ) -> Result<TaskId, TaskRefused> {
        self.tasks().begin(now, &belief.profile().geometry, order)
    }

    /// Begins a task that stands: see [`BackgroundTasks::begin_standing`].
    pub(crate) fn begin_standing(
        &mut self,
        now: Instant,
        belief: &DriveBelief,
        priority: u8,
    ) -> Result<TaskId, TaskRefused> {
        let geometry = &belief.profile().geometry;
        self.tasks().begin_standing(now, geometry, priority)
    }

    /// Changes a task. The answer is whether it wants blocks that it did not want before.
    pub(crate) fn change(
        &mut self,
        now: Instant,
        id: TaskId,
        change: TaskChange,
    ) -> Result<bool, NotWanted> {
        let tasks = self.tasks();
        let changed: Result<(), UnknownTask> = match change {
            TaskChange::Want(extent) => return tasks.want(id, extent).map(|more| more > 0),
            TaskChange::Unwant(extent) => {
                return tasks.unwant(id, extent).map(|_| false);
            }
            TaskChange::Suspend => tasks.suspend(id),
            TaskChange::Resume => tasks.resume(id),
            TaskChange::Abort => tasks.abort(now, id),
            TaskChange::Promote(priority) => tasks.promote(id, priority),
            TaskChange::Finish => tasks.finish(now, id),
            TaskChange::Hasten => tasks.hasten(id),
        };
        changed?;
        Ok(false)
    }

    /// Takes blocks off a task.
    pub(crate) fn narrow(
        &mut self,
        now: Instant,
        id: TaskId,
        extents: &[Extent],
    ) -> Result<(), UnknownTask> {
        self.tasks().narrow(now, id, extents)
    }

    fn tasks(&mut self) -> &mut BackgroundTasks {
        let free = self.free.as_mut();
        &mut free.expect("an engine with background tasks").tasks
    }
}
