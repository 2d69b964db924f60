//! The tasks of one drive, what each still wants, and which of them comes first.

use block::{Extent, Instant, Sectors};
use drive::Geometry;

use super::account::{Account, Means};
use crate::freeblock::WantedBlocks;

mod standing;

pub use standing::{MOST_STANDING, NotWanted};

/// At most so many tasks at once that end: every read is held against the wanted set of each. A choice:
/// scrub, backup, rebuild and scan, two of each.
pub const MOST_TASKS: usize = 8;

/// Names a task; never used twice.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct TaskId(pub u64);

/// What a task is to do.
#[derive(Clone, Debug)]
pub struct Order {
    /// The blocks that it wants to have read, in any order.
    pub wanted: WantedBlocks,
    /// 0 is looked for first.
    pub priority: u8,
    /// When it should be done; among tasks of one priority the earliest is looked for first.
    pub deadline: Option<Instant>,
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskPhase {
    /// Its blocks are looked for.
    Active,
    /// They are not looked for; what others read is taken along.
    Suspended,
    /// All blocks were read.
    Finished,
    /// Given up.
    Aborted,
}

/// How far a task has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskProgress {
    /// Where it stands.
    pub state: TaskPhase,
    /// Blocks that it asked for, whole slices of the wanted set.
    pub asked: Sectors,
    /// Blocks of which no read has been given to the drive yet.
    pub left: Sectors,
    /// What was read for it, and what paid for it.
    pub account: Account,
    /// Blocks of reads that failed: at least one of the blocks of each could not be read.
    pub failed: Sectors,
    /// When it was begun.
    pub began: Instant,
    /// When it was finished or aborted.
    pub ended: Option<Instant>,
}

/// How many blocks of a read each task wanted, by the task's place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadAttribution {
    /// Blocks that the tasks of one level wanted together: of the level that wanted most of them.
    pub blocks: u32,
    /// The same without those that stand.
    pub ordered: u32,
    /// Which task was served, and with how many blocks.
    each: [Option<(TaskId, u32)>; MOST_TASKS + MOST_STANDING],
}

/// Why a task was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskRefused {
    /// As many tasks as may be.
    #[error("{MOST_TASKS} tasks are under way: expected to wait until one of them ends")]
    Full,
    /// As many standing ones as may be.
    #[error("a standing task is under way: expected its blocks to be wanted of that one")]
    FullOfStanding,
    /// It should have been done already.
    #[error("a deadline at {deadline_ns} ns, and it is {now_ns} ns: expected one to come")]
    Late {
        /// When it should be done.
        deadline_ns: u64,
        /// The time.
        now_ns: u64,
    },
    /// The set was made for another drive.
    #[error("a wanted set over {set} blocks for a drive of {drive}: expected the drive's own")]
    OtherDrive {
        /// Blocks of the set's drive.
        set: u64,
        /// Blocks of this drive.
        drive: u64,
    },
}

/// There is no such task under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no task {} is under way", .0.0)]
pub struct UnknownTask(pub TaskId);

/// When a task ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Term {
    /// When it is aborted: what it wants comes and goes.
    Standing,
    /// When all that it wants was read.
    Ordered,
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
    /// Reads for it that are at the drive.
    in_flight: u32,
}

/// The active tasks of one priority and deadline; those that stand are apart.
#[derive(Clone, Debug)]
struct PriorityGroup {
    /// Places of the tasks; a standing one is here even if it wants nothing.
    members: Vec<usize>,
    term: Term,
    /// What they want together, if there are several.
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
    /// Takes a task.
    ///
    /// # Errors
    /// If there are too many, its deadline has passed, or its set is another drive's.
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

    /// Those that have ended go, and another one comes.
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
            in_flight: 0,
        });
        id
    }

    /// Its blocks are no longer looked for.
    ///
    /// # Errors
    /// If it is not under way.
    pub fn suspend(&mut self, id: TaskId) -> Result<(), UnknownTask> {
        self.turn(id, TaskPhase::Suspended)
    }

    /// Its blocks are looked for again.
    ///
    /// # Errors
    /// If it is not under way.
    pub fn resume(&mut self, id: TaskId) -> Result<(), UnknownTask> {
        self.turn(id, TaskPhase::Active)
    }

    /// It is given up; what is at the drive for it is read and forgotten.
    ///
    /// # Errors
    /// If it is not under way.
    pub fn abort(&mut self, now: Instant, id: TaskId) -> Result<(), UnknownTask> {
        self.turn(id, TaskPhase::Aborted)?;
        let place = self.place(id).ok_or(UnknownTask(id))?;
        self.tasks[place].ended = Some(now);
        Ok(())
    }

    /// It gets another priority.
    ///
    /// # Errors
    /// If it is not under way.
    pub fn promote(&mut self, id: TaskId, priority: u8) -> Result<(), UnknownTask> {
        let place = self.under_way(id)?;
        self.tasks[place].priority = priority;
        self.arrange();
        Ok(())
    }

    /// How far a task has come; `None` if it is unknown, or ended before another was begun.
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

    /// The blocks of which no read for the task has been given to the drive yet.
    pub fn left(&self, id: TaskId) -> Option<&WantedBlocks> {
        Some(&self.tasks[self.place(id)?].wanted)
    }

    /// Whether some task's blocks are looked for.
    pub fn is_any_active(&self) -> bool {
        self.wanted().next().is_some()
    }

    /// The earliest deadline among the active tasks, and what its task still wants.
    pub fn next_deadline(&self) -> Option<(Instant, Sectors)> {
        let active = self.tasks.iter().filter(|t| t.state == TaskPhase::Active);
        active
            .filter_map(|task| Some((task.deadline?, Sectors(task.wanted.left()))))
            .min()
    }

    /// Whether some active task has no deadline and does not stand.
    pub fn is_any_unbounded(&self) -> bool {
        let mut active = self.tasks.iter().filter(|t| t.state == TaskPhase::Active);
        active.any(|task| task.deadline.is_none() && task.term == Term::Ordered)
    }

    /// What is wanted, what is looked for first coming first.
    pub fn wanted(&self) -> impl Iterator<Item = &WantedBlocks> {
        self.levels.iter().filter_map(|level| self.wanted_at(level))
    }

    /// The same, without what standing tasks want: head time that the user granted is not for them.
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

    /// A read of `extent` is given to the drive: nobody wants its blocks any more.
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

    /// The read has ended, by whatever means it was paid for.
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

    /// The read has failed: its blocks are not read again, and counted.
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

    /// A task that wants nothing and waits for nothing is finished, unless it stands.
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

    /// Sorts the active tasks that want something, or may come to, into levels.
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
