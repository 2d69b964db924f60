//! Figures 4 to 7: response times, the best case, hit ratios, and the two actions alone.

use crate::plot::{Curve, Panel};
use simulator::caching::cases::{ALGORITHMS, CachingCase, L2_PERCENT, Upper};

use super::PfcPaper;
use super::loads::{NAMES, Which};
use super::served::{CachingRun, ServedCase};
use crate::Failure;
use crate::paper::Drawing;

/// All drawings.
pub(super) fn all(paper: &PfcPaper) -> Result<Vec<Drawing>, Failure> {
    Ok(vec![
        Drawing {
            name: "pfc-figure-4",
            panels: paper.panels("mean response time", "ms", COMPARED, |served| {
                served.mean_ms
            })?,
        },
        Drawing {
            name: "pfc-figure-5",
            panels: paper.best_case_panels()?,
        },
        Drawing {
            name: "pfc-figure-6",
            panels: paper.panels("hit ratio of L2", "%", COMPARED, |served| {
                100.0 * served.hit_ratio
            })?,
        },
        Drawing {
            name: "pfc-figure-7",
            panels: paper.panels("mean response time by action", "ms", ACTIONS, |served| {
                served.mean_ms
            })?,
        },
    ])
}

/// A coordinator of a figure: its name, and its index among the readings, if it is one.
type DrawnLine = (&'static str, Option<usize>);

const COMPARED: &[DrawnLine] = &[("none", None), ("du", None), ("pfc", Some(0))];
const ACTIONS: &[DrawnLine] = &[
    ("none", None),
    ("both", Some(0)),
    ("bypass alone", Some(1)),
    ("readmore alone", Some(2)),
];

impl PfcPaper {
    /// A panel for each load and algorithm, over the size of L2, with L1 set to H.
    fn panels(
        &self,
        what: &str,
        unit: &str,
        lines: &[DrawnLine],
        figure: impl Fn(&ServedCase) -> f64,
    ) -> Result<Vec<Panel>, Failure> {
        let mut panels = Vec::new();
        for (load, name) in NAMES.into_iter().enumerate() {
            for algorithm in ALGORITHMS {
                let title = format!("{name}, {}, H: {what}", algorithm.name);
                let case = |percent| CachingCase::homogeneous(algorithm, Upper::High, percent);
                let which = Which::Calibrated(load, 1);
                panels.push(Panel::Lines {
                    title,
                    x_label: "L2 in percent of L1".to_owned(),
                    y_label: unit.to_owned(),
                    curves: self.curves(lines, |line, percent| {
                        let run = CachingRun::new(which, case(percent), self.line(line));
                        self.runs.get(&run).map(&figure)
                    })?,
                });
            }
        }
        Ok(panels)
    }

    /// Hit ratio and response time of OLTP, RA, L.
    fn best_case_panels(&self) -> Result<Vec<Panel>, Failure> {
        let case = |percent| CachingCase::homogeneous(ALGORITHMS[0], Upper::Low, percent);
        let served = |line: &DrawnLine, percent| {
            let run = CachingRun::new(Which::Calibrated(0, 1), case(percent), self.line(line));
            self.runs.get(&run).copied()
        };
        let panel = |what: &str, unit: &str, curves| Panel::Lines {
            title: format!("oltp, ra, L: {what}"),
            x_label: "L2 in percent of L1".to_owned(),
            y_label: unit.to_owned(),
            curves,
        };
        let hits = self.curves(COMPARED, |line, percent| {
            Ok(100.0 * served(line, percent)?.hit_ratio)
        })?;
        let means = self.curves(COMPARED, |line, percent| Ok(served(line, percent)?.mean_ms))?;
        Ok(vec![
            panel("hit ratio of L2", "%", hits),
            panel("mean response time", "ms", means),
        ])
    }

    fn curves(
        &self,
        lines: &[DrawnLine],
        figure: impl Fn(&DrawnLine, u64) -> Result<f64, Failure>,
    ) -> Result<Vec<Curve>, Failure> {
        let curve = |line: &DrawnLine| {
            let mut sizes = L2_PERCENT;
            sizes.sort_unstable();
            let point = |percent: u64| Ok((percent as f64, figure(line, percent)?));
            Ok(Curve {
                name: line.0.to_owned(),
                points: sizes
                    .into_iter()
                    .map(point)
                    .collect::<Result<_, Failure>>()?,
            })
        };
        lines.iter().map(curve).collect()
    }

    fn line(&self, line: &DrawnLine) -> &str {
        line.1
            .map_or(line.0, |reading| &self.coordinators[0][reading])
    }
}
