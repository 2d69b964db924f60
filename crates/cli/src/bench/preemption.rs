//! `headtime bench preemption`: urgent small reads beside a greedy reader, with and without preemption.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use lab::bench::preemption::{PreemptionBench, PreemptionFigures, PreemptionScene};

use crate::output::{Exit, json, print};

/// How to call it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The emulated drives: names from `headtime drives`
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "modern-20tb"
    )]
    drive: Vec<String>,
    /// How many times as slow as the drive everything is. The kernel's own times are not stretched
    #[arg(long, value_name = "S,...", value_delimiter = ',', default_value = "1", value_parser = scale)]
    time_scale: Vec<f64>,
    /// Our policy
    #[arg(long, default_value = "sptf")]
    policy: String,
    /// What is believed of the drive instead of the truth: a file of `headtime profile`
    #[arg(long, value_name = "FILE")]
    belief: Option<PathBuf>,
    /// The standard deviation of a seek's duration, which nobody believes
    #[arg(long, value_name = "US", default_value_t = 0.0)]
    seek_noise_us: f64,
    /// The speed of the drive's bus, if not that of the system on which the drive was measured
    #[arg(long, value_name = "MB_S")]
    bus_mb_s: Option<f64>,
    /// Urgent reads of 4 KiB a second, at a constant rate
    #[arg(long, value_name = "HZ", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rate: u32,
    /// Reads of 1 MiB that wait for an answer at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=128))]
    depth: u32,
    /// How long each turn is, in seconds of the drive's time
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// A line of `[drive.preemption]` for the turn with it; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    preemption: Vec<String>,
    /// Without the kernel's schedulers: it then needs neither root nor loop devices
    #[arg(long)]
    only_ours: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench preemption
  headtime bench preemption --drive modern-20tb,quantum-atlas-10k --time-scale 1,4 --seconds 120
  headtime bench preemption --only-ours --preemption 'chunk = \"64 KiB\"'

It needs root: FUSE, loop devices and their schedulers. 10 turns for each drive and time scale. Images are
sparse, in /dev/shm if there is one. fio holds its next urgent read back while one is under way for
longer than the time between two: of such a contestant fewer reads are counted than were due.";

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
pub fn run(arguments: &Arguments) -> Result<(), Exit> {
    let report = arguments.settings().run()?;
    print(&match arguments.json {
        true => json(&report)?,
        false => report.iter().map(table).collect::<Vec<_>>().join("\n"),
    })
}

impl Arguments {
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
