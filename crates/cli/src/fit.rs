//! `headtime fit`: a drive's unpublished constants, from the first half of a measured trace.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use drive::{Profile, catalog};
use indicatif::ProgressBar;
use simulator::fit::{self, document};
use simulator::validate::Sample;
use simulator::validate::judgement::{Figures, judge};
use simulator::validate::measurement;

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
}

const EXAMPLES: &str = "\
Examples:
  headtime fit --drive hp-c2247a
      what is found on the first half of its trace, and what it is worth on the second
  headtime fit --into drives
      fit every drive that has a trace, and keep the results in the profiles

Fitted are the times of the electronics and the bus, rules of the buffer that the measurements
clearly contradict, the length of a revolution, and the angles of zones and track patterns.";

/// Runs the command.
///
/// # Errors
/// If the drive or the trace is not what it should be, or a profile cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let profiles = match &arguments.drive {
        Some(name) => vec![drives::load(name).map_err(Failure::input)?],
        None => {
            let all = catalog::ALL
                .iter()
                .map(|entry| entry.profile().map_err(Failure::failed));
            all.collect::<Result<Vec<_>, _>>()?
        }
    };
    let folder = shared::folder();
    let mut fitted = 0;
    for profile in profiles {
        let published = profile.published();
        let file = match (&arguments.trace, &profile.source) {
            (Some(file), _) => Some(file.clone()),
            (None, Some(directory)) => measurement::trace_of(&folder, directory),
            (None, None) => None,
        };
        let Some(file) = file else { continue };
        let samples = measurement::samples(&file, &published).map_err(Failure::input)?;
        let name = file
            .file_name()
            .map(|name| name.to_string_lossy())
            .unwrap_or_default();
        one(arguments, &published, &samples, &name)?;
        fitted += 1;
    }
    match (fitted, &arguments.drive) {
        (0, Some(name)) => Err(Failure::input(format!(
            "{name} has no measured trace in {}: give one with --trace FILE",
            folder.display()
        ))),
        (0, None) => print(&(shared::missing("measured traces")? + "\n")),
        _ => Ok(()),
    }
}

/// Fits one drive, prints what was found, and keeps it if asked to.
fn one(
    arguments: &Arguments,
    published: &Profile,
    samples: &[Sample],
    trace: &str,
) -> Result<(), Failure> {
    let progress = ProgressBar::new_spinner().with_message(published.name.clone());
    let found = fit::fit(published, samples, || progress.inc(1));
    progress.finish_and_clear();
    let origin = format!(
        "fitted to the first {} requests of {trace} by `headtime fit --drive {}`; the others \
         judge it (`headtime validate`)",
        fit::halves(samples).0.len(),
        published.name
    );
    let table = document::table(published, &found.profile, &origin);
    let mut text = format!(
        "{}: {} replays, {} angles, phase concentration {:.2}\n",
        published.name, found.replays, found.angles, found.phase.concentration
    );
    for (which, profile) in [("published", published), ("fitted", &found.profile)] {
        let judgement = judge(profile, samples, None).judgement;
        let _ = writeln!(text, "  {which:10} {}", figures(&judgement.held_out));
    }
    let _ = writeln!(text, "\n{table}");
    print(&text)?;
    let Some(folder) = &arguments.into else {
        return Ok(());
    };
    let path = folder.join(format!("{}.toml", published.name));
    let profile = document::replaced(&read_file(&path)?, &table);
    Profile::parse(&profile, &path.display().to_string()).map_err(Failure::failed)?;
    write_file(&path, &profile)
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
