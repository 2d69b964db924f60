//! How much a command says on standard error besides warnings and errors: `-q` and `-v`.
//!
//! ```text
//!          progress, notes    log of a service
//!   -q     none               warnings and errors
//!          shown              as configured
//!   -v     shown              one level more; other commands log what they ask a service
//!   -vv    shown              two levels more
//! ```

use std::sync::OnceLock;

use clap::{ArgAction, Args};
use indicatif::ProgressDrawTarget;
use tracing::Level;

/// The flags that every command has.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct VerbosityArgs {
    /// Print neither progress nor notes: only results, warnings and errors
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "verbose",
        help_heading = HEADING,
        display_order = ORDER
    )]
    quiet: bool,
    /// Log more on standard error; twice: even more
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = HEADING, display_order = ORDER)]
    verbose: u8,
}

const HEADING: &str = "Standard error";

/// Behind all other options.
const ORDER: usize = 1000;

/// The flags of this process; before they are known, and in unit tests, there are none.
static FLAGS: OnceLock<VerbosityArgs> = OnceLock::new();

impl VerbosityArgs {
    /// Keeps the flags for the rest of the process.
    pub fn keep(self) {
        // The first ones stay: a process has one command line.
        let _ = FLAGS.set(self);
    }

    fn kept() -> Self {
        FLAGS.get().copied().unwrap_or_default()
    }

    /// The level of a log whose configuration names this one.
    fn level(self, configured: Level) -> Level {
        if self.quiet {
            return configured.min(Level::WARN);
        }
        let place = LEVELS.iter().position(|level| *level == configured);
        let place = place.unwrap_or_default() + usize::from(self.verbose);
        LEVELS[place.min(LEVELS.len() - 1)]
    }
}

/// The levels, from the fewest lines to the most.
const LEVELS: [Level; 5] = [
    Level::ERROR,
    Level::WARN,
    Level::INFO,
    Level::DEBUG,
    Level::TRACE,
];

/// Whether progress and notes are not wanted.
pub fn is_quiet() -> bool {
    VerbosityArgs::kept().quiet
}

/// Whether a command that has no log of its own has one.
pub fn is_logged() -> bool {
    VerbosityArgs::kept().verbose > 0
}

/// The level of a log whose configuration names this one.
pub fn level(configured: Level) -> Level {
    VerbosityArgs::kept().level(configured)
}

/// Where a progress bar is drawn, at most so many times a second: on standard error if it is a terminal.
pub fn bar_target(per_second: u8) -> ProgressDrawTarget {
    match is_quiet() {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr_with_hz(per_second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_move_the_level_of_a_log_and_quiet_keeps_warnings() {
        let flags = |quiet, verbose| VerbosityArgs { quiet, verbose };
        for (flags, configured, level) in [
            (flags(false, 0), Level::INFO, Level::INFO),
            (flags(false, 1), Level::INFO, Level::DEBUG),
            (flags(false, 1), Level::WARN, Level::INFO),
            (flags(false, 200), Level::WARN, Level::TRACE),
            (flags(true, 0), Level::DEBUG, Level::WARN),
            (flags(true, 0), Level::ERROR, Level::ERROR),
        ] {
            assert_eq!(flags.level(configured), level, "{flags:?} {configured}");
        }
    }
}
