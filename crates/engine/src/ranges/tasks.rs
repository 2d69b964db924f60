//! The tasks of a drive of two actuators, and their parts.

use std::collections::BTreeMap;

use scheduler::background::{TaskId, TaskProgress};

use crate::engine::ArmEngine;

/// The tasks of a drive of two actuators.
#[derive(Default)]
pub(super) struct TaskTable {
    begun: u64,
    tasks: BTreeMap<TaskId, [TaskPart; 2]>,
}

/// The part of a task that one arm serves.
#[derive(Clone, Copy)]
pub(super) struct TaskPart {
    pub(super) id: TaskId,
    /// How it ended: an arm forgets ended tasks when another begins.
    ended: Option<TaskProgress>,
}

impl TaskPart {
    /// How far the part has come.
    pub(super) fn progress(&self, arm: &ArmEngine) -> Option<TaskProgress> {
        self.ended.or_else(|| arm.background().task(self.id))
    }
}

impl TaskTable {
    /// Keeps the ends of parts, and forgets tasks of which all parts have ended.
    pub(super) fn note_ends(&mut self, arms: [&ArmEngine; 2]) {
        for parts in self.tasks.values_mut() {
            for (part, arm) in parts.iter_mut().zip(arms) {
                part.ended = part.progress(arm).filter(|known| known.ended.is_some());
            }
        }
        self.tasks
            .retain(|_, parts| parts.iter().any(|part| part.ended.is_none()));
    }

    /// Notes a task that both arms have begun.
    pub(super) fn enter(&mut self, parts: [TaskId; 2]) -> TaskId {
        let id = TaskId(self.begun);
        self.begun += 1;
        let parts = parts.map(|id| TaskPart { id, ended: None });
        self.tasks.insert(id, parts);
        id
    }

    /// The parts of a task that is not forgotten.
    pub(super) fn parts(&self, id: TaskId) -> Option<&[TaskPart; 2]> {
        self.tasks.get(&id)
    }
}
