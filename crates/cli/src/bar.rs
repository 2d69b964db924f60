//! Progress bars of the lab's measurements. They are drawn only if standard error is a terminal.

use std::io::{self, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::Progress;

/// A progress bar on standard error.
pub struct Bar(ProgressBar);

impl Bar {
    /// Creates a bar with this template. The measurement sets the length.
    pub fn new(template: &str) -> Bar {
        let target = ProgressDrawTarget::stderr_with_hz(10);
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        Bar(bar)
    }

    /// Creates a spinner for a measurement of unknown length.
    pub fn spinner() -> Bar {
        Bar(ProgressBar::new_spinner())
    }

    /// Returns the bar with a prefix.
    pub fn with_prefix(self, prefix: String) -> Bar {
        Bar(self.0.with_prefix(prefix))
    }

    /// Returns the bar, redrawn by a separate thread ten times a second.
    pub fn ticking(self) -> Bar {
        self.0.enable_steady_tick(Duration::from_millis(100));
        self
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn begin(&self, part: &str) {
        self.0.set_message(part.to_owned());
    }

    fn expect(&self, units: u64) {
        self.0.inc_length(units);
    }

    fn advance(&self, units: u64) {
        self.0.inc(units);
    }

    fn remark(&self, text: &str) {
        // A closed standard error has no reader.
        let _ = writeln!(io::stderr(), "{text}");
    }
}
