//! The whole procedure: all parts of a profile, one after the other, each from those before it.
//!
//! ```text
//!   spindle ---> map ---> arrangement ---> arm ---> firmware
//! ```

use block::{Duration, Lba};
use drive::Geometry;

use crate::arm::{self, Effort};
use crate::belief::phase;
use crate::map::TrackMap;
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
    /// Where tracks begin and end.
    Map,
    /// How long the arm takes.
    Arm,
    /// Nothing is left to ask.
    Done,
}

impl Step {
    /// What it looks for, for people.
    pub fn name(self) -> &'static str {
        match self {
            Step::Begin => "nothing yet",
            Step::Spindle => "the spindle",
            Step::Map => "the tracks",
            Step::Arm => "the arm",
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

/// Finds everything that there are procedures for, going on from what is found, in at most about
/// `budget` of the drive's time; who runs it stops it at the end of that in any case.
pub async fn complete(prober: Prober, budget: Duration) {
    let end = prober.now() + budget;
    begin(&prober, Step::Spindle);
    if let Err(why) = find_spindle(&prober).await {
        fail(&prober, Step::Spindle, of_spindle(why));
        begin(&prober, Step::Done);
        return;
    }
    begin(&prober, Step::Map);
    find_map(&prober).await;
    if prober.now() < end {
        begin(&prober, Step::Arm);
        find_arm(&prober).await;
    }
    begin(&prober, Step::Done);
}

fn begin(prober: &Prober, step: Step) {
    prober.findings(|findings| findings.progress.step = step);
}

fn fail(prober: &Prober, step: Step, why: String) {
    prober.findings(|findings| findings.progress.failed.push((step, why)));
}

/// The blocks at which the spindle is looked for, in thirds of the drive: another one if the first
/// cannot be read. A choice: far from where file systems write most.
const THIRDS: [u64; 2] = [1, 2];

async fn find_spindle(prober: &Prober) -> Result<(), NotFound> {
    let blocks = prober.device().blocks;
    let mut found = Err(NotFound::NoCommonMeasure);
    for thirds in THIRDS {
        if found.is_err() {
            found = spindle::find(prober, Lba(blocks / 3 * thirds)).await;
        }
    }
    found
}

/// Why there is no period, for people.
fn of_spindle(why: NotFound) -> String {
    let why = match why {
        NotFound::Unseen(Unseen::Unreadable) => "the blocks that were tried cannot be read",
        NotFound::Unseen(Unseen::Buffered) => "all reads seem to be answered by the buffer",
        NotFound::NoCommonMeasure => "the times between reads of one block have no common measure",
    };
    why.to_owned()
}

/// Takes up the map that was found before, if the drive still is so.
async fn find_map(prober: &Prober) {
    let is_new = prober.findings(|findings| findings.map.pieces.is_empty());
    if is_new || phase::rejoin(prober).await {
        return;
    }
    prober.findings(|findings| findings.map = TrackMap::default());
    let why = "they are not where they were before: begun anew";
    fail(prober, Step::Map, why.to_owned());
}

async fn find_arm(prober: &Prober) {
    let layout = prober.findings(|findings| findings.layout.clone());
    let Some(layout) = layout else {
        let why = "on which cylinders tracks are is not known";
        return fail(prober, Step::Arm, why.to_owned());
    };
    let found = match Geometry::indexed(&layout.description) {
        Ok(geometry) => arm::measure(prober, &geometry, Effort::FULL).await,
        Err(_) => None,
    };
    if found.is_none() {
        fail(prober, Step::Arm, "no two measurements agree".to_owned());
    }
}
