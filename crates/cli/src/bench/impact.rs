//! `headtime bench impact`: what a scan costs the foreground under truths that no belief has.

use std::fmt::Write as _;

use clap::Args;
use document::quantity::Unit;
use lab::bench::impact::{ImpactBench, ImpactFigures, truths};

use super::observed;
use crate::output::{Exit, json, print};
use crate::settings::units::{MOST_SECONDS, in_unit, whole_in};

/// The arguments of `headtime bench impact`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ImpactBenchArgs {
    /// Drives: names from `headtime drives`, or profile files
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "quantum-atlas-10k"
    )]
    drive: Vec<String>,
    /// The policies
    #[arg(long, value_delimiter = ',', default_value = "sptf,sptf-sw60")]
    policy: Vec<String>,
    /// The truths, by name [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    truth: Vec<String>,
    /// Seeds for each case
    #[arg(long, value_name = "N", default_value_t = 1)]
    seeds: u64,
    /// Impact budget of the scan: the permitted increase of foreground response times
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = in_unit(Unit::Percent))]
    impact_percent: f64,
    /// Length of each run, in virtual seconds
    #[arg(long, value_name = "S", default_value_t = 1800, value_parser = whole_in::<u64>(Unit::Seconds, 0..=MOST_SECONDS))]
    seconds: u64,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench impact
  headtime bench impact --truth noise-150us-late-2ms,write-cache --seeds 4 --json

Each run serves an OLTP load that is never idle, with a scan in free blocks and without it.";

/// Runs the command.
///
/// # Errors
/// If a name is unknown or a run fails, or the output cannot be written.
pub fn run(arguments: &ImpactBenchArgs) -> Result<(), Exit> {
    let figures = observed("bench impact", |bar| arguments.settings().run(bar))?;
    print(&match arguments.json {
        true => json(&figures)?,
        false => table(&figures),
    })
}

impl ImpactBenchArgs {
    fn settings(&self) -> ImpactBench {
        ImpactBench {
            drives: self.drive.clone(),
            policies: self.policy.clone(),
            truths: self.truth.clone(),
            seeds: self.seeds,
            impact_ppm: (self.impact_percent * 1e4) as u32,
            seconds: self.seconds,
        }
    }
}

fn table(figures: &[ImpactFigures]) -> String {
    let mut text = format!(
        "{:<20} {:<10} {:<11} {:<24} {:>4} {:>9} {:>8} {:>8} {:>8} {:>9}\n",
        "", "", "mode", "truth", "seed", "free MB/s", "lost", "worst", "chance", "estimated"
    );
    for line in figures {
        let same_track = if line.same_track { " +same" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<20} {:<10} {:<11} {:<24} {:>4} {:>9.3} {:>7.2}% {:>7.2}% {:>7.2}% {:>8.2}%",
            line.drive,
            line.policy,
            line.mode,
            format!("{}{same_track}", line.truth),
            line.seed,
            line.free_mb_s,
            line.foreground_loss_percent,
            line.worst_window_percent,
            line.chance_window_percent,
            line.estimated_percent
        );
    }
    let _ = writeln!(
        text,
        "\nworst, chance: the slowest five minutes with and without the scan, against the mean \
         without it\ntruths: {}",
        truths().join(", ")
    );
    text
}
