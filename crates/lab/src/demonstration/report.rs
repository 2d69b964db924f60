//! The report of a demonstration: the foreground without and with the scan.

use std::path::Path;

use crate::plot::{Curve, Panel, Series};
use serde::Serialize;
use server::control::Service as _;
use server::status::{Lateness, Task};
use simulator::workload::Workload;

use super::load::LoadStretch;
use super::service::{self, Demonstration};
use crate::{Failure, Label};

/// The report. Times are the drive's.
#[derive(Debug, Serialize)]
pub struct DemoFigures {
    /// The emulated drive.
    pub drive: &'static str,
    /// The policy.
    pub policy: &'static str,
    /// The label of the scheduler's belief.
    pub label: Label,
    /// The standard deviation of seek times.
    pub seek_noise_us: u32,
    /// The bandwidth of the drive's bus.
    pub bus_mb_s: f64,
    /// The slow-down of the drive.
    pub time_scale: f64,
    /// The load.
    pub workload: String,
    /// The load's seed.
    pub seed: u64,
    /// The address of the status page.
    pub page: String,
    /// The load alone.
    pub alone: DemoForeground,
    /// The load beside the scan.
    pub beside: DemoForeground,
    /// The scan.
    pub scan: DemoScan,
    /// The cost of the scan.
    pub impact: ScanImpact,
    /// The recent lateness of the emulation, in real time.
    pub lateness: Option<Lateness>,
    /// The file of the plots.
    pub svg: String,
}

/// The load, as its client measured it.
#[derive(Debug, Serialize)]
pub struct DemoForeground {
    /// Completed requests.
    pub requests: usize,
    /// The length of the measurement.
    pub seconds: f64,
    /// Requests per second.
    pub requests_per_s: f64,
    /// Megabytes per second.
    pub mb_per_s: f64,
    /// The mean response time.
    pub mean_ms: f64,
    /// The median response time.
    pub p50_ms: f64,
    /// The 99th percentile of the response times.
    pub p99_ms: f64,
    /// The 99.9th percentile of the response times.
    pub p999_ms: f64,
}

/// The background scan.
#[derive(Debug, Serialize)]
pub struct DemoScan {
    /// Bytes that the scan read.
    pub bytes: u64,
    /// Bytes read in gaps.
    pub free_bytes: u64,
    /// Bytes read in idle time.
    pub idle_bytes: u64,
    /// Bytes of the whole scan.
    pub of_bytes: u64,
    /// The rate of the scan.
    pub mb_per_s: f64,
}

/// The cost of the scan, in percent.
#[derive(Debug, Serialize)]
pub struct ScanImpact {
    /// The increase of the client's mean response time.
    pub mean_percent: f64,
    /// The increase of the client's 99th percentile.
    pub p99_percent: f64,
    /// The impact that the engine measured.
    pub measured_percent: Option<f64>,
    /// The impact budget.
    pub budget_percent: f64,
}

impl DemoForeground {
    fn of(stretch: &LoadStretch) -> Result<Self, Failure> {
        let mut times: Vec<f64> = stretch.ends.iter().map(|&(_, ms)| ms).collect();
        times.sort_by(f64::total_cmp);
        let count = times.len();
        if count == 0 {
            return Err(Failure::failed(
                "no request ended: expected a longer stretch",
            ));
        }
        // The nearest rank.
        let at = |share: f64| times[((share * count as f64).ceil() as usize).clamp(1, count) - 1];
        Ok(DemoForeground {
            requests: count,
            seconds: stretch.seconds,
            requests_per_s: count as f64 / stretch.seconds,
            mb_per_s: stretch.bytes as f64 / 1e6 / stretch.seconds,
            mean_ms: times.iter().sum::<f64>() / count as f64,
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
        })
    }
}

impl DemoFigures {
    /// Reads the figures of a running service.
    ///
    /// # Errors
    /// If no request ended.
    pub fn new(
        demo: &Demonstration,
        workload: &Workload,
        alone: &LoadStretch,
        beside: &LoadStretch,
        svg: &Path,
    ) -> Result<Self, Failure> {
        let status = demo.service.status();
        let drive = status.drives.first();
        let drive = drive.ok_or_else(|| Failure::failed("the service has no drive"))?;
        let task = drive.tasks.first();
        let task = task.ok_or_else(|| Failure::failed("the service has no scan"))?;
        let beside_s = beside.seconds;
        let (alone, beside) = (DemoForeground::of(alone)?, DemoForeground::of(beside)?);
        let longer = |with: f64, without: f64| (with / without - 1.0) * 100.0;
        Ok(DemoFigures {
            drive: service::DRIVE,
            policy: service::POLICY,
            label: Label::Noisy,
            seek_noise_us: service::SEEK_NOISE_US,
            bus_mb_s: service::BUS_MB_S,
            time_scale: demo.scale,
            workload: workload.name.clone(),
            seed: workload.seed,
            page: format!("http://{}/", demo.page),
            impact: ScanImpact {
                mean_percent: longer(beside.mean_ms, alone.mean_ms),
                p99_percent: longer(beside.p99_ms, alone.p99_ms),
                measured_percent: task.impact.measured_percent,
                budget_percent: drive.impact.budget_percent,
            },
            scan: DemoScan::of(task, beside_s),
            lateness: drive.lateness,
            svg: svg.display().to_string(),
            alone,
            beside,
        })
    }
}

impl DemoScan {
    fn of(task: &Task, seconds: f64) -> Self {
        DemoScan {
            bytes: task.done_bytes,
            free_bytes: task.free_bytes,
            idle_bytes: task.idle_bytes,
            of_bytes: task.asked_bytes,
            mb_per_s: task.done_bytes as f64 / 1e6 / seconds,
        }
    }
}

/// The distributions, and the mean over time.
pub fn panels(alone: &LoadStretch, beside: &LoadStretch) -> Vec<Panel> {
    let both = [("alone", alone), ("beside the scan", beside)];
    let distributions = both.map(|(name, stretch)| {
        let series = Series {
            name: name.to_owned(),
            values: stretch.ends.iter().map(|&(_, ms)| ms).collect(),
        };
        series.distribution()
    });
    let courses = both.map(|(name, stretch)| Curve {
        name: name.to_owned(),
        points: course(stretch),
    });
    vec![
        Panel::Cdf {
            title: "Response times of OLTP, with and without a free scan".to_owned(),
            x_label: "response time, ms".to_owned(),
            curves: distributions.into(),
        },
        Panel::Lines {
            title: "Mean response time, one part in thirty after the other".to_owned(),
            x_label: "seconds since its beginning".to_owned(),
            y_label: "ms".to_owned(),
            curves: courses.into(),
        },
    ]
}

/// The mean of each thirtieth of the time: few enough parts to be steady.
fn course(stretch: &LoadStretch) -> Vec<(f64, f64)> {
    const PARTS: usize = 30;
    let part = stretch.seconds / PARTS as f64;
    let mut sums = [(0.0, 0u32); PARTS];
    for &(at, ms) in &stretch.ends {
        let place = ((at / part) as usize).min(PARTS - 1);
        sums[place].0 += ms;
        sums[place].1 += 1;
    }
    let points = sums.iter().enumerate().filter(|(_, (_, count))| *count > 0);
    points
        .map(|(place, (sum, count))| ((place as f64 + 0.5) * part, sum / f64::from(*count)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_those_of_the_requests() {
        let stretch = LoadStretch {
            ends: (1..=200)
                .map(|n| (f64::from(n) / 100.0, f64::from(n)))
                .collect(),
            bytes: 4_000_000,
            seconds: 2.0,
        };
        let found = DemoForeground::of(&stretch).expect("figures");
        assert_eq!(found.requests_per_s, 100.0);
        assert_eq!(found.mb_per_s, 2.0);
        assert_eq!(found.mean_ms, 100.5);
        assert_eq!(
            (found.p50_ms, found.p99_ms, found.p999_ms),
            (100.0, 198.0, 200.0)
        );
        let course = course(&stretch);
        assert_eq!(course.len(), 30);
        assert!(course.is_sorted_by(|a, b| a.1 < b.1), "{course:?}");
        assert!(DemoForeground::of(&LoadStretch::default()).is_err());
    }
}
