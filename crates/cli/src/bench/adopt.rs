//! `headtime bench adopt`: disks that nobody has described, end to end and in real time.

use clap::{Args, ValueEnum};
use document::quantity::Unit;
use lab::bench::adopt::{AdoptBench, AdoptBenchFigures, Via};

use crate::output::{Exit, json, print};
use crate::settings::units::{in_unit, whole_in};

/// The arguments of `headtime bench adopt`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct AdoptBenchArgs {
    /// An emulated drive: a name from `headtime drives`, or a profile file. Repeat it for several
    #[arg(long, value_name = "NAME|FILE", default_values_t = DRIVES.map(str::to_owned))]
    drive: Vec<String>,
    /// The path to the drive. Repeat it for both [default: both]
    #[arg(long, value_enum)]
    via: Vec<ViaWord>,
    /// Time of each adoption in minutes
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = in_unit(Unit::Minutes))]
    minutes: f64,
    /// Length of each load, alone and beside the scan, in seconds
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = whole_in::<u32>(Unit::Seconds, 1..=3600))]
    seconds: u32,
    /// Outstanding requests of the load
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=128))]
    depth: u32,
    /// Standard deviation of seek times
    #[arg(long, value_name = "US", default_value_t = 60.0, value_parser = in_unit(Unit::Microseconds))]
    seek_noise_us: f64,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// A path to a drive, on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ViaWord {
    /// Over NBD, on a unix socket
    Nbd,
    /// Over FUSE with a loop device, as root
    FuseLoop,
}

impl ViaWord {
    /// The path.
    pub(super) fn via(self) -> Via {
        match self {
            ViaWord::Nbd => Via::Nbd,
            ViaWord::FuseLoop => Via::FuseLoop,
        }
    }
}

/// The catalogued drives of issue 20: an old, a fast and a large one.
const DRIVES: [&str; 3] = ["quantum-atlas-10k", "seagate-cheetah-15k5", "modern-20tb"];

const EXAMPLES: &str = "Examples:
  headtime bench adopt
  headtime bench adopt --drive quantum-atlas-10k --via nbd --minutes 3 --seconds 20 --json

Each drive takes the time of the adoption and four loads on each path: 84 minutes in all by default.
fuse-loop needs root for FUSE and the loop device. Drives run at time scale 1.";

/// Runs the command.
///
/// # Errors
/// If a program is missing or does not run, or the output cannot be written.
pub fn run(arguments: &AdoptBenchArgs) -> Result<(), Exit> {
    let bench = arguments.settings()?;
    if !arguments.json {
        print(&format!(
            "{:<26} {:<10} {:>10} {:>10} {:>7} {:>7} {:>8}\n",
            "drive", "via", "free MB/s", "known", "share", "lost", "s"
        ))?;
    }
    let mut all = Vec::new();
    let ran = bench.run(|figures| {
        if !arguments.json {
            print(&line(figures))?;
        }
        all.push(figures.clone());
        Ok::<(), Exit>(())
    });
    if arguments.json {
        // An hour's figures are not lost if the next drive fails.
        print(&json(&all)?)?;
    }
    ran
}

impl AdoptBenchArgs {
    fn settings(&self) -> Result<AdoptBench, Exit> {
        if !(0.5..=10_080.0).contains(&self.minutes) {
            let minutes = self.minutes;
            return Err(Exit::input(format!(
                "--minutes {minutes}: expected 0.5 to 10080, a week"
            )));
        }
        if !(0.0..=10_000.0).contains(&self.seek_noise_us) {
            let noise = self.seek_noise_us;
            return Err(Exit::input(format!(
                "--seek-noise-us {noise}: expected 0 to 10000"
            )));
        }
        Ok(AdoptBench {
            drives: self.drive.clone(),
            vias: match self.via.is_empty() {
                true => vec![Via::Nbd, Via::FuseLoop],
                false => self.via.iter().map(|word| word.via()).collect(),
            },
            minutes: self.minutes,
            seconds: self.seconds,
            depth: self.depth,
            seek_noise_us: self.seek_noise_us,
        })
    }
}

fn line(figures: &AdoptBenchFigures) -> String {
    let mut line = format!(
        "{:<26} {:<10} {:>10.2} {:>10.2} {:>6.1}% {:>6.2}% {:>8.0}\n",
        figures.drive,
        figures.via.name(),
        figures.free_mb_s,
        figures.free_mb_s_known,
        figures.share_percent,
        figures.foreground_loss_percent,
        figures.seconds
    );
    if let Some(why) = &figures.reason {
        line += &format!("  not adopted: {why}\n");
    }
    line
}
