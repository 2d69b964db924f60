//! The tables below the findings: calibration, Table 1 with its deviations, all cases.

use crate::claims::Theirs;
use simulator::caching::cases::Upper;

use super::loads::{self, NAMES, Which};
use super::served::CachingRun;
use super::{PfcPaper, TABLE_COLUMNS, TABLE_PERCENT, algorithm, cases, figure_of_cell, named};
use crate::Failure;
use crate::paper::Table;
use simulator::caching::cases::CachingCase;

impl PfcPaper {
    /// The statistics of the loads.
    pub(super) fn calibration(&self) -> Result<Table, Failure> {
        let of = |which: Which| self.runs.load(which).map(|ready| (which, ready));
        let calibrated: Vec<_> = (0..NAMES.len())
            .map(|at| Which::Calibrated(at, 1))
            .chain([loads::BY_VOLUME, loads::IN_A_LOOP, loads::IN_32_KIB])
            .filter_map(of)
            .collect();
        let genuine: Vec<_> = (0..2).filter_map(|at| of(Which::Genuine(at))).collect();
        loads::calibration(&calibrated, &genuine)
    }

    /// Table 1: theirs, ours, and the difference in percentage points.
    pub(super) fn deviations(&self) -> Result<Table, Failure> {
        let mut table = Table::new(
            "Table 1, gain in %: theirs / ours (deviation in points)",
            &["", "amp", "sarc", "ra", "linux"],
        );
        let (mut off, mut cells) = (0.0, 0.0);
        for (load, name) in NAMES.into_iter().enumerate() {
            for percent in TABLE_PERCENT {
                for upper in Upper::ALL {
                    let mut row = vec![format!("{name}, {percent} %, {}", upper.name())];
                    for column in TABLE_COLUMNS {
                        let case = CachingCase::homogeneous(algorithm(column), upper, percent);
                        let case = (Which::Calibrated(load, 1), case);
                        let ours = self.runs.gain(&self.pfc(case))?;
                        let theirs = match figure_of_cell(case)? {
                            Theirs::Higher(theirs) | Theirs::Exact(theirs) => theirs,
                            _ => return Err(Failure::failed("a cell that is no number")),
                        };
                        off += (ours - theirs).abs();
                        cells += 1.0;
                        row.push(format!("{theirs} / {ours:.1} ({:+.1})", ours - theirs));
                    }
                    table.rows.push(row);
                }
            }
        }
        table.summary = Some(format!("Mean deviation {:.1} points.", off / cells));
        Ok(table)
    }

    /// All cases, one per line.
    pub(super) fn all_cases(&self) -> Result<Table, Failure> {
        let mut table = Table::new(
            "All cases: mean response without coordination, gains of DU and PFC, what PFC does to L2",
            &[
                "case",
                "ms",
                "DU %",
                "PFC %",
                "p99 ms",
                "with PFC",
                "fetched ahead",
                "hit ratio %",
                "with PFC",
                "unused",
                "with PFC",
                "in both caches",
                "with PFC",
                "disk busy s",
                "with PFC",
            ],
        );
        for case in cases() {
            let pfc = self.pfc(case);
            let du = self.runs.gain(&CachingRun::new(case.0, case.1, "du"))?;
            let (with, without) = (self.runs.get(&pfc)?, self.runs.get(&pfc.alone())?);
            let ahead = with.ahead as f64 / without.ahead.max(1) as f64;
            table.rows.push(vec![
                named(case),
                format!("{:.2}", without.mean_ms),
                format!("{du:.1}"),
                format!("{:.1}", self.runs.gain(&pfc)?),
                format!("{:.1}", without.percentiles_ms[1]),
                format!("{:.1}", with.percentiles_ms[1]),
                format!("x{ahead:.2}"),
                format!("{:.1}", 100.0 * without.hit_ratio),
                format!("{:.1}", 100.0 * with.hit_ratio),
                without.unused.to_string(),
                with.unused.to_string(),
                without.duplicated.to_string(),
                with.duplicated.to_string(),
                format!("{:.0}", without.busy_s),
                format!("{:.0}", with.busy_s),
            ]);
        }
        Ok(table)
    }
}
