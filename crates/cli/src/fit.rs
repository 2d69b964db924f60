//! `headtime fit`: a drive's unpublished constants, from the first half of a measured trace.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use drive::Profile;
use indicatif::ProgressBar;
use lab::fit::{self, Fit, document};
use lab::validate::Sample;
use lab::validate::judgement::{Figures, judge};
use simulator::trace::OnBad;

use crate::output::{Failure, print, read_file, write_file};
use crate::{drives, shared};

/// How to call it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The drive: a name from `headtime drives`, or a profile file; without it, every drive that
    /// has a measured trace
    #[arg(long, value_name = "NAME|FILE")]
    drive: Option<String>,
    /// A trace in the `validate` format instead of the drive's own
    #[arg(long, value_name = "FILE", requires = "drive")]
    trace: Option<PathBuf>,
    /// Put the `[fitted]` table into the profiles of this folder, NAME.toml each
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
    /// Only compare with the `[fitted]` table that is in the profile; exit code 1 if it differs
    #[arg(long, conflicts_with = "into")]
    check: bool,
}

const EXAMPLES: &str = "\
Examples:
  headtime fit --drive hp-c2247a
      what is found on the first half of its trace, and what it is worth on the second
  headtime fit --into drives
      fit every drive that has a trace, and keep the results in the profiles
  headtime fit --check
      whether fitting again finds what the profiles hold

Fitted are the times of the electronics and the bus, rules of the buffer that the measurements
clearly contradict, the length of a revolution, and the angles of zones and track patterns.";

/// Runs the command.
///
/// # Errors
/// If the drive or the trace is not what it should be, or a profile cannot be written; with
/// `--check` if a fit differs from the one in its profile.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let folder = shared::folder();
    if arguments.trace.is_none() && !folder.join("drives").is_dir() {
        return print(&(shared::missing("measured traces")? + "\n"));
    }
    let (mut fitted, mut different) = (0, Vec::new());
    for profile in drives::named_or_all(arguments.drive.as_deref())? {
        let file = arguments
            .trace
            .clone()
            .or_else(|| shared::trace_of(&profile));
        let Some(file) = file else { continue };
        let published = profile.published();
        let samples = shared::measurements(&file, &published, OnBad::Refuse)?.samples;
        let refitted = Refitted::of(published, &samples, &file);
        print(&refitted.report(&samples))?;
        fitted += 1;
        if arguments.check {
            if !document::same_constants(&profile, &refitted.found.profile) {
                different.push(profile.name);
            }
        } else if let Some(folder) = &arguments.into {
            refitted.keep(folder)?;
        }
    }
    match (fitted, &arguments.drive) {
        (0, Some(name)) => Err(Failure::input(format!(
            "{name} has no measured trace in {}: give one with --trace FILE",
            folder.display()
        ))),
        (0, None) => print(&(shared::missing("measured traces")? + "\n")),
        _ if !different.is_empty() => Err(Failure::failed(format!(
            "the fit is not the one in the profile: {}; `headtime fit --into drives` keeps it",
            different.join(", ")
        ))),
        _ if arguments.check => print("every fit is the one in its profile\n"),
        _ => Ok(()),
    }
}

/// One drive, fitted again.
struct Refitted {
    published: Profile,
    found: Fit,
    /// The `[fitted]` table that says what was found.
    table: String,
}

impl Refitted {
    fn of(published: Profile, samples: &[Sample], trace: &Path) -> Self {
        let progress = ProgressBar::new_spinner().with_message(published.name.clone());
        let found = fit::fit(&published, samples, || progress.inc(1));
        progress.finish_and_clear();
        let trace = trace
            .file_name()
            .map(|name| name.to_string_lossy())
            .unwrap_or_default();
        let origin = format!(
            "fitted to the first {} requests of {trace} by `headtime fit --drive {}`; the others \
             judge it (`headtime validate`)",
            fit::halves(samples).0.len(),
            published.name
        );
        let table = document::table(&published, &found.profile, &origin);
        Refitted {
            published,
            found,
            table,
        }
    }

    /// What was found, and what it is worth on requests that it was not fitted to.
    fn report(&self, samples: &[Sample]) -> String {
        let found = &self.found;
        let mut text = format!(
            "{}: {} replays, {} angles, phase concentration {:.2}\n",
            self.published.name, found.replays, found.angles, found.phase.concentration
        );
        for (which, profile) in [("published", &self.published), ("fitted", &found.profile)] {
            let judgement = judge(profile, samples, None).judgement;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {which:10} {}", figures(&judgement.held_out));
        }
        text + "\n" + &self.table + "\n"
    }

    /// Puts the table into the drive's profile in `folder`.
    fn keep(&self, folder: &Path) -> Result<(), Failure> {
        let path = folder.join(format!("{}.toml", self.published.name));
        let profile = document::replaced(&read_file(&path)?, &self.table);
        Profile::parse(&profile, &path.display().to_string()).map_err(Failure::failed)?;
        write_file(&path, &profile)
    }
}

fn figures(held_out: &Figures) -> String {
    let median = held_out
        .median_error_ms
        .map_or("-".to_owned(), |error| format!("{error:.3}"));
    format!(
        "on the second half: demerit {:.3} ms, reads {:.3}, writes {:.3}; median per-request \
         error {median} ms",
        held_out.demerit_ms, held_out.demerit_read_ms, held_out.demerit_write_ms
    )
}
