//! Bounds on what a coordinator can gain with our loads, for the claims that hold in no setup.

use simulator::caching::cases::CachingCase;

use super::loads::Which;
use super::served::CachingRun;
use super::setups::JUDGED;
use super::{MeasuredFigure, PfcPaper, cases, cell, figure_of_cell, table_cases};
use crate::Failure;
use crate::paper::figure::rounded;

/// Frames of an L2 that keeps every block: twice the footprint of WebSearch, the largest load.
const WHOLE_FRAMES: u64 = 1 << 20;

/// Percent of the mean response. A choice: an action that changes less has no effect.
const NO_EFFECT: f64 = 0.1;

/// The same case with an L2 that evicts nothing.
fn whole((load, case): (Which, CachingCase)) -> (Which, CachingCase) {
    let least = WHOLE_FRAMES;
    (load, CachingCase { least, ..case })
}

/// The runs of the bounds: no coordinator, and an L2 that evicts nothing.
pub(super) fn runs() -> Vec<CachingRun> {
    let bounded = table_cases().into_iter().chain([super::best_case()]);
    let run = |case| {
        let (load, case) = whole(case);
        CachingRun::new(load, case, "none")
    };
    bounded.map(run).collect()
}

impl PfcPaper {
    /// The hit ratio of an L2 that evicts nothing, and its gain, both in percent and without coordination.
    fn whole(&self, case: (Which, CachingCase)) -> Result<(f64, f64), Failure> {
        let (load, other) = whole(case);
        let whole = self.runs.get(&CachingRun::new(load, other, "none"))?;
        let alone = self.runs.get(&CachingRun::new(case.0, case.1, "none"))?;
        let gain = 100.0 * (1.0 - whole.mean_ms / alone.mean_ms.max(f64::MIN_POSITIVE));
        Ok((100.0 * whole.hit_ratio, gain))
    }

    /// The bound on the paper's best case.
    pub(super) fn bound_of_best_case(&self) -> Result<String, Failure> {
        let (hits, gain) = self.whole(super::best_case())?;
        Ok(format!(
            "an L2 that evicts nothing has {hits:.1} % hits with this load, and gains {gain:.1} % without a coordinator"
        ))
    }

    /// The cells of Table 1 whose published gain exceeds that of an L2 that evicts nothing.
    pub(super) fn bound_of_table(&self, ours: &[MeasuredFigure]) -> Result<String, Failure> {
        let (mut off, mut beyond) = (0, Vec::new());
        for (case, ours) in table_cases().into_iter().zip(ours) {
            let theirs = figure_of_cell(case)?;
            if theirs.agrees(rounded(ours.value)) {
                continue;
            }
            off += 1;
            let (_, gain) = self.whole(case)?;
            if !theirs.agrees(rounded(gain)) {
                beyond.push(format!("{} {gain:.1} %", cell(case)));
            }
        }
        let without = "an L2 that evicts nothing, without a coordinator,";
        Ok(match beyond.is_empty() {
            true => format!(
                "{without} gains as much as theirs in each of the {off} cells that differ, so that the loads do \
                 not exclude them"
            ),
            false => format!(
                "{without} gains less than theirs in {} of the {off} cells that differ: {}",
                beyond.len(),
                beyond.join(", ")
            ),
        })
    }

    /// The cases in which readmore alone has no effect, so that both actions cannot be better than bypass by it.
    pub(super) fn bound_of_actions(&self) -> Result<String, Failure> {
        let (mut still, mut of) = ([0; 2], [0; 2]);
        for case in cases() {
            let group = usize::from(case.1.below.name == "amp");
            let gain = self.runs.gain(&self.run_in(&JUDGED, case, 2))?;
            of[group] += 1;
            still[group] += u32::from(gain.abs() < NO_EFFECT);
        }
        Ok(format!(
            "readmore alone changes the mean by less than {NO_EFFECT} % in {} of {} cases of RA, Linux and SARC and in {} \
             of {} of AMP, because L2 has a block of nearly every request",
            still[0], of[0], still[1], of[1]
        ))
    }
}
