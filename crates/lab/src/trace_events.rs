//! A run on a time line, as JSON trace events for Perfetto (<https://ui.perfetto.dev>).
//!
//! ```text
//!   process head      arm 0     [command        ][command              ]     a slice for each command,
//!                                [seek][rot][xfer] [overhead][seek][..]      its phases inside
//!                     plans              [free]                              background blocks in a gap
//!   process requests            [request 17 ......................]          a slice for each request
//!                                 [request 18 .........]
//!                     outstanding  1 2 2 1                                   a counter
//! ```
//!
//! The format is Google's "Trace Event Format". Times are microseconds of virtual time, to the nanosecond.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use block::{Action, Direction, Duration, Extent, Finished, Instant};
use simulator::run::{CommandRole, EndedCommand, Watch};

/// Writes the events of a run.
pub struct TraceEvents<W: Write> {
    to: W,
    written: u64,
    /// The end of the last head slice of each arm.
    ended: Vec<Instant>,
    /// Changes of the number of outstanding requests, by time.
    changes: BTreeMap<u64, i32>,
    /// The moment from which events are left out, because the file is full.
    full_at: Option<Instant>,
    failed: Option<io::Error>,
}

/// Bytes of a file at most. A choice: with the counter below 50 MB, which Perfetto's page opens in seconds.
const MOST_BYTES: u64 = 44_000_000;

/// Bytes of the counter's events at most. A choice.
const MOST_COUNTED: u64 = 4_000_000;

/// The processes of the time line.
const HEAD: u32 = 1;
const REQUESTS: u32 = 2;

/// The thread of plans.
const PLANS: u32 = 100;

impl<W: Write> TraceEvents<W> {
    /// Begins a file. `to` should be buffered.
    ///
    /// # Errors
    /// If `to` refuses.
    pub fn begin(to: W) -> io::Result<Self> {
        let mut events = TraceEvents {
            to,
            written: 0,
            ended: Vec::new(),
            changes: BTreeMap::new(),
            full_at: None,
            failed: None,
        };
        events.put("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
        for (process, name) in [(HEAD, "head"), (REQUESTS, "requests")] {
            events.put(&format!(
                "{{\"ph\":\"M\",\"pid\":{process},\"name\":\"process_name\",\"args\":{{\"name\":\"{name}\"}}}},\n"
            ))?;
        }
        events.named(PLANS, "plans")?;
        Ok(events)
    }

    /// The virtual time from which events are missing, because the file would be too large.
    pub fn full_at(&self) -> Option<Instant> {
        self.full_at
    }

    /// Completes the file.
    ///
    /// # Errors
    /// If `to` refuses, or refused before.
    pub fn finish(mut self) -> io::Result<W> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let (mut outstanding, begin) = (0i64, self.written);
        for (at, change) in std::mem::take(&mut self.changes) {
            outstanding += i64::from(change);
            if self.written - begin < MOST_COUNTED {
                let at = micros(Instant::from_nanos(at));
                self.put(&format!(
                    "{{\"ph\":\"C\",\"pid\":{REQUESTS},\"name\":\"outstanding\",\"ts\":{at},\
                     \"args\":{{\"requests\":{outstanding}}}}},\n"
                ))?;
            }
        }
        // The last event has no comma behind it.
        self.put("{\"ph\":\"M\",\"pid\":2,\"name\":\"process_sort_index\",\"args\":{\"sort_index\":2}}\n]}\n")?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn put(&mut self, text: &str) -> io::Result<()> {
        self.written += text.len() as u64;
        self.to.write_all(text.as_bytes())
    }

    fn named(&mut self, thread: u32, name: &str) -> io::Result<()> {
        self.put(&format!(
            "{{\"ph\":\"M\",\"pid\":{HEAD},\"tid\":{thread},\"name\":\"thread_name\",\
             \"args\":{{\"name\":\"{name}\"}}}},\n"
        ))
    }

    /// Whether an event at `at` has room.
    fn has_room(&mut self, at: Instant) -> bool {
        if self.written >= MOST_BYTES {
            self.full_at.get_or_insert(at);
        }
        self.full_at.is_none()
    }

    fn command_slices(&mut self, ended: &EndedCommand) -> io::Result<()> {
        let arm = ended.arm as usize;
        while self.ended.len() <= arm {
            let arm = self.ended.len() as u32;
            self.ended.push(Instant::ZERO);
            self.named(arm, &format!("arm {arm}"))?;
        }
        let begin = ended.began.max(self.ended[arm]);
        let end = ended.outcome.at.max(begin);
        self.ended[arm] = end;
        let (name, blocks) = described(ended);
        let mut text = slice(arm as u32, name, (begin, end), &blocks);
        if let Some(account) = ended.outcome.account {
            // The phases end with the command; a wait in the drive's queue is before them.
            let phases = [
                ("overhead", account.overhead),
                ("seek", account.seek),
                ("rotation", account.rotation),
                ("transfer", account.transfer),
                ("bus", account.bus),
            ];
            let mut at = ended.outcome.at;
            let inside = end.since(begin).min(account.service());
            at = Instant::from_nanos(at.as_nanos() - inside.as_nanos());
            for (phase, length) in phases {
                let length = length.min(end.since(at));
                if length > Duration::ZERO {
                    text += &slice(arm as u32, phase, (at, at + length), "");
                    at += length;
                }
            }
        }
        let plan = match ended.role {
            CommandRole::Merged(extent) => Some(("before a request", blocks_of(extent))),
            CommandRole::Gap => Some(("in a gap", blocks)),
            CommandRole::Idle => Some(("idle", blocks)),
            CommandRole::Request | CommandRole::Stream => None,
        };
        if let Some((name, blocks)) = plan {
            text += &slice(PLANS, name, (begin, end), &blocks);
        }
        self.put(&text)
    }

    fn request_slice(&mut self, finished: &Finished) -> io::Result<()> {
        let number = finished.request.id.0;
        let extent = finished.request.extent;
        let name = match finished.request.direction {
            Direction::Read => "read",
            Direction::Write => "write",
        };
        let (begin, end) = (finished.submitted, finished.at);
        *self.changes.entry(begin.as_nanos()).or_default() += 1;
        *self.changes.entry(end.as_nanos()).or_default() -= 1;
        let (from, to) = (micros(begin), micros(end));
        let waited = finished.waited.as_nanos() as f64 / 1e3;
        let (first, count) = (extent.start().0, extent.length().0);
        self.put(&format!(
            "{{\"ph\":\"b\",\"pid\":{REQUESTS},\"cat\":\"request\",\"name\":\"{name}\",\"id\":{number},\"ts\":{from},\
             \"args\":{{\"request\":{number},\"lbn\":{first},\"blocks\":{count},\"waited_us\":{waited}}}}},\n\
             {{\"ph\":\"e\",\"pid\":{REQUESTS},\"cat\":\"request\",\"name\":\"{name}\",\"id\":{number},\"ts\":{to}}},\n"
        ))
    }
}

impl<W: Write> Watch for TraceEvents<W> {
    fn finished(&mut self, finished: &Finished) -> io::Result<()> {
        match self.has_room(finished.at) {
            true => self.request_slice(finished),
            false => Ok(()),
        }
    }

    fn wants_commands(&self) -> bool {
        true
    }

    fn command(&mut self, ended: &EndedCommand) {
        if self.has_room(ended.outcome.at)
            && let Err(error) = self.command_slices(ended)
        {
            self.failed.get_or_insert(error);
        }
    }
}

/// The name of a command, and its blocks.
fn described(ended: &EndedCommand) -> (&'static str, String) {
    let (name, blocks) = match ended.action {
        Action::Read { extent, .. } => ("read", blocks_of(extent)),
        Action::Write { extent, .. } => ("write", blocks_of(extent)),
        Action::Seek { .. } => ("seek only", String::new()),
        Action::Flush => ("flush", String::new()),
        Action::SetLookAhead(_) | Action::SetWriteCache(_) => ("settings", String::new()),
    };
    let name = match ended.role {
        CommandRole::Request => name,
        CommandRole::Merged(_) => "read with free blocks",
        CommandRole::Stream => "stream",
        CommandRole::Gap | CommandRole::Idle => "background",
    };
    (name, blocks)
}

fn blocks_of(extent: Extent) -> String {
    format!(
        "\"lbn\":{},\"blocks\":{}",
        extent.start().0,
        extent.length().0
    )
}

fn slice(thread: u32, name: &str, (begin, end): (Instant, Instant), arguments: &str) -> String {
    let (at, lasts) = (micros(begin), end.since(begin).as_nanos() as f64 / 1e3);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "{{\"ph\":\"X\",\"pid\":{HEAD},\"tid\":{thread},\"name\":\"{name}\",\"ts\":{at},\"dur\":{lasts}"
    );
    match arguments {
        "" => text += "},\n",
        some => {
            let _ = writeln!(text, ",\"args\":{{{some}}}}},");
        }
    }
    text
}

/// Microseconds with their nanoseconds.
fn micros(at: Instant) -> String {
    let nanos = at.as_nanos();
    match nanos % 1000 {
        0 => (nanos / 1000).to_string(),
        rest => format!("{}.{rest:03}", nanos / 1000),
    }
}

#[cfg(test)]
mod tests;
