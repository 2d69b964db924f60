//! A background task in a run: its progress, and the end of the run.

use block::{Instant, Sectors};
use engine::{Engine, Gaps};
use scheduler::background::{Account, TaskId, TaskPhase};

/// The background task that a run observes, and the duration of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackgroundScan {
    /// The task.
    pub task: TaskId,
    /// Percentage of the task's blocks after which no more requests arrive; 100 for all.
    pub hundredths: u32,
    /// Treatment of the task if the load ends first.
    pub after_load: AfterLoad,
}

/// Treatment of an unfinished task when the load has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterLoad {
    /// The run ends.
    #[default]
    Stop,
    /// The task continues in idle time.
    Finish,
}

/// The state of a run when another hundredth of a scan has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanPoint {
    /// Percentage of the blocks that has been read.
    pub hundredths: u32,
    /// The time.
    pub at: Instant,
    /// Blocks read so far, by the kind of time that paid for them.
    pub account: Account,
    /// Number of foreground requests that had ended.
    pub requests: u64,
    /// The use of the gaps so far.
    pub gaps: Gaps,
}

/// The progress of an observed scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanProgress {
    scan: BackgroundScan,
    /// Blocks that have been read, and all blocks of the task.
    read: (u64, u64),
    /// The next hundredth to report.
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

    /// The fraction of the blocks that has been read.
    pub(super) fn share(&self) -> f64 {
        self.read.0 as f64 / self.read.1.max(1) as f64
    }

    /// Reports newly reached hundredths. Returns whether the load must end.
    pub(super) fn look(
        &mut self,
        engine: &Engine,
        now: Instant,
        requests: u64,
        mut report: impl FnMut(&ScanPoint),
    ) -> bool {
        let Some(progress) = engine.task(self.scan.task) else {
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
                account: engine.account(),
                requests,
                gaps: engine.gaps(),
            });
            self.next += 1;
        }
        self.next > self.scan.hundredths || is_ended(progress.state)
    }

    /// Whether the task permits the run to end; all requests have ended. Background commands at the
    /// drive are awaited: otherwise their blocks would be neither read nor left.
    pub(super) fn is_done(&self, engine: &mut Engine, now: Instant) -> bool {
        let task = self.scan.task;
        let is_under_way = engine.task(task).is_some_and(|task| !is_ended(task.state));
        match self.scan.after_load {
            AfterLoad::Finish => !is_under_way,
            AfterLoad::Stop if engine.at_drive() == 0 => {
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
