//! `headtime bench simulate`: the speed and the memory of the simulator.

use std::fmt::Write as _;

use clap::Args;
use lab::bench::simulate::{SimulationBench, SimulationSpeed};

use crate::output::{Exit, grouped, json, print};

/// The arguments of `headtime bench simulate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SimulateBenchArgs {
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
    /// Requests in each round
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    requests: u64,
    /// Add a run of ten million requests, for its peak memory
    #[arg(long)]
    long: bool,
    /// Add an hour of OLTP on an Atlas 10K with a scan in free blocks
    #[arg(long)]
    free_blocks: bool,
}

/// Runs the command.
///
/// # Errors
/// If the output cannot be written.
pub fn run(arguments: &SimulateBenchArgs) -> Result<(), Exit> {
    let measured = arguments.settings().run()?;
    print(&match arguments.json {
        true => json(&measured)?,
        false => table(&measured),
    })
}

impl SimulateBenchArgs {
    fn settings(&self) -> SimulationBench {
        SimulationBench {
            requests: self.requests,
            long: self.long,
            free_blocks: self.free_blocks,
        }
    }
}

fn table(measured: &[SimulationSpeed]) -> String {
    let mut text = format!(
        "{:<28} {:>22} {:>13}\n",
        "case", "requests / CPU second", "peak RSS"
    );
    for line in measured {
        let rate = grouped(line.requests_per_cpu_second);
        let peak = line
            .peak_rss_mb
            .map_or_else(|| "unknown".to_owned(), |mb| format!("{mb:.1} MB"));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:<28} {rate:>22} {peak:>13}", line.case);
    }
    text
}

const EXAMPLES: &str = "Examples:
  headtime bench simulate
  headtime bench simulate --free-blocks
  headtime bench simulate --requests 100000 --json";
