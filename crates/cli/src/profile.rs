//! `headtime profile`: finds a drive's profile from block numbers and completion times alone.

mod budget;
mod progress;
mod text;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use block::Duration;
use clap::Args;
use document::quantity::Unit;
use drive::HostJitter;
use drive::catalog;
use lab::adoption::device;
use lab::comparison::host_delays::HostDelays;
use lab::profiling::behind::{self, BehindPlan};
use lab::profiling::found::{self, FoundDrive};
use lab::profiling::rehearsal::{self, RehearsalNoise, RehearsalPath};
use lab::profiling::{check, report};
use lab::{named, text_file};
use profiler::{Findings, Offers};

use crate::interrupt::stop_flag;
use crate::output::{Exit, NewFile, print, write_file};
use crate::settings::units::in_unit;

use progress::ProfileBar;

pub use progress::known;

/// The arguments of `headtime profile`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
pub struct ProfileArgs {
    /// A simulated drive: a name from `headtime drives`, a profile file, or all. Repeat it for
    /// several
    #[arg(
        long,
        value_name = "NAME|FILE|all",
        required_unless_present = "device",
        conflicts_with = "device"
    )]
    drive: Vec<String>,
    /// A real drive: its device, or a file on it. Headtime only reads it. Look-ahead and write cache of a
    /// SCSI or SATA disk are off meanwhile, and as before at the end
    #[arg(long, value_name = "PATH")]
    device: Option<PathBuf>,
    /// Limit of the drive's time, such as 90s, 10m or 3h
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = budget::parse)]
    budget: Duration,
    /// Write the finished profile to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Continue from the tracks in this file, and store further findings in it. A missing file is
    /// created
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Profile a simulated drive while it serves this load: a built-in name, or a TOML file
    #[arg(
        long,
        value_name = "NAME|FILE",
        conflicts_with_all = ["device", "check", "svg_dir"]
    )]
    behind: Option<String>,
    /// Share of time for probes between the load's requests, in addition to idle time
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 0.0,
        requires = "behind",
        value_parser = in_unit(Unit::Percent)
    )]
    behind_percent: f64,
    /// Compare the findings with the truth of a simulated drive
    #[arg(long, conflicts_with = "device")]
    check: bool,
    /// Permit writes that destroy all data on the device: its path again
    #[arg(
        long,
        value_name = "PATH",
        requires = "device",
        conflicts_with = "drive"
    )]
    allow_writes: Option<PathBuf>,
    /// Standard deviation of a simulated seek's duration
    #[arg(
        long,
        value_name = "US",
        default_value_t = 60.0,
        conflicts_with = "device",
        value_parser = in_unit(Unit::Microseconds)
    )]
    seek_noise_us: f64,
    /// Standard deviation of a simulated command's overhead
    #[arg(
        long,
        value_name = "US",
        default_value_t = 20.0,
        conflicts_with = "device",
        value_parser = in_unit(Unit::Microseconds)
    )]
    electronics_noise_us: f64,
    /// Profile a simulated drive by reads alone, as behind NBD, a loop device or a USB bridge: without
    /// cache control, with its look-ahead on, and never written
    #[arg(long, conflicts_with = "device")]
    reads_only: bool,
    /// Mean delay that a simulated host adds to each command and to each outcome, exponentially
    /// distributed; one outcome in 200 is stalled by up to 4 ms besides
    #[arg(
        long,
        value_name = "US",
        default_value_t = 0.0,
        conflicts_with_all = ["device", "behind"],
        value_parser = in_unit(Unit::Microseconds)
    )]
    host_jitter_us: f64,
    /// The same; or delays as `headtime bench jitter` measured them: measured-nbd, measured-fuse-loop,
    /// measured-fuse-loop-busy
    #[arg(
        long,
        value_name = "US|PATH",
        value_parser = HostDelays::parse,
        conflicts_with_all = ["host_jitter_us", "device", "behind"]
    )]
    host_jitter: Option<HostDelays>,
    /// The seed of noise and other random events
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "device")]
    seed: u64,
    /// Draw the findings into this folder: arm, zones, tracks, chunk sizes
    #[arg(long, value_name = "FOLDER")]
    svg_dir: Option<PathBuf>,
    /// Print the figures as JSON, one line for each drive
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  headtime profile --drive quantum-atlas-10k --check
      compare the findings on a simulated drive with the truth
  headtime profile --drive all --check --json
      print one line of figures for each drive
  headtime profile --device /dev/sdb --budget 10m -o sdb.toml
      profile a real drive by reads only; then: headtime simulate --drive sdb.toml ...
  headtime profile --drive modern-20tb --budget 1h --resume 20tb.json -o 20tb.toml
      continue from the known tracks each time
  headtime profile --drive seagate-cheetah-18lp --behind oltp --behind-percent 10 --resume 18lp.json
      find the tracks while the drive serves requests, and measure the cost

A drive of two actuators is profiled as two drives, NAME-range-0 and NAME-range-1, each with the
whole budget; -o writes one profile of both. A device states its ranges to the kernel (sysfs) or in
its inquiry page B9h.

--check first compares predicted head times of random pairs of known blocks with those of the truth:
from the end of one block's sector to that of the other's. The other figures sample blocks of the
whole drive; above 100 GB, blocks whose tracks are known. Angles are compared up to one constant for
the drive. zones_exact and tracks_exact are shares, 0 to 1.
confidence is that of the least certain part. null means unknown.";

/// Runs the command.
///
/// # Errors
/// If the input is invalid, the drive cannot be read, or a file cannot be written.
pub fn run(arguments: &ProfileArgs) -> Result<(), Exit> {
    let noise = arguments.noise()?;
    let names = arguments.drives();
    if names.len() > 1 && (arguments.output.is_some() || arguments.resume.is_some()) {
        let problem = "-o and --resume: one file for several drives: expected one --drive";
        return Err(Exit::input(problem));
    }
    arguments.check_ranges(&names)?;
    if let Some(load) = &arguments.behind {
        return arguments.run_behind(load, &names, noise);
    }
    let output = arguments.output.as_deref().map(begin).transpose()?;
    let resumed = arguments.resume.as_deref().map(resume).transpose()?;
    let budget = arguments.budget;
    let stop = match &arguments.device {
        Some(_) => Some(stop_flag()?),
        None => None,
    };
    let bar = ProfileBar::new(budget, stop);
    let founds = match &arguments.device {
        Some(path) => {
            let may_write = arguments.allow_writes.as_deref();
            device::profile(path, may_write, budget, resumed, &bar)
        }
        None => {
            let resumed = resumed.unwrap_or_default();
            rehearsal::profiles(&names, noise, arguments.path()?, budget, &resumed, &bar)
        }
    };
    bar.finish();
    let founds = founds?;
    if let Some(path) = &arguments.resume {
        keep(path, &founds[0].findings)?;
    }
    for found in &founds {
        if let Some(folder) = &arguments.svg_dir {
            let folder = match founds.len() {
                1 => folder.clone(),
                _ => folder.join(&found.name),
            };
            for (name, drawing) in report::drawings(found)? {
                write_file(&folder.join(name), &drawing)?;
            }
        }
        print(&arguments.said(found)?)?;
    }
    // The report comes first: it says what was found, also of a drive that stays unknown.
    if let Some(file) = output {
        file.write(&found::file_text(&founds)?)?;
    } else if arguments.device.is_some() {
        founds.iter().try_for_each(FoundDrive::needs_belief)?;
    } else if arguments.resume.is_none() {
        let mut empty = founds.iter().filter(|found| found.findings.clock.is_none());
        empty.try_for_each(FoundDrive::needs_belief)?;
    }
    Ok(())
}

impl ProfileArgs {
    /// Checks that one file of findings is enough for a simulated drive.
    fn check_ranges(&self, names: &[String]) -> Result<(), Exit> {
        let one_file = [
            ("--resume", self.resume.is_some()),
            ("--behind", self.behind.is_some()),
        ];
        let Some((flag, _)) = one_file.into_iter().find(|(_, is_given)| *is_given) else {
            return Ok(());
        };
        for name in names {
            if named::drive(name)?.actuators > 1 {
                return Err(Exit::input(format!(
                    "{flag} on {name}: its two actuators are profiled as two drives: expected a \
                     drive of one, or --check"
                )));
            }
        }
        Ok(())
    }

    /// Profiles a drive behind a load.
    fn run_behind(&self, load: &str, names: &[String], noise: RehearsalNoise) -> Result<(), Exit> {
        let [name] = names else {
            return Err(Exit::input("--behind: expected one --drive"));
        };
        let output = self.output.as_deref().map(begin).transpose()?;
        let plan = BehindPlan::new(load, self.behind_percent, self.budget)?;
        let resumed = self.resume.as_deref().map(resume).transpose()?;
        let truth = Arc::new(named::drive(name)?);
        let (offers, resumed) = (self.path()?.offers, resumed.unwrap_or_default());
        let behind = behind::profile(&truth, noise, offers, &plan, &resumed)?;
        if let Some(path) = &self.resume {
            keep(path, &behind.found.findings)?;
        }
        match self.json {
            true => print(&json(&behind.figures)?)?,
            false => print(&text::behind(&behind.figures))?,
        }
        if let Some(file) = output {
            behind.found.needs_belief()?;
            file.write(&behind.found.text())?;
        }
        Ok(())
    }

    fn noise(&self) -> Result<RehearsalNoise, Exit> {
        Ok(RehearsalNoise {
            seek: micros("seek-noise-us", self.seek_noise_us)?,
            electronics: micros("electronics-noise-us", self.electronics_noise_us)?,
            seed: self.seed,
        })
    }

    /// How a simulated drive is reached.
    fn path(&self) -> Result<RehearsalPath, Exit> {
        let mean = micros("host-jitter-us", self.host_jitter_us)?;
        Ok(RehearsalPath {
            offers: match self.reads_only {
                true => Offers::Nothing,
                false => Offers::CacheControl,
            },
            jitter: match self.host_jitter {
                Some(delays) => delays
                    .jitter()
                    .map_err(|why| Exit::input(format!("--host-jitter {why}")))?,
                None => HostJitter::exponential(mean),
            },
        })
    }

    /// The selected simulated drives.
    fn drives(&self) -> Vec<String> {
        let all = || catalog::ALL.iter().map(|entry| entry.name.to_owned());
        match self.drive.iter().any(|name| name == "all") {
            true => all().collect(),
            false => self.drive.clone(),
        }
    }

    /// The output for a drive.
    fn said(&self, found: &FoundDrive) -> Result<String, Exit> {
        let checked = match (&found.truth, self.check) {
            (Some(truth), true) => Some(check::check(found, truth)?),
            _ => None,
        };
        match (checked, self.json) {
            (Some(checked), true) => json(&checked),
            (None, true) => json(&report::figures(found)?),
            (Some(checked), false) => Ok(text::report(found)? + &text::checked(&checked, found)),
            (None, false) => text::report(found),
        }
    }
}

fn json(figures: &impl serde::Serialize) -> Result<String, Exit> {
    let line = serde_json::to_string(figures).map_err(Exit::failed)?;
    Ok(line + "\n")
}

/// Opens the profile file in an existing folder.
fn begin(path: &Path) -> Result<NewFile, Exit> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    match folder {
        Some(folder) if !folder.is_dir() => Err(Exit::input(format!(
            "-o {}: no folder {}: expected one that is there",
            path.display(),
            folder.display()
        ))),
        _ => NewFile::begin(path),
    }
}

/// The microseconds of an option.
fn micros(flag: &str, micros: f64) -> Result<Duration, Exit> {
    match (0.0..=MOST_NOISE_US).contains(&micros) {
        true => Ok(Duration::from_nanos((micros * 1e3).round() as u64)),
        false => Err(Exit::input(format!(
            "--{flag} {micros}: expected a number from 0 to {MOST_NOISE_US}"
        ))),
    }
}

/// Limit of the noise, 10 ms: the longest seeks of known drives.
const MOST_NOISE_US: f64 = 10_000.0;

/// Reads the findings of a file from [`keep`]; empty findings if it does not exist.
fn resume(path: &Path) -> Result<Findings, Exit> {
    if !path.exists() {
        // A name that cannot be written to is an error before the measurement.
        drop(NewFile::begin(path)?);
        return Ok(Findings::default());
    }
    Ok(found::resumed(path, &text_file::read(path)?)?)
}

fn keep(path: &Path, findings: &Findings) -> Result<(), Exit> {
    NewFile::begin(path)?.write(&found::kept(findings)?)
}
