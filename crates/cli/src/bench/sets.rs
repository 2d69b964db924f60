//! `headtime bench sets`: free bandwidth over the size of a declared set and its scatter.

use std::fmt::Write as _;

use clap::Args;
use document::quantity::Unit;
use lab::bench::busy::BeliefSource;
use lab::bench::sets::{SetsBench, SetsFigures};

use super::observed;
use crate::output::{Exit, json, print};
use crate::settings::units::{MOST_SECONDS, in_unit, whole_in};

/// The arguments of `headtime bench sets`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SetsBenchArgs {
    /// The drive: a name from `headtime drives`, or a profile file
    #[arg(long, value_name = "NAME", default_value = "quantum-atlas-10k")]
    drive: String,
    /// The policy
    #[arg(long, default_value = "sptf-sw60")]
    policy: String,
    /// Believe the truth without its noise, and do not profile the drive first: figures are `noisy`
    /// instead of `external`
    #[arg(long)]
    unprofiled: bool,
    /// Sizes of the sets; larger ones than half of the drive are left out
    #[arg(
        long,
        value_name = "MIB",
        value_delimiter = ',',
        default_value = "16,64,256,1024,4096",
        value_parser = whole_in::<u64>(Unit::Mebibytes, 1..=1 << 34)
    )]
    size_mib: Vec<u64>,
    /// Numbers of pieces of equal size, at random places; pieces below 4 KiB are left out
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,16,256,4096",
        value_parser = clap::value_parser!(u64).range(1..=16_000)
    )]
    pieces: Vec<u64>,
    /// Seeds of load, drive and places
    #[arg(long, value_name = "N", default_value_t = 1)]
    seeds: u64,
    /// Impact budget of the task: the permitted increase of foreground response times
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = in_unit(Unit::Percent))]
    impact_percent: f64,
    /// Longest run, in virtual seconds
    #[arg(long, value_name = "S", default_value_t = 600, value_parser = whole_in::<u64>(Unit::Seconds, 0..=MOST_SECONDS))]
    seconds: u64,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench sets
  headtime bench sets --drive modern-20tb --size-mib 1024,16384,65536 --seconds 900 --json

Each run reads one set in the gaps of an OLTP load that is never idle, until it has the whole set or
the time is over.";

/// Runs the command.
///
/// # Errors
/// If a name is unknown or a run fails, or the output cannot be written.
pub fn run(arguments: &SetsBenchArgs) -> Result<(), Exit> {
    let figures = observed("bench sets", |bar| arguments.settings().run(bar))?;
    print(&match arguments.json {
        true => json(&figures)?,
        false => table(&figures),
    })
}

impl SetsBenchArgs {
    fn settings(&self) -> SetsBench {
        SetsBench {
            drive: self.drive.clone(),
            policy: self.policy.clone(),
            belief: match self.unprofiled {
                true => BeliefSource::Truth,
                false => BeliefSource::Profiled,
            },
            seeds: self.seeds,
            impact_ppm: (self.impact_percent * 1e4) as u32,
            sizes_mib: self.size_mib.clone(),
            pieces: self.pieces.clone(),
            seconds: self.seconds,
        }
    }
}

fn table(figures: &[SetsFigures]) -> String {
    let mut text = format!(
        "{:<20} {:<9} {:>4} {:>9} {:>6} {:>10} {:>9} {:>9} {:>9} {:>7} {:>7}\n",
        "",
        "mode",
        "seed",
        "size MiB",
        "pieces",
        "piece KiB",
        "half",
        "nine/10",
        "MB/s",
        "read",
        "lost"
    );
    let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.3}"));
    for line in figures {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<20} {:<9} {:>4} {:>9} {:>6} {:>10} {:>9} {:>9} {:>9.3} {:>6.1}% {:>6.2}%",
            line.drive,
            line.mode,
            line.seed,
            line.size_mib,
            line.pieces,
            line.piece_kib,
            rate(line.half_mb_s),
            rate(line.nine_tenths_mb_s),
            line.run_mb_s,
            line.read_percent,
            line.estimated_loss_percent
        );
    }
    text + "\nhalf, nine/10: MB/s until so much of the set was read; lost: the engine's estimate\n"
}
