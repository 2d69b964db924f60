//! Tasks that stand: blocks that somebody would like to have come and go while they are there.

use block::{Extent, Instant};
use drive::Geometry;

use super::{BackgroundTask, BackgroundTasks, Order, TaskId, TaskRefused, Term, UnknownTask};
use crate::freeblock::{PastEnd, WantedBlocks};

/// So many stand at once, who take none of the others' places. Whoever has several kinds of blocks to
/// wish for shares one: it is told which were read.
pub const MOST_STANDING: usize = 1;

/// Why what a standing task wants was not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotWanted {
    /// There is no such task under way.
    #[error(transparent)]
    Unknown(#[from] UnknownTask),
    /// What it wants was said when it was begun.
    #[error("task {} was begun with what it wants: expected one that stands", .0.0)]
    Ordered(TaskId),
    /// There are no such blocks.
    #[error(transparent)]
    PastEnd(#[from] PastEnd),
}

impl BackgroundTasks {
    /// Takes a task that stands: it wants nothing at first, then what [`BackgroundTasks::want`] says, and is
    /// never finished. At its priority it is looked for before all others, as its blocks are of use for
    /// a short time only.
    ///
    /// # Errors
    /// If there is one.
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

    /// A standing task wants these blocks, too: all slices that have one of them. It costs what
    /// the extent does. Says how many are newly wanted.
    ///
    /// # Errors
    /// If it is not under way or does not stand, or there are no such blocks.
    pub fn want(&mut self, id: TaskId, extent: Extent) -> Result<u64, NotWanted> {
        let task = self.standing(id)?;
        let more = task.wanted.add(extent)?;
        task.asked.0 += more;
        Ok(more)
    }

    /// A standing task no longer wants these blocks: no slice that has one of them. It costs what
    /// the extent does. What is at the drive for it is read all the same.
    ///
    /// # Errors
    /// If it is not under way or does not stand.
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
