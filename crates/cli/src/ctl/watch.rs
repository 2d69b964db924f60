//! `headtime ctl status --watch`: the status again and again.

use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::thread;
use std::time::Duration;

use document::quantity::Unit;
use server::control::protocol::Ask;
use server::status::Status;

use super::{Format, describe};
use crate::output::{Exit, print_answer};
use crate::service::{asked, understood};
use crate::settings::units::within;

/// Moves to the first place of a terminal and clears it (ECMA-48: CUP, ED).
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// The bounds of the seconds between two prints. A choice: more often tells nothing new, and a day is no watch.
const SECONDS: std::ops::RangeInclusive<f64> = 0.1..=86_400.0;

/// Prints the status until the service ends, or nobody reads it. A terminal is cleared before each print.
///
/// # Errors
/// If no service listens on the socket, or it has ended.
pub(super) fn run(socket: &Path, seconds: f64, format: Format) -> Result<(), Exit> {
    let clears = io::stdout().is_terminal() && format == Format::Text;
    loop {
        let outcome = asked(socket, &Ask::Status)?;
        let text = match format {
            Format::Json => format!("{outcome}\n"),
            Format::Text => describe(&understood::<Status>(socket, outcome)?),
        };
        if clears {
            crate::output::print(CLEAR)?;
        }
        print_answer(&text)?;
        if format == Format::Text && !clears {
            print_answer("\n")?;
        }
        thread::sleep(Duration::from_secs_f64(seconds));
    }
}

/// The seconds of `--watch`.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    within(Unit::Seconds, SECONDS)(text)
}
