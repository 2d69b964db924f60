//! `headtime drives`: lists the drives, draws one, and locates blocks.

mod chart;
mod map;
mod show;
mod summary;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use document::DocumentError;
use drive::Profile;
use drive::catalog::{self, UnknownDrive};
use lab::drive_drawing;

use summary::DriveSummary;

use crate::output::{self, Exit};

/// List the known drives, draw one, or locate blocks.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub struct DrivesArgs {
    /// Print the list as JSON.
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    action: Option<DrivesAction>,
}

const EXAMPLES: &str = "Examples:
  headtime drives
  headtime drives --json
  headtime drives show modern-20tb
  headtime drives map modern-20tb --lbn 0 1000000";

#[derive(Debug, Subcommand)]
enum DrivesAction {
    /// Draw a drive: seek curve, zones, the first tracks of its map.
    #[command(after_help = "Example:\n  headtime drives show quantum-atlas-10k --svg atlas.svg")]
    Show {
        /// A name from the list, or a profile file ending in .toml.
        drive: String,
        /// Also write the drawing to this SVG file.
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
    /// Print the place of blocks: cylinder, head, sector, and angle in revolutions.
    #[command(
        after_help = "Examples:\n  headtime drives map quantum-atlas-10k --lbn 0 1000 2000\n  headtime drives map my-drive.toml --csv blocks.csv"
    )]
    Map {
        /// A name from the list, or a profile file ending in .toml.
        drive: String,
        /// The block numbers.
        #[arg(long, num_args = 1.., value_name = "N", required_unless_present = "csv")]
        lbn: Vec<u64>,
        /// A CSV file with block numbers in its first column.
        #[arg(long, value_name = "FILE", conflicts_with = "lbn")]
        csv: Option<PathBuf>,
    },
}

/// An error of `headtime drives`.
#[derive(Debug, thiserror::Error)]
pub enum DrivesError {
    /// Neither a shipped drive nor a file has that name.
    #[error(transparent)]
    Unknown(#[from] UnknownDrive),
    /// The file is not a profile.
    #[error(transparent)]
    Profile(#[from] DocumentError),
    /// A file could not be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// The error of the file system.
        error: io::Error,
    },
    /// The number is not a block of the drive.
    #[error("{place}: {message}")]
    Block {
        /// The file and line, or the argument.
        place: String,
        /// The problem, and the expected input.
        message: String,
    },
    /// The drawing could not be made.
    #[error("{path}: {message}")]
    Drawing {
        /// The file.
        path: String,
        /// The problem.
        message: String,
    },
    /// The output was closed.
    #[error("output: {0}")]
    Output(#[from] io::Error),
}

/// Runs the command.
///
/// # Errors
/// If the drive, a file or a block does not exist, or the output cannot be written.
pub fn print(args: &DrivesArgs) -> Result<(), Exit> {
    let mut text = Vec::new();
    run(args, &mut text).map_err(|error| match error {
        DrivesError::Drawing { .. } => Exit::failed(error),
        other => Exit::input(other),
    })?;
    output::print(&String::from_utf8_lossy(&text))
}

/// Runs the command, and writes to `out`.
///
/// # Errors
/// If the drive, a file or a block does not exist, or the output is closed.
fn run(args: &DrivesArgs, out: &mut impl Write) -> Result<(), DrivesError> {
    match &args.action {
        None => list(args, out),
        Some(DrivesAction::Show { drive, svg }) => {
            let profile = load(drive)?;
            show::show(&profile, out)?;
            match svg {
                None => Ok(()),
                Some(path) => {
                    drive_drawing::write(&profile, path).map_err(|message| DrivesError::Drawing {
                        path: path.display().to_string(),
                        message,
                    })
                }
            }
        }
        Some(DrivesAction::Map { drive, lbn, csv }) => {
            let profile = load(drive)?;
            let blocks = match csv {
                Some(path) => map::blocks_of(path)?,
                None => map::blocks(lbn),
            };
            map::print(&profile, &blocks, out)
        }
    }
}

/// Loads a shipped drive by name, or a profile file by its path, which ends in `.toml`.
///
/// # Errors
/// If there is no such drive or file, or the file is not a profile.
pub fn load(name: &str) -> Result<Profile, DrivesError> {
    if Path::new(name).extension().is_none_or(|end| end != "toml") {
        return Ok(catalog::find(name)?.profile()?);
    }
    let text = fs::read_to_string(name).map_err(|error| DrivesError::File {
        path: name.to_owned(),
        error,
    })?;
    Ok(Profile::parse(&text, name)?)
}

/// Prints all drives as a table or as JSON.
fn list(args: &DrivesArgs, out: &mut impl Write) -> Result<(), DrivesError> {
    let mut summaries = Vec::new();
    for entry in catalog::ALL {
        summaries.push(DriveSummary::of(&entry.profile()?));
    }
    if args.json {
        serde_json::to_writer_pretty(&mut *out, &summaries).map_err(io::Error::from)?;
        writeln!(out)?;
        return Ok(());
    }
    for heading in DriveSummary::HEADINGS {
        writeln!(out, "{heading}")?;
    }
    for summary in &summaries {
        writeln!(out, "{}", summary.row())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct DriveListLine {
        #[command(flatten)]
        drives: DrivesArgs,
    }

    /// What the command prints, or its error.
    fn print(arguments: &[&str]) -> Result<String, DrivesError> {
        let arguments = ["drives"].iter().chain(arguments);
        let line = DriveListLine::try_parse_from(arguments).expect("valid arguments");
        let mut out = Vec::new();
        run(&line.drives, &mut out)?;
        Ok(String::from_utf8(out).expect("text"))
    }

    #[test]
    fn json_has_one_object_per_drive_with_the_promised_keys() {
        let text = print(&["--json"]).expect("a list");
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let drives = value.as_array().expect("an array");
        assert_eq!(drives.len(), catalog::ALL.len());
        for drive in drives {
            assert!(drive["name"].is_string());
            assert!(drive["capacity_bytes"].as_u64().expect("a number") > 1_000_000_000);
            assert!(drive["rpm"].as_f64().expect("a number") > 4000.0);
            assert!(drive["provenance"].is_string());
            let seek = |key: &str| drive["seek"][key].as_f64().expect("a number");
            assert!(seek("single_ms") < seek("mean_ms") && seek("mean_ms") < seek("full_ms"));
            let rate = |key: &str| drive["media_rate_mb_s"][key].as_f64().expect("a number");
            assert!(rate("inner") <= rate("outer"));
        }
    }

    #[test]
    fn the_table_has_a_line_for_every_drive() {
        let text = print(&[]).expect("a table");
        for entry in catalog::ALL {
            assert!(text.lines().any(|line| line.starts_with(entry.name)));
        }
        assert!(
            text.lines().all(|line| line.chars().count() <= 120),
            "{text}"
        );
    }

    #[test]
    fn every_drive_can_be_drawn() {
        for entry in catalog::ALL {
            let text = print(&["show", entry.name]).expect("a drawing");
            assert!(text.contains("seek") && text.contains("zones") && text.contains("tracks"));
            assert!(
                text.lines().all(|line| line.chars().count() <= 120),
                "{text}"
            );
        }
    }

    #[test]
    fn a_block_is_mapped_to_its_sector() {
        let text = print(&["map", "hp-c2247a", "--lbn", "0", "2054863"]).expect("a map");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "lbn,cylinder,head,sector,angle");
        assert_eq!(lines[1], "0,1,4,0,0.666666667");
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn what_is_not_there_is_refused() {
        for (arguments, words) in [
            (
                &["show", "seagate-cheetah-9l"][..],
                "did you mean \"seagate-cheetah-9lp\"?",
            ),
            (&["show", "missing.toml"], "missing.toml: "),
            (
                &["map", "dec-rz26", "--lbn", "2050860"],
                "expected below 2050860",
            ),
            (
                &["map", "dec-rz26", "--csv", "missing.csv"],
                "missing.csv: ",
            ),
        ] {
            let error = print(arguments).expect_err(words).to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
