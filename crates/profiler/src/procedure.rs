//! The whole procedure: all parts of a profile, one after the other.
//!
//! ```text
//!   spindle ---> map ---> arrangement ---> arm ---> firmware
//! ```

use block::{Duration, Lba};

use crate::prober::{Prober, Unseen};
use crate::spindle::{self, NotFound};

/// A part of the whole procedure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Nothing was asked yet.
    #[default]
    Begin,
    /// The period and the phase.
    Spindle,
    /// Nothing is left to ask.
    Done,
}

impl Step {
    /// What it looks for, for people.
    pub fn name(self) -> &'static str {
        match self {
            Step::Begin => "nothing yet",
            Step::Spindle => "the spindle",
            Step::Done => "done",
        }
    }
}

/// How far the whole procedure has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// What it is at.
    pub step: Step,
    /// What could not be found, and why.
    pub failed: Vec<(Step, String)>,
}

/// Where the spindle's block is: at a third of the drive, far from where other clients begin. A
/// choice.
const SPINDLE_AT: u64 = 3;

/// Finds everything that there are procedures for, in at most about `budget` of the drive's time;
/// who runs it stops it at the end of that in any case.
pub async fn complete(prober: Prober, budget: Duration) {
    let end = prober.now() + budget;
    let begin = |step| prober.findings(|findings| findings.progress.step = step);
    begin(Step::Spindle);
    // A drive with unreadable blocks has other thirds.
    let mut found = Err(NotFound::NoCommonMeasure);
    for part in 1..SPINDLE_AT {
        let lba = Lba(prober.device().blocks * part / SPINDLE_AT);
        if found.is_err() && prober.now() < end {
            found = spindle::find(&prober, lba).await;
        }
    }
    if let Err(why) = found {
        fail(&prober, Step::Spindle, of_spindle(why));
        return;
    }
    begin(Step::Done);
}

/// Why there is no period, for people.
fn of_spindle(why: NotFound) -> String {
    match why {
        NotFound::Unseen(Unseen::Unreadable) => "the blocks that were tried cannot be read",
        NotFound::Unseen(Unseen::Buffered) => "all reads seem to be answered by the buffer",
        NotFound::NoCommonMeasure => "the times between reads of one block have no common measure",
    }
    .to_owned()
}

/// Without this part there are no later ones.
fn fail(prober: &Prober, step: Step, why: String) {
    prober.findings(|findings| {
        findings.progress.failed.push((step, why));
        findings.progress.step = Step::Done;
    });
}
