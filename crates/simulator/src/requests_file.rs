//! The account of every request as a file: CSV or JSON lines.

use std::io::{self, Write};

use block::{BufferHit, Direction, Finished, Status};
use serde::Serialize;

use crate::run::Watch;

/// The format of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestsFormat {
    /// A header, then comma-separated values; unknown values are empty.
    Csv,
    /// One JSON object per line; unknown values are null.
    JsonLines,
}

/// Writes one line for each ended request.
#[derive(Debug)]
pub struct RequestsFile<W> {
    to: W,
    format: RequestsFormat,
}

/// The account of one request. The order of the fields is the order of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RequestLine {
    /// The number by arrival, from 0.
    pub request: u64,
    /// `read` or `write`.
    pub direction: &'static str,
    /// The first block.
    pub lbn: u64,
    /// The length in blocks.
    pub blocks: u64,
    /// The time of the arrival.
    pub arrived_ns: u64,
    /// The time of the end.
    pub ended_ns: u64,
    /// The difference of both.
    pub response_ns: u64,
    /// The status by name.
    pub status: &'static str,
    /// The wait before the command's dispatch.
    pub waited_ns: u64,
    /// The wait in the drive's queue.
    pub queue_ns: Option<u64>,
    /// The time of the drive's electronics.
    pub overhead_ns: Option<u64>,
    /// The time of the arm.
    pub seek_ns: Option<u64>,
    /// The rotational latency.
    pub rotation_ns: Option<u64>,
    /// The media transfer.
    pub transfer_ns: Option<u64>,
    /// The bus transfer that follows it.
    pub bus_ns: Option<u64>,
    /// The hit in the drive's buffer.
    pub hit: Option<&'static str>,
}

/// The first line of a CSV file.
const HEADER: &str = "request,direction,lbn,blocks,arrived_ns,ended_ns,response_ns,status,\
                      waited_ns,queue_ns,overhead_ns,seek_ns,rotation_ns,transfer_ns,bus_ns,hit";

impl<W: Write> RequestsFile<W> {
    /// Starts a file. `to` should be buffered.
    ///
    /// # Errors
    /// If the header cannot be written.
    pub fn new(mut to: W, format: RequestsFormat) -> io::Result<Self> {
        if format == RequestsFormat::Csv {
            writeln!(to, "{HEADER}")?;
        }
        Ok(RequestsFile { to, format })
    }

    /// Completes the file.
    ///
    /// # Errors
    /// If buffered lines cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.flush()?;
        Ok(self.to)
    }

    fn csv(&mut self, line: &RequestLine) -> io::Result<()> {
        write!(
            self.to,
            "{},{},{},{},{},{},{},{},{}",
            line.request,
            line.direction,
            line.lbn,
            line.blocks,
            line.arrived_ns,
            line.ended_ns,
            line.response_ns,
            line.status,
            line.waited_ns,
        )?;
        let phases = [
            line.queue_ns,
            line.overhead_ns,
            line.seek_ns,
            line.rotation_ns,
            line.transfer_ns,
            line.bus_ns,
        ];
        for phase in phases {
            match phase {
                Some(nanos) => write!(self.to, ",{nanos}")?,
                None => write!(self.to, ",")?,
            }
        }
        writeln!(self.to, ",{}", line.hit.unwrap_or_default())
    }
}

impl<W: Write> Watch for RequestsFile<W> {
    fn finished(&mut self, finished: &Finished) -> io::Result<()> {
        let line = RequestLine::from(finished);
        match self.format {
            RequestsFormat::Csv => self.csv(&line),
            RequestsFormat::JsonLines => {
                serde_json::to_writer(&mut self.to, &line)?;
                writeln!(self.to)
            }
        }
    }
}

/// The name of a status.
pub fn status_name(status: Status) -> &'static str {
    match status {
        Status::Good => "good",
        Status::MediumError { .. } => "medium-error",
        Status::TimedOut => "timed-out",
        Status::WritePointer { .. } => "write-pointer",
        Status::Aborted => "aborted",
    }
}

impl From<&Finished> for RequestLine {
    fn from(finished: &Finished) -> Self {
        let account = finished.account.as_ref();
        let extent = finished.request.extent;
        RequestLine {
            request: finished.request.id.0,
            direction: match finished.request.direction {
                Direction::Read => "read",
                Direction::Write => "write",
            },
            lbn: extent.start().0,
            blocks: extent.length().0,
            arrived_ns: finished.submitted.as_nanos(),
            ended_ns: finished.at.as_nanos(),
            response_ns: finished.response().as_nanos(),
            status: status_name(finished.status),
            waited_ns: finished.waited.as_nanos(),
            queue_ns: account.map(|a| a.queue.as_nanos()),
            overhead_ns: account.map(|a| a.overhead.as_nanos()),
            seek_ns: account.map(|a| a.seek.as_nanos()),
            rotation_ns: account.map(|a| a.rotation.as_nanos()),
            transfer_ns: account.map(|a| a.transfer.as_nanos()),
            bus_ns: account.map(|a| a.bus.as_nanos()),
            hit: account.map(|a| match a.hit {
                BufferHit::Miss => "miss",
                BufferHit::Partial => "partial",
                BufferHit::Full => "full",
            }),
        }
    }
}
