//! Background tasks of a drive: on two actuators, a task of each over the blocks that it has.
//!
//! ```text
//!   task 7 over the drive = task 5 of the first arm over its blocks + task 6 of the second over its
//! ```
//!
//! Progress, counts and losses are sums over the arms. The impact is that of the arm that loses most,
//! because each arm has the whole budget for itself.

use block::{Duration, Extent, Instant, Sectors};
use scheduler::background::{
    Account, NotWanted, Order, TaskId, TaskPhase, TaskProgress, TaskRefused, UnknownTask,
};
use scheduler::freeblock::{Losses, WantedBlocks};

use super::border::{Border, Side};
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
        let [below, above] = divided(joint.border, &order.wanted, [&self.first, &joint.arm]);
        let of_arm = |wanted| Order {
            wanted,
            priority: order.priority,
            deadline: order.deadline,
        };
        joint.tasks.note_ends([&self.first, &joint.arm]);
        let first = self.first.begin_task(now, of_arm(below))?;
        let second = joint.arm.begin_task(now, of_arm(above));
        joint.both_began(&mut self.first, now, first, second)
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
        joint.both_began(&mut self.first, now, first, second)
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

    /// Sets by how much plans may lengthen foreground requests on average, in parts per million, for each
    /// actuator. The call has no effect without background tasks, or with a fixed guard.
    pub fn set_impact_budget(&mut self, now: Instant, impact_ppm: u32) {
        self.first.set_impact_budget(now, impact_ppm);
        if let Some(joint) = &mut self.joint {
            joint.arm.set_impact_budget(now, impact_ppm);
        }
    }

    /// How far a task has come; `None` if it is unknown, or ended before another was begun.
    pub fn task(&self, id: TaskId) -> Option<TaskProgress> {
        let Some(joint) = &self.joint else {
            return self.first.background().task(id);
        };
        let parts = joint.tasks.parts(id)?;
        let [below, above] = parts;
        let below = below.progress(&self.first)?;
        Some(together(below, above.progress(&joint.arm)?))
    }

    /// The blocks of a task of which no read has been given to the drive yet.
    pub fn left(&self, id: TaskId) -> Option<WantedBlocks> {
        let Some(joint) = &self.joint else {
            return self.first.background().left(id).cloned();
        };
        let mut left = WantedBlocks::none(&joint.whole.geometry);
        let parts = joint.tasks.parts(id)?;
        for ((arm, side), part) in self.arms().zip([Side::First, Side::Second]).zip(parts) {
            let of_arm = arm.background().left(part.id);
            for extent in of_arm.iter().flat_map(|wanted| wanted.extents()) {
                let extent = joint.border.of_drive(side, extent);
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
        of_first: TaskId,
        of_second: Result<TaskId, TaskRefused>,
    ) -> Result<TaskId, TaskRefused> {
        match of_second {
            Ok(of_second) => Ok(self.tasks.enter([of_first, of_second])),
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
        let parts = self.tasks.parts(id).ok_or(unknown)?;
        let [below, above] = [parts[0].id, parts[1].id];
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
                // Blocks past the end are of the second arm, which is asked first: it may refuse.
                let mut parts: Vec<(Side, Extent)> = self.border.parts(extent).collect();
                parts.reverse();
                for (side, blocks) in parts {
                    match side {
                        Side::First => first.change_task(now, below, part(blocks))?,
                        Side::Second => self.arm.change_task(now, above, part(blocks))?,
                    }
                    note(Ok(()));
                }
            }
            _ => {
                note(first.change_task(now, below, change));
                note(self.arm.change_task(now, above, change));
            }
        }
        answer
    }
}

/// The wanted blocks of each arm.
fn divided(border: Border, wanted: &WantedBlocks, arms: [&ArmEngine; 2]) -> [WantedBlocks; 2] {
    let mut parts = arms.map(|arm| WantedBlocks::none(&arm.belief().profile().geometry));
    for extent in wanted.extents() {
        for (side, part) in border.parts(extent) {
            let added = match side {
                Side::First => parts[0].add(part),
                Side::Second => parts[1].add(part),
            };
            added.expect("blocks of the arm");
        }
    }
    parts
}

/// The progress of a task with two parts.
fn together(one: TaskProgress, other: TaskProgress) -> TaskProgress {
    let is = |state| one.state == state || other.state == state;
    let under_way = [TaskPhase::Active, TaskPhase::Suspended, TaskPhase::Aborted];
    let state = under_way.into_iter().find(|&state| is(state));
    let sum = |one: Sectors, other: Sectors| Sectors(one.0 + other.0);
    TaskProgress {
        state: state.unwrap_or(TaskPhase::Finished),
        asked: sum(one.asked, other.asked),
        left: sum(one.left, other.left),
        account: one.account.and(other.account),
        failed: sum(one.failed, other.failed),
        began: one.began,
        ended: one
            .ended
            .zip(other.ended)
            .map(|(one, other)| one.max(other)),
    }
}
