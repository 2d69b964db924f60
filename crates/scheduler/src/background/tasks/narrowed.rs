//! Tasks that want less than at their beginning.

use block::{Extent, Instant};

use super::{BackgroundTasks, TaskId, UnknownTask};

impl BackgroundTasks {
    /// Takes blocks off a task: the slices that are wholly in these extents. Dispatched reads continue. The task is
    /// finished if it wants nothing else and no read of it is at the drive.
    ///
    /// # Errors
    /// If the task is not active or suspended.
    pub fn narrow(
        &mut self,
        now: Instant,
        id: TaskId,
        extents: &[Extent],
    ) -> Result<(), UnknownTask> {
        let place = self.under_way(id)?;
        let task = &mut self.tasks[place];
        for &extent in extents {
            task.asked.0 -= task.wanted.remove(extent);
        }
        self.end_if_done(place, now);
        self.arrange();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use block::{Lba, Sectors};
    use drive::invented;

    use super::super::{Order, TaskPhase};
    use super::*;
    use crate::background::Means;
    use crate::freeblock::WantedBlocks;

    fn extent(start: u64, length: u64) -> Extent {
        Extent::new(Lba(start), Sectors(length)).expect("a valid extent")
    }

    fn order(extents: &[Extent]) -> Order {
        let mut wanted = WantedBlocks::none(&invented::profile().geometry);
        for &extent in extents {
            wanted.add(extent).expect("blocks of the drive");
        }
        Order {
            wanted,
            priority: 0,
            deadline: None,
        }
    }

    #[test]
    fn a_narrowed_task_does_not_want_what_others_still_want_and_ends_without_it() {
        let (now, geometry) = (Instant::ZERO, invented::profile().geometry);
        let mut tasks = BackgroundTasks::default();
        let pieces = [extent(0, 8), extent(50, 8), extent(100, 8)];
        let mut begin = |of: &[Extent]| tasks.begin(now, &geometry, order(of)).expect("a task");
        let (one, other) = (begin(&pieces), begin(&pieces[1..2]));
        tasks.narrow(now, one, &pieces[1..]).expect("it is active");
        let progress = tasks.progress(one).expect("it is known");
        assert_eq!((progress.asked, progress.left), (Sectors(8), Sectors(8)));
        let wanted: Vec<Vec<Extent>> = tasks.wanted().map(|set| set.extents().collect()).collect();
        assert_eq!(
            wanted,
            [pieces[..2].to_vec()],
            "the other task wants the second piece"
        );
        let read = tasks.give(pieces[0]);
        tasks
            .narrow(now, one, &pieces)
            .expect("it waits for its read");
        assert_eq!(
            tasks.progress(one).map(|it| it.state),
            Some(TaskPhase::Active)
        );
        tasks.deliver(now, &read, Means::Free);
        assert_eq!(
            tasks.progress(one).map(|it| it.state),
            Some(TaskPhase::Finished)
        );
        assert!(tasks.narrow(now, one, &pieces).is_err(), "it has ended");
        tasks.narrow(now, other, &pieces).expect("it is active");
        assert_eq!(
            tasks.progress(other).map(|it| it.state),
            Some(TaskPhase::Finished)
        );
        assert_eq!(tasks.wanted().count(), 0);
    }
}
