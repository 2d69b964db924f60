//! Observers of a simulation: a bar on the terminal, and a file with every request.

use std::io::{self, BufWriter};
use std::path::Path;

use block::Finished;
use indicatif::{ProgressBar, ProgressStyle};
use lab::commands_table::CommandsTable;
use lab::comparison::ComparisonSetup;
use lab::requests_table::RequestsTable;
use lab::table::TableFormat;
use lab::trace_events::TraceEvents;
use simulator::requests_file::{RequestsFile, RequestsFormat};
use simulator::run::{self, EndedCommand, ScanPoint, Watch};

use crate::bar::ProgressLines;
use crate::output::{Exit, NewFile, warn};
use crate::verbosity::bar_target;

/// The whole of the bar.
#[derive(Clone, Copy, Debug)]
enum BarLength {
    /// A number of requests.
    Requests(u64),
    /// Hundredths of a scan.
    Scan(u32),
    /// An unknown number of requests.
    Unknown,
}

/// A progress bar that watches a run.
pub struct RunBar {
    bar: ProgressBar,
    _lines: ProgressLines,
    share: BarLength,
    requests: Option<(String, RequestsOutput)>,
    events: Option<(String, TraceEvents<BufWriter<NewFile>>)>,
    commands: Option<(String, Box<CommandsTable<NewFile>>)>,
}

/// The file of all requests.
enum RequestsOutput {
    Lines(RequestsFile<BufWriter<NewFile>>),
    Table(Box<RequestsTable<NewFile>>),
}

impl RunBar {
    /// Creates the bar of a policy's run. Its length is the bound of the requests or of the scan.
    /// The bar is hidden if standard error is no terminal.
    pub fn new(name: &str, setup: &ComparisonSetup) -> Self {
        let target = bar_target(10);
        let share = match (setup.requests, &setup.scan) {
            (Some(requests), _) => BarLength::Requests(requests),
            (None, Some(scan)) => BarLength::Scan(scan.background().hundredths),
            (None, None) => BarLength::Unknown,
        };
        let (length, template) = match share {
            BarLength::Requests(requests) => (Some(requests), "{bar:40} {percent:>3} %  {msg}"),
            BarLength::Scan(_) => (Some(FINENESS), "{bar:40} {percent:>3} % of the scan  {msg}"),
            BarLength::Unknown => (None, "{spinner} {human_pos} requests, {msg}"),
        };
        let template = &format!("{{prefix:>12}} {template}");
        let bar = ProgressBar::with_draw_target(length, target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        bar.set_prefix(name.to_owned());
        RunBar {
            _lines: ProgressLines::of(&bar),
            bar,
            share,
            requests: None,
            events: None,
            commands: None,
        }
    }

    /// Returns the watcher with a file for the account of each request.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn writing(mut self, path: &Path) -> Result<Self, Exit> {
        let name = path.display().to_string();
        let file = NewFile::begin(path)?;
        let begun = match TableFormat::of(path) {
            Some(format) => RequestsTable::begin(file, format)
                .map(|table| RequestsOutput::Table(Box::new(table)))
                .map_err(|error| Exit::failed(format!("{name}: {error}"))),
            None => RequestsFile::new(BufWriter::new(file), lines_format(path))
                .map(RequestsOutput::Lines)
                .map_err(|error| Exit::failed(format!("{name}: {error}"))),
        };
        self.requests = Some((name, begun?));
        Ok(self)
    }

    /// Returns the watcher with a file for the run's time line.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn tracing(mut self, path: &Path) -> Result<Self, Exit> {
        let name = path.display().to_string();
        let events = TraceEvents::begin(BufWriter::new(NewFile::begin(path)?));
        let events = events.map_err(|error| Exit::failed(format!("{name}: {error}")))?;
        self.events = Some((name, events));
        Ok(self)
    }

    /// Returns the watcher with a table of the drive's commands.
    ///
    /// # Errors
    /// If the end of the name means no format, or the file cannot be created.
    pub fn listing(mut self, path: &Path) -> Result<Self, Exit> {
        let format = TableFormat::named("--commands-out", path)?;
        let name = path.display().to_string();
        let table = CommandsTable::begin(NewFile::begin(path)?, format);
        let table = table.map_err(|error| Exit::failed(format!("{name}: {error}")))?;
        self.commands = Some((name, Box::new(table)));
        Ok(self)
    }

    /// Ends the table of commands.
    fn finish_commands(&mut self) -> Result<(), Exit> {
        let Some((name, table)) = self.commands.take() else {
            return Ok(());
        };
        table
            .finish()
            .map_err(|error| Exit::failed(format!("{name}: {error}")))?
            .finish()
    }

    /// Ends the time line.
    fn finish_events(&mut self) -> Result<(), Exit> {
        let Some((name, events)) = self.events.take() else {
            return Ok(());
        };
        if let Some(at) = events.full_at() {
            let seconds = at.as_secs_f64();
            warn(&format!(
                "{name}: full, without events from {seconds:.3} virtual seconds on"
            ));
        }
        let whole = events
            .finish()
            .and_then(|file| file.into_inner().map_err(io::IntoInnerError::into_error));
        whole
            .map_err(|error| Exit::failed(format!("{name}: {error}")))?
            .finish()
    }

    /// Moves the bar of a scan that ends at `hundredths`.
    fn read(&self, share: f64, hundredths: u32) {
        let done = share * 100.0 / f64::from(hundredths);
        self.bar
            .set_position((done.min(1.0) * FINENESS as f64) as u64);
    }

    /// Ends the bar and the file.
    ///
    /// # Errors
    /// If the rest of the file cannot be written.
    pub fn finish(mut self) -> Result<(), Exit> {
        self.bar.finish_and_clear();
        self.finish_events()?;
        self.finish_commands()?;
        let Some((name, file)) = self.requests else {
            return Ok(());
        };
        let whole = match file {
            RequestsOutput::Lines(file) => file
                .finish()
                .and_then(|file| file.into_inner().map_err(io::IntoInnerError::into_error))
                .map_err(|error| error.to_string()),
            RequestsOutput::Table(file) => file.finish().map_err(|error| error.to_string()),
        };
        whole
            .map_err(|error| Exit::failed(format!("{name}: {error}")))?
            .finish()
    }
}

impl Watch for RunBar {
    fn wants_commands(&self) -> bool {
        self.events.is_some() || self.commands.is_some()
    }

    fn command(&mut self, ended: &EndedCommand) {
        if let Some((_, events)) = &mut self.events {
            events.command(ended);
        }
        if let Some((_, table)) = &mut self.commands {
            table.command(ended);
        }
    }

    fn finished(&mut self, finished: &Finished) -> io::Result<()> {
        if let Some((name, events)) = &mut self.events {
            let written = events.finished(finished);
            written.map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
        }
        match &mut self.requests {
            Some((name, file)) => match file {
                RequestsOutput::Lines(file) => file.finished(finished),
                RequestsOutput::Table(file) => file.finished(finished),
            }
            .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}"))),
            None => Ok(()),
        }
    }

    fn progress(&mut self, progress: run::RunProgress) {
        match (self.share, progress.scanned) {
            (BarLength::Scan(hundredths), Some(scanned)) => self.read(scanned, hundredths),
            _ => self.bar.set_position(progress.finished),
        }
        self.bar
            .set_message(format!("{:.0} virtual seconds", progress.now.as_secs_f64()));
    }

    fn scanned(&mut self, point: &ScanPoint) {
        if let BarLength::Scan(hundredths) = self.share {
            self.read(f64::from(point.hundredths) / 100.0, hundredths);
        }
    }
}

/// The format of lines that the end of a name means.
fn lines_format(path: &Path) -> RequestsFormat {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("jsonl") => RequestsFormat::JsonLines,
        _ => RequestsFormat::Csv,
    }
}

/// Steps of a scan's bar: finer than its cells.
const FINENESS: u64 = 1000;
