//! `headtime bench partial`: free blocks where a part of a drive's tracks is known.

use std::fmt::Write as _;

use clap::Args;
use document::quantity::Unit;
use lab::bench::partial::{KnownPlaces, PartialBench, PartialFigures};

use super::observed;
use crate::output::{Exit, json, print};
use crate::settings::units::{MOST_SECONDS, in_unit, whole_in};

/// The arguments of `headtime bench partial`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PartialBenchArgs {
    /// Drives: names from `headtime drives`, or profile files
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "quantum-atlas-10k,seagate-cheetah-9lp"
    )]
    drive: Vec<String>,
    /// Invented drives in addition, whose surfaces differ by up to 8 % in density
    #[arg(long, value_name = "N", default_value_t = 4)]
    invented: u64,
    /// Shares of known tracks
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = in_unit(Unit::Percent),
        value_delimiter = ',',
        default_value = "10,30,60,90"
    )]
    share: Vec<f64>,
    /// Seeds for each drive
    #[arg(long, value_name = "N", default_value_t = 3)]
    seeds: u64,
    /// The policy
    #[arg(long, default_value = "sptf")]
    policy: String,
    /// Impact budget of the scan: the permitted increase of foreground response times
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = in_unit(Unit::Percent))]
    impact_percent: f64,
    /// Standard deviation of seek times, which no belief contains
    #[arg(long, value_name = "US", default_value_t = 60.0, value_parser = in_unit(Unit::Microseconds))]
    seek_noise_us: f64,
    /// Length of each run, in virtual seconds
    #[arg(long, value_name = "S", default_value_t = 300, value_parser = whole_in::<u64>(Unit::Seconds, 0..=MOST_SECONDS))]
    seconds: u64,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench partial
  headtime bench partial --drive quantum-atlas-10k --invented 0 --seeds 1 --share 10,90
  headtime bench partial --policy sptf-sw60 --json

Each run serves an OLTP load that is never idle, with a scan in free blocks and without it. The mean
response times are those without it: of all requests, of those for known and for other blocks, and of
the others if the whole map is known; then of all and of the others under C-LOOK. SPTF serves some
parts of a disk later than others, also with the whole map.";

/// Runs the command.
///
/// # Errors
/// If a drive is unknown or a run fails, or the output cannot be written.
pub fn run(arguments: &PartialBenchArgs) -> Result<(), Exit> {
    let figures = observed("bench partial", |bar| arguments.settings().run(bar))?;
    print(&match arguments.json {
        true => json(&figures)?,
        false => table(&figures),
    })
}

impl PartialBenchArgs {
    fn settings(&self) -> PartialBench {
        PartialBench {
            drives: self.drive.clone(),
            invented: self.invented,
            permilles: self
                .share
                .iter()
                .map(|share| (share * 10.0) as u64)
                .collect(),
            seeds: self.seeds,
            policy: self.policy.clone(),
            impact_ppm: (self.impact_percent * 1e4) as u32,
            seek_noise_us: self.seek_noise_us,
            seconds: self.seconds,
        }
    }
}

fn table(figures: &[PartialFigures]) -> String {
    let mut text = format!(
        "{:<22} {:>4} {:<11} {:>7} {:<10} {:>10} {:>10} {:>8} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
        "",
        "seed",
        "mode",
        "known",
        "",
        "free MB/s",
        "at least",
        "lost",
        "estimated",
        "budget",
        "mean ms",
        "known ms",
        "others ms",
        "if known",
        "C-LOOK ms",
        "others ms"
    );
    for line in figures {
        let places = match line.places {
            None => "whole",
            Some(KnownPlaces::Contiguous) => "contiguous",
            Some(KnownPlaces::Scattered) => "scattered",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<22} {:>4} {:<11} {:>6.1}% {places:<10} {:>10.3} {:>10.3} {:>7.2}% {:>8.2}% {:>6.1}% {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2}",
            line.drive,
            line.seed,
            line.mode,
            line.known_percent,
            line.free_mb_s,
            line.least_mb_s,
            line.foreground_loss_percent,
            line.estimated_percent,
            line.budget_percent,
            line.baseline_ms,
            line.known_ms,
            line.guessed_ms,
            line.guessed_whole_ms,
            line.plain_ms,
            line.guessed_plain_ms
        );
    }
    text
}
