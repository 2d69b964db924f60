//! `headtime bench schedulers`: our policy and the kernel's schedulers on one emulated drive.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use document::quantity::Unit;
use lab::bench::LEAST;
use lab::bench::schedulers::{SchedulersBench, SchedulersReport};
use server::status::Lateness;

use crate::output::{Exit, json, print};
use crate::settings::units::{in_unit, whole_in};

/// The arguments of `headtime bench schedulers`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SchedulersBenchArgs {
    /// The emulated drive: a name from `headtime drives`
    #[arg(long, value_name = "NAME", default_value = "quantum-atlas-10k")]
    drive: String,
    /// Our policy
    #[arg(long, default_value = "sptf")]
    policy: String,
    /// Use this profile as the scheduler's belief instead of the truth: a file from `headtime
    /// profile`
    #[arg(long, value_name = "FILE")]
    belief: Option<PathBuf>,
    /// Slow-down of the emulated drive: 4 is four times slower than real time. The kernel's own
    /// times are not scaled
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    time_scale: f64,
    /// Bandwidth of the drive's bus. The default carries what the medium reads
    #[arg(long, value_name = "MB_S", default_value_t = 80.0, value_parser = in_unit(Unit::MegabytesPerSecond))]
    bus_mb_s: f64,
    /// Standard deviation of seek times, which the belief does not contain
    #[arg(long, value_name = "US", default_value_t = 0.0, value_parser = in_unit(Unit::Microseconds))]
    seek_noise_us: f64,
    /// Impact budget of the scan: the permitted increase of foreground response times
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = in_unit(Unit::Percent))]
    impact_percent: f64,
    /// Outstanding requests
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=128))]
    depth: u32,
    /// Length of each turn, in seconds
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = whole_in::<u32>(Unit::Seconds, 1..=3600))]
    seconds: u32,
    /// Turns of each scheduler
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench schedulers
  headtime bench schedulers --drive modern-20tb --rounds 1 --json

Needs root for FUSE, loop devices, and their schedulers. Runs 14 turns in a round.";

/// Runs the command.
///
/// # Errors
/// If a program is missing or does not run, or the output cannot be written.
pub fn run(arguments: &SchedulersBenchArgs) -> Result<(), Exit> {
    let report = arguments.settings().run()?;
    print(&match arguments.json {
        true => json(&report)?,
        false => table(&report),
    })
}

impl SchedulersBenchArgs {
    fn settings(&self) -> SchedulersBench {
        SchedulersBench {
            drive: self.drive.clone(),
            policy: self.policy.clone(),
            belief: self.belief.clone(),
            time_scale: self.time_scale,
            bus_mb_s: self.bus_mb_s,
            seek_noise_us: self.seek_noise_us,
            impact_percent: self.impact_percent,
            depth: self.depth,
            seconds: self.seconds,
            rounds: self.rounds,
        }
    }
}

fn table(report: &SchedulersReport) -> String {
    let mut text = format!(
        "{}, time scale {}, seeks {} us less steady than believed, {}; depth {}\n\n",
        report.drive, report.time_scale, report.seek_noise_us, report.mode, report.depth
    );
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{:<32} {:>8} {:>8} {:>8} {:>10} {:>8} {:>7} {:>10}",
        "", "IOPS", "mean ms", "p99 ms", "with scan", "p99 ms", "lost", "scan MB/s"
    );
    for line in &report.measured {
        let _ = writeln!(
            text,
            "{:<32} {:>8.1} {:>8.1} {:>8.1} {:>10.1} {:>8.1} {:>6.1}% {:>10.2}",
            line.name,
            line.iops,
            line.mean_ms,
            line.p99_ms,
            line.with_scan_iops,
            line.with_scan_p99_ms,
            line.lost_percent,
            line.scan_mb_per_s
        );
    }
    let _ = writeln!(
        text,
        "\nours / the best of theirs: {:.2} as Linux sets a loop device up, {:.2} with {LEAST} at the \
         device (the goal is 1.3 or more)",
        report.times_the_best, report.times_the_best_of_least_depth
    );
    if let Some(Lateness {
        p50_us,
        p99_us,
        max_us,
    }) = report.lateness
    {
        let _ = writeln!(
            text,
            "our drive's completions were late by {p50_us:.0} us (p50), {p99_us:.0} (p99), {max_us:.0} (the latest)"
        );
    }
    text
}
