//! Background tasks: with two arms, a task of each over its blocks.
//!
//! ```text
//!   task 7 over the drive = task 5 of the first arm over its blocks + task 6 of the second over its
//! ```
//!
//! The drives of a mirror have all blocks: each reads every other stripe. If one of them is taken out, the other
//! one reads the rest.
//!
//! Progress, counts and losses are sums over the arms. The impact is that of the arm that loses most,
//! because each arm has the whole budget for itself.

use std::sync::Arc;

use block::{Direction, Duration, Extent, Instant};
use scheduler::background::{
    Account, NotWanted, Order, TaskId, TaskPhase, TaskProgress, TaskRefused, UnknownTask,
};
use scheduler::freeblock::{Losses, WantedBlocks};

use super::copies;
use super::division::{Division, Side};
use super::tasks::{JointTaskKind, together};
use super::{Engine, Joint};
use crate::engine::ArmEngine;
use crate::gap::{Gaps, TaskChange};

impl Engine {
    /// Begins a background task.
    ///
    /// # Errors
    /// If there are too many, its deadline has passed, or its set is another drive's.
    ///
    /// # Panics
    /// If background tasks are not enabled. The other calls about tasks do so, too.
    pub fn begin_task(&mut self, now: Instant, order: Order) -> Result<TaskId, TaskRefused> {
        let Some(joint) = &mut self.joint else {
            return self.first.begin_task(now, order);
        };
        let set = order.wanted.geometry().sectors().0;
        let drive = joint.whole.geometry.sectors().0;
        if set != drive {
            return Err(TaskRefused::OtherDrive { set, drive });
        }
        let [below, above] = joint.divided(&self.first, order.wanted.extents());
        let of_arm = |wanted| Order {
            wanted,
            priority: order.priority,
            deadline: order.deadline,
        };
        let kind = JointTaskKind::Ordered {
            priority: order.priority,
            deadline: order.deadline,
        };
        joint.tasks.note_ends([&self.first, &joint.arm]);
        let first = self.first.begin_task(now, of_arm(below))?;
        let second = joint.arm.begin_task(now, of_arm(above));
        joint.both_began(&mut self.first, now, kind, (first, second))
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
        let Some(joint) = &mut self.joint else {
            return self.first.begin_standing_task(now, priority);
        };
        joint.tasks.note_ends([&self.first, &joint.arm]);
        let first = self.first.begin_standing_task(now, priority)?;
        let second = joint.arm.begin_standing_task(now, priority);
        joint.both_began(
            &mut self.first,
            now,
            JointTaskKind::Standing,
            (first, second),
        )
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
        match &mut self.joint {
            None => self.first.change_task(now, id, change),
            Some(joint) => joint.change_task(&mut self.first, now, id, change),
        }
    }

    /// Takes the slices that are wholly in these extents off a task that needs only some of its set. Dispatched reads
    /// continue. The task is finished if it wants nothing else.
    ///
    /// # Errors
    /// If the task is not active or suspended.
    pub fn narrow_task(
        &mut self,
        now: Instant,
        id: TaskId,
        extents: &[Extent],
    ) -> Result<(), UnknownTask> {
        match &mut self.joint {
            None => self.first.narrow_task(now, id, extents),
            Some(joint) => joint.narrow_task(&mut self.first, now, id, extents),
        }
    }

    /// Sets by how much plans may lengthen foreground requests on average, in parts per million, for each
    /// actuator. The call has no effect without background tasks, or with a fixed guard.
    pub fn set_impact_budget(&mut self, now: Instant, impact_ppm: u32) {
        self.first.set_impact_budget(now, impact_ppm);
        if let Some(joint) = &mut self.joint {
            joint.arm.set_impact_budget(now, impact_ppm);
        }
    }

    /// Whether something waits for gaps of an actuator: blocks of tasks, or requests of the background class.
    pub fn fills_gaps(&self) -> bool {
        self.arms().any(ArmEngine::fills_gaps)
    }

    /// How far a task has come; `None` if it is unknown, or ended before another was begun.
    pub fn task(&self, id: TaskId) -> Option<TaskProgress> {
        let Some(joint) = &self.joint else {
            return self.first.background().task(id);
        };
        let [one, other] = joint.tasks.task(id)?.parts;
        let arms = [&self.first, &joint.arm];
        Some(together(one.progress(arms)?, other.progress(arms)?))
    }

    /// The blocks of a task of which no read has been given to the drive yet.
    pub fn left(&self, id: TaskId) -> Option<WantedBlocks> {
        let Some(joint) = &self.joint else {
            return self.first.background().left(id).cloned();
        };
        let mut left = WantedBlocks::none(&joint.whole.geometry);
        for part in joint.tasks.task(id)?.parts {
            let of_arm = self.arm(part.side).background().left(part.id);
            for extent in of_arm.iter().flat_map(|wanted| wanted.extents()) {
                let extent = joint.division.of_drive(part.side, extent);
                left.add(extent).expect("blocks of the drive");
            }
        }
        Some(left)
    }

    /// What background reads brought, by what paid for them.
    pub fn account(&self) -> Account {
        let accounts = self.arms().map(|arm| arm.background().account());
        accounts.fold(Account::default(), Account::and)
    }

    /// What came of the gaps.
    pub fn gaps(&self) -> Gaps {
        let gaps = self.arms().map(|arm| arm.background().gaps());
        gaps.fold(Gaps::default(), Gaps::and)
    }

    /// The share of the mean response time that foreground requests are measured to lose to
    /// plans, over the last few thousand of them: of the actuator that loses most.
    pub fn impact(&self) -> f64 {
        let impacts = self.arms().map(|arm| arm.background().impact());
        impacts.reduce(f64::max).unwrap_or(0.0)
    }

    /// What the foreground took, and what of it is owed to plans, since the beginning.
    pub fn losses(&self) -> Losses {
        let losses = self.arms().map(|arm| arm.background().losses());
        losses.fold(Losses::default(), |sum, each| Losses {
            responses: sum.responses + each.responses,
            lost: sum.lost + each.lost,
        })
    }

    /// The present guards, the wider ones of two actuators: of reads after short and long seeks, then of
    /// writes.
    pub fn guards(&self) -> [Duration; 4] {
        let guards = self.arms().map(|arm| arm.background().guards());
        guards.fold([Duration::ZERO; 4], |most, each| {
            std::array::from_fn(|index| most[index].max(each[index]))
        })
    }
}

impl Joint {
    /// Notes a task that the first arm has begun, if the second has, too; otherwise it is given up.
    fn both_began(
        &mut self,
        first: &mut ArmEngine,
        now: Instant,
        kind: JointTaskKind,
        (of_first, of_second): (TaskId, Result<TaskId, TaskRefused>),
    ) -> Result<TaskId, TaskRefused> {
        match of_second {
            Ok(of_second) => Ok(self.tasks.enter([of_first, of_second], kind)),
            Err(refused) => {
                // A task without blocks has ended already.
                let _ = first.change_task(now, of_first, TaskChange::Abort);
                Err(refused)
            }
        }
    }

    fn change_task(
        &mut self,
        first: &mut ArmEngine,
        now: Instant,
        id: TaskId,
        change: TaskChange,
    ) -> Result<(), NotWanted> {
        let unknown = NotWanted::Unknown(UnknownTask(id));
        let parts = self.tasks.task(id).ok_or(unknown)?.parts;
        let mut answer = Err(unknown);
        let mut note = |changed| match (answer, changed) {
            (Err(NotWanted::Unknown(_)), Err(NotWanted::Unknown(_))) => {}
            (Err(NotWanted::Unknown(_)) | Ok(()), changed) => answer = changed,
            (Err(_), _) => {}
        };
        match change {
            TaskChange::Want(extent) | TaskChange::Unwant(extent) => {
                let part = |blocks| match change {
                    TaskChange::Want(_) => TaskChange::Want(blocks),
                    _ => TaskChange::Unwant(blocks),
                };
                let mut shares = match change {
                    TaskChange::Want(_) => self.shares(extent),
                    _ => self.division.parts(extent).collect(),
                };
                // Blocks past the end are of the second arm, which is asked first: it may refuse.
                shares.reverse();
                for (side, blocks) in shares {
                    let id = parts[side as usize].id;
                    match side {
                        Side::First => first.change_task(now, id, part(blocks))?,
                        Side::Second => self.arm.change_task(now, id, part(blocks))?,
                    }
                    note(Ok(()));
                }
            }
            _ => {
                for part in parts {
                    note(match part.side {
                        Side::First => first.change_task(now, part.id, change),
                        Side::Second => self.arm.change_task(now, part.id, change),
                    });
                }
                if let TaskChange::Promote(priority) = change {
                    self.tasks.promote(id, priority);
                }
            }
        }
        answer
    }

    fn narrow_task(
        &mut self,
        first: &mut ArmEngine,
        now: Instant,
        id: TaskId,
        extents: &[Extent],
    ) -> Result<(), UnknownTask> {
        let parts = self.tasks.task(id).ok_or(UnknownTask(id))?.parts;
        let mut of_arms = [Vec::new(), Vec::new()];
        for &extent in extents {
            for (side, blocks) in self.division.parts(extent) {
                of_arms[side as usize].push(blocks);
            }
        }
        let mut answer = Err(UnknownTask(id));
        for part in parts {
            let extents = &of_arms[part.side as usize];
            let narrowed = match part.side {
                Side::First => first.narrow_task(now, part.id, extents),
                Side::Second => self.arm.narrow_task(now, part.id, extents),
            };
            // One part may have ended.
            answer = answer.or(narrowed.map_err(|_| UnknownTask(id)));
        }
        answer
    }

    /// The parts of an extent that each arm reads for a task, in the arm's numbers.
    fn shares(&self, extent: Extent) -> Vec<(Side, Extent)> {
        let reads = |side| self.copies.takes(side, Direction::Read);
        match (self.division, reads(Side::First), reads(Side::Second)) {
            (Division::Copies, true, true) => copies::shares(extent, self.capacity),
            (Division::Copies, false, _) => vec![(Side::Second, extent)],
            (Division::Copies, true, false) => vec![(Side::First, extent)],
            (Division::Border(_), ..) => self.division.parts(extent).collect(),
        }
    }

    /// The blocks that each arm reads for a task.
    fn divided(
        &self,
        first: &ArmEngine,
        wanted: impl Iterator<Item = Extent>,
    ) -> [WantedBlocks; 2] {
        let arms = [first, &self.arm];
        let mut parts = arms.map(|arm| WantedBlocks::none(&arm.belief().profile().geometry));
        for extent in wanted {
            for (side, part) in self.shares(extent) {
                parts[side as usize].add(part).expect("blocks of the arm");
            }
        }
        parts
    }

    /// A drive of a mirror is out: the other one goes on with its parts of tasks.
    pub(super) fn move_tasks(&mut self, first: &mut ArmEngine, now: Instant, from: Side) {
        let geometry = |arm: &ArmEngine| Arc::clone(arm.belief().profile());
        let (mine, other) = match from {
            Side::First => (first, &mut self.arm),
            Side::Second => (&mut self.arm, first),
        };
        let profile = geometry(other);
        for task in self.tasks.each_mut() {
            let ids = task.parts.map(|part| part.id);
            for part in task.parts.iter_mut().filter(|part| part.side == from) {
                let Some(left) = mine.background().left(part.id).cloned() else {
                    continue;
                };
                let mut wanted = WantedBlocks::none(&profile.geometry);
                for extent in left.extents() {
                    wanted.add(extent).expect("blocks of both drives");
                }
                match task.kind {
                    JointTaskKind::Standing => {
                        let to = ids[from.other() as usize];
                        for extent in left.extents() {
                            let _ = other.change_task(now, to, TaskChange::Want(extent));
                            let _ = mine.change_task(now, part.id, TaskChange::Unwant(extent));
                        }
                    }
                    JointTaskKind::Ordered { priority, deadline } => {
                        let progress = mine.background().task(part.id);
                        let order = Order {
                            wanted,
                            priority,
                            deadline,
                        };
                        let begun = other.begin_task(now, order);
                        let _ = mine.change_task(now, part.id, TaskChange::Abort);
                        // A task that is refused there stays aborted here.
                        let Ok(id) = begun else {
                            continue;
                        };
                        if progress.is_some_and(|known| known.state == TaskPhase::Suspended) {
                            let _ = other.change_task(now, id, TaskChange::Suspend);
                        }
                        (part.side, part.id, part.before) = (from.other(), id, progress);
                    }
                }
            }
        }
    }
}
