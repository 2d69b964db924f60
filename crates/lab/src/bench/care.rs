//! Data care: background tasks beside a load that is never idle.
//!
//! Each case prints the same figures, so that scripts can read them alike.

use serde::Serialize;

use super::busy::BeliefSource;
use crate::{Failure, Label, Progress};

mod backup;
mod rebuild;
mod scrub;
mod tasks;

/// The verify load, which other benchmarks have, too.
pub(super) mod verify {
    pub use super::scrub::book::{Book, UNIT};
    pub use super::scrub::verify_load::{PARTS, VerifyCounts};
}

pub use backup::BackupFigures;
pub use rebuild::RebuildFigures;
pub use scrub::{ScrubFigures, WholeScrub};
pub use tasks::{AnyHalfFigures, HastenedFigures, SharingFigures};

/// The settings of the benchmark.
#[derive(Clone, Debug)]
pub struct CareBench {
    /// The cases by name; all without any.
    pub cases: Vec<String>,
    /// A drive of the catalogue, or a profile file.
    pub drive: String,
    /// The policy.
    pub policy: String,
    /// What the scheduler believes of the drive.
    pub belief: BeliefSource,
    /// The seed of load, drive and sets.
    pub seed: u64,
    /// The impact budget in parts per million.
    pub impact_ppm: u32,
    /// How long the runs are.
    pub length: CareLength,
}

/// How long the runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CareLength {
    /// Small sets: seconds of this machine's time.
    Short,
    /// The sizes of published figures.
    Long,
}

/// The figures of one case. Counts that a case does not have are zero.
#[derive(Clone, Debug, Serialize)]
pub struct CareFigures {
    /// The case.
    pub case: &'static str,
    /// The relation between belief and truth.
    pub mode: Label,
    /// Errors that were injected, found and repaired.
    pub injected: u64,
    /// See `injected`.
    pub found: u64,
    /// See `injected`.
    pub repaired: u64,
    /// Reported errors that are none.
    pub false_alarms: u64,
    /// Bytes that a reader found wrong.
    pub wrong_bytes: u64,
    /// Megabytes of the case's blocks a second, in gaps.
    pub free_mb_s: f64,
    /// The same of a scan of the whole drive.
    pub free_mb_s_scan: f64,
    /// How much longer the foreground's mean response time is than alone, in per cent.
    pub foreground_loss_percent: f64,
    /// The impact budget.
    pub budget_percent: f64,
    /// What only the case `tasks` measures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharing: Option<SharingFigures>,
    /// What only the case `scrub` measures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scrub: Option<ScrubFigures>,
    /// What only the case `rebuild` measures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebuild: Option<RebuildFigures>,
    /// What only the case `backup` measures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupFigures>,
}

impl CareFigures {
    /// A case of which nothing was measured.
    fn of(case: &'static str, mode: Label) -> Self {
        CareFigures {
            case,
            mode,
            injected: 0,
            found: 0,
            repaired: 0,
            false_alarms: 0,
            wrong_bytes: 0,
            free_mb_s: 0.0,
            free_mb_s_scan: 0.0,
            foreground_loss_percent: 0.0,
            budget_percent: 0.0,
            sharing: None,
            scrub: None,
            rebuild: None,
            backup: None,
        }
    }
}

/// A case.
struct CareCase {
    name: &'static str,
    measure: fn(&CareBench, &dyn Progress) -> Result<CareFigures, Failure>,
}

/// The cases.
const CASES: &[CareCase] = &[
    CareCase {
        name: "backup",
        measure: backup::measure,
    },
    CareCase {
        name: "rebuild",
        measure: rebuild::measure,
    },
    CareCase {
        name: "scrub",
        measure: scrub::measure,
    },
    CareCase {
        name: "tasks",
        measure: tasks::measure,
    },
];

impl CareBench {
    /// The names of all cases.
    pub fn cases() -> Vec<&'static str> {
        CASES.iter().map(|case| case.name).collect()
    }

    /// Measures the cases.
    ///
    /// # Errors
    /// If a name is unknown, or a run fails.
    pub fn run(&self, progress: &dyn Progress) -> Result<Vec<CareFigures>, Failure> {
        for name in &self.cases {
            if !CareBench::cases().contains(&name.as_str()) {
                return Err(Failure::unknown("case", name, &CareBench::cases()));
            }
        }
        let is_wanted = |case: &&CareCase| {
            self.cases.is_empty() || self.cases.iter().any(|name| name == case.name)
        };
        let wanted = CASES.iter().filter(is_wanted);
        wanted.map(|case| (case.measure)(self, progress)).collect()
    }
}
