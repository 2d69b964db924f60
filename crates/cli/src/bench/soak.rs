//! `headtime bench soak`: memory and descriptors of a service under a mixed load.

use std::fmt::Write as _;

use clap::Args;
use document::quantity::Unit;
use lab::bench::soak::{GrowthFigures, SoakBench, SoakFigures};

use crate::bar::Bar;
use crate::output::{Exit, json, print};
use crate::settings::units::in_unit;

/// The arguments of `headtime bench soak`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SoakBenchArgs {
    /// The length of the load, in minutes
    #[arg(long, value_name = "N", default_value_t = 5.0, value_parser = in_unit(Unit::Minutes))]
    minutes: f64,
    /// The emulated drive: a name from `headtime drives`
    #[arg(long, value_name = "NAME", default_value = "dec-rz26")]
    drive: String,
    /// The slow-down of the emulation: 0.1 is ten times faster than the drive
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    time_scale: f64,
    /// The seed of the load
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench soak
  headtime bench soak --minutes 60 --json

The load: writes and reads that are verified, over connections that come and go; scans, one after
another; a monitor that asks for the status every second. The service has a write-back cache on an
emulated drive. The slope is that of the second half, in units an hour.";

/// Runs the command.
///
/// # Errors
/// If the service does not begin or does not answer, something was wrong, or the output cannot be written.
pub fn run(arguments: &SoakBenchArgs) -> Result<(), Exit> {
    let bench = SoakBench {
        seconds: (arguments.minutes * 60.0) as u64,
        drive: arguments.drive.clone(),
        time_scale: arguments.time_scale,
        seed: arguments.seed,
    };
    let bar = Bar::new("{msg:9} {bar:40} {percent:>3} %  {eta} left");
    let figures = bench.run(&bar);
    bar.finish();
    let figures = figures?;
    print(&match arguments.json {
        true => json(&[&figures])?,
        false => table(&figures),
    })?;
    match figures.wrong_bytes + figures.failed_reads {
        0 => Ok(()),
        _ => Err(Exit::failed(
            "the load read something wrong, or could not read",
        )),
    }
}

fn table(figures: &SoakFigures) -> String {
    let mut text = format!(
        "{} s: {} requests over {} connections, {} scans; {} wrong bytes, {} failed reads\n\
         {:<14} {:>10} {:>10} {:>10} {:>12}\n",
        figures.seconds,
        figures.requests,
        figures.connections,
        figures.scans,
        figures.wrong_bytes,
        figures.failed_reads,
        "",
        "first",
        "mean",
        "most",
        "an hour more"
    );
    let mut row = |name: &str, growth: &GrowthFigures| {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{name:<14} {:>10.0} {:>10.1} {:>10.0} {:>+12.2}",
            growth.first, growth.mean, growth.most, growth.per_hour
        );
    };
    row("memory, KiB", &figures.memory_kib);
    row("descriptors", &figures.descriptors);
    row("threads", &figures.threads);
    text
}
