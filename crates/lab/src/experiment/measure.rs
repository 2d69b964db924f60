//! The measures of a run, and their means over several seeds.

use serde::Serialize;
use simulator::ledger::{RequestFigures, ResponseTimes};

use crate::comparison::figures::PolicyRun;
use crate::comparison::scan::ScanFigures;

/// A measure of runs.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// The name in experiment files.
    pub name: &'static str,
    /// The title, with the unit.
    pub title: &'static str,
    /// Reads the measure; `None` if the run does not have it.
    of: fn(&PolicyRun) -> Option<f64>,
}

/// The measures of one run, in the order of [`MEASURES`].
#[derive(Clone, Debug)]
pub struct RunMeasures(Vec<Option<f64>>);

/// The measures of one combination of settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The means in the order of [`MEASURES`]; `None` if a run lacks the measure.
    pub figures: Vec<Option<Mean>>,
}

/// The mean of several seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the sample; `None` for a single seed.
    pub deviation: Option<f64>,
}

/// All measures. Help, tables, JSON and plots are made from this table.
pub const MEASURES: &[Measure] = &[
    measure("requests_per_second", "requests/s", |run| {
        Some(run.report.requests_per_second)
    }),
    measure("megabytes_per_second", "MB/s", |run| {
        Some(run.report.megabytes_per_second)
    }),
    measure("mean_ms", "mean response, ms", |run| {
        all(run, |r| r.mean_ms)
    }),
    measure("p50_ms", "median response, ms", |run| {
        all(run, |r| r.p50_ms)
    }),
    measure("p90_ms", "90 % answered within, ms", |run| {
        all(run, |r| r.p90_ms)
    }),
    measure("p99_ms", "99 % answered within, ms", |run| {
        all(run, |r| r.p99_ms)
    }),
    measure("p999_ms", "99.9 % answered within, ms", |run| {
        all(run, |r| r.p999_ms)
    }),
    measure("max_ms", "longest response, ms", |run| {
        all(run, |r| r.max_ms)
    }),
    measure("read_mean_ms", "mean response of reads, ms", |run| {
        of(&run.report.reads, |r| r.mean_ms)
    }),
    measure("write_mean_ms", "mean response of writes, ms", |run| {
        of(&run.report.writes, |r| r.mean_ms)
    }),
    measure("seek_percent", "head time: seek, %", |run| {
        Some(run.report.head.seek * 100.0)
    }),
    measure("rotation_percent", "head time: rotation, %", |run| {
        Some(run.report.head.rotation * 100.0)
    }),
    measure("transfer_percent", "head time: transfer, %", |run| {
        Some(run.report.head.transfer * 100.0)
    }),
    measure(
        "other_percent",
        "head time: electronics and drive, %",
        |run| Some(run.report.head.other * 100.0),
    ),
    measure("idle_percent", "idle, %", |run| {
        Some(run.report.head.idle * 100.0)
    }),
    measure("free_mb_s", "scan by free blocks, MB/s", |run| {
        scan(run, |s| Some(s.free_mb_s))
    }),
    measure("idle_mb_s", "scan in idle time, MB/s", |run| {
        scan(run, |s| Some(s.idle_mb_s))
    }),
    measure("paid_mb_s", "scan in granted head time, MB/s", |run| {
        scan(run, |s| Some(s.paid_mb_s))
    }),
    measure(
        "foreground_loss_percent",
        "mean response longer for the scan's sake by, %",
        |run| scan(run, |s| Some(s.foreground_loss_percent)),
    ),
    measure(
        "foreground_p99_loss_percent",
        "99th percentile longer for the scan's sake by, %",
        |run| scan(run, |s| Some(s.foreground_p99_loss_percent)),
    ),
    measure("scan_days", "days until until_percent of the scan", |run| {
        scan(run, ScanFigures::days)
    }),
    measure(
        "whole_scan_days",
        "days of a whole scan, estimated if less was read",
        |run| scan(run, ScanFigures::whole_days),
    ),
    measure("mispredicted_percent", "plans that failed, %", |run| {
        scan(run, ScanFigures::mispredicted_percent)
    }),
];

const fn measure(
    name: &'static str,
    title: &'static str,
    of: fn(&PolicyRun) -> Option<f64>,
) -> Measure {
    Measure { name, title, of }
}

fn all(run: &PolicyRun, figure: fn(&ResponseTimes) -> f64) -> Option<f64> {
    of(&run.report.all, figure)
}

fn of(side: &RequestFigures, figure: fn(&ResponseTimes) -> f64) -> Option<f64> {
    side.response.as_ref().map(figure)
}

fn scan(run: &PolicyRun, figure: fn(&ScanFigures) -> Option<f64>) -> Option<f64> {
    run.scan.as_ref().and_then(figure)
}

impl RunMeasures {
    /// All measures of a run.
    pub fn new(run: &PolicyRun) -> Self {
        RunMeasures(MEASURES.iter().map(|measure| (measure.of)(run)).collect())
    }

    /// These measures, one for each of [`MEASURES`].
    pub(super) fn of(measures: Vec<Option<f64>>) -> Self {
        RunMeasures(measures)
    }

    /// The measure at this place of [`MEASURES`].
    pub fn figure(&self, place: usize) -> Option<f64> {
        self.0[place]
    }
}

impl Point {
    /// The means over runs with different seeds.
    pub fn new(runs: &[RunMeasures]) -> Self {
        let figure = |at: usize| {
            let values: Option<Vec<f64>> = runs.iter().map(|run| run.0[at]).collect();
            values.as_deref().map(Mean::of)
        };
        Point {
            figures: (0..MEASURES.len()).map(figure).collect(),
        }
    }
}

impl Mean {
    fn of(values: &[f64]) -> Mean {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Mean {
            mean,
            deviation: (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_seeds_has_the_deviation_of_a_sample() {
        let mean = Mean::of(&[1.0, 2.0, 3.0, 6.0]);
        assert_eq!(mean.mean, 3.0);
        let deviation = mean.deviation.expect("four values");
        assert!((deviation - (14.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(Mean::of(&[4.0]).deviation, None);
    }

    #[test]
    fn what_one_run_does_not_have_their_mean_does_not_have() {
        let whole = RunMeasures(vec![Some(2.0); MEASURES.len()]);
        let mut less = whole.clone();
        less.0[3] = None;
        let point = Point::new(&[whole, less]);
        assert_eq!(point.figures[3], None);
        assert_eq!(point.figures[2].map(|mean| mean.mean), Some(2.0));
    }

    #[test]
    fn measures_have_names_of_their_own() {
        for (place, measure) in MEASURES.iter().enumerate() {
            let before = &MEASURES[..place];
            assert!(before.iter().all(|other| other.name != measure.name));
        }
    }
}
