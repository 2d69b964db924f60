//! `headtime profile`: a drive's profile from block numbers and completion times alone.

mod budget;
mod progress;
mod text;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use block::Duration;
use clap::Args;
use drive::catalog;
use lab::profiling::behind::{self, BehindPlan};
use lab::profiling::found::{self, FoundDrive};
use lab::profiling::rehearsal::{self, RehearsalNoise};
use lab::profiling::{check, device, report};
use lab::{named, text_file};
use profiler::Findings;

use crate::output::{Exit, NewFile, print, write_file};

use progress::ProfileBar;

/// How to call it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
pub struct Arguments {
    /// A drive that is simulated: a name from `headtime drives`, a profile file, or all; may be
    /// repeated
    #[arg(
        long,
        value_name = "NAME|FILE|all",
        required_unless_present = "device",
        conflicts_with = "device"
    )]
    drive: Vec<String>,
    /// A drive that is there: its device, or a file on it; it is only read
    #[arg(long, value_name = "PATH")]
    device: Option<PathBuf>,
    /// At most so much of the drive's time, such as 90s, 10m or 3h
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = budget::parse)]
    budget: Duration,
    /// Write the profile, when it is whole
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Go on from the tracks that are in this file, and keep in it what is known of them; it is made
    /// if it is not there
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Find the tracks of a simulated drive while it serves this load: a built-in name, or a TOML file
    #[arg(
        long,
        value_name = "NAME|FILE",
        conflicts_with_all = ["device", "check", "svg_dir"]
    )]
    behind: Option<String>,
    /// The share of the time that probes may take between the load's requests, besides the time in
    /// which there are none
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 0.0,
        requires = "behind"
    )]
    behind_percent: f64,
    /// Compare what was found with what is true of a simulated drive
    #[arg(long, conflicts_with = "device")]
    check: bool,
    /// Allow that everything on the device is destroyed: its path again
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
        conflicts_with = "device"
    )]
    seek_noise_us: f64,
    /// Standard deviation of a simulated command's overhead
    #[arg(
        long,
        value_name = "US",
        default_value_t = 20.0,
        conflicts_with = "device"
    )]
    electronics_noise_us: f64,
    /// What decides when what happens by chance
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "device")]
    seed: u64,
    /// Draw what was found into this folder: the arm, the zones, the tracks, the chunk sizes
    #[arg(long, value_name = "FOLDER")]
    svg_dir: Option<PathBuf>,
    /// Print the figures as JSON, one line for each drive
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  headtime profile --drive quantum-atlas-10k --check
      what is found of a simulated drive, and what is true
  headtime profile --drive all --check --json
      a line of figures for each drive
  headtime profile --device /dev/sdb --budget 10m -o sdb.toml
      a real drive, which is only read; then: headtime simulate --drive sdb.toml ...
  headtime profile --drive modern-20tb --budget 1h --resume 20tb.json -o 20tb.toml
      goes on each time from the tracks that it knows
  headtime profile --drive seagate-cheetah-18lp --behind oltp --budget 10m --resume 18lp.json
      finds the tracks while requests are served, and says what that costs them

--check asks for blocks of the whole drive, of drives above 100 GB for blocks whose tracks are
known. Angles are compared up to one constant for the drive. zones_exact and tracks_exact are
shares, 0 to 1; confidence is that of the least certain part; null is what cannot be said.";

/// Runs the command.
///
/// # Errors
/// If the input is wrong, the drive cannot be read, or a file cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Exit> {
    let noise = arguments.noise()?;
    let names = arguments.drives();
    if names.len() > 1 && (arguments.output.is_some() || arguments.resume.is_some()) {
        let problem = "-o and --resume: one file for several drives: expected one --drive";
        return Err(Exit::input(problem));
    }
    if let Some(load) = &arguments.behind {
        return arguments.run_behind(load, &names, noise);
    }
    let output = arguments.output.as_deref().map(begin).transpose()?;
    let resumed = arguments.resume.as_deref().map(resume).transpose()?;
    let resumed = resumed.unwrap_or_default();
    let budget = arguments.budget;
    let bar = ProfileBar::new(budget);
    let founds = match &arguments.device {
        Some(path) => {
            let may_write = arguments.allow_writes.as_deref();
            device::profile(path, may_write, budget, resumed, &bar).map(|found| vec![found])
        }
        None => rehearsal::profiles(&names, noise, budget, &resumed, &bar),
    };
    bar.finish();
    let founds = founds?;
    if let Some(path) = &arguments.resume {
        keep(path, &founds[0].findings)?;
    }
    if let Some(file) = output {
        founds[0].needs_spindle()?;
        file.write(&founds[0].text())?;
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
    Ok(())
}

impl Arguments {
    /// Profiles a drive behind a load.
    fn run_behind(&self, load: &str, names: &[String], noise: RehearsalNoise) -> Result<(), Exit> {
        let ([name], None) = (names, &self.output) else {
            let problem = "--behind: expected one --drive and no -o: a map alone is no profile";
            return Err(Exit::input(problem));
        };
        let plan = BehindPlan::new(load, self.behind_percent, self.budget)?;
        let resumed = self.resume.as_deref().map(resume).transpose()?;
        let truth = Arc::new(named::drive(name)?);
        let found = behind::profile(&truth, noise, &plan, &resumed.unwrap_or_default())?;
        if let Some(path) = &self.resume {
            keep(path, &found.findings)?;
        }
        match self.json {
            true => print(&json(&found.figures)?),
            false => print(&text::behind(&found.figures)),
        }
    }

    fn noise(&self) -> Result<RehearsalNoise, Exit> {
        let micros = |flag: &str, micros: f64| match (0.0..=MOST_NOISE_US).contains(&micros) {
            true => Ok(Duration::from_nanos((micros * 1e3).round() as u64)),
            false => Err(Exit::input(format!(
                "--{flag} {micros}: expected a number from 0 to {MOST_NOISE_US}"
            ))),
        };
        Ok(RehearsalNoise {
            seek: micros("seek-noise-us", self.seek_noise_us)?,
            electronics: micros("electronics-noise-us", self.electronics_noise_us)?,
            seed: self.seed,
        })
    }

    /// The simulated drives that are meant.
    fn drives(&self) -> Vec<String> {
        let all = || catalog::ALL.iter().map(|entry| entry.name.to_owned());
        match self.drive.iter().any(|name| name == "all") {
            true => all().collect(),
            false => self.drive.clone(),
        }
    }

    /// What is printed of a drive.
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

/// Begins the profile file in a folder that is there.
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

/// The largest noise, 10 ms: as long as the longest seeks of the drives of which we know.
const MOST_NOISE_US: f64 = 10_000.0;

/// The findings of a file that [`keep`] wrote; none if it is not there.
fn resume(path: &Path) -> Result<Findings, Exit> {
    if !path.exists() {
        // A name that cannot be written to is an error before hours are spent.
        drop(NewFile::begin(path)?);
        return Ok(Findings::default());
    }
    Ok(found::resumed(path, &text_file::read(path)?)?)
}

fn keep(path: &Path, findings: &Findings) -> Result<(), Exit> {
    NewFile::begin(path)?.write(&found::kept(findings)?)
}
