//! `headtime bench peers`: our replays of traces beside libCacheSim's.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use lab::bench::peers::{PeersBench, PeersReport};

use crate::bar::Bar;
use crate::output::{Exit, grouped, json, print};
use crate::settings::units::part;

/// The arguments of `headtime bench peers`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PeersBenchArgs {
    /// A Python interpreter with the package libcachesim
    #[arg(long, value_name = "PYTHON", default_value = "python3")]
    libcachesim: PathBuf,
    /// A trace of block requests beside the Zipf law; repeat it
    #[arg(long, value_name = "FILE")]
    trace: Vec<PathBuf>,
    /// The policies [default: all that both have]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    replacement: Vec<String>,
    /// Demands of the Zipf law
    #[arg(long, value_name = "N", default_value_t = 4_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    demands: u64,
    /// Blocks of the Zipf law
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(10..=1_000_000_000))]
    blocks: u64,
    /// Demands for the miss-ratio curve of lru; 0: no curve
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    curve_demands: u64,
    /// The share of the blocks for the sampled curve
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, value_parser = part)]
    sample: f64,
    /// Runs of each program, in turns
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  python3 -m venv peers && peers/bin/pip install libcachesim
  headtime bench peers --libcachesim peers/bin/python
  headtime bench peers --libcachesim peers/bin/python --trace web.csv --replacement lru,sieve --json

Both programs replay the same demands for blocks of 4 KiB, each block with the same size, in caches of
a tenth and a hundredth of the trace's blocks. A rate is demands per second of CPU time, from the
opening of the trace to its end. libCacheSim has a hash table for twice the cache's blocks, or the one
it has by default. Each ratio is the median of the ratios of the pairs.

In lirs the programs differ. libCacheSim bounds the whole stack at twice the cache, and demotes a low
block when a hit finds its block in the queue only; lirs bounds the remembered blocks alone.";

/// Runs the command.
///
/// # Errors
/// If the interpreter lacks the package, a trace cannot be read, or the output cannot be written.
pub fn run(arguments: &PeersBenchArgs) -> Result<(), Exit> {
    let bar = Bar::new("{msg}: {percent} %, {eta} left {wide_bar}").ticking();
    let report = arguments.settings().run(&bar);
    bar.finish();
    let report = report?;
    print(&match arguments.json {
        true => json(&report)?,
        false => table(&report),
    })
}

impl PeersBenchArgs {
    fn settings(&self) -> PeersBench {
        PeersBench {
            python: self.libcachesim.clone(),
            traces: self.trace.clone(),
            policies: self.replacement.clone(),
            demands: self.demands,
            blocks: self.blocks,
            curve_demands: self.curve_demands,
            sample: self.sample,
            rounds: self.rounds,
        }
    }
}

fn table(report: &PeersReport) -> String {
    let width = report.runs.iter().map(|run| run.trace.len()).max();
    let width = width.unwrap_or_default();
    let mut text = format!(
        "{:width$} {:>11} {:>9} {:>9} {:18} {:>11} {:>11} {:>9} {:>9} {:>6} {:>9} {:>6}\n",
        report.peer,
        "demands",
        "blocks",
        "cache",
        "",
        "misses",
        "theirs",
        "million/s",
        "theirs",
        "ratio",
        "default",
        "ratio"
    );
    for run in &report.runs {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:width$} {:>11} {:>9} {:>9} {:18} {:>11} {:>11} {:>9.1} {:>9.1} {:>6.1} {:>9.1} {:>6.1}",
            run.trace,
            grouped(run.demands),
            grouped(run.blocks),
            grouped(run.capacity),
            run.policy,
            grouped(run.misses_ours),
            grouped(run.misses_theirs),
            run.ours_per_cpu_second / 1e6,
            run.theirs_per_cpu_second / 1e6,
            run.ratio,
            run.theirs_default_per_cpu_second / 1e6,
            run.ratio_default
        );
    }
    if let Some(curve) = &report.curve {
        let _ = writeln!(
            text,
            "\nCurve of lru over {} demands: {:.2} s of CPU time; a sample of {} takes {:.2} s, and errs by at most {:.4}.",
            grouped(curve.demands),
            curve.exact_cpu_s,
            curve.sample,
            curve.sampled_cpu_s,
            curve.largest_error
        );
    }
    text
}
