//! A background task in a run: how far it has come, and when the run is over.

use block::{Instant, Sectors};
use engine::{Engine, Gaps};
use scheduler::background::{Account, TaskId, TaskPhase};

/// The task that is watched, and how long the run lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackgroundScan {
    /// The task.
    pub task: TaskId,
    /// Once so many hundredths of its blocks were read, no more requests arrive; 100 for all.
    pub hundredths: u32,
    /// What happens when the load has ended before.
    pub after_load: AfterLoad,
}

/// What happens when the load has ended and the task has not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterLoad {
    /// The run is over.
    #[default]
    Stop,
    /// It goes on in idle time.
    Finish,
}

/// A moment of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanPoint {
    /// Hundredths of the blocks that were read.
    pub hundredths: u32,
    /// When.
    pub at: Instant,
    /// What was read by then, by what paid for it.
    pub account: Account,
    /// Foreground requests that had ended.
    pub requests: u64,
    /// What had come of the gaps.
    pub gaps: Gaps,
}

/// A scan that is watched.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanProgress {
    scan: BackgroundScan,
    /// Blocks that were read, and all that should be.
    read: (u64, u64),
    /// The hundredth that is reported next.
    next: u32,
}

impl ScanProgress {
    pub(super) fn new(scan: BackgroundScan) -> Self {
        ScanProgress {
            scan,
            read: (0, 1),
            next: 1,
        }
    }

    /// The share of the blocks that was read.
    pub(super) fn share(&self) -> f64 {
        self.read.0 as f64 / self.read.1.max(1) as f64
    }

    /// Reports the hundredths that were read since; whether the load should end.
    pub(super) fn look(
        &mut self,
        engine: &Engine,
        now: Instant,
        requests: u64,
        mut report: impl FnMut(&ScanPoint),
    ) -> bool {
        let Some(progress) = engine.background().task(self.scan.task) else {
            return true;
        };
        let Sectors(asked) = progress.asked;
        let Sectors(read) = progress.account.blocks();
        self.read = (read, asked);
        let read = u128::from(read) * 100;
        while self.next <= 100 && read >= u128::from(self.next) * u128::from(asked) {
            report(&ScanPoint {
                hundredths: self.next,
                at: now,
                account: engine.background().account(),
                requests,
                gaps: engine.background().gaps(),
            });
            self.next += 1;
        }
        self.next > self.scan.hundredths || is_ended(progress.state)
    }

    /// Whether the run need not go on for the task's sake; no request is here any more. What is at
    /// the drive for it ends in any case: it would be neither read nor left.
    pub(super) fn is_done(&self, engine: &mut Engine, now: Instant) -> bool {
        let task = self.scan.task;
        let is_under_way = engine
            .background()
            .task(task)
            .is_some_and(|task| !is_ended(task.state));
        match self.scan.after_load {
            AfterLoad::Finish => !is_under_way,
            AfterLoad::Stop if engine.dispatch().at_drive() == 0 => {
                // Where it was not suspended it has ended.
                let _ = engine.change_task(now, task, engine::TaskChange::Resume);
                true
            }
            AfterLoad::Stop => {
                let _ = engine.change_task(now, task, engine::TaskChange::Suspend);
                false
            }
        }
    }
}

fn is_ended(state: TaskPhase) -> bool {
    matches!(state, TaskPhase::Finished | TaskPhase::Aborted)
}
