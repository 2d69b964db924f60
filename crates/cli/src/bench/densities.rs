//! `headtime bench densities`: profiles of drives whose surfaces differ in density.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use document::quantity::Unit;
use lab::bench::densities::{DensitiesBench, DensityFigures, ProbingPath};

use crate::output::{Exit, json, print};
use crate::settings::units::{MOST_SECONDS, in_unit, whole_in};

/// The arguments of `headtime bench densities`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DensitiesBenchArgs {
    /// Numbers of surfaces, 2 to 10
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "2,4,6,8,10",
        value_parser = clap::value_parser!(u32).range(2..=10)
    )]
    surfaces: Vec<u32>,
    /// Drives for each number of surfaces
    #[arg(long, value_name = "N", default_value_t = 2)]
    seeds: u64,
    /// Budgets of the profiler, in minutes of the drive's time
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "10,30",
        value_parser = whole_in::<u64>(Unit::Minutes, 1..=600)
    )]
    minutes: Vec<u64>,
    /// How the profiler reaches the drives
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "cache-control,reads-alone"
    )]
    path: Vec<PathName>,
    /// The policy beside which free bandwidth is measured
    #[arg(long, default_value = "sptf")]
    policy: String,
    /// Impact budget of the scan: the permitted increase of foreground response times
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = in_unit(Unit::Percent))]
    impact_percent: f64,
    /// Standard deviation of seek times
    #[arg(long, value_name = "US", default_value_t = 60.0, value_parser = in_unit(Unit::Microseconds))]
    seek_noise_us: f64,
    /// Length of each run of the load, in virtual seconds
    #[arg(long, value_name = "S", default_value_t = 120, value_parser = whole_in::<u64>(Unit::Seconds, 0..=MOST_SECONDS))]
    seconds: u64,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// The names of the paths.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PathName {
    CacheControl,
    ReadsAlone,
}

const EXAMPLES: &str = "Examples:
  headtime bench densities
  headtime bench densities --surfaces 4 --seeds 1 --minutes 10 --path cache-control

Surfaces differ by up to 8 % in density; serpentines have rows of odd lengths, and tracks are
slipped. Each profile is used beside an OLTP load that is never idle, with a scan in free blocks and
without it. \"off\" is the mean error of predicted head times of random known blocks. The last
columns compare free bandwidth with that of the whole map, and the loss of the foreground with its
budget.";

/// Runs the command.
///
/// # Errors
/// If a run fails, or the output cannot be written.
pub fn run(arguments: &DensitiesBenchArgs) -> Result<(), Exit> {
    let figures = arguments.settings().run()?;
    print(&match arguments.json {
        true => json(&figures)?,
        false => table(&figures),
    })
}

impl DensitiesBenchArgs {
    fn settings(&self) -> DensitiesBench {
        let path = |name: &PathName| match name {
            PathName::CacheControl => ProbingPath::CacheControl,
            PathName::ReadsAlone => ProbingPath::ReadsAlone,
        };
        DensitiesBench {
            surfaces: self.surfaces.clone(),
            seeds: self.seeds,
            minutes: self.minutes.clone(),
            paths: self.path.iter().map(path).collect(),
            policy: self.policy.clone(),
            impact_ppm: (self.impact_percent * 1e4) as u32,
            seek_noise_us: self.seek_noise_us,
            seconds: self.seconds,
        }
    }
}

fn table(figures: &[DensityFigures]) -> String {
    let mut text = format!(
        "{:<14} {:<13} {:>7} {:>7} {:>7} {:>7} {:>9} {:>6} {:<9} {:>9} {:>10} {:>6} {:>7} {:>9} {:>6}\n",
        "",
        "",
        "minutes",
        "s",
        "known",
        "true",
        "off us",
        "usable",
        "mode",
        "free MB/s",
        "whole MB/s",
        "share",
        "lost",
        "estimated",
        "budget"
    );
    for line in figures {
        let path = match line.path {
            ProbingPath::CacheControl => "cache control",
            ProbingPath::ReadsAlone => "reads alone",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<14} {path:<13} {:>7} {:>7.0} {:>6.1}% {:>6.1}% {:>9} {:>6} {:<9} {:>9.3} {:>10.3} {:>5.0}% {:>6.2}% {:>8.2}% {:>5.1}%",
            line.drive,
            line.minutes,
            line.drive_seconds,
            line.known_percent,
            line.true_percent,
            line.head_time_mean_us
                .map_or("-".to_owned(), |off| format!("{off:.0}")),
            if line.usable { "yes" } else { "no" },
            line.mode,
            line.free_mb_s,
            line.whole_mb_s,
            line.share_percent,
            line.foreground_loss_percent,
            line.estimated_percent,
            line.budget_percent
        );
        if let Some(doubt) = &line.doubt {
            let _ = writeln!(text, "    {doubt}");
        }
    }
    text
}
