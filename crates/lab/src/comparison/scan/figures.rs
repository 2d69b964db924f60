//! The figures of a scan beside the same load without it.

use drive::Profile;
use scheduler::background::TaskPhase;
use scheduler::freeblock::Caution;
use serde::Serialize;
use simulator::ledger::RunReport;
use simulator::scenario::{ScanResult, ScenarioResult};

use super::ScanPlan;
use super::whole::WholeScan;

/// The figures of a scan.
#[derive(Clone, Debug, Serialize)]
pub struct ScanFigures {
    /// The rate of free reads until the scan or the run ended.
    pub free_mb_s: f64,
    /// The rate of reads in idle time.
    pub idle_mb_s: f64,
    /// The rate of reads in granted head time.
    pub paid_mb_s: f64,
    /// The mean response time of the load.
    pub foreground_mean_ms: f64,
    /// The 99th percentile of the load's response times.
    pub foreground_p99_ms: f64,
    /// The same load without the scan.
    pub baseline: Baseline,
    /// The increase of the mean response time, in percent; negative if the load was faster.
    pub foreground_loss_percent: f64,
    /// The increase of the 99th percentile, in percent.
    pub foreground_p99_loss_percent: f64,
    /// The state of the scan.
    pub state: &'static str,
    /// All blocks of the scan.
    pub wanted_blocks: u64,
    /// Blocks read in gaps.
    pub free_blocks: u64,
    /// Blocks read in idle time.
    pub idle_blocks: u64,
    /// Blocks read in granted head time.
    pub paid_blocks: u64,
    /// Blocks that were not read.
    pub left_blocks: u64,
    /// The rate of free blocks until 1 %, 50 % and all of the scan were read.
    pub free_mb_s_by_part: RatesByProgress,
    /// The guard and its budget.
    pub guard: GuardFigures,
    /// The counts of gaps.
    pub gaps: GapFigures,
    /// The share of head time of the scan's own commands.
    pub head_time_percent: f64,
    /// The times of the scan's hundredths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<Moment>,
    /// The time of the whole scan, estimated unless all was read; `None` for a scan of a part of the drive that did not
    /// end.
    pub whole: Option<WholeScan>,
    /// The time at which the requested progress was reached, in seconds.
    #[serde(skip)]
    until: Option<f64>,
}

/// The same load without the scan.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Baseline {
    /// The mean response time.
    pub foreground_mean_ms: f64,
    /// The 99th percentile of the response times.
    pub foreground_p99_ms: f64,
}

/// The rate of free blocks until three points of the scan, in MB/s.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RatesByProgress {
    /// One percent.
    pub start: Option<f64>,
    /// Half.
    pub first_half: Option<f64>,
    /// All.
    pub whole: Option<f64>,
}

/// The guard of free reads and its budget.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct GuardFigures {
    /// The kind: fixed or learned.
    pub rule: &'static str,
    /// The impact budget of a learned guard.
    pub impact_budget_percent: Option<f64>,
    /// The guards of reads after short and long seeks, then of writes.
    pub guards_us: [f64; 4],
    /// The measured impact.
    pub measured_impact_percent: f64,
}

/// The counts of the gaps before requests.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct GapFigures {
    /// All gaps.
    pub seen: u64,
    /// Their mean rotational latency.
    pub mean_latency_ms: f64,
    /// Gaps close to a whole revolution, which were left alone.
    pub near_miss: u64,
    /// Gaps whose best plan was not worth its risk.
    pub not_worth_it: u64,
    /// Plans that merged free blocks with the request.
    pub merged: u64,
    /// Plans with a track between source and destination.
    pub detours: u64,
    /// Plans on the track of the previous command.
    pub on_source_track: u64,
    /// Plans on the request's track.
    pub on_destination_track: u64,
    /// Plans that made a request miss its revolution.
    pub mispredicted: u64,
}

/// The time of a hundredth of the scan.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Moment {
    /// The progress.
    pub percent: u32,
    /// The virtual time.
    pub seconds: f64,
}

impl ScanFigures {
    /// Creates the figures from a run with the scan and one without.
    pub fn new(
        plan: &ScanPlan,
        drive: &Profile,
        with: &RunReport,
        scanned: &ScanResult,
        without: &ScenarioResult,
    ) -> Self {
        let block_bytes = drive.block_bytes;
        let (mean, p99) = responses(with);
        let (mean_alone, p99_alone) = responses(&without.ledger.report(&without.ran));
        // Bandwidth ends with the scan.
        let [free, idle, paid] = scanned.rates(100, block_bytes).map(thousandth);
        let progress = &scanned.progress;
        let reached = scanned.reached(plan.background.hundredths);
        ScanFigures {
            free_mb_s: free,
            idle_mb_s: idle,
            paid_mb_s: paid,
            foreground_mean_ms: mean,
            foreground_p99_ms: p99,
            baseline: Baseline {
                foreground_mean_ms: mean_alone,
                foreground_p99_ms: p99_alone,
            },
            foreground_loss_percent: loss_percent(mean, mean_alone),
            foreground_p99_loss_percent: loss_percent(p99, p99_alone),
            state: state(progress.state),
            wanted_blocks: progress.asked.0,
            free_blocks: progress.account.free.blocks.0,
            idle_blocks: progress.account.idle.blocks.0,
            paid_blocks: progress.account.paid.blocks.0,
            left_blocks: progress.left.0,
            free_mb_s_by_part: RatesByProgress::new(scanned, block_bytes),
            guard: guard_figures(plan, scanned),
            gaps: gap_figures(scanned),
            head_time_percent: match scanned.end.as_nanos() {
                0 => 0.0,
                _ => thousandth(
                    scanned.gaps.head_time.as_secs_f64() / scanned.end.as_secs_f64() * 100.0,
                ),
            },
            progress: moments(scanned),
            whole: WholeScan::of(scanned, drive.geometry.sectors().0),
            until: reached.map(|at| at.as_secs_f64()),
        }
    }

    /// Days until the requested progress, if it was reached.
    pub fn days(&self) -> Option<f64> {
        Some(self.until? / SECONDS_PER_DAY)
    }

    /// Days of the whole scan; estimated if less was read.
    pub fn whole_days(&self) -> Option<f64> {
        Some(self.whole.as_ref()?.end().seconds / SECONDS_PER_DAY)
    }

    /// Percentage of plans that made a command miss its revolution; `None` without plans.
    pub fn mispredicted_percent(&self) -> Option<f64> {
        let gaps = &self.gaps;
        let plans = gaps.merged + gaps.detours + gaps.on_source_track + gaps.on_destination_track;
        (plans > 0).then(|| gaps.mispredicted as f64 / plans as f64 * 100.0)
    }
}

impl RatesByProgress {
    fn new(scanned: &ScanResult, block_bytes: u32) -> Self {
        let part = |hundredths| {
            scanned.reached(hundredths)?;
            Some(thousandth(scanned.rates(hundredths, block_bytes)[0]))
        };
        RatesByProgress {
            start: part(1),
            first_half: part(50),
            whole: part(100),
        }
    }
}

/// The mean and the 99th percentile, in milliseconds.
fn responses(report: &RunReport) -> (f64, f64) {
    let response = report.all.response.as_ref();
    response.map_or((0.0, 0.0), |response| (response.mean_ms, response.p99_ms))
}

/// The increase of a time over `alone`, in percent.
fn loss_percent(time: f64, alone: f64) -> f64 {
    match alone > 0.0 {
        true => thousandth((time / alone - 1.0) * 100.0),
        false => 0.0,
    }
}

fn state(state: TaskPhase) -> &'static str {
    match state {
        TaskPhase::Active => "active",
        TaskPhase::Suspended => "suspended",
        TaskPhase::Finished => "finished",
        TaskPhase::Aborted => "aborted",
    }
}

/// Seconds in a day.
pub const SECONDS_PER_DAY: f64 = 86_400.0;

fn guard_figures(plan: &ScanPlan, scanned: &ScanResult) -> GuardFigures {
    let (rule, budget) = match plan.background.rules.caution {
        Caution::Fixed { .. } => ("fixed", None),
        Caution::Learned { impact_ppm } => ("learned", Some(f64::from(impact_ppm) / 1e4)),
    };
    GuardFigures {
        rule,
        impact_budget_percent: budget,
        guards_us: scanned.guards.map(|guard| guard.as_nanos() as f64 / 1e3),
        measured_impact_percent: thousandth(scanned.impact * 100.0),
    }
}

fn gap_figures(scanned: &ScanResult) -> GapFigures {
    let gaps = &scanned.gaps;
    let [merged, detours, on_source_track, on_destination_track] = gaps.planned;
    GapFigures {
        seen: gaps.seen,
        mean_latency_ms: thousandth(gaps.latency.as_millis_f64() / gaps.seen.max(1) as f64),
        near_miss: gaps.near_miss,
        not_worth_it: gaps.unworthy,
        merged,
        detours,
        on_source_track,
        on_destination_track,
        mispredicted: gaps.mispredicted,
    }
}

fn moments(scanned: &ScanResult) -> Vec<Moment> {
    let moment = |point: &simulator::run::ScanPoint| Moment {
        percent: point.hundredths,
        seconds: thousandth(point.at.as_secs_f64()),
    };
    scanned.points.iter().map(moment).collect()
}

/// Rounds to three decimals: the noise of a run.
fn thousandth(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
