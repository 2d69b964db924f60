//! The figures of a comparison, as typed tables and as plots.

use block::{Direction, Duration};
use engine::{Limits, ReadRule, Tallies};
use profiler::tracker::BeliefMode as TrackingMode;
use scheduler::NamedPolicy;
use scheduler::freeblock::WantedBlocks;
use scheduler::ordering::Phases;
use scheduler::policy::Depth;
use serde::Serialize;
use server::why::Slow;
use simulator::ledger::{Ledger, RunReport, RunTotals};
use simulator::replay::{AddressFit, DeviceChoice, ReplayPace};
use simulator::workload::{Mixture, Workload, class};

use super::ComparisonSetup;
use super::load::{LoadSource, TraceCounts};
use super::preempt::Stepped;
use super::scan::ScanFigures;
use super::streams::StreamsFigures;
use super::truth::Stated;
use super::verdict::ComparisonVerdict;
use crate::Label;
use crate::plot::{Bar, BarPart, Curve, Ink, Panel};

/// The results of a load under one policy.
#[derive(Clone, Debug)]
pub struct PolicyRun {
    /// The policy; for one of the caller's, the one whose limits it has.
    pub policy: NamedPolicy,
    /// The policy's name.
    pub name: String,
    /// The engine's limits.
    pub limits: Limits,
    /// The figures.
    pub report: RunReport,
    /// The number of requests within each step of response time, ascending.
    pub distribution: Vec<(Duration, u64)>,
    /// The counts of the trace, if the load is one.
    pub trace: Option<TraceCounts>,
    /// The figures of the background scan, if there is one.
    pub scan: Option<ScanFigures>,
    /// The blocks that the scan has left, if requested.
    pub left: Option<WantedBlocks>,
    /// The agreement of completion times with the belief, unless the belief is the truth.
    pub tracking: Option<Tracking>,
    /// The counts of preemption, if enabled.
    pub preempted: Option<Stepped>,
    /// The explanations of the slowest requests, if requested.
    pub slow: Vec<Slow>,
    /// The figures of players and recorders, if there are any.
    pub streams: Option<StreamsFigures>,
}

/// The agreement of the drive with the belief.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Tracking {
    /// The use of the belief at the end: `positioning`, or `safe` if it could not be trusted.
    pub mode: &'static str,
    /// The number of changes of that mode.
    pub changes: u64,
    /// Commands whose blocks passed under the head when the belief said.
    pub as_believed: u64,
    /// Commands whose blocks passed whole revolutions later.
    pub late: u64,
    /// Commands whose completion times fit no whole revolution.
    pub elsewhere: u64,
    /// Commands that the buffer answered.
    pub buffered: u64,
    /// Commands whose completion times depend on the bus or the write cache, not on the platter.
    pub silent: u64,
    /// The number of refinements of the seek tables.
    pub refinements: u64,
    /// The time by which commands were found to arrive later at the drive than the belief said at first, in
    /// microseconds.
    pub host_delay_us: f64,
    /// Calibration reads in idle time.
    pub calibrations: u64,
    /// Their head time, in milliseconds.
    pub calibration_ms: f64,
}

impl Tracking {
    /// Converts an engine's tallies.
    pub fn new(mode: TrackingMode, tallies: &Tallies, host_delay: i64) -> Self {
        Tracking {
            mode: mode.name(),
            changes: tallies.changes,
            as_believed: tallies.as_believed,
            late: tallies.late,
            elsewhere: tallies.elsewhere,
            buffered: tallies.buffered,
            silent: tallies.silent,
            refinements: tallies.refinements,
            host_delay_us: host_delay as f64 / 1e3,
            calibrations: tallies.calibrations,
            calibration_ms: tallies.calibration_time.as_nanos() as f64 / 1e6,
        }
    }
}

impl PolicyRun {
    /// Takes the figures from a run's ledger.
    pub fn new(
        policy: NamedPolicy,
        limits: Limits,
        ledger: &Ledger,
        ran: &RunTotals,
        trace: Option<TraceCounts>,
    ) -> Self {
        let mut distribution: Vec<(Duration, u64)> = ledger
            .distribution(Direction::Read)
            .chain(ledger.distribution(Direction::Write))
            .collect();
        distribution.sort_unstable();
        PolicyRun {
            policy,
            name: policy.name(),
            limits,
            report: ledger.report(ran),
            distribution,
            trace,
            scan: None,
            left: None,
            tracking: None,
            preempted: None,
            slow: Vec::new(),
            streams: None,
        }
    }

    /// The response time at this quantile.
    pub fn quantile(&self, share: f64) -> Duration {
        let total: u64 = self.distribution.iter().map(|step| step.1).sum();
        let wanted = (share * total as f64).ceil() as u64;
        let mut so_far = 0;
        for &(within, count) in &self.distribution {
            so_far += count;
            if so_far >= wanted {
                return within;
            }
        }
        Duration::ZERO
    }

    /// The mean time from one completion to the next, by activity, in milliseconds.
    pub fn head_ms(&self) -> [(&'static str, f64); 5] {
        let head = &self.report.head;
        let each = match self.report.all.requests {
            0 => 0.0,
            requests => self.report.span_ms / requests as f64,
        };
        [
            ("seek", head.seek * each),
            ("rotation", head.rotation * each),
            ("transfer", head.transfer * each),
            (OTHER, head.other * each),
            (IDLE, head.idle * each),
        ]
    }

    /// The place of the queue that chose the order.
    pub fn chosen_by(&self) -> &'static str {
        match self.policy.depth() {
            Depth::JustInTime => "policy",
            Depth::DriveQueue => "drive-queue",
        }
    }
}

/// Busy time that is neither seek nor rotation nor transfer: electronics, bus, and the drive's own
/// write-back and look-ahead.
pub const OTHER: &str = "other";

/// Time without requests.
pub const IDLE: &str = "idle";

/// Panels of response time distributions and of head time.
pub fn panels(setup: &ComparisonSetup, runs: &[PolicyRun]) -> Vec<Panel> {
    let subject = format!("{} on {}", setup.source.name(), setup.drive.name);
    let curves = runs.iter().map(|run| Curve {
        name: run.name.clone(),
        points: cumulative(&run.distribution),
    });
    let bars = runs.iter().map(|run| {
        let parts = run.head_ms().into_iter().enumerate();
        Bar {
            name: run.name.clone(),
            parts: parts
                .map(|(number, (name, value))| BarPart {
                    name,
                    value,
                    ink: match name {
                        IDLE => Ink::Pale,
                        _ => Ink::Head(number),
                    },
                })
                .collect(),
        }
    });
    let tails = runs.iter().map(|run| Curve {
        name: run.name.clone(),
        points: tail(&run.distribution),
    });
    vec![
        Panel::Cdf {
            title: format!("{subject}: response times"),
            x_label: format!("response time, ms; {}", setup.truth.label()),
            curves: curves.collect(),
        },
        Panel::Tail {
            title: format!("{subject}: requests that take longer"),
            x_label: format!("response time, ms; {}", setup.truth.label()),
            curves: tails.collect(),
        },
        Panel::Bars {
            title: format!("{subject}: head time per request"),
            x_label: "ms from one answer to the next".to_owned(),
            bars: bars.collect(),
        },
    ]
}

/// The points (milliseconds, cumulative share), thinned to visible ones.
fn cumulative(distribution: &[(Duration, u64)]) -> Vec<(f64, f64)> {
    let total: u64 = distribution.iter().map(|step| step.1).sum();
    let mut points = Vec::new();
    let (mut so_far, mut drawn) = (0u64, 0.0);
    for (number, &(within, count)) in distribution.iter().enumerate() {
        if number == 0 {
            points.push((within.as_millis_f64(), 0.0));
        }
        so_far += count;
        let share = so_far as f64 / total as f64;
        if share - drawn >= FINEST_SHARE || so_far == total {
            points.push((within.as_millis_f64(), share));
            drawn = share;
        }
    }
    points
}

/// The step of a drawn distribution: a third of a pixel.
const FINEST_SHARE: f64 = 0.001;

/// The points (milliseconds, share of requests that take longer), thinned to visible ones. The last is the greatest
/// response time, with the share of the requests that have it.
fn tail(distribution: &[(Duration, u64)]) -> Vec<(f64, f64)> {
    let total: u64 = distribution.iter().map(|step| step.1).sum();
    let (mut above, mut drawn) = (total, f64::INFINITY);
    let mut points = Vec::new();
    for (number, &(within, count)) in distribution.iter().enumerate() {
        let is_last = number + 1 == distribution.len();
        above -= if is_last { 0 } else { count };
        let share = above as f64 / total as f64;
        if is_last || share <= drawn * FINEST_RATIO {
            points.push((within.as_millis_f64(), share));
            drawn = share;
        }
    }
    points
}

/// The ratio of a drawn tail's steps: a third of a pixel where six decades have 300 pixels.
const FINEST_RATIO: f64 = 0.985;

/// A comparison as a typed table. The same seed gives the same values.
#[derive(Serialize)]
pub struct Comparison<'a> {
    mode: Label,
    drive: StatedDrive<'a>,
    truth: Stated,
    load: StatedLoad<'a>,
    seed: Option<u64>,
    bounds: CommandBounds,
    phases: &'static str,
    /// The rule by which the drives of a mirror serve reads, if there are two.
    #[serde(skip_serializing_if = "Option::is_none")]
    mirror: Option<&'static str>,
    /// The scan of a single policy.
    #[serde(flatten)]
    scan: Option<&'a ScanFigures>,
    results: Vec<ComparisonFigures<'a>>,
    /// What dominated the best mean, and what is unusual; `None` for drives without accounts.
    verdict: Option<ComparisonVerdict>,
}

#[derive(Serialize)]
struct StatedDrive<'a> {
    name: &'a str,
    model: &'a str,
    capacity_bytes: u64,
    block_bytes: u32,
    provenance: &'static str,
}

#[derive(Serialize)]
#[serde(tag = "source", rename_all = "kebab-case")]
enum StatedLoad<'a> {
    Workload(&'a Workload),
    Mixture(&'a Mixture),
    Trace(Trace),
    System(StatedClients<'a>),
}

/// The clients of a system.
#[derive(Serialize)]
struct StatedClients<'a> {
    clients: Vec<StatedClient<'a>>,
}

#[derive(Serialize)]
struct StatedClient<'a> {
    name: &'a str,
    class: &'static str,
    first_block: u64,
    blocks: u64,
    load: StatedLoad<'a>,
}

#[derive(Serialize)]
struct Trace {
    file: String,
    device: String,
    pace: &'static str,
    scale_time: Option<f64>,
    outstanding: Option<u32>,
    fit: &'static str,
}

#[derive(Serialize)]
struct CommandBounds {
    requests: Option<u64>,
    seconds: Option<f64>,
}

#[derive(Serialize)]
struct ComparisonFigures<'a> {
    policy: String,
    chosen_by: &'static str,
    depth: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<&'a TraceCounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scan: Option<&'a ScanFigures>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracking: Option<Tracking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preempted: Option<Stepped>,
    #[serde(skip_serializing_if = "Option::is_none")]
    streams: Option<&'a StreamsFigures>,
    #[serde(skip_serializing_if = "<[Slow]>::is_empty")]
    slow: &'a [Slow],
    #[serde(flatten)]
    report: &'a RunReport,
}

impl<'a> Comparison<'a> {
    /// Creates the table of a setup's runs.
    pub fn new(setup: &'a ComparisonSetup, runs: &'a [PolicyRun]) -> Self {
        Comparison {
            mode: setup.truth.mode(),
            truth: setup.truth.stated(),
            drive: StatedDrive {
                name: &setup.drive.name,
                model: &setup.drive.model,
                capacity_bytes: setup.drive.capacity_bytes(),
                block_bytes: setup.drive.block_bytes,
                provenance: setup.drive.provenance.name(),
            },
            load: load(&setup.source),
            seed: match &setup.source {
                LoadSource::Synthetic(workload) => Some(workload.seed),
                LoadSource::Mixture(mixture) => Some(mixture.seed),
                LoadSource::Trace(_) | LoadSource::Placed(_) => None,
            },
            bounds: CommandBounds {
                requests: setup.requests,
                seconds: setup.until.map(|until| until.as_secs_f64()),
            },
            phases: match setup.phases {
                Phases::Mixed => "mixed",
                Phases::Alternate { .. } => "alternate",
            },
            mirror: setup.mirror.map(ReadRule::name),
            scan: match runs {
                [run] => run.scan.as_ref(),
                _ => None,
            },
            results: runs
                .iter()
                .map(|run| ComparisonFigures {
                    policy: run.name.clone(),
                    chosen_by: run.chosen_by(),
                    depth: run.limits.commands_at_drive,
                    trace: run.trace.as_ref(),
                    scan: run.scan.as_ref(),
                    tracking: run.tracking,
                    preempted: run.preempted,
                    streams: run.streams.as_ref(),
                    slow: &run.slow,
                    report: &run.report,
                })
                .collect(),
            verdict: verdict(setup, runs),
        }
    }
}

/// The verdict on runs of a setup.
pub fn verdict(setup: &ComparisonSetup, runs: &[PolicyRun]) -> Option<ComparisonVerdict> {
    let each = runs.iter().map(|run| (run.name.as_str(), &run.report));
    ComparisonVerdict::new(&setup.source, each)
}

fn load(source: &LoadSource) -> StatedLoad<'_> {
    match source {
        LoadSource::Synthetic(workload) => StatedLoad::Workload(workload),
        LoadSource::Mixture(mixture) => StatedLoad::Mixture(mixture),
        LoadSource::Trace(plan) => {
            let (pace, scale_time, outstanding) = match plan.pace {
                ReplayPace::Timed { factor } => ("timed", Some(factor), None),
                ReplayPace::Closed { depth } => ("closed", None, Some(depth)),
            };
            StatedLoad::Trace(Trace {
                file: plan.path.display().to_string(),
                device: match &plan.devices {
                    DeviceChoice::Only => "only".to_owned(),
                    DeviceChoice::All => "all".to_owned(),
                    DeviceChoice::Named(name) => name.clone(),
                },
                pace,
                scale_time,
                outstanding,
                fit: match plan.fit {
                    AddressFit::AsTheyAre => "as-they-are",
                    AddressFit::Wrap => "wrap",
                    AddressFit::Scale => "scale",
                },
            })
        }
        LoadSource::Placed(loads) => {
            let clients = loads.iter().map(|placed| StatedClient {
                name: &placed.name,
                class: class::name(placed.class),
                first_block: placed.first,
                blocks: placed.blocks,
                load: load(&placed.source),
            });
            StatedLoad::System(StatedClients {
                clients: clients.collect(),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_ends_with_the_slowest_requests_and_their_share() {
        let step = |ms, count| (Duration::from_millis(ms), count);
        let distribution = [step(1, 900), step(2, 90), step(5, 9), step(80, 1)];
        assert_eq!(
            tail(&distribution),
            [(1.0, 0.1), (2.0, 0.01), (5.0, 0.001), (80.0, 0.001)]
        );
        assert_eq!(tail(&[step(3, 7)]), [(3.0, 1.0)]);
        assert_eq!(tail(&[]), []);
        let many: Vec<_> = (1..100_000).map(|ms| step(ms, 1)).collect();
        let thinned = tail(&many);
        assert!(thinned.len() < 1_000, "{}", thinned.len());
        assert_eq!(thinned.last(), Some(&(99_999.0, 1.0 / 99_999.0)));
    }
}
