//! `headtime bench priorities`: the p99 of a reader beside programs that give way by I/O priority.

use std::fmt::Write as _;

use clap::Args;
use document::quantity::Unit;
use lab::bench::LEAST;
use lab::bench::priorities::{ARMS, PrioritiesBench, PrioritiesReport};

use super::observed;
use crate::output::{Exit, json, print};
use crate::settings::units::{in_unit, whole_in};

/// The arguments of `headtime bench priorities`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PrioritiesBenchArgs {
    /// The emulated drive: a name from `headtime drives`
    #[arg(long, value_name = "NAME", default_value = "quantum-atlas-10k")]
    drive: String,
    /// Our policy
    #[arg(long, default_value = "sptf-sw60")]
    policy: String,
    /// Slow-down of the emulated drive: 4 is four times slower than real time. The kernel's own
    /// times are not scaled
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    time_scale: f64,
    /// Bandwidth of the drive's bus. The default carries what the medium reads
    #[arg(long, value_name = "MB_S", default_value_t = 80.0, value_parser = in_unit(Unit::MegabytesPerSecond))]
    bus_mb_s: f64,
    /// Outstanding requests of the reader
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=128))]
    depth: u32,
    /// Time that the reader thinks before each request
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = whole_in::<u32>(Unit::Milliseconds, 0..=10_000))]
    think_ms: u32,
    /// Length of each turn, in seconds
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = whole_in::<u32>(Unit::Seconds, 1..=60))]
    seconds: u32,
    /// Turns of each arm and program
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// The arms
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_values = ARMS)]
    arm: Vec<String>,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench priorities
  headtime bench priorities --think-ms 20 --rounds 3 --json

The programs: btrfs scrub, ionice -c3 tar, ionice -c2 -n7 rsync. Needs root for FUSE, loop devices,
mounts and the tracepoint, 10 GB in the folder of temporary files, and btrfs-progs, rsync and fio.
A round takes 20 turns.";

/// Runs the command.
///
/// # Errors
/// If a program is missing or does not run, or the output cannot be written.
pub fn run(arguments: &PrioritiesBenchArgs) -> Result<(), Exit> {
    let report = observed("bench priorities", |bar| arguments.settings().run(bar))?;
    print(&match arguments.json {
        true => json(&report)?,
        false => table(&report),
    })
}

impl PrioritiesBenchArgs {
    fn settings(&self) -> PrioritiesBench {
        PrioritiesBench {
            drive: self.drive.clone(),
            policy: self.policy.clone(),
            time_scale: self.time_scale,
            bus_mb_s: self.bus_mb_s,
            depth: self.depth,
            think_ms: self.think_ms,
            seconds: self.seconds,
            rounds: self.rounds,
            arms: self.arm.clone(),
        }
    }
}

fn table(report: &PrioritiesReport) -> String {
    let mut text = format!(
        "{}, time scale {}; a reader of 4 KiB at depth {}, thinking {} ms\n\n",
        report.drive, report.time_scale, report.depth, report.think_ms
    );
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{:<14} {:<22} {:>9} {:>9} {:>6} {:>9} {:>9} {:>13}",
        "", "beside", "alone p99", "p99 ms", "ratio", "IOPS", "IOPS", "program MB/s"
    );
    for line in &report.measured {
        let _ = writeln!(
            text,
            "{:<14} {:<22} {:>9.1} {:>9.1} {:>6.2} {:>9.1} {:>9.1} {:>13.2}",
            line.arm,
            line.program,
            line.alone_p99_ms,
            line.beside_p99_ms,
            line.p99_ratio,
            line.alone_iops,
            line.beside_iops,
            line.program_mb_s
        );
    }
    let _ = writeln!(
        text,
        "\nThe kernel's schedulers have {LEAST} requests at the device. The goal of ours is a ratio of 1.1."
    );
    text
}
