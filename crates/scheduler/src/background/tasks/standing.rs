//! Standing tasks, whose wanted blocks change while they are active.

use block::{Extent, Instant};
use drive::Geometry;

use super::{BackgroundTask, BackgroundTasks, Order, TaskId, TaskRefused, Term, UnknownTask};
use crate::freeblock::{PastEnd, WantedBlocks};

/// The largest number of standing tasks, in addition to [`MOST_TASKS`](super::MOST_TASKS). An owner
/// with several kinds of blocks shares one task, and learns which blocks were read.
pub const MOST_STANDING: usize = 1;

/// The reason that the wanted blocks of a standing task were not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotWanted {
    /// No active or suspended task has this number.
    #[error(transparent)]
    Unknown(#[from] UnknownTask),
    /// The task is not standing: its blocks are fixed.
    #[error("task {} was begun with what it wants: expected one that stands", .0.0)]
    Ordered(TaskId),
    /// The blocks are not on the drive.
    #[error(transparent)]
    PastEnd(#[from] PastEnd),
}

impl BackgroundTasks {
    /// Begins a standing task without wanted blocks. [`BackgroundTasks::want`] adds blocks; the
    /// task is never finished. At its priority it goes before all other tasks, because its blocks
    /// are useful for a short time only.
    ///
    /// # Errors
    /// If a standing task exists already.
    pub fn begin_standing(
        &mut self,
        now: Instant,
        geometry: &Geometry,
        priority: u8,
    ) -> Result<TaskId, TaskRefused> {
        if self.under_way_of(Term::Standing) >= MOST_STANDING {
            return Err(TaskRefused::FullOfStanding);
        }
        let order = Order {
            wanted: WantedBlocks::none(geometry),
            priority,
            deadline: None,
        };
        let id = self.enter(now, Term::Standing, order);
        self.arrange();
        Ok(id)
    }

    /// Adds all slices that overlap `extent` to a standing task. Returns the number of newly wanted
    /// blocks. The cost is proportional to the extent.
    ///
    /// # Errors
    /// If the task is unknown or not standing, or the blocks are not on the drive.
    pub fn want(&mut self, id: TaskId, extent: Extent) -> Result<u64, NotWanted> {
        let task = self.standing(id)?;
        let more = task.wanted.add(extent)?;
        task.asked.0 += more;
        Ok(more)
    }

    /// Removes all slices that overlap `extent` from a standing task. Dispatched reads continue.
    /// The cost is proportional to the extent.
    ///
    /// # Errors
    /// If the task is unknown or not standing.
    pub fn unwant(&mut self, id: TaskId, extent: Extent) -> Result<(), NotWanted> {
        let task = self.standing(id)?;
        task.asked.0 -= task.wanted.remove_touched(extent);
        Ok(())
    }

    fn standing(&mut self, id: TaskId) -> Result<&mut BackgroundTask, NotWanted> {
        let place = self.under_way(id)?;
        match self.tasks[place].term {
            Term::Standing => Ok(&mut self.tasks[place]),
            Term::Ordered => Err(NotWanted::Ordered(id)),
        }
    }
}
