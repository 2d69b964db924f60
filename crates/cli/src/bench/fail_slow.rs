//! `headtime bench fail-slow`: how soon a slow head is found, and how often a healthy drive is taken for one.

use std::fmt::Write as _;

use clap::Args;
use document::quantity::Unit;
use lab::bench::fail_slow::{FailSlowBench, FailSlowReport, SlowLoad};

use super::observed;
use crate::output::{Exit, json, print};
use crate::settings::units::in_unit;

/// The arguments of `headtime bench fail-slow`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FailSlowBenchArgs {
    /// Drives: names from `headtime drives`, or profile files
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "quantum-atlas-10k,seagate-cheetah-15k5,toshiba-x300-5tb,modern-20tb"
    )]
    drive: Vec<String>,
    /// The policy
    #[arg(long, default_value = "sptf-sw60")]
    policy: String,
    /// Days of healthy drives in all, divided among drives and truths
    #[arg(long, value_name = "N", default_value_t = 8)]
    drive_days: u32,
    /// Requests a second of healthy drives, on average
    #[arg(long, value_name = "N", default_value_t = 4.0, value_parser = rate)]
    rate: f64,
    /// Requests a second of drives with a slow head, on average
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "20,80", value_parser = rate)]
    slow_rate: Vec<f64>,
    /// Runs with a slow head for each drive and rate
    #[arg(long, value_name = "N", default_value_t = 3)]
    seeds: u64,
    /// By how much longer the reads of a slow head take
    #[arg(long, value_name = "PERCENT", default_value_t = 20.0, value_parser = in_unit(Unit::Percent))]
    slower_percent: f64,
    /// Let the belief be what the profiler finds in this many minutes of the drive's time [default: the truth without
    /// its noise]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=600))]
    profiled_minutes: Option<u64>,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench fail-slow
  headtime bench fail-slow --drive-days 1000 --seeds 0 --json
  headtime bench fail-slow --drive-days 0 --slower-percent 10 --seeds 20
  headtime bench fail-slow --drive quantum-atlas-10k --profiled-minutes 10

The load changes every few minutes: anywhere, a hot file, a hot file beside writes, sequential,
bursts, and on healthy drives nothing. Healthy drives have each truth of `headtime bench impact`
in turn: noise, drift, late seeks, retries, scans of their own, delays of the host, a write cache. A slow head
becomes slow after ten minutes.";

/// Runs the command.
///
/// # Errors
/// If a name is unknown or a run fails, or the output cannot be written.
pub fn run(arguments: &FailSlowBenchArgs) -> Result<(), Exit> {
    let report = observed("bench fail-slow", |bar| arguments.settings().run(bar))?;
    print(&match arguments.json {
        true => json(&report)?,
        false => table(&report),
    })
}

/// Requests a second. A disk serves fewer than 1,000.
fn rate(text: &str) -> Result<f64, String> {
    let parsed = text.parse().ok();
    let fits = parsed.filter(|rate| (0.001..=1000.0).contains(rate));
    fits.ok_or_else(|| "expected requests a second, from 0.001 to 1000".to_owned())
}

impl FailSlowBenchArgs {
    fn settings(&self) -> FailSlowBench {
        FailSlowBench {
            drives: self.drive.clone(),
            policy: self.policy.clone(),
            drive_days: self.drive_days,
            per_second: self.rate,
            seeds: self.seeds,
            slower_percent: self.slower_percent,
            rates: self.slow_rate.clone(),
            profiled_minutes: self.profiled_minutes,
        }
    }
}

fn table(report: &FailSlowReport) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    if !report.healthy.is_empty() {
        let _ = writeln!(
            text,
            "{:<22} {:<22} {:>5} {:>10} {:>10} {:>6} {:>7}",
            "healthy", "truth", "days", "requests", "compared", "late", "alarms"
        );
    }
    for line in &report.healthy {
        let _ = writeln!(
            text,
            "{:<22} {:<22} {:>5} {:>10} {:>10} {:>5.2}% {:>7}",
            line.drive,
            line.truth,
            line.days,
            line.requests,
            line.compared_reads,
            line.late_percent,
            line.alarms
        );
    }
    if !report.slow.is_empty() {
        let _ = writeln!(
            text,
            "\n{:<22} {:<22} {:<9} {:>6} {:>5} {:>12} {:>9} {:>6}",
            "a slow head", "truth", "load", "rate/s", "head", "found after", "measured", "wrong"
        );
    }
    for line in &report.slow {
        let _ = writeln!(
            text,
            "{:<22} {:<22} {:<9} {:>6} {:>5} {:>12} {:>9} {:>6}",
            line.drive,
            line.truth,
            match line.load {
                SlowLoad::Anywhere => "anywhere",
                SlowLoad::Changing => "changing",
            },
            line.per_second,
            line.head,
            line.found_after_s
                .map_or("not found".to_owned(), |after| format!("{after:.0} s")),
            line.measured_percent
                .map_or("-".to_owned(), |percent| format!("{percent:.1} %")),
            line.false_alarms
        );
    }
    let _ = writeln!(
        text,
        "\n{} drive-days ({}), {} false alarms; {:.1} % of {} slow heads found within ten minutes; {:.0} s of CPU",
        report.drive_days,
        report.mode,
        report.false_alarms,
        report.found_percent,
        report.slow.len(),
        report.cpu_s
    );
    text
}
