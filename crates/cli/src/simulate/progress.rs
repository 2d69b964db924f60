//! What happens while a simulation runs: a bar on the terminal, and every request in a file.

use std::io::{self, BufWriter};
use std::path::Path;

use block::Finished;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::comparison::Setup;
use simulator::requests_file::{Format, RequestsFile};
use simulator::run::{self, Point, Watch};

use crate::output::{Exit, NewFile};

/// What the bar is a share of.
#[derive(Clone, Copy, Debug)]
enum Share {
    /// So many requests.
    Requests(u64),
    /// So many hundredths of a scan.
    Scan(u32),
    /// An unknown number of requests.
    Unknown,
}

/// Watches a run.
pub struct RunBar {
    bar: ProgressBar,
    share: Share,
    requests: Option<(String, RequestsFile<BufWriter<NewFile>>)>,
}

impl RunBar {
    /// A bar for the run of a policy: of the requests, if there is a bound, or of the scan; where
    /// standard error is no terminal it is not drawn.
    pub fn new(name: &str, setup: &Setup) -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(10);
        let share = match (setup.requests, &setup.scan) {
            (Some(requests), _) => Share::Requests(requests),
            (None, Some(scan)) => Share::Scan(scan.background().hundredths),
            (None, None) => Share::Unknown,
        };
        let (length, template) = match share {
            Share::Requests(requests) => (Some(requests), "{bar:40} {percent:>3} %  {msg}"),
            Share::Scan(_) => (Some(FINENESS), "{bar:40} {percent:>3} % of the scan  {msg}"),
            Share::Unknown => (None, "{spinner} {human_pos} requests, {msg}"),
        };
        let template = &format!("{{prefix:>12}} {template}");
        let bar = ProgressBar::with_draw_target(length, target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        bar.set_prefix(name.to_owned());
        RunBar {
            bar,
            share,
            requests: None,
        }
    }

    /// The same, which also writes every request's account into a file.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn writing(mut self, path: &Path) -> Result<Self, Exit> {
        let format = match path.extension().and_then(|ending| ending.to_str()) {
            Some("jsonl") => Format::JsonLines,
            _ => Format::Csv,
        };
        let name = path.display().to_string();
        let file = RequestsFile::new(BufWriter::new(NewFile::begin(path)?), format)
            .map_err(|error| Exit::failed(format!("{name}: {error}")))?;
        self.requests = Some((name, file));
        Ok(self)
    }

    /// This share of the scan was read; it ends at so many hundredths.
    fn read(&self, share: f64, hundredths: u32) {
        let done = share * 100.0 / f64::from(hundredths);
        self.bar
            .set_position((done.min(1.0) * FINENESS as f64) as u64);
    }

    /// Ends the bar and the file.
    ///
    /// # Errors
    /// If what is still to be written cannot be.
    pub fn finish(self) -> Result<(), Exit> {
        self.bar.finish_and_clear();
        let Some((name, file)) = self.requests else {
            return Ok(());
        };
        file.finish()
            .and_then(|file| file.into_inner().map_err(io::IntoInnerError::into_error))
            .map_err(|error| Exit::failed(format!("{name}: {error}")))?
            .finish()
    }
}

impl Watch for RunBar {
    fn finished(&mut self, finished: &Finished) -> io::Result<()> {
        match &mut self.requests {
            Some((name, file)) => file
                .finished(finished)
                .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}"))),
            None => Ok(()),
        }
    }

    fn progress(&mut self, progress: run::Progress) {
        match (self.share, progress.scanned) {
            (Share::Scan(hundredths), Some(scanned)) => self.read(scanned, hundredths),
            _ => self.bar.set_position(progress.finished),
        }
        self.bar
            .set_message(format!("{:.0} virtual seconds", progress.now.as_secs_f64()));
    }

    fn scanned(&mut self, point: &Point) {
        if let Share::Scan(hundredths) = self.share {
            self.read(f64::from(point.hundredths) / 100.0, hundredths);
        }
    }
}

/// Steps of the bar of a scan: finer than its cells.
const FINENESS: u64 = 1000;
