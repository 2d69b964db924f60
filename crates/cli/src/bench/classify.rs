//! `headtime bench classify`: right classes by I/O priority, and their cost.

use clap::Args;
use document::quantity::Unit;
use lab::bench::classify::{ClassifyBench, ClassifyReport};

use crate::output::{Exit, json, print, warn};
use crate::settings::units::whole_in;

/// The arguments of `headtime bench classify`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ClassifyBenchArgs {
    /// The drive: `memory`, or an emulated one of `headtime drives`
    #[arg(long, value_name = "NAME", default_value = "quantum-atlas-10k")]
    drive: String,
    /// Slow-down of an emulated drive
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    time_scale: f64,
    /// Length of the turn that judges classes, in seconds
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = whole_in::<u32>(Unit::Seconds, 1..=3600))]
    seconds: u32,
    /// Length of each turn that measures the cost, in seconds [default: the same, at most 10]
    #[arg(long, value_name = "S", value_parser = whole_in::<u32>(Unit::Seconds, 1..=3600))]
    round_seconds: Option<u32>,
    /// Turns with the classification, and as many without it
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// A choice: a figure of the cost in a minute and a half.
const ROUND_SECONDS: u32 = 10;

const EXAMPLES: &str = "Examples:
  headtime bench classify --seconds 600 --json
  headtime bench classify --drive memory --rounds 9

Two programs read a half each, one of them with idle priority. The first turn judges the class of each
request. The others measure the cost, with and without the classification in alternation.
Needs root for FUSE, loop devices and events. Doors that this kernel does not have are skipped.";

/// Runs the command.
///
/// # Errors
/// If a program is missing or does not run, or the output cannot be written.
pub fn run(arguments: &ClassifyBenchArgs) -> Result<(), Exit> {
    let bench = ClassifyBench {
        drive: arguments.drive.clone(),
        time_scale: arguments.time_scale,
        seconds: arguments.seconds,
        round_seconds: arguments
            .round_seconds
            .unwrap_or(arguments.seconds.min(ROUND_SECONDS)),
        rounds: arguments.rounds,
    };
    let report = bench.run()?;
    for door in &report.skipped {
        warn(&format!("skipped: {door}"));
    }
    print(&match arguments.json {
        true => json(&report.doors)?,
        false => table(&report),
    })
}

fn table(report: &ClassifyReport) -> String {
    let mut text = format!(
        "{:<6} {:>9} {:>9} {:>12} {:>9} {:>11}\n",
        "door", "requests", "right", "late events", "CPU", "IOPS ratio"
    );
    for door in &report.doors {
        text += &format!(
            "{:<6} {:>9} {:>8.3}% {:>12} {:>8.2}% {:>11.4}\n",
            door.door,
            door.requests,
            door.right_percent,
            door.late_events,
            door.cpu_percent,
            door.iops_ratio
        );
    }
    text
}
