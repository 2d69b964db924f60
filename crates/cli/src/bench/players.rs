//! `headtime bench players`: streams beside a greedy reader on a live service.

use clap::Args;
use document::quantity::Unit;
use lab::bench::players::{PlayersBench, PlayersTurn};

use crate::output::{Exit, json, print};
use crate::settings::units::whole_in;

/// The arguments of `headtime bench players`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PlayersBenchArgs {
    /// The emulated drive: a name from `headtime drives`
    #[arg(long, value_name = "NAME", default_value = "modern-20tb")]
    drive: String,
    /// Slow-down of the emulated drive: 4 is four times slower than real time. The kernel's own
    /// times are not scaled
    #[arg(long, value_name = "S", default_value_t = 4.0)]
    time_scale: f64,
    /// Number of streams of 1 MB/s
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=16))]
    streams: u32,
    /// Memory of each stream, in KiB
    #[arg(long, value_name = "KIB", default_value_t = 1064, value_parser = whole_in::<u64>(Unit::Kibibytes, 1..=1 << 20))]
    memory_kb: u64,
    /// The policy of our service
    #[arg(long, default_value = "c-look")]
    policy: String,
    /// Length of each turn, in seconds of the drive's time
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = whole_in::<u32>(Unit::Seconds, 1..=90))]
    seconds: u32,
    /// Skip the kernel's schedulers
    #[arg(long)]
    only_ours: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  headtime bench players
  headtime bench players --time-scale 2 --seconds 10 --only-ours

Needs root for FUSE, loop devices, their schedulers, and mounts. Runs 7 turns. The image is sparse,
in /dev/shm if there is one.";

/// Runs the command.
///
/// # Errors
/// If a program is missing or does not run, or the output cannot be written.
pub fn run(arguments: &PlayersBenchArgs) -> Result<(), Exit> {
    let report = arguments.settings().run()?;
    print(&match arguments.json {
        true => json(&report)?,
        false => table(arguments, &report),
    })
}

impl PlayersBenchArgs {
    fn settings(&self) -> PlayersBench {
        PlayersBench {
            drive: self.drive.clone(),
            time_scale: self.time_scale,
            streams: self.streams,
            memory_kb: self.memory_kb,
            policy: self.policy.clone(),
            seconds: self.seconds,
            only_ours: self.only_ours,
        }
    }
}

fn table(arguments: &PlayersBenchArgs, turns: &[PlayersTurn]) -> String {
    let mut text = format!(
        "{}, time scale {}, in-firmware; {} players of 1 MB/s beside a greedy reader, {} s each\n\
         times are the drive's; stalls are this machine's own, in its own time\n\n",
        arguments.drive, arguments.time_scale, arguments.streams, arguments.seconds
    );
    text += &format!(
        "{:<38} {:>6} {:>6} {:>8} {:>11} {:>11} {:>11} {:>7} {:>11}\n",
        "",
        "reads",
        "> 8 ms",
        "p99 ms",
        "longest ms",
        "left MB/s",
        "begun late",
        "stalls",
        "longest ms"
    );
    for turn in turns {
        text += &format!(
            "{:<38} {:>6} {:>6} {:>8.1} {:>11.1} {:>11.2} {:>11} {:>7} {:>11.1}\n",
            turn.name,
            turn.reads,
            turn.late,
            turn.p99_ms,
            turn.longest_ms,
            turn.background_mb_s,
            turn.begun_late,
            turn.stalls,
            turn.longest_stall_ms,
        );
    }
    text
}
