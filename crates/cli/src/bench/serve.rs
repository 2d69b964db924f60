//! `headtime bench serve`: the overhead of the service, compared with nbdkit and
//! qemu-storage-daemon.

use std::fmt::Write as _;

use clap::Args;
use document::quantity::Unit;
use lab::bench::serve::{ServeBench, ServeReport};

use crate::output::{Exit, json, print};
use crate::settings::units::whole_in;

/// The arguments of `headtime bench serve`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ServeBenchArgs {
    /// Turns of each server
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Length of each turn, in seconds
    #[arg(long, value_name = "S", default_value_t = 4, value_parser = whole_in::<u32>(Unit::Seconds, 1..=3600))]
    seconds: u32,
    /// Outstanding requests
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1024))]
    depth: u32,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench serve
  headtime bench serve --depth 1 --rounds 9 --json

Quote the ratios, and compare the rounds: other load on the machine disturbs the figures. Client and
server have separate cores if there are two.";

/// Runs the command.
///
/// # Errors
/// If a program is missing or does not run, or the output cannot be written.
pub fn run(arguments: &ServeBenchArgs) -> Result<(), Exit> {
    let report = arguments.settings().run()?;
    print(&match arguments.json {
        true => json(&report)?,
        false => table(&report),
    })
}

impl ServeBenchArgs {
    fn settings(&self) -> ServeBench {
        ServeBench {
            rounds: self.rounds,
            seconds: self.seconds,
            depth: self.depth,
        }
    }
}

fn table(report: &ServeReport) -> String {
    let mut text = format!(
        "random reads of 4 KiB at depth {}; medians of {} rounds\n\n{:<10} {:>9} {:>9} {:>16}\n",
        report.depth,
        report
            .measured
            .first()
            .map_or(0, |first| first.rounds.len()),
        "server",
        "IOPS",
        "p99 us",
        "CPU us / request"
    );
    for line in &report.measured {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<10} {:>9.0} {:>9.0} {:>16.2}",
            line.server, line.iops, line.p99_us, line.cpu_us
        );
    }
    text += "\nours / theirs (goals: IOPS 1 or more, p99 1 or less, CPU less than 1)\n";
    for ratio in &report.ratios {
        let _ = writeln!(
            text,
            "{:<10} {:>9.2} {:>9.2} {:>16.2}",
            ratio.beside, ratio.iops, ratio.p99, ratio.cpu
        );
    }
    text
}
