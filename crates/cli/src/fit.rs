//! `headtime fit`: fits a drive's unpublished constants to the first half of a measured trace.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use lab::fit::refit::{self, RefitSettings, Refitted};
use lab::text_file;
use lab::validate::judgement::DemeritFigures;

use crate::bar::Bar;
use crate::output::{Exit, print, write_file};

/// The arguments of `headtime fit`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FitArgs {
    /// The drive: a name from `headtime drives`, or a profile file [default: every drive with a
    /// measured trace]
    #[arg(long, value_name = "NAME|FILE")]
    drive: Option<String>,
    /// A trace in the `validate` format instead of the drive's own
    #[arg(long, value_name = "FILE", requires = "drive")]
    trace: Option<PathBuf>,
    /// Write the `[fitted]` table into the profiles of this folder, NAME.toml each
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
    /// Compare with the `[fitted]` table in the profile, and exit with code 1 if it differs
    #[arg(long, conflicts_with = "into")]
    check: bool,
}

const EXAMPLES: &str = "\
Examples:
  headtime fit --drive hp-c2247a
      fit the first half of the drive's trace, and validate on the second
  headtime fit --into drives
      fit every drive with a trace, and store the results in the profiles
  headtime fit --check
      check that fitting again yields the stored constants

The fit covers the times of the electronics and the bus, buffer rules that the measurements clearly
contradict, the length of a revolution, and the angles of zones and track patterns.";

/// Runs the command.
///
/// # Errors
/// If the drive or the trace is invalid, or a profile cannot be written; with `--check` also if a
/// fit differs from its profile.
pub fn run(arguments: &FitArgs) -> Result<(), Exit> {
    let settings = RefitSettings {
        drive: arguments.drive.clone(),
        trace: arguments.trace.clone(),
    };
    let mut different = Vec::new();
    for case in refit::cases(&settings)? {
        let bar = Bar::spinner();
        let refitted = case.refit(&bar);
        bar.finish();
        print(&report(&refitted))?;
        if arguments.check {
            if !refitted.is_kept() {
                different.push(refitted.published.name);
            }
        } else if let Some(folder) = &arguments.into {
            keep(&refitted, folder)?;
        }
    }
    match arguments.check {
        _ if !different.is_empty() => Err(Exit::failed(format!(
            "the fit is not the one in the profile: {}; `headtime fit --into drives` keeps it",
            different.join(", ")
        ))),
        true => print("every fit is the one in its profile\n"),
        false => Ok(()),
    }
}

/// The fit, and its figures on the held-out half.
fn report(refitted: &Refitted) -> String {
    let found = &refitted.found;
    let mut text = format!(
        "{}: {} replays, {} angles, phase concentration {:.2}\n",
        refitted.published.name, found.replays, found.angles, found.phase.concentration
    );
    for (which, held_out) in &refitted.held_out {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {which:10} {}", figures(held_out));
    }
    text + "\n" + &refitted.table + "\n"
}

/// Writes the table into the drive's profile in `folder`.
fn keep(refitted: &Refitted, folder: &Path) -> Result<(), Exit> {
    let path = folder.join(format!("{}.toml", refitted.published.name));
    let profile = refitted.profile_text(&path, &text_file::read(&path)?)?;
    write_file(&path, &profile)
}

fn figures(held_out: &DemeritFigures) -> String {
    let median = held_out
        .median_error_ms
        .map_or("-".to_owned(), |error| format!("{error:.3}"));
    format!(
        "on the second half: demerit {:.3} ms, reads {:.3}, writes {:.3}; median per-request \
         error {median} ms",
        held_out.demerit_ms, held_out.demerit_read_ms, held_out.demerit_write_ms
    )
}
