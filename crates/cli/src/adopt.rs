//! `headtime adopt`: learns a disk that nobody has described. It only reads.

mod state;
mod text;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use block::{Duration, Instant};
use clap::Args;
use document::quantity::Unit;
use indicatif::{ProgressBar, ProgressStyle};
use lab::adoption::settings_file::beside;
use lab::adoption::{Adoption, AdoptionObserver, OpenPath};
use profiler::{DriveIdentity, Findings};

use crate::bar::ProgressLines;
use crate::interrupt::stop_flag;
use crate::output::{Exit, NewFile, json, print, remark};
use crate::profile::known;
use crate::settings::units::within;
use crate::verbosity::bar_target;

use state::SavedTracks;

/// The arguments of `headtime adopt`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
pub struct AdoptArgs {
    /// The disk: a block device, a file on it, or the URI of an NBD export. Headtime only reads it
    #[arg(value_name = "PATH")]
    path: String,
    /// Time limit in minutes
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = within(Unit::Minutes, MINUTES))]
    minutes: f64,
    /// The profile to write. The configuration is written beside it as NAME-serve.toml
    /// [default: NAME.toml in this folder]
    #[arg(short, long, value_name = "NAME.toml")]
    output: Option<PathBuf>,
    /// Write an anonymous report to this file: model without serial number, findings, timings
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  headtime adopt /dev/sdb
      learn a disk in ten minutes; then: headtime serve sdb-serve.toml
  headtime adopt /dev/sdb --minutes 60 --report sdb-report.json
      take longer, and write a report for the project
  headtime adopt 'nbd+unix:///?socket=/tmp/atlas.sock' -o atlas.toml --json
      learn an export of an NBD server

Look-ahead and write cache of a SCSI or SATA disk are off while it is profiled, and as before at the
end, also after an error or a signal. A run that was killed leaves that to the next one. As root, it
keeps the CPUs of this machine awake meanwhile: a sleeping one sees the end of a read late.

The disk may be mounted; a load makes the search slower. An interrupted run continues from
NAME.adopting beside the output. An adopted disk needs that file no more: it is removed.

Exit codes: 0 adopted; 1 the path failed or is gone; 2 wrong input; 3 no single hard disk;
4 a hard disk whose profile is not usable yet: run it again to continue.";

/// The time limit: half a minute to a week.
const MINUTES: RangeInclusive<f64> = 0.5..=10_080.0;

/// The exit code for a path that is no single hard disk.
const NO_DISK: u8 = 3;

/// The exit code for a disk whose profile is not usable yet.
const NOT_YET: u8 = 4;

/// Runs the command.
///
/// # Errors
/// If the input is invalid, the path is no disk or fails, or its profile is not usable yet.
pub fn run(arguments: &AdoptArgs) -> Result<(), Exit> {
    if let Some(path) = &arguments.output {
        check_name(path)?;
    }
    let stop = stop_flag()?;
    let opened = OpenPath::open(&arguments.path)?;
    let files = OutputFiles::of(arguments, &opened.name)?;
    let saved = SavedTracks::of(&opened.device());
    let is_resumed = files.state.exists();
    let resumed = saved.read(&files.state)?;
    if !arguments.json {
        print(&text::facts(&arguments.path, &opened.facts))?;
    }
    let budget = Duration::from_nanos((arguments.minutes * 60e9) as u64);
    let progress = AdoptProgress::new(&files.state, saved, budget, Arc::clone(&stop));
    opened.said.iter().for_each(|line| progress.say(line));
    let adopted = opened.adopt(budget, resumed, &progress);
    progress.bar.finish_and_clear();
    let adopted = adopted.inspect_err(|_| {
        // A path that fails leaves nothing behind, but for what an earlier run has found. A run that was
        // stopped can be continued.
        if !is_resumed && !stop.load(Ordering::Relaxed) {
            files.forget_state();
        }
    })?;
    arguments.finish(&adopted, &files)
}

impl AdoptArgs {
    /// Prints and writes what was found.
    fn finish(&self, adopted: &Adoption, files: &OutputFiles) -> Result<(), Exit> {
        if let Some(why) = &adopted.verdict.no_disk {
            if self.json {
                print(&json(&adopted.figures(&self.path))?)?;
            }
            self.write_report(adopted)?;
            return Err(Exit::verdict(
                NO_DISK,
                format!(
                    "{}: no single hard disk: {why}; no profile is written",
                    self.path
                ),
            ));
        }
        if let Some(found) = &adopted.found {
            SavedTracks::of(&found.device).write(&files.state, &found.findings)?;
        }
        self.write_report(adopted)?;
        print(&match self.json {
            true => json(&adopted.figures(&self.path))?,
            false => text::findings(adopted),
        })?;
        let found = match (&adopted.unusable, &adopted.found) {
            (None, Some(found)) => found,
            (why, _) => {
                let why = why.as_deref().unwrap_or("nothing was found");
                let next = match files.state.exists() {
                    true => format!(
                        "its tracks are kept in {}: run the command again to continue",
                        files.state.display()
                    ),
                    false => "no track was found: run it again with a larger --minutes".to_owned(),
                };
                let answer = format!("{}: {why}; {next}", self.path);
                return Err(Exit::verdict(NOT_YET, answer));
            }
        };
        let belief = files.profile.file_name().unwrap_or_default();
        let stem = files.profile.file_stem().unwrap_or_default();
        let configuration =
            adopted.configuration(&belief.to_string_lossy(), &stem.to_string_lossy())?;
        NewFile::begin(&files.profile)?.write(&found.text())?;
        NewFile::begin(&files.configuration)?.write(&configuration)?;
        files.forget_state();
        match self.json {
            true => Ok(()),
            false => print(&format!(
                "\nwritten: {}, {}\nnext: headtime serve {}\n",
                files.profile.display(),
                files.configuration.display(),
                files.configuration.display()
            )),
        }
    }
}

impl AdoptArgs {
    /// Writes the report, if one is wanted: also of a path that seems to be no disk.
    fn write_report(&self, adopted: &Adoption) -> Result<(), Exit> {
        let Some(path) = &self.report else {
            return Ok(());
        };
        let report = serde_json::to_string_pretty(&adopted.report()?).map_err(Exit::failed)?;
        NewFile::begin(path)?.write(&(report + "\n"))
    }
}

/// The files of an adoption.
struct OutputFiles {
    profile: PathBuf,
    configuration: PathBuf,
    state: PathBuf,
}

impl OutputFiles {
    /// Checks before the measurement that the files can be written, and that none is there.
    fn of(arguments: &AdoptArgs, name: &str) -> Result<Self, Exit> {
        let given = arguments.output.clone();
        let profile = given.unwrap_or_else(|| PathBuf::from(format!("{name}.toml")));
        let (configuration, state) = beside(&profile);
        let files = OutputFiles {
            profile,
            configuration,
            state,
        };
        let new = [Some(&files.profile), Some(&files.configuration)];
        for path in new.into_iter().chain([arguments.report.as_ref()]).flatten() {
            if path.is_file() {
                return Err(Exit::input(format!(
                    "{}: it is there already: expected a new name (-o NAME.toml, --report FILE)",
                    path.display()
                )));
            }
            let folder = path.parent().filter(|folder| *folder != Path::new(""));
            if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
                return Err(Exit::input(format!(
                    "{}: no folder {}: expected one that is there",
                    path.display(),
                    folder.display()
                )));
            }
            // A name that cannot be written to is an error before the measurement.
            drop(NewFile::begin(path)?);
        }
        Ok(files)
    }

    fn forget_state(&self) {
        // A missing state has nothing to forget.
        let _ = std::fs::remove_file(&self.state);
    }
}

/// Checks the name of a profile: a service takes other beliefs for names of drives.
fn check_name(path: &Path) -> Result<(), Exit> {
    match path.extension().is_some_and(|end| end == "toml") {
        true => Ok(()),
        false => Err(Exit::input(format!(
            "-o {}: expected a name that ends with .toml",
            path.display()
        ))),
    }
}

/// Progress on the terminal, and the state file.
struct AdoptProgress<'a> {
    bar: ProgressBar,
    _lines: ProgressLines,
    state: &'a Path,
    saved: SavedTracks,
    last: std::cell::Cell<Instant>,
    stop: Arc<AtomicBool>,
}

/// Interval of saved states. A choice: an interruption costs this much.
const SAVE: Duration = Duration::from_secs(10);

impl<'a> AdoptProgress<'a> {
    fn new(state: &'a Path, saved: SavedTracks, budget: Duration, stop: Arc<AtomicBool>) -> Self {
        let target = bar_target(10);
        let millis = budget.as_nanos() / 1_000_000;
        let bar = ProgressBar::with_draw_target(Some(millis), target);
        if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:20} {msg}") {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        AdoptProgress {
            _lines: ProgressLines::of(&bar),
            bar,
            state,
            saved,
            last: std::cell::Cell::new(Instant::ZERO),
            stop,
        }
    }
}

impl AdoptionObserver for AdoptProgress<'_> {
    fn stage(&self, name: &str) {
        self.bar.set_prefix(name.to_owned());
        self.bar.tick();
    }

    fn show(&self, at: Instant, device: &DriveIdentity, findings: &Findings) {
        self.bar.set_position(at.as_nanos() / 1_000_000);
        self.bar.set_message(format!(
            "{:.0} s, at {}; known: {}",
            at.as_secs_f64(),
            findings.progress.step.name(),
            known(device, findings)
        ));
        if at >= self.last.get() + SAVE {
            self.last.set(at);
            // The result matters more than the state: at the end the problem shows again.
            let _ = self.saved.write(self.state, findings);
        }
    }

    fn say(&self, sentence: &str) {
        remark(&self.bar, "the disk", sentence);
    }

    fn stop(&self) -> Option<Arc<AtomicBool>> {
        Some(Arc::clone(&self.stop))
    }
}

#[cfg(test)]
mod tests;
