//! `headtime bench preemption`: urgent small reads beside a greedy reader, with and without preemption.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use document::quantity::Unit;
use lab::bench::preemption::{PreemptionBench, PreemptionFigures, PreemptionScene};

use crate::output::{Exit, json, print};
use crate::settings::units::{in_unit, whole_in};

/// The arguments of `headtime bench preemption`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PreemptionBenchArgs {
    /// The emulated drives, separated by commas: names from `headtime drives`
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "modern-20tb"
    )]
    drive: Vec<String>,
    /// Slow-downs of the emulated drive, separated by commas: 4 is four times slower than real
    /// time. The kernel's own times are not scaled
    #[arg(long, value_name = "S,...", value_delimiter = ',', default_value = "1", value_parser = scale)]
    time_scale: Vec<f64>,
    /// Our policy
    #[arg(long, default_value = "sptf")]
    policy: String,
    /// Use this profile as the scheduler's belief instead of the truth: a file from `headtime
    /// profile`
    #[arg(long, value_name = "FILE")]
    belief: Option<PathBuf>,
    /// Standard deviation of seek times, which the belief does not contain
    #[arg(long, value_name = "US", default_value_t = 0.0, value_parser = in_unit(Unit::Microseconds))]
    seek_noise_us: f64,
    /// Bandwidth of the drive's bus. Default: that of the system on which the drive was measured
    #[arg(long, value_name = "MB_S", value_parser = in_unit(Unit::MegabytesPerSecond))]
    bus_mb_s: Option<f64>,
    /// Urgent reads of 4 KiB per second, at a constant rate
    #[arg(long, value_name = "HZ", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rate: u32,
    /// Outstanding reads of 1 MiB
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=128))]
    depth: u32,
    /// Length of each turn, in seconds of the drive's time
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = whole_in::<u32>(Unit::Seconds, 1..=86_400))]
    seconds: u32,
    /// A line of `[drive.preemption]` for the turn with preemption. Repeat it for several lines
    #[arg(long, value_name = "KEY=VALUE")]
    preemption: Vec<String>,
    /// Skip the kernel's schedulers. Root and loop devices are then not needed
    #[arg(long)]
    only_ours: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench preemption
  headtime bench preemption --drive modern-20tb,quantum-atlas-10k --time-scale 1,4 --seconds 120
  headtime bench preemption --only-ours --preemption 'chunk = \"64 KiB\"'

Needs root for FUSE, loop devices, and their schedulers. Runs 10 turns for each drive and time
scale. Images are sparse, in /dev/shm if there is one. fio delays an urgent read until the previous
one has ended. A slow contestant therefore serves fewer reads than were due.";

fn scale(text: &str) -> Result<f64, String> {
    let scale: f64 = text.parse().map_err(|error| format!("{error}"))?;
    match scale {
        0.001..=1000.0 => Ok(scale),
        _ => Err("expected 0.001 to 1000".to_owned()),
    }
}

/// Runs the command.
///
/// # Errors
/// If a program is missing or does not run, or the output cannot be written.
pub fn run(arguments: &PreemptionBenchArgs) -> Result<(), Exit> {
    let report = arguments.settings().run()?;
    print(&match arguments.json {
        true => json(&report)?,
        false => report.iter().map(table).collect::<Vec<_>>().join("\n"),
    })
}

impl PreemptionBenchArgs {
    fn settings(&self) -> PreemptionBench {
        PreemptionBench {
            drive: self.drive.clone(),
            time_scale: self.time_scale.clone(),
            policy: self.policy.clone(),
            belief: self.belief.clone(),
            seek_noise_us: self.seek_noise_us,
            bus_mb_s: self.bus_mb_s,
            rate: self.rate,
            depth: self.depth,
            seconds: self.seconds,
            preemption: self.preemption.clone(),
            only_ours: self.only_ours,
        }
    }
}

fn table(scene: &PreemptionScene) -> String {
    let mut text = format!(
        "{}, time scale {}, {}; urgent 4 KiB reads at {} Hz beside {} of 1 MiB, {} s each\n\n",
        scene.drive, scene.time_scale, scene.mode, scene.rate, scene.depth, scene.seconds
    );
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{:<48} {:>8} {:>7} {:>8} {:>8} {:>8} {:>9}  urgent reads, due",
        "", "mean ms", "p50", "p99", "p99.9", "max", "bulk MB/s"
    );
    for PreemptionFigures { name, turn } in &scene.measured {
        let _ = writeln!(
            text,
            "{name:<48} {:>8.1} {:>7.1} {:>8.1} {:>8.1} {:>8.1} {:>9.1}  {}, {}",
            turn.mean_ms,
            turn.p50_ms,
            turn.p99_ms,
            turn.p999_ms,
            turn.max_ms,
            turn.bulk_mb_per_s,
            turn.requests,
            turn.due
        );
    }
    text
}
