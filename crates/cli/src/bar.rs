//! Progress bars of the lab's measurements. They are drawn only if standard error is a terminal; otherwise a line is
//! printed every half minute.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use lab::Progress;

use crate::output::note;
use crate::verbosity::bar_target;

mod lines;

pub use lines::ProgressLines;

/// A progress bar on standard error.
pub struct Bar {
    bar: ProgressBar,
    /// Dropped before the result is printed.
    lines: Mutex<Option<ProgressLines>>,
}

impl Bar {
    /// Creates a bar with this template. The measurement sets the length.
    pub fn new(template: &str) -> Bar {
        let target = bar_target(10);
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        Bar::of(bar)
    }

    fn of(bar: ProgressBar) -> Bar {
        let lines = Mutex::new(Some(ProgressLines::of(&bar)));
        Bar { bar, lines }
    }

    /// Creates a spinner for a measurement of unknown length.
    pub fn spinner() -> Bar {
        let bar = ProgressBar::new_spinner();
        bar.set_draw_target(bar_target(20));
        Bar::of(bar)
    }

    /// Creates a bar that is not drawn, for a measurement that does not tell its parts: only its lines.
    pub fn lines(name: &str) -> Bar {
        let bar = ProgressBar::hidden();
        bar.set_prefix(name.to_owned());
        Bar::of(bar)
    }

    /// Returns the bar with a prefix.
    pub fn with_prefix(self, prefix: String) -> Bar {
        self.bar.set_prefix(prefix);
        self
    }

    /// Returns the bar, redrawn by a separate thread ten times a second.
    pub fn ticking(self) -> Bar {
        self.bar.enable_steady_tick(Duration::from_millis(100));
        self
    }

    /// Removes the bar, and ends its lines.
    pub fn finish(&self) {
        drop(
            self.lines
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn begin(&self, part: &str) {
        self.bar.set_message(part.to_owned());
    }

    fn expect(&self, units: u64) {
        self.bar.inc_length(units);
    }

    fn advance(&self, units: u64) {
        self.bar.inc(units);
    }

    fn remark(&self, text: &str) {
        note(&format!("{text}\n"));
    }
}
