//! What `play` and `record` ask of the service for their file, what they are told, and what they
//! print at the end.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use headtime_client::{Client, Event, Stream, Terms};
use serde_json::Value;

use super::amount::amount;
use super::pace::Pace;
use super::{connect, failure};
use crate::output::{Exit, print, write_file};

/// What is asked for besides the rate, and what is told of it.
#[derive(Debug, Args)]
pub(super) struct Lease {
    /// Memory that the stream may take in the service [default: as much as it takes]
    #[arg(long, value_name = "BYTES", value_parser = amount)]
    memory: Option<u64>,
    /// Reads or writes that take longer than so many milliseconds are late
    #[arg(long, value_name = "MS", default_value_t = 8.0)]
    late_ms: f64,
    /// Write the delay of each of them to a CSV file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Ask for no rate: do as any other program does, to compare
    #[arg(long)]
    best_effort: bool,
    /// What the stream is called in lists, and by the service's rules [default: the command's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The export whose volume the file system is on, where the kernel does not know it
    #[arg(long, value_name = "EXPORT")]
    export: Option<String>,
    /// Print what came of it as JSON
    #[arg(long)]
    json: bool,
    /// The service's control socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl Lease {
    /// A stream on a file under these terms, of which the lease knows the memory, the export and the
    /// name, if that is not theirs; `None` if nothing is to be asked for.
    pub(super) fn attach(
        &self,
        file: &File,
        terms: Terms,
    ) -> Result<Option<(Client, Stream)>, Exit> {
        let terms = match (self.best_effort, terms.priority) {
            (false, _) => terms,
            (true, None) => return Ok(None),
            (true, Some(priority)) => Terms {
                name: terms.name,
                ..Terms::prefer(priority)
            },
        };
        let client = connect(self.socket.as_deref())?;
        let terms = Terms {
            name: self.name.clone().unwrap_or(terms.name),
            memory: self.memory,
            export: self.export.clone(),
            ..terms
        };
        let stream = client
            .attach_file(file, &terms)
            .map_err(|error| failure(&error))?;
        Ok(Some((client, stream)))
    }

    /// Whether no rate is asked for.
    pub(super) fn is_best_effort(&self) -> bool {
        self.best_effort
    }

    /// Whether the limit is one.
    pub(super) fn has_limit(&self) -> bool {
        (0.0..=1e9).contains(&self.late_ms)
    }

    /// Writes and prints how the `accesses` went, and what the stream was told; `more` stands in the
    /// JSON besides.
    pub(super) fn report(
        &self,
        pace: &Pace,
        accesses: &str,
        events: &Events,
        more: Vec<(&str, Value)>,
    ) -> Result<(), Exit> {
        if let Some(path) = &self.log {
            write_file(path, &pace.log())?;
        }
        let summary = pace.summary(Duration::from_secs_f64(self.late_ms / 1e3));
        if self.json {
            let mut value = serde_json::to_value(&summary).map_err(Exit::failed)?;
            value["events"] = events.said.clone().into();
            for (key, more) in more {
                value[key] = more;
            }
            return print(&format!("{value:#}\n"));
        }
        let mut text = summary.describe(accesses);
        for said in &events.said {
            text += &format!("  {said}\n");
        }
        print(&text)
    }
}

/// How long a buffer may take to fill. A choice: 256 MB at the rate of a slow disk.
const FILLING: Duration = Duration::from_secs(60);

/// What the stream was told.
#[derive(Default)]
pub(super) struct Events {
    pub(super) lapsed: u64,
    pub(super) said: Vec<String>,
}

/// Lines about what happened at most; a choice.
const SAID: usize = 100;

impl Events {
    /// Waits until the buffer is full.
    pub(super) fn wait_until_served(&mut self, stream: &Stream) -> Result<(), Exit> {
        let until = Instant::now() + FILLING;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            match stream.wait_event(left) {
                Some(Event::Serving) => return Ok(()),
                Some(event) => self.note(event)?,
                None => break,
            }
        }
        Err(Exit::failed(format!(
            "its buffer was not full after {} seconds",
            FILLING.as_secs()
        )))
    }

    /// Takes what there is.
    pub(super) fn hear(&mut self, stream: &Stream) -> Result<(), Exit> {
        while let Some(event) = stream.next_event() {
            self.note(event)?;
        }
        Ok(())
    }

    /// Tells the stream where the file is now.
    pub(super) fn refresh(&mut self, stream: &Stream, file: &File) {
        match stream.refresh(file) {
            Ok(headtime_client::Change::Same) => (),
            Ok(change) => self.say(format!("the file has changed: {change:?}")),
            Err(error) => self.say(format!("it is not known where the file is now: {error}")),
        }
    }

    fn note(&mut self, event: Event) -> Result<(), Exit> {
        match event {
            Event::Serving => self.say(String::from("guaranteed from here on")),
            Event::Lapsed => {
                self.lapsed += 1;
                self.say(String::from(
                    "the guarantee lapsed, and the buffer fills again",
                ));
            }
            Event::Behind => self.say(String::from("written faster than the rate")),
            Event::Late { us } => self.say(format!("a batch came {us} us too late")),
            Event::WriteFailed { from, to } => {
                self.say(format!("bytes {from} to {to} could not be written"));
            }
            Event::Unguaranteed(refused) => {
                self.say(format!(
                    "where the file is now it is not guaranteed: {refused}"
                ));
            }
            Event::Aside { reason } => self.say(format!("served as any other: {reason}")),
            Event::Ended { reason } => return Err(Exit::failed(reason)),
        }
        Ok(())
    }

    fn say(&mut self, text: String) {
        if self.said.len() < SAID && self.said.last() != Some(&text) {
            self.said.push(text);
        }
    }
}
