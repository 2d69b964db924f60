//! What a scan comes to beside the same load without it.

use std::fmt::Write;

use scheduler::background::State;
use scheduler::freeblock::Caution;
use serde::Serialize;
use simulator::ledger::Report;
use simulator::scenario::{Played, Scanned};

use super::ScanPlan;
use crate::output::grouped;

/// What a scan came to.
#[derive(Clone, Debug, Serialize)]
pub struct ScanFigures {
    /// MB/s by reads in gaps, until the scan or the run ended.
    pub free_mb_s: f64,
    /// By reads in idle time.
    pub idle_mb_s: f64,
    /// By reads in granted head time.
    pub paid_mb_s: f64,
    foreground_mean_ms: f64,
    foreground_p99_ms: f64,
    baseline: Baseline,
    /// Of the mean response time, in percent; negative if the load was faster.
    pub foreground_loss_percent: f64,
    /// Of the 99th percentile.
    pub foreground_p99_loss_percent: f64,
    state: &'static str,
    wanted_blocks: u64,
    free_blocks: u64,
    idle_blocks: u64,
    paid_blocks: u64,
    left_blocks: u64,
    /// MB/s by free blocks until 1 %, 50 % and all of the scan were read, where it came so far.
    free_mb_s_by_part: Parts,
    guard: GuardFigures,
    gaps: GapFigures,
    /// Of the head's time, that of the scan's own commands; without it, it would be among "other".
    head_time_percent: f64,
    /// Moments at which another hundredth was read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    progress: Vec<Moment>,
    /// When as much was read as should be, in seconds; none if it was not.
    #[serde(skip)]
    until: Option<f64>,
}

/// The same load without the scan.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Baseline {
    foreground_mean_ms: f64,
    foreground_p99_ms: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Parts {
    start: Option<f64>,
    first_half: Option<f64>,
    whole: Option<f64>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct GuardFigures {
    rule: &'static str,
    impact_budget_percent: Option<f64>,
    /// Of reads after short and long seeks, then of writes.
    guards_us: [f64; 4],
    measured_impact_percent: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct GapFigures {
    seen: u64,
    mean_latency_ms: f64,
    near_miss: u64,
    not_worth_it: u64,
    merged: u64,
    detours: u64,
    on_source_track: u64,
    on_destination_track: u64,
    mispredicted: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Moment {
    percent: u32,
    seconds: f64,
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

    /// The figures as lines for people.
    pub fn text(&self) -> String {
        let read = self.free_blocks + self.idle_blocks + self.paid_blocks;
        let share = read as f64 / self.wanted_blocks.max(1) as f64 * 100.0;
        let (all, state) = (grouped(self.wanted_blocks), self.state);
        let scan = format!(
            "{} of {all} blocks read ({share:.1} %), {state}",
            grouped(read)
        );
        let rates = format!(
            "free {:.2}, idle {:.2}, paid {:.2}",
            self.free_mb_s, self.idle_mb_s, self.paid_mb_s
        );
        let foreground = format!(
            "mean {:.2} ms (without the scan {:.2}: {:+.2} %), p99 {:.1} ms ({:.1}: {:+.2} %)",
            self.foreground_mean_ms,
            self.baseline.foreground_mean_ms,
            self.foreground_loss_percent,
            self.foreground_p99_ms,
            self.baseline.foreground_p99_ms,
            self.foreground_p99_loss_percent
        );
        let head = format!(
            "{:.1} % of it by commands of the scan's own, which the bar above has under \"other\"",
            self.head_time_percent
        );
        let mut lines = vec![
            ("scan", scan),
            ("MB/s", rates),
            ("free by part", self.free_mb_s_by_part.text()),
            ("foreground", foreground),
            ("head time", head),
            ("guard", self.guard.text()),
            ("gaps", self.gaps.text()),
        ];
        let shown = self.progress.iter().filter(|m| SHOWN.contains(&m.percent));
        lines.extend(shown.map(|moment| ("", moment.text())));
        let mut text = String::new();
        for (name, what) in lines.iter().filter(|(_, what)| !what.is_empty()) {
            let _ = writeln!(text, "  {name:16}{what}");
        }
        text
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

    fn text(&self) -> String {
        let parts = [
            ("at the start", self.start),
            ("first half", self.first_half),
            ("whole", self.whole),
        ];
        let said = parts
            .iter()
            .filter_map(|(name, rate)| Some(format!("{name} {:.2}", (*rate)?)));
        said.collect::<Vec<_>>().join(", ")
    }
}

impl GuardFigures {
    fn text(&self) -> String {
        let [short, long, short_write, long_write] = self.guards_us;
        format!(
            "{}; reads {short:.0} and {long:.0} us after short and long seeks, writes \
             {short_write:.0} and {long_write:.0}",
            self.rule
        )
    }
}

impl GapFigures {
    fn text(&self) -> String {
        format!(
            "{}, {:.2} ms on average; {} merged, {} detours, {} on the source's track, {} on the \
             destination's; {} near misses, {} not worth it, {} mispredicted",
            grouped(self.seen),
            self.mean_latency_ms,
            grouped(self.merged),
            grouped(self.detours),
            grouped(self.on_source_track),
            grouped(self.on_destination_track),
            grouped(self.near_miss),
            grouped(self.not_worth_it),
            grouped(self.mispredicted)
        )
    }
}

impl Moment {
    fn text(&self) -> String {
        let (percent, seconds) = (self.percent, self.seconds);
        let days = seconds / SECONDS_PER_DAY;
        format!("{percent} % after {seconds:.0} s ({days:.3} days)")
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

/// The hundredths that are printed.
const SHOWN: [u32; 6] = [50, 80, 90, 95, 99, 100];

const SECONDS_PER_DAY: f64 = 86_400.0;

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
