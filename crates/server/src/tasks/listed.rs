//! The tasks in the status.

use scheduler::background::TaskPhase;

use super::Tasks;
use crate::disk::Disk;
use crate::status::{Task, TaskState};

impl Tasks {
    /// The tasks in the status, the oldest first.
    pub(crate) fn listed(&mut self, disk: &Disk) -> Vec<Task> {
        let (now, engine) = (disk.now, &disk.engine);
        let (company, losses) = (&self.company, engine.losses());
        let block = disk.block();
        let each = self.all.iter_mut().filter_map(|task| {
            let progress = engine.task(task.id).or(task.last)?;
            task.last = Some(progress);
            let missing = task.progress.missing().left();
            let done = task.asked - missing;
            let passed = now.since(task.pace.0).as_secs_f64();
            if passed >= 1.0 {
                let rate = (done - task.pace.1) as f64 / passed;
                task.pace = (now, done, rate);
            }
            let rate = task.pace.2;
            let is_open = matches!(progress.state, TaskPhase::Active | TaskPhase::Suspended);
            Some(Task {
                id: task.number,
                name: task.name.clone(),
                state: match progress.state {
                    TaskPhase::Active => TaskState::Active,
                    TaskPhase::Suspended if task.is_held && !task.is_suspended => TaskState::Active,
                    TaskPhase::Suspended => TaskState::Suspended,
                    TaskPhase::Finished => TaskState::Finished,
                    TaskPhase::Aborted => TaskState::Aborted,
                },
                priority: task.priority,
                asked_bytes: task.asked * block,
                done_bytes: done * block,
                free_bytes: progress.account.free.blocks.0 * block,
                idle_bytes: progress.account.idle.blocks.0 * block,
                paid_bytes: progress.account.paid.blocks.0 * block,
                failed_bytes: progress.failed.0 * block,
                outcome: task.outcome.get().and_then(|ended| ended.clone().ok()),
                problem: task.outcome.get().and_then(|ended| ended.clone().err()),
                resumed_bytes: task.before * block,
                elapsed_s: task.ended.unwrap_or(now).since(task.began).as_secs_f64(),
                impact: task.beside.until(company, losses),
                mb_per_s: rate * block as f64 / 1e6,
                eta_s: (is_open && rate > 0.0).then(|| task.progress.to_come() as f64 / rate),
                hastened: task.is_hastened,
                pieces: task.progress.set().pieces().len() as u64,
                pieces_needed: task.progress.set().needed() as u64,
                pieces_done: task.progress.complete() as u64,
            })
        });
        each.collect()
    }
}
