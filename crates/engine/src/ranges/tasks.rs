//! The tasks of two arms, and their parts.

use std::collections::BTreeMap;

use block::{Instant, Sectors};
use scheduler::background::{TaskId, TaskPhase, TaskProgress};

use super::division::Side;
use crate::engine::ArmEngine;

/// The tasks of two arms.
#[derive(Default)]
pub(super) struct TaskTable {
    begun: u64,
    tasks: BTreeMap<TaskId, JointTask>,
}

/// A task of two parts.
#[derive(Clone)]
pub(super) struct JointTask {
    pub(super) parts: [TaskPart; 2],
    pub(super) kind: JointTaskKind,
}

/// What a part needs where it goes on at the other drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JointTaskKind {
    /// Its blocks were ordered at its beginning.
    Ordered {
        /// The priority; 0 is the highest.
        priority: u8,
        /// The requested end.
        deadline: Option<Instant>,
    },
    /// Its blocks come and go.
    Standing,
}

/// The part of a task that one arm serves.
#[derive(Clone, Copy)]
pub(super) struct TaskPart {
    pub(super) side: Side,
    pub(super) id: TaskId,
    /// How it ended: an arm forgets ended tasks when another begins.
    pub(super) ended: Option<TaskProgress>,
    /// How far it came on a drive that was taken out of its mirror.
    pub(super) before: Option<TaskProgress>,
}

impl TaskPart {
    fn new(side: Side, id: TaskId) -> Self {
        TaskPart {
            side,
            id,
            ended: None,
            before: None,
        }
    }

    /// How far the part has come.
    pub(super) fn progress(&self, arms: [&ArmEngine; 2]) -> Option<TaskProgress> {
        let arm = arms[self.side as usize];
        let here = self.ended.or_else(|| arm.background().task(self.id))?;
        Some(match self.before {
            Some(before) => TaskProgress {
                ended: here.ended,
                ..together(done(before), here)
            },
            None => here,
        })
    }
}

impl TaskTable {
    /// Keeps the ends of parts, and forgets tasks of which all parts have ended.
    pub(super) fn note_ends(&mut self, arms: [&ArmEngine; 2]) {
        for task in self.tasks.values_mut() {
            for part in &mut task.parts {
                let known = part.ended.or_else(|| {
                    let arm = arms[part.side as usize];
                    arm.background().task(part.id)
                });
                part.ended = known.filter(|known| known.ended.is_some());
            }
        }
        self.tasks
            .retain(|_, task| task.parts.iter().any(|part| part.ended.is_none()));
    }

    /// Notes a task that both arms have begun.
    pub(super) fn enter(&mut self, [first, second]: [TaskId; 2], kind: JointTaskKind) -> TaskId {
        let id = TaskId(self.begun);
        self.begun += 1;
        let parts = [
            TaskPart::new(Side::First, first),
            TaskPart::new(Side::Second, second),
        ];
        self.tasks.insert(id, JointTask { parts, kind });
        id
    }

    /// A task that is not forgotten.
    pub(super) fn task(&self, id: TaskId) -> Option<&JointTask> {
        self.tasks.get(&id)
    }

    /// All tasks that are not forgotten.
    pub(super) fn each_mut(&mut self) -> impl Iterator<Item = &mut JointTask> {
        self.tasks.values_mut()
    }

    /// Notes another priority of a task.
    pub(super) fn promote(&mut self, id: TaskId, to: u8) {
        let task = self.tasks.get_mut(&id);
        if let Some(JointTaskKind::Ordered { priority, .. }) = task.map(|task| &mut task.kind) {
            *priority = to;
        }
    }
}

/// A part that was taken over by another drive, as if what was done had been all of it.
fn done(part: TaskProgress) -> TaskProgress {
    TaskProgress {
        state: TaskPhase::Finished,
        asked: Sectors(part.asked.0 - part.left.0),
        left: Sectors(0),
        ..part
    }
}

/// The progress of a task with two parts.
pub(super) fn together(one: TaskProgress, other: TaskProgress) -> TaskProgress {
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
        began: one.began.min(other.began),
        ended: one
            .ended
            .zip(other.ended)
            .map(|(one, other)| one.max(other)),
    }
}
