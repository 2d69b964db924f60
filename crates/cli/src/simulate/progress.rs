//! What happens while a simulation runs: a bar on the terminal, and every request in a file.

use std::io::{self, BufWriter};
use std::path::Path;

use block::Finished;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use simulator::ledger::{Format, RequestsFile};
use simulator::run::{self, Watch};

use crate::output::{Failure, NewFile};

/// Watches a run.
pub struct Progress {
    bar: ProgressBar,
    requests: Option<(String, RequestsFile<BufWriter<NewFile>>)>,
}

impl Progress {
    /// A bar for a run of so many requests, if that is known; where standard error is no terminal
    /// it is not drawn.
    pub fn new(name: &str, requests: Option<u64>) -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(10);
        let template = match requests {
            Some(_) => "{prefix:>12} {bar:40} {percent:>3} %  {msg}",
            None => "{prefix:>12} {spinner} {human_pos} requests, {msg}",
        };
        let bar = ProgressBar::with_draw_target(requests, target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        bar.set_prefix(name.to_owned());
        Progress {
            bar,
            requests: None,
        }
    }

    /// The same, which also writes every request's account into a file.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn writing(mut self, path: &Path) -> Result<Self, Failure> {
        let format = match path.extension().and_then(|ending| ending.to_str()) {
            Some("jsonl") => Format::JsonLines,
            _ => Format::Csv,
        };
        let name = path.display().to_string();
        let file = RequestsFile::new(BufWriter::new(NewFile::begin(path)?), format)
            .map_err(|error| Failure::failed(format!("{name}: {error}")))?;
        self.requests = Some((name, file));
        Ok(self)
    }

    /// Ends the bar and the file.
    ///
    /// # Errors
    /// If what is still to be written cannot be.
    pub fn finish(self) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        let Some((name, file)) = self.requests else {
            return Ok(());
        };
        file.finish()
            .and_then(|file| file.into_inner().map_err(io::IntoInnerError::into_error))
            .map_err(|error| Failure::failed(format!("{name}: {error}")))?
            .finish()
    }
}

impl Watch for Progress {
    fn finished(&mut self, finished: &Finished) -> io::Result<()> {
        match &mut self.requests {
            Some((name, file)) => file
                .finished(finished)
                .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}"))),
            None => Ok(()),
        }
    }

    fn progress(&mut self, progress: run::Progress) {
        self.bar.set_position(progress.finished);
        self.bar
            .set_message(format!("{:.0} virtual seconds", progress.now.as_secs_f64()));
    }
}
