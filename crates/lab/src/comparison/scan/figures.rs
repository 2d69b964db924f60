//! What a scan comes to beside the same load without it.

use scheduler::background::State;
use scheduler::freeblock::Caution;
use serde::Serialize;
use simulator::ledger::Report;
use simulator::scenario::{Played, Scanned};

use super::ScanPlan;

/// What a scan came to.
#[derive(Clone, Debug, Serialize)]
pub struct ScanFigures {
    /// MB/s by reads in gaps, until the scan or the run ended.
    pub free_mb_s: f64,
    /// By reads in idle time.
    pub idle_mb_s: f64,
    /// By reads in granted head time.
    pub paid_mb_s: f64,
    /// The mean response time of the load's requests.
    pub foreground_mean_ms: f64,
    /// The 99th percentile of their response times.
    pub foreground_p99_ms: f64,
    /// The same load without the scan.
    pub baseline: Baseline,
    /// Of the mean response time, in percent; negative if the load was faster.
    pub foreground_loss_percent: f64,
    /// Of the 99th percentile.
    pub foreground_p99_loss_percent: f64,
    /// How the scan stands.
    pub state: &'static str,
    /// All blocks of the scan.
    pub wanted_blocks: u64,
    /// Those that were read in gaps.
    pub free_blocks: u64,
    /// Those that were read in idle time.
    pub idle_blocks: u64,
    /// Those that were read in granted head time.
    pub paid_blocks: u64,
    /// Those that were not read.
    pub left_blocks: u64,
    /// MB/s by free blocks until 1 %, 50 % and all of the scan were read, where it came so far.
    pub free_mb_s_by_part: Parts,
    /// The guard and its budget.
    pub guard: GuardFigures,
    /// What became of the gaps.
    pub gaps: GapFigures,
    /// Of the head's time, that of the scan's own commands; without it, it would be among "other".
    pub head_time_percent: f64,
    /// Moments at which another hundredth was read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<Moment>,
    /// When as much was read as should be, in seconds; none if it was not.
    #[serde(skip)]
    until: Option<f64>,
}

/// The same load without the scan.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Baseline {
    /// The mean response time of its requests.
    pub foreground_mean_ms: f64,
    /// The 99th percentile of their response times.
    pub foreground_p99_ms: f64,
}

/// MB/s by free blocks until so much of the scan was read.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Parts {
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
    /// Fixed or learned.
    pub rule: &'static str,
    /// The most that requests may be slowed down, if the guard is learned.
    pub impact_budget_percent: Option<f64>,
    /// Of reads after short and long seeks, then of writes.
    pub guards_us: [f64; 4],
    /// By how much requests were slowed down.
    pub measured_impact_percent: f64,
}

/// What became of the gaps before requests.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct GapFigures {
    /// All gaps.
    pub seen: u64,
    /// Their mean rotational latency.
    pub mean_latency_ms: f64,
    /// Gaps so near to a whole revolution that they were left alone.
    pub near_miss: u64,
    /// Gaps in which a plan was not worth its risk.
    pub not_worth_it: u64,
    /// Plans that merged free blocks with the request.
    pub merged: u64,
    /// Plans with a track between source and destination.
    pub detours: u64,
    /// Plans on the track of the command before.
    pub on_source_track: u64,
    /// Plans on the request's track.
    pub on_destination_track: u64,
    /// Plans that made a request miss its revolution.
    pub mispredicted: u64,
}

/// The moment at which a hundredth of the scan was read.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Moment {
    /// How much of the scan.
    pub percent: u32,
    /// When.
    pub seconds: f64,
}

impl ScanFigures {
    /// The figures of a scan beside those of the same load without it.
    pub fn new(
        plan: &ScanPlan,
        block_bytes: u32,
        with: &Report,
        scanned: &Scanned,
        without: &Played,
    ) -> Self {
        let (mean, p99) = responses(with);
        let (mean_alone, p99_alone) = responses(&without.ledger.report(&without.ran));
        // What comes after the scan is not its bandwidth.
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
            free_mb_s_by_part: Parts::new(scanned, block_bytes),
            guard: guard_figures(plan, scanned),
            gaps: gap_figures(scanned),
            head_time_percent: match scanned.end.as_nanos() {
                0 => 0.0,
                _ => thousandth(
                    scanned.gaps.head_time.as_secs_f64() / scanned.end.as_secs_f64() * 100.0,
                ),
            },
            progress: moments(scanned),
            until: reached.map(|at| at.as_secs_f64()),
        }
    }

    /// Days until as much was read as should be, if it was.
    pub fn days(&self) -> Option<f64> {
        Some(self.until? / SECONDS_PER_DAY)
    }

    /// How many plans of a hundred made a command miss its revolution, if there were any.
    pub fn mispredicted_percent(&self) -> Option<f64> {
        let gaps = &self.gaps;
        let plans = gaps.merged + gaps.detours + gaps.on_source_track + gaps.on_destination_track;
        (plans > 0).then(|| gaps.mispredicted as f64 / plans as f64 * 100.0)
    }
}

impl Parts {
    fn new(scanned: &Scanned, block_bytes: u32) -> Self {
        let part = |hundredths| {
            scanned.reached(hundredths)?;
            Some(thousandth(scanned.rates(hundredths, block_bytes)[0]))
        };
        Parts {
            start: part(1),
            first_half: part(50),
            whole: part(100),
        }
    }
}

/// The mean and the 99th percentile, in milliseconds.
fn responses(report: &Report) -> (f64, f64) {
    let response = report.all.response.as_ref();
    response.map_or((0.0, 0.0), |response| (response.mean_ms, response.p99_ms))
}

/// By how much a time is longer than it would be, in percent of that.
fn loss_percent(time: f64, alone: f64) -> f64 {
    match alone > 0.0 {
        true => thousandth((time / alone - 1.0) * 100.0),
        false => 0.0,
    }
}

fn state(state: State) -> &'static str {
    match state {
        State::Active => "active",
        State::Suspended => "suspended",
        State::Finished => "finished",
        State::Aborted => "aborted",
    }
}

/// In a day.
pub const SECONDS_PER_DAY: f64 = 86_400.0;

fn guard_figures(plan: &ScanPlan, scanned: &Scanned) -> GuardFigures {
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

fn gap_figures(scanned: &Scanned) -> GapFigures {
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

fn moments(scanned: &Scanned) -> Vec<Moment> {
    let moment = |point: &simulator::run::Point| Moment {
        percent: point.hundredths,
        seconds: thousandth(point.at.as_secs_f64()),
    };
    scanned.points.iter().map(moment).collect()
}

/// To three decimals: what a run's own noise leaves.
fn thousandth(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
