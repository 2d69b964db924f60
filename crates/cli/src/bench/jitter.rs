//! `headtime bench jitter`: the delays that this machine adds on the way to an emulated drive.

use std::fmt::Write as _;

use clap::Args;
use lab::bench::adopt::Via;
use lab::bench::jitter::{DelayQuantile, JitterBench, JitterFigures};

use super::adopt::ViaWord;
use crate::output::{Exit, json, print};

/// The arguments of `headtime bench jitter`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct JitterBenchArgs {
    /// The emulated drive: a name from `headtime drives`, or a profile file
    #[arg(long, value_name = "NAME|FILE", default_value = "quantum-atlas-10k")]
    drive: String,
    /// The path to the drive. Repeat it for both [default: both]
    #[arg(long, value_enum)]
    via: Vec<ViaWord>,
    /// Reads from the drive's buffer, and as many from the medium
    #[arg(long, value_name = "N", default_value_t = 4000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    reads: u32,
    /// Let the CPUs sleep while a read is on its way. Without it they are kept awake, as `headtime adopt` does
    #[arg(long)]
    cpus_sleep: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench jitter --via nbd
  chrt -r 50 headtime bench jitter --json

again: a read of a block in the drive's buffer, beyond the drive's own time: both ways.
outcomes: the end of a read from the medium, beyond the least: the way back.
fuse-loop needs root for FUSE and the loop device, and CPUs are kept awake for root alone. Drives run at time scale 1.";

/// Runs the command.
///
/// # Errors
/// If a program is missing or does not run, a read fails, or the output cannot be written.
pub fn run(arguments: &JitterBenchArgs) -> Result<(), Exit> {
    let bench = JitterBench {
        drive: arguments.drive.clone(),
        vias: match arguments.via.is_empty() {
            true => vec![Via::Nbd, Via::FuseLoop],
            false => arguments.via.iter().map(|word| word.via()).collect(),
        },
        reads: arguments.reads,
        cpus_sleep: arguments.cpus_sleep,
    };
    let figures = bench.run()?;
    print(&match arguments.json {
        true => json(&figures)?,
        false => table(&figures),
    })
}

fn table(figures: &[JitterFigures]) -> String {
    let mut text = String::new();
    for path in figures {
        let _ = writeln!(
            text,
            "{} over {}, delays in us, CPUs {}",
            path.drive,
            path.via.name(),
            match path.cpus_awake {
                true => "kept awake",
                false => "may sleep",
            }
        );
        let mut row = |name: &str, of: fn(&DelayQuantile) -> String| {
            let _ = write!(text, "{name:<10}");
            path.again_us.iter().for_each(|quantile| {
                let _ = write!(text, " {:>7}", of(quantile));
            });
            text.push('\n');
        };
        row("percent", |quantile| format!("{}", quantile.percent));
        row("again", |quantile| format!("{:.1}", quantile.us));
        let _ = write!(text, "{:<10}", "outcomes");
        for quantile in &path.outcomes_us {
            let _ = write!(text, " {:>7.1}", quantile.us);
        }
        text.push('\n');
    }
    text
}
