//! What a demonstration has shown: the foreground without and with the scan.

use std::path::Path;

use lab::plot::{self, Curve, Panel, Series};
use serde::Serialize;
use server::control::Service as _;
use server::status::{Lateness, Task};
use simulator::workload::Workload;

use super::load::Stretch;
use super::service::{self, Demonstration};
use crate::output::{Exit, grouped};

/// All of it; times are the drive's.
#[derive(Debug, Serialize)]
pub struct Figures {
    drive: &'static str,
    policy: &'static str,
    /// What the scheduler knows of the drive.
    label: &'static str,
    seek_noise_us: u32,
    bus_mb_s: f64,
    time_scale: f64,
    workload: String,
    seed: u64,
    page: String,
    alone: Foreground,
    beside: Foreground,
    scan: Scanned,
    impact: Impact,
    /// How late the emulation was, in real time, of the last seconds.
    lateness: Option<Lateness>,
    svg: String,
}

/// The load, as its client saw it.
#[derive(Debug, Serialize)]
struct Foreground {
    requests: usize,
    seconds: f64,
    requests_per_s: f64,
    mb_per_s: f64,
    mean_ms: f64,
    p50_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
}

/// What was read in the background.
#[derive(Debug, Serialize)]
struct Scanned {
    bytes: u64,
    free_bytes: u64,
    idle_bytes: u64,
    of_bytes: u64,
    mb_per_s: f64,
}

/// What that cost, in percent.
#[derive(Debug, Serialize)]
struct Impact {
    /// By how much the client's mean is longer.
    mean_percent: f64,
    p99_percent: f64,
    /// As the engine measured it.
    measured_percent: Option<f64>,
    budget_percent: f64,
}

impl Foreground {
    fn of(stretch: &Stretch) -> Result<Self, Exit> {
        let mut times: Vec<f64> = stretch.ends.iter().map(|&(_, ms)| ms).collect();
        times.sort_by(f64::total_cmp);
        let count = times.len();
        if count == 0 {
            return Err(Exit::failed("no request ended: expected a longer stretch"));
        }
        // The nearest rank.
        let at = |share: f64| times[((share * count as f64).ceil() as usize).clamp(1, count) - 1];
        Ok(Foreground {
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

impl Figures {
    /// The figures of a service that still runs.
    ///
    /// # Errors
    /// If nothing was served.
    pub fn new(
        demo: &Demonstration,
        workload: &Workload,
        alone: &Stretch,
        beside: &Stretch,
        svg: &Path,
    ) -> Result<Self, Exit> {
        let status = demo.service.status();
        let drive = status.drives.first();
        let drive = drive.ok_or_else(|| Exit::failed("the service has no drive"))?;
        let task = drive.tasks.first();
        let task = task.ok_or_else(|| Exit::failed("the service has no scan"))?;
        let beside_s = beside.seconds;
        let (alone, beside) = (Foreground::of(alone)?, Foreground::of(beside)?);
        let longer = |with: f64, without: f64| (with / without - 1.0) * 100.0;
        Ok(Figures {
            drive: service::DRIVE,
            policy: service::POLICY,
            label: "noisy",
            seek_noise_us: service::SEEK_NOISE_US,
            bus_mb_s: service::BUS_MB_S,
            time_scale: demo.scale,
            workload: workload.name.clone(),
            seed: workload.seed,
            page: format!("http://{}/", demo.page),
            impact: Impact {
                mean_percent: longer(beside.mean_ms, alone.mean_ms),
                p99_percent: longer(beside.p99_ms, alone.p99_ms),
                measured_percent: task.impact.measured_percent,
                budget_percent: drive.impact.budget_percent,
            },
            scan: Scanned::of(task, beside_s),
            lateness: drive.lateness,
            svg: svg.display().to_string(),
            alone,
            beside,
        })
    }

    /// For programs.
    ///
    /// # Errors
    /// Never: it is all numbers and texts.
    pub fn json(&self) -> Result<String, Exit> {
        Ok(serde_json::to_string_pretty(self).map_err(Exit::failed)? + "\n")
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!(
            "\n{:<18}{:>12}{:>12}{:>8}\n",
            "foreground", "alone", "with scan", ""
        );
        let rows: [(&str, f64, f64); 6] = [
            (
                "requests/s",
                self.alone.requests_per_s,
                self.beside.requests_per_s,
            ),
            ("MB/s", self.alone.mb_per_s, self.beside.mb_per_s),
            ("mean, ms", self.alone.mean_ms, self.beside.mean_ms),
            ("median, ms", self.alone.p50_ms, self.beside.p50_ms),
            ("99 %, ms", self.alone.p99_ms, self.beside.p99_ms),
            ("99.9 %, ms", self.alone.p999_ms, self.beside.p999_ms),
        ];
        for (name, alone, beside) in rows {
            let change = (beside / alone - 1.0) * 100.0;
            text += &format!("{name:<18}{alone:>12.2}{beside:>12.2}{change:>+8.1} %\n");
        }
        let measured = match self.impact.measured_percent {
            Some(percent) => format!("{percent:.2} %"),
            None => "not measured".to_owned(),
        };
        text += &format!(
            "\nscan              {:.2} MB/s: {} bytes, {} of them in gaps\n\
             impact            {measured} of the response time, as measured by the engine; {:.2} % are \
             granted\n",
            self.scan.mb_per_s,
            grouped(self.scan.bytes),
            grouped(self.scan.free_bytes),
            self.impact.budget_percent,
        );
        if let Some(late) = &self.lateness {
            text += &format!(
                "emulation         later than the model by {:.0} us (median), {:.0} us (99 %), {:.0} us \
                 (worst)\n",
                late.p50_us, late.p99_us, late.max_us
            );
            if late.p99_us > LATE_US * self.time_scale {
                text += "                  plans do not allow for that: this machine was too busy for \
                         the comparison.\n                  On a quieter one, or with --time-scale 4, \
                         it is about the scheduler\n";
            }
        }
        text += &format!(
            "\n{}: the scheduler does not know the {} us by which seeks scatter. {} and {} requests of \
             one seed.\nPlots: {}\n",
            self.label,
            self.seek_noise_us,
            grouped(self.alone.requests as u64),
            grouped(self.beside.requests as u64),
            self.svg
        );
        text
    }
}

/// What a command may be later than the model without upsetting plans. A choice: about what guards
/// allow for under the demonstration's noise.
const LATE_US: f64 = 300.0;

impl Scanned {
    fn of(task: &Task, seconds: f64) -> Self {
        Scanned {
            bytes: task.done_bytes,
            free_bytes: task.free_bytes,
            idle_bytes: task.idle_bytes,
            of_bytes: task.asked_bytes,
            mb_per_s: task.done_bytes as f64 / 1e6 / seconds,
        }
    }
}

/// Distributions, and the course of the mean.
pub fn plots(alone: &Stretch, beside: &Stretch) -> String {
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
    plot::page(&[
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
    ])
}

/// The mean of each of thirty parts of the time: few enough to be steady.
fn course(stretch: &Stretch) -> Vec<(f64, f64)> {
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
        let stretch = Stretch {
            ends: (1..=200)
                .map(|n| (f64::from(n) / 100.0, f64::from(n)))
                .collect(),
            bytes: 4_000_000,
            seconds: 2.0,
        };
        let found = Foreground::of(&stretch).expect("figures");
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
        assert!(Foreground::of(&Stretch::default()).is_err());
    }
}
