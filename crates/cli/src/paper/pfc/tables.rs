//! The tables under the findings: calibration, Table 1 with its deviations, all cases.

use std::fmt::Write as _;

use lab::claims::{self, Theirs};
use simulator::caching::cases::Upper;

use super::loads::{self, NAMES, Which};
use super::served::Run;
use super::{Paper, TABLE, TABLE_COLUMNS, TABLE_PERCENT, algorithm, cases, cell, named};
use crate::output::Failure;
use simulator::caching::cases::Case;

impl Paper {
    /// What the loads are like.
    pub(super) fn calibration(&self) -> Result<String, Failure> {
        let of = |which: Which| self.runs.load(which).map(|ready| (which, ready));
        let calibrated: Vec<_> = (0..NAMES.len())
            .filter_map(|at| of(Which::Calibrated(at, 1)))
            .collect();
        let genuine: Vec<_> = (0..2).filter_map(|at| of(Which::Genuine(at))).collect();
        loads::calibration(&calibrated, &genuine)
    }

    /// Table 1: theirs, ours, and by how many percentage points ours is more.
    pub(super) fn deviations(&self) -> Result<String, Failure> {
        let built_in = claims::ALL.iter().find(|paper| paper.name == "pfc");
        let built_in = built_in.ok_or_else(|| Failure::failed("no claims of pfc"))?;
        let paper = built_in.paper().map_err(Failure::failed)?;
        let claim = paper.claim(TABLE);
        let claim = claim.ok_or_else(|| Failure::failed("no claim about Table 1"))?;
        let mut text = String::from(
            "Table 1, gain in %: theirs / ours (deviation in points)\n\n| | amp | sarc | ra | linux |\n|---|--:|--:|--:|--:|\n",
        );
        let (mut off, mut cells) = (0.0, 0.0);
        for (load, name) in NAMES.into_iter().enumerate() {
            for percent in TABLE_PERCENT {
                for upper in Upper::ALL {
                    let _ = write!(text, "| {name}, {percent} %, {} |", upper.name());
                    for column in TABLE_COLUMNS {
                        let case = Case::homogeneous(algorithm(column), upper, percent);
                        let case = (Which::Calibrated(load, 1), case);
                        let ours = self.runs.gain(&self.pfc(case))?;
                        let figure = claim.figure(Some(&cell(case)));
                        let theirs = match figure.map(|figure| figure.theirs) {
                            Some(Theirs::Higher(theirs) | Theirs::Exact(theirs)) => theirs,
                            _ => return Err(Failure::failed("a cell that is no number")),
                        };
                        off += (ours - theirs).abs();
                        cells += 1.0;
                        let _ = write!(text, " {theirs} / {ours:.1} ({:+.1}) |", ours - theirs);
                    }
                    text.push('\n');
                }
            }
        }
        let _ = writeln!(text, "\nMean deviation {:.1} points.", off / cells);
        Ok(text)
    }

    /// All cases, one a line.
    pub(super) fn all_cases(&self) -> Result<String, Failure> {
        let mut text = String::from(
            "All cases: mean response without coordination, gains of DU and PFC, what PFC does to L2\n\n\
             | case | ms | DU % | PFC % | p99 ms | with PFC | fetched ahead | hit ratio % | with PFC | unused \
             | with PFC | in both caches | with PFC | disk busy s | with PFC |\n\
             |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        );
        for case in cases() {
            let pfc = self.pfc(case);
            let du = self.runs.gain(&Run::new(case.0, case.1, "du"))?;
            let (with, without) = (self.runs.get(&pfc)?, self.runs.get(&pfc.alone())?);
            let _ = writeln!(
                text,
                "| {} | {:.2} | {du:.1} | {:.1} | {:.1} | {:.1} | x{:.2} | {:.1} | {:.1} | {} | {} | {} | {} | {:.0} | {:.0} |",
                named(case),
                without.mean_ms,
                self.runs.gain(&pfc)?,
                without.percentiles_ms[1],
                with.percentiles_ms[1],
                with.ahead as f64 / without.ahead.max(1) as f64,
                100.0 * without.hit_ratio,
                100.0 * with.hit_ratio,
                without.unused,
                with.unused,
                without.duplicated,
                with.duplicated,
                without.busy_s,
                with.busy_s,
            );
        }
        Ok(text)
    }
}
