//! The account of every request as a table, written while a run goes on.

use std::io::{self, Write};

use block::Finished;
use simulator::requests_file::RequestLine;
use simulator::run::Watch;

use crate::Failure;
use crate::table::{Column, ColumnTable, TableFile, TableFormat};

/// Writes one row for each ended request, in batches.
pub struct RequestsTable<W: Write + Send> {
    file: TableFile<W>,
    lines: Vec<RequestLine>,
}

impl<W: Write + Send> RequestsTable<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// If `to` refuses.
    pub fn begin(to: W, format: TableFormat) -> Result<Self, Failure> {
        Ok(RequestsTable {
            file: TableFile::begin(to, format, &requests(&[]).schema())?,
            lines: Vec::new(),
        })
    }

    /// Completes the file.
    ///
    /// # Errors
    /// If the file refuses.
    pub fn finish(mut self) -> Result<W, Failure> {
        self.flush()?;
        self.file.finish()
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let table = requests(&self.lines);
        self.lines.clear();
        match table.batch() {
            batch if batch.num_rows() == 0 => Ok(()),
            batch => self.file.write(&batch),
        }
    }
}

impl<W: Write + Send> Watch for RequestsTable<W> {
    fn finished(&mut self, finished: &Finished) -> io::Result<()> {
        self.lines.push(RequestLine::from(finished));
        match self.lines.len() < BATCH {
            true => Ok(()),
            false => self.flush().map_err(io::Error::other),
        }
    }
}

/// The rows of requests.
pub fn requests(lines: &[RequestLine]) -> ColumnTable {
    type Line = RequestLine;
    let text = |name, what, of: fn(&Line) -> Option<&'static str>| {
        Column::text(name, what, lines.iter().map(of))
    };
    let count =
        |name, what, of: fn(&Line) -> Option<u64>| Column::count(name, what, lines.iter().map(of));
    ColumnTable {
        name: "requests",
        version: 1,
        columns: vec![
            count("request", "number by arrival, from 0", |l| Some(l.request)),
            text("direction", "read or write", |l| Some(l.direction)),
            count("lbn", "first block of the drive", |l| Some(l.lbn)),
            count("blocks", "length in blocks of the drive", |l| {
                Some(l.blocks)
            }),
            count("arrived_ns", "virtual time of the arrival", |l| {
                Some(l.arrived_ns)
            }),
            count("ended_ns", "virtual time of the end", |l| Some(l.ended_ns)),
            count("response_ns", "their difference", |l| Some(l.response_ns)),
            text(
                "status",
                "good, medium-error, timed-out, write-pointer or aborted",
                |l| Some(l.status),
            ),
            count("waited_ns", "wait before the command's dispatch", |l| {
                Some(l.waited_ns)
            }),
            count("queue_ns", "wait in the drive's queue", |l| l.queue_ns),
            count("overhead_ns", "electronics of the drive", |l| l.overhead_ns),
            count("seek_ns", "arm, head switch, settling", |l| l.seek_ns),
            count("rotation_ns", "rotational latency", |l| l.rotation_ns),
            count("transfer_ns", "media transfer", |l| l.transfer_ns),
            count("bus_ns", "bus transfer after the media transfer", |l| {
                l.bus_ns
            }),
            text(
                "hit",
                "hit in the drive's buffer: miss, partial or full",
                |l| l.hit,
            ),
        ],
    }
}

/// Rows of a batch. A choice: two megabytes, and few enough calls of the writer.
const BATCH: usize = 16_384;
