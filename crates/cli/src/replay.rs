//! `headtime replay`: replays a captured live run in virtual time, and compares every decision.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use clap::Args;
use lab::named::policy;
use server::capture::event::CaptureEnd;
use server::capture::{CaptureReader, EngineSetting, ReplayError, replay};

use crate::output::{Exit, print};

/// The arguments of `headtime replay`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReplayArgs {
    /// The capture file
    file: PathBuf,
    /// Use this policy instead of the captured one, and report its first different decision
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// If the file is no whole capture (exit code 2), or the engine decides differently (exit code 1).
pub fn run(arguments: &ReplayArgs) -> Result<(), Exit> {
    let name = arguments.file.display();
    let file = File::open(&arguments.file);
    let file = file.map_err(|error| Exit::input(format!("{name}: {error}")))?;
    let refused = |problem: ReplayError| match problem {
        ReplayError::Difference(_) => Exit::failed(format!("{name}: {problem}")),
        _ => Exit::input(format!("{name}: {problem}")),
    };
    let reader = CaptureReader::open(BufReader::new(file));
    let mut reader = reader.map_err(|damaged| refused(damaged.into()))?;
    let setting = match &arguments.policy {
        None => reader.setting().clone(),
        Some(other) => EngineSetting {
            policy: policy(other)?.name(),
            ..reader.setting().clone()
        },
    };
    let engine = setting.engine().map_err(|unfit| refused(unfit.into()))?;
    let replayed = replay(&mut reader, engine).map_err(refused)?;
    print(&format!(
        "{} events in {:.3} s of the drive's time: {} commands and {} ends of requests, all as \
         captured\n",
        replayed.events,
        replayed.until.as_nanos() as f64 / 1e9,
        replayed.commands,
        replayed.finished
    ))?;
    match replayed.ending {
        CaptureEnd::Whole => Ok(()),
        CaptureEnd::Behind => print("the capture ends early: its file was too slow\n"),
    }
}

const EXAMPLES: &str = "Example:
  headtime emulate --drive quantum-atlas-10k --image a.img --socket a.sock --policy sptf \\
    --capture a.capture
  headtime replay a.capture";
