//! The background tasks of an arm.

use block::{Extent, Instant};
use scheduler::background::{NotWanted, Order, TaskId, TaskRefused, UnknownTask};

use super::ArmEngine;
use crate::gap::TaskChange;

impl ArmEngine {
    /// Begins a background task.
    ///
    /// # Errors
    /// If there are too many, its deadline has passed, or its set is another drive's.
    ///
    /// # Panics
    /// If background tasks are not enabled. The other calls about tasks do so, too.
    pub fn begin_task(&mut self, now: Instant, order: Order) -> Result<TaskId, TaskRefused> {
        self.advance(now);
        self.dispatch.settled = false;
        self.gap.begin(now, &self.belief, order)
    }

    /// Begins the standing task ([`BackgroundTasks::begin_standing`](scheduler::background::BackgroundTasks::begin_standing)).
    ///
    /// # Errors
    /// If there is one already.
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
    /// If the task is unknown. For the blocks of a standing task, also if the task is not the standing one,
    /// or the drive does not have the blocks.
    pub fn change_task(
        &mut self,
        now: Instant,
        id: TaskId,
        change: TaskChange,
    ) -> Result<(), NotWanted> {
        self.advance(now);
        let wants_more = self.gap.change(now, id, change);
        if matches!(change, TaskChange::Resume | TaskChange::Hasten) || wants_more == Ok(true) {
            self.dispatch.settled = false;
        }
        wants_more.map(|_| ())
    }

    /// Takes blocks off a task that needs only some of its set.
    ///
    /// # Errors
    /// If the task is not active or suspended.
    pub fn narrow_task(
        &mut self,
        now: Instant,
        id: TaskId,
        extents: &[Extent],
    ) -> Result<(), UnknownTask> {
        self.advance(now);
        self.gap.narrow(now, id, extents)
    }

    /// Sets by how much plans may lengthen foreground requests on average, in parts per million. The call
    /// has no effect without background tasks, or with a fixed guard.
    pub fn set_impact_budget(&mut self, now: Instant, impact_ppm: u32) {
        self.advance(now);
        self.gap.set_impact_budget(impact_ppm);
    }
}
