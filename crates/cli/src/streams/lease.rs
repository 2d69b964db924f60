//! The stream of `play` and `record`: terms, events and the report.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use document::quantity::Unit;
use headtime_client::{Client, Stream, StreamUpdate, Terms};
use lab::amount::amount;
use serde_json::Value;

use super::pace::PacedRun;
use super::{connect, failure};
use crate::output::{Exit, micros, print, write_file};
use crate::settings::units::in_unit;

/// The arguments that `play` and `record` share.
#[derive(Debug, Args)]
pub(super) struct Lease {
    /// Memory of the stream in the service [default: as much as the terms need]
    #[arg(long, value_name = "BYTES", value_parser = amount)]
    memory: Option<u64>,
    /// Accesses that take longer than this many milliseconds count as late
    #[arg(long, value_name = "MS", default_value_t = 8.0, value_parser = in_unit(Unit::Milliseconds))]
    late_ms: f64,
    /// Write the delay of each access to a CSV file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Request no guarantee, to compare with an ordinary program
    #[arg(long)]
    pub(super) best_effort: bool,
    /// The stream's name in lists and in the service's rules [default: the command's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The export below the file system. Needed only if the kernel does not know it
    #[arg(long, value_name = "EXPORT")]
    export: Option<String>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// The service's control socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl Lease {
    /// Attaches a stream to a file under `terms`, with the lease's memory, export and name. Returns
    /// `None` if the arguments request no terms.
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

    /// Whether the lateness limit is valid.
    pub(super) fn has_limit(&self) -> bool {
        (0.0..=1e9).contains(&self.late_ms)
    }

    /// Writes the log, and prints the report of the `accesses` and events. `more` has further
    /// fields of the JSON.
    pub(super) fn report(
        &self,
        pace: &PacedRun,
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
            value["events"] = events.lines().into();
            value["kept"] = (!self.best_effort).then(|| events.is_kept()).into();
            value["late_batches"] = events.late.into();
            value["failed_writes"] = events.failed.into();
            value["lapsed"] = events.lapsed.into();
            for (key, more) in more {
                value[key] = more;
            }
            print(&format!("{value:#}\n"))?;
            return self.judged(events);
        }
        let mut text = summary.describe(accesses);
        for line in events.lines() {
            text += &format!("  {line}\n");
        }
        text += &match self.best_effort {
            true => summary.verdict(),
            false => events.verdict(accesses),
        };
        print(&text)?;
        self.judged(events)
    }

    /// An exit code of its own for a guarantee that was not kept.
    fn judged(&self, events: &Events) -> Result<(), Exit> {
        match self.best_effort || events.is_kept() {
            true => Ok(()),
            false => Err(Exit::verdict(
                NOT_KEPT,
                String::from(
                    "the guarantee was not kept: `headtime doctor` tells whether the disk, its profile or this machine was late",
                ),
            )),
        }
    }
}

/// The exit code of a stream whose guarantee was not kept.
const NOT_KEPT: u8 = 3;

/// Limit of the time to fill a buffer. A choice: 256 MB at the rate of a slow disk.
const FILLING: Duration = Duration::from_secs(60);

/// The events of a stream, as text.
pub(super) struct Events {
    began: Instant,
    lapsed: u64,
    /// Late batches, and failed writes of the service.
    late: u64,
    failed: u64,
    said: Vec<(Duration, String)>,
}

/// Limit of stored lines. A choice.
const SAID: usize = 100;

impl Events {
    /// No event yet; the time begins.
    pub(super) fn begin() -> Self {
        Events {
            began: Instant::now(),
            lapsed: 0,
            late: 0,
            failed: 0,
            said: Vec::new(),
        }
    }

    /// Waits until the buffer is full.
    pub(super) fn wait_until_served(&mut self, stream: &Stream) -> Result<(), Exit> {
        let until = Instant::now() + FILLING;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            match stream.wait_event(left) {
                Some(StreamUpdate::Serving) => return Ok(()),
                Some(event) => self.note(event)?,
                None => break,
            }
        }
        Err(Exit::failed(format!(
            "its buffer was not full after {} seconds",
            FILLING.as_secs()
        )))
    }

    /// Processes the pending events.
    pub(super) fn hear(&mut self, stream: &Stream) -> Result<(), Exit> {
        while let Some(event) = stream.next_event() {
            self.note(event)?;
        }
        Ok(())
    }

    /// Reports the file's present extents to the service.
    pub(super) fn refresh(&mut self, stream: &Stream, file: &File) {
        match stream.refresh(file) {
            Ok(headtime_client::FileChange::Same) => (),
            Ok(change) => self.say(format!("the file has changed: {change:?}")),
            Err(error) => self.say(format!("it is not known where the file is now: {error}")),
        }
    }

    fn note(&mut self, event: StreamUpdate) -> Result<(), Exit> {
        match event {
            StreamUpdate::Serving => self.say(String::from("guaranteed from here on")),
            StreamUpdate::Lapsed => {
                self.lapsed += 1;
                self.say(String::from(
                    "the guarantee lapsed, and the buffer fills again",
                ));
            }
            StreamUpdate::Behind => self.say(String::from(
                "behind: writes wait for room in the buffer, because they came faster than the rate, as after a stall; guaranteed \
                 again once there is room",
            )),
            StreamUpdate::Late { us, held_up_us } => {
                self.late += 1;
                let mut text = format!("a batch came {} too late", micros(us as f64));
                if held_up_us > 0 {
                    let held_up = micros(held_up_us as f64);
                    text += &format!(", held up for {held_up} by requests over the same blocks");
                }
                self.say(text);
            }
            StreamUpdate::WriteFailed { from, to } => {
                self.failed += 1;
                self.say(format!("bytes {from} to {to} could not be written"));
            }
            StreamUpdate::Unguaranteed(refused) => {
                self.say(format!(
                    "where the file is now it is not guaranteed: {refused}"
                ));
            }
            StreamUpdate::Aside { reason } => self.say(format!("served as any other: {reason}")),
            StreamUpdate::Ended { reason } => return Err(Exit::failed(reason)),
        }
        Ok(())
    }

    fn is_kept(&self) -> bool {
        self.late + self.failed + self.lapsed == 0
    }

    /// Whether the guarantee was kept, in a sentence.
    fn verdict(&self, accesses: &str) -> String {
        if self.is_kept() {
            return format!(
                "The guarantee was kept: no batch was late. {} that took longer waited in the file system or the kernel, or came faster than the rate.\n",
                accesses[..1].to_uppercase() + &accesses[1..]
            );
        }
        format!(
            "The guarantee was not kept: {} batches late, {} failed, and it lapsed {} times.\n",
            self.late, self.failed, self.lapsed
        )
    }

    fn say(&mut self, text: String) {
        if self.said.len() < SAID && self.said.last().is_none_or(|(_, last)| *last != text) {
            self.said.push((self.began.elapsed(), text));
        }
    }

    /// The events with their times.
    fn lines(&self) -> Vec<String> {
        let each = self.said.iter();
        each.map(|(after, text)| format!("after {:.1} s: {text}", after.as_secs_f64()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guarantee_is_kept_unless_something_was_late_failed_or_lapsed() {
        let mut events = Events::begin();
        let behind = "behind: writes wait for room";
        for event in [
            StreamUpdate::Serving,
            StreamUpdate::Behind,
            StreamUpdate::Behind,
        ] {
            events.note(event).expect("it goes on");
        }
        let kept = events.verdict("writes");
        assert!(
            kept.starts_with("The guarantee was kept: no batch was late. Writes that took longer"),
            "{kept}"
        );
        let lines = events.lines();
        assert_eq!(
            lines.len(),
            2,
            "the same twice in a row is told once: {lines:?}"
        );
        assert!(
            lines[1].starts_with("after ") && lines[1].contains(behind),
            "{lines:?}"
        );
        let broken = [
            (
                StreamUpdate::Late {
                    us: 1500,
                    held_up_us: 0,
                },
                "1 batches late, 0 failed, and it lapsed 0 times",
            ),
            (
                StreamUpdate::WriteFailed { from: 0, to: 4096 },
                "1 batches late, 1 failed, and it lapsed 0 times",
            ),
            (
                StreamUpdate::Lapsed,
                "1 batches late, 1 failed, and it lapsed 1 times",
            ),
        ];
        for (event, said) in broken {
            events.note(event).expect("it goes on");
            let verdict = events.verdict("writes");
            assert!(
                verdict.contains("was not kept") && verdict.contains(said),
                "{verdict}"
            );
        }
        let ended = events.note(StreamUpdate::Ended {
            reason: "gone".to_owned(),
        });
        assert_eq!(ended.expect_err("no more").problem(), "gone");
    }

    #[test]
    fn a_guarantee_that_was_not_kept_has_an_exit_code_unless_none_was_asked_for() {
        let lease = |best_effort| Lease {
            memory: None,
            late_ms: 8.0,
            log: None,
            best_effort,
            name: None,
            export: None,
            json: false,
            socket: None,
        };
        let mut events = Events::begin();
        assert!(lease(false).judged(&events).is_ok());
        events
            .note(StreamUpdate::Late {
                us: 1,
                held_up_us: 0,
            })
            .expect("it goes on");
        assert!(lease(true).judged(&events).is_ok());
        let judged = lease(false).judged(&events);
        assert!(
            matches!(judged, Err(Exit::Verdict { code: 3, .. })),
            "{judged:?}"
        );
    }
}
