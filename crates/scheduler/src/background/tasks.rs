//! The tasks of one drive, their wanted blocks, and their order.

use block::{Extent, Instant, Sectors};
use drive::Geometry;

use super::account::{Account, Means};
use crate::freeblock::WantedBlocks;

mod narrowed;
mod standing;

pub use standing::{MOST_STANDING, NotWanted};

/// The largest number of tasks that are not standing. Every read is compared with each task's
/// wanted set. A choice: scrub, backup, rebuild and scan, two of each.
pub const MOST_TASKS: usize = 8;

/// The number of a task, never reused.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct TaskId(pub u64);

/// The order to begin a task.
#[derive(Clone, Debug)]
pub struct Order {
    /// The blocks to read, in any order.
    pub wanted: WantedBlocks,
    /// The priority; 0 is the highest.
    pub priority: u8,
    /// The requested end. Among tasks of one priority the earliest deadline goes first.
    pub deadline: Option<Instant>,
}

/// The phase of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskPhase {
    /// The planner searches for its blocks.
    Active,
    /// The planner does not search for its blocks; reads for other tasks still count.
    Suspended,
    /// All its blocks were read.
    Finished,
    /// The task was aborted.
    Aborted,
}

/// The progress of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskProgress {
    /// The phase.
    pub state: TaskPhase,
    /// The blocks of the order, rounded up to slices of the wanted set.
    pub asked: Sectors,
    /// Blocks that no dispatched read covers yet.
    pub left: Sectors,
    /// The blocks read for the task, by the time that the reads used.
    pub account: Account,
    /// Blocks of failed reads. At least one block of each such read is unreadable.
    pub failed: Sectors,
    /// The moment at which the task began.
    pub began: Instant,
    /// The moment at which it was finished or aborted.
    pub ended: Option<Instant>,
}

/// The wanted blocks of a read, by task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadAttribution {
    /// The largest number of blocks that the tasks of one priority wanted together.
    pub blocks: u32,
    /// The same without standing tasks.
    pub ordered: u32,
    /// The tasks that wanted blocks of the read, and how many.
    each: [Option<(TaskId, u32)>; MOST_TASKS + MOST_STANDING],
}

/// The reason that a task was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskRefused {
    /// The number of tasks is at its limit.
    #[error("{MOST_TASKS} tasks are under way: expected to wait until one of them ends")]
    Full,
    /// The number of standing tasks is at its limit.
    #[error("a standing task is under way: expected its blocks to be wanted of that one")]
    FullOfStanding,
    /// The deadline has passed.
    #[error("a deadline at {deadline_ns} ns, and it is {now_ns} ns: expected one to come")]
    Late {
        /// The deadline.
        deadline_ns: u64,
        /// The current time.
        now_ns: u64,
    },
    /// The wanted set belongs to another drive.
    #[error("a wanted set over {set} blocks for a drive of {drive}: expected the drive's own")]
    OtherDrive {
        /// Blocks of the set's drive.
        set: u64,
        /// Blocks of this drive.
        drive: u64,
    },
}

/// No active or suspended task has this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no task {} is under way", .0.0)]
pub struct UnknownTask(pub TaskId);

/// The condition under which a task ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Term {
    /// The task ends when it is aborted; its wanted blocks change.
    Standing,
    /// The task ends when all its wanted blocks were read.
    Ordered,
}

/// When the reads of a task are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pressure {
    /// In turn with the commands of the foreground.
    Hastened,
    /// In gaps, in idle time and in granted time.
    Free,
}

/// One task.
#[derive(Clone, Debug)]
struct BackgroundTask {
    id: TaskId,
    term: Term,
    wanted: WantedBlocks,
    priority: u8,
    deadline: Option<Instant>,
    asked: Sectors,
    account: Account,
    failed: Sectors,
    began: Instant,
    state: TaskPhase,
    ended: Option<Instant>,
    pressure: Pressure,
    /// The number of its reads at the drive.
    in_flight: u32,
}

/// The active tasks of one priority and deadline. Standing tasks have groups of their own.
#[derive(Clone, Debug)]
struct PriorityGroup {
    /// Indices of the tasks. A standing task is a member even if it wants nothing.
    members: Vec<usize>,
    term: Term,
    pressure: Pressure,
    /// The union of the wanted sets, if there are several members.
    together: Option<WantedBlocks>,
}

/// All tasks of a drive.
#[derive(Clone, Debug, Default)]
pub struct BackgroundTasks {
    tasks: Vec<BackgroundTask>,
    levels: Vec<PriorityGroup>,
    begun: u64,
}

impl BackgroundTasks {
    /// Begins a task.
    ///
    /// # Errors
    /// If there are too many tasks, the deadline has passed, or the set belongs to another drive.
    pub fn begin(
        &mut self,
        now: Instant,
        geometry: &Geometry,
        order: Order,
    ) -> Result<TaskId, TaskRefused> {
        if self.under_way_of(Term::Ordered) >= MOST_TASKS {
            return Err(TaskRefused::Full);
        }
        if let Some(deadline) = order.deadline.filter(|&deadline| deadline <= now) {
            return Err(TaskRefused::Late {
                deadline_ns: deadline.as_nanos(),
                now_ns: now.as_nanos(),
            });
        }
        let (set, drive) = (order.wanted.geometry().sectors().0, geometry.sectors().0);
        if set != drive {
            return Err(TaskRefused::OtherDrive { set, drive });
        }
        let id = self.enter(now, Term::Ordered, order);
        self.end_if_done(self.tasks.len() - 1, now);
        self.arrange();
        Ok(id)
    }

    fn under_way_of(&self, term: Term) -> usize {
        let under_way = self.tasks.iter().filter(|task| task.is_under_way());
        under_way.filter(|task| task.term == term).count()
    }

    /// Removes ended tasks and adds a new one.
    fn enter(&mut self, now: Instant, term: Term, order: Order) -> TaskId {
        let id = TaskId(self.begun);
        self.begun += 1;
        self.tasks.retain(BackgroundTask::is_under_way);
        let asked = Sectors(order.wanted.left());
        self.tasks.push(BackgroundTask {
            id,
            term,
            asked,
            wanted: order.wanted,
            priority: order.priority,
            deadline: order.deadline,
            account: Account::default(),
            failed: Sectors(0),
            began: now,
            state: TaskPhase::Active,
            ended: None,
            pressure: Pressure::Free,
            in_flight: 0,
        });
        id
    }

    /// Suspends a task: the planner ignores its blocks.
    ///
    /// # Errors
    /// If the task is not active or suspended.
    pub fn suspend(&mut self, id: TaskId) -> Result<(), UnknownTask> {
        self.turn(id, TaskPhase::Suspended)
    }

    /// Resumes a task.
    ///
    /// # Errors
    /// If the task is not active or suspended.
    pub fn resume(&mut self, id: TaskId) -> Result<(), UnknownTask> {
        self.turn(id, TaskPhase::Active)
    }

    /// Aborts a task. The results of its reads at the drive are dropped.
    ///
    /// # Errors
    /// If the task is not active or suspended.
    pub fn abort(&mut self, now: Instant, id: TaskId) -> Result<(), UnknownTask> {
        self.turn(id, TaskPhase::Aborted)?;
        let place = self.place(id).ok_or(UnknownTask(id))?;
        self.tasks[place].ended = Some(now);
        Ok(())
    }

    /// Finishes a task of which enough was read. The results of its reads at the drive are dropped.
    ///
    /// # Errors
    /// If the task is not active or suspended.
    pub fn finish(&mut self, now: Instant, id: TaskId) -> Result<(), UnknownTask> {
        self.turn(id, TaskPhase::Finished)?;
        let place = self.place(id).ok_or(UnknownTask(id))?;
        self.tasks[place].ended = Some(now);
        Ok(())
    }

    /// Hastens a task, for a client that waits for it: from now on its reads alternate with the
    /// commands of the foreground. Hastened tasks go before all others.
    ///
    /// # Errors
    /// If the task is not active or suspended.
    pub fn hasten(&mut self, id: TaskId) -> Result<(), UnknownTask> {
        let place = self.under_way(id)?;
        self.tasks[place].pressure = Pressure::Hastened;
        self.arrange();
        Ok(())
    }

    /// Whether an active task is hastened.
    #[inline]
    pub fn is_any_hastened(&self) -> bool {
        let first = self.levels.first();
        first.is_some_and(|level| level.pressure == Pressure::Hastened)
    }

    /// The wanted blocks of the first active task that is hastened.
    pub fn hastened(&self) -> Option<&WantedBlocks> {
        let first = self.levels.first()?;
        let is_hastened = first.pressure == Pressure::Hastened;
        self.wanted_at(first).filter(|_| is_hastened)
    }

    /// Changes the priority of a task.
    ///
    /// # Errors
    /// If the task is not active or suspended.
    pub fn promote(&mut self, id: TaskId, priority: u8) -> Result<(), UnknownTask> {
        let place = self.under_way(id)?;
        self.tasks[place].priority = priority;
        self.arrange();
        Ok(())
    }

    /// The progress of a task. `None` if the number is unknown, or if the task ended before another
    /// began.
    pub fn progress(&self, id: TaskId) -> Option<TaskProgress> {
        let task = &self.tasks[self.place(id)?];
        Some(TaskProgress {
            state: task.state,
            asked: task.asked,
            left: Sectors(task.wanted.left()),
            account: task.account,
            failed: task.failed,
            began: task.began,
            ended: task.ended,
        })
    }

    /// The blocks of a task that no dispatched read covers yet.
    pub fn left(&self, id: TaskId) -> Option<&WantedBlocks> {
        Some(&self.tasks[self.place(id)?].wanted)
    }

    /// Whether a task is active.
    pub fn is_any_active(&self) -> bool {
        self.wanted().next().is_some()
    }

    /// The earliest deadline of the active tasks, and the remaining blocks of its task.
    pub fn next_deadline(&self) -> Option<(Instant, Sectors)> {
        let active = self.tasks.iter().filter(|t| t.state == TaskPhase::Active);
        active
            .filter_map(|task| Some((task.deadline?, Sectors(task.wanted.left()))))
            .min()
    }

    /// Whether an active task has no deadline and is not standing.
    pub fn is_any_unbounded(&self) -> bool {
        let mut active = self.tasks.iter().filter(|t| t.state == TaskPhase::Active);
        active.any(|task| task.deadline.is_none() && task.term == Term::Ordered)
    }

    /// The wanted sets in the order of priority.
    pub fn wanted(&self) -> impl Iterator<Item = &WantedBlocks> {
        self.levels.iter().filter_map(|level| self.wanted_at(level))
    }

    /// The wanted sets in the order of priority, without those of standing tasks, for which no
    /// granted head time is spent.
    pub fn wanted_to_pay(&self) -> impl Iterator<Item = &WantedBlocks> {
        let levels = self.levels.iter();
        let ordered = levels.filter(|level| level.term == Term::Ordered);
        ordered.filter_map(|level| self.wanted_at(level))
    }

    fn wanted_at<'a>(&'a self, level: &'a PriorityGroup) -> Option<&'a WantedBlocks> {
        let wanted = match &level.together {
            Some(together) => together,
            None => &self.tasks[level.members[0]].wanted,
        };
        (level.term == Term::Ordered || wanted.left() > 0).then_some(wanted)
    }

    /// Removes the blocks of a dispatched read from all wanted sets.
    pub fn give(&mut self, extent: Extent) -> ReadAttribution {
        let mut served = ReadAttribution::default();
        let mut emptied = false;
        let under_way = self.tasks.iter_mut().filter(|task| task.is_under_way());
        for (task, each) in under_way.zip(&mut served.each) {
            let blocks = task.wanted.remove(extent) as u32;
            if blocks > 0 {
                *each = Some((task.id, blocks));
                task.in_flight += 1;
                served.blocks = served.blocks.max(blocks);
                if task.term == Term::Ordered {
                    served.ordered = served.ordered.max(blocks);
                    emptied |= task.wanted.left() == 0;
                }
            }
        }
        for level in &mut self.levels {
            if let Some(together) = &mut level.together {
                let blocks = together.remove(extent) as u32;
                served.blocks = served.blocks.max(blocks);
                served.ordered = served.ordered.max(blocks);
            }
        }
        if emptied {
            self.arrange();
        }
        served
    }

    /// Notes the end of a read, and the time that it used.
    pub fn deliver(&mut self, now: Instant, served: &ReadAttribution, means: Means) {
        for &(id, blocks) in served.each.iter().flatten() {
            let Some(place) = self.place(id) else {
                continue;
            };
            let task = &mut self.tasks[place];
            task.in_flight -= 1;
            task.account.count(means, u64::from(blocks));
            self.end_if_done(place, now);
        }
    }

    /// Notes the failure of a read. Its blocks are counted as failed and not read again.
    pub fn fail(&mut self, now: Instant, served: &ReadAttribution) {
        for &(id, blocks) in served.each.iter().flatten() {
            let Some(place) = self.place(id) else {
                continue;
            };
            let task = &mut self.tasks[place];
            task.in_flight -= 1;
            task.failed.0 += u64::from(blocks);
            self.end_if_done(place, now);
        }
    }

    /// Finishes a task without wanted blocks and reads at the drive, unless it is standing.
    fn end_if_done(&mut self, place: usize, now: Instant) {
        let task = &mut self.tasks[place];
        if task.term == Term::Standing {
            return;
        }
        if task.is_under_way() && task.in_flight == 0 && task.wanted.left() == 0 {
            task.state = TaskPhase::Finished;
            task.ended = Some(now);
        }
    }

    fn place(&self, id: TaskId) -> Option<usize> {
        self.tasks.iter().position(|task| task.id == id)
    }

    fn under_way(&self, id: TaskId) -> Result<usize, UnknownTask> {
        self.place(id)
            .filter(|&place| self.tasks[place].is_under_way())
            .ok_or(UnknownTask(id))
    }

    fn turn(&mut self, id: TaskId, state: TaskPhase) -> Result<(), UnknownTask> {
        let place = self.under_way(id)?;
        self.tasks[place].state = state;
        self.arrange();
        Ok(())
    }

    /// Sorts the active tasks into groups. A standing task is included even if it wants nothing.
    fn arrange(&mut self) {
        self.levels.clear();
        let active = |place: &usize| {
            let task = &self.tasks[*place];
            let may_want = task.wanted.left() > 0 || task.term == Term::Standing;
            task.state == TaskPhase::Active && may_want
        };
        let mut places: Vec<usize> = (0..self.tasks.len()).filter(active).collect();
        let rank = |place: usize| {
            let task = &self.tasks[place];
            (
                task.pressure,
                task.priority,
                task.term,
                task.deadline.map_or((1, Instant::ZERO), |at| (0, at)),
            )
        };
        places.sort_by_key(|&place| rank(place));
        for same in places.chunk_by(|&a, &b| rank(a) == rank(b)) {
            let mut together = None;
            if let [first, rest @ ..] = same
                && !rest.is_empty()
            {
                let mut all = self.tasks[*first].wanted.clone();
                for &place in rest {
                    all.union_with(&self.tasks[place].wanted);
                }
                together = Some(all);
            }
            self.levels.push(PriorityGroup {
                members: same.to_vec(),
                term: self.tasks[same[0]].term,
                pressure: self.tasks[same[0]].pressure,
                together,
            });
        }
    }
}

impl BackgroundTask {
    fn is_under_way(&self) -> bool {
        matches!(self.state, TaskPhase::Active | TaskPhase::Suspended)
    }
}
