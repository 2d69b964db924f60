//! Every command of the drive as a table, written while a run goes on.

use std::io::Write;

use block::{Action, Extent};
use simulator::requests_file::status_name;
use simulator::run::{CommandRole, EndedCommand, Watch};

use crate::Failure;
use crate::table::{Column, ColumnTable, TableFile, TableFormat};

/// Writes one row for each ended command, in batches.
pub struct CommandsTable<W: Write + Send> {
    file: TableFile<W>,
    rows: Vec<EndedCommand>,
    failed: Option<Failure>,
}

impl<W: Write + Send> CommandsTable<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// If `to` refuses.
    pub fn begin(to: W, format: TableFormat) -> Result<Self, Failure> {
        Ok(CommandsTable {
            file: TableFile::begin(to, format, &commands(&[]).schema())?,
            rows: Vec::new(),
            failed: None,
        })
    }

    /// Completes the file.
    ///
    /// # Errors
    /// If the file refuses, or refused before.
    pub fn finish(mut self) -> Result<W, Failure> {
        if let Some(failed) = self.failed.take() {
            return Err(failed);
        }
        self.flush()?;
        self.file.finish()
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let table = commands(&self.rows);
        self.rows.clear();
        match table.batch() {
            batch if batch.num_rows() == 0 => Ok(()),
            batch => self.file.write(&batch),
        }
    }
}

impl<W: Write + Send> Watch for CommandsTable<W> {
    fn wants_commands(&self) -> bool {
        true
    }

    fn command(&mut self, ended: &EndedCommand) {
        self.rows.push(*ended);
        if self.rows.len() >= BATCH
            && let Err(failure) = self.flush()
        {
            self.failed.get_or_insert(failure);
        }
    }
}

/// The rows of commands.
pub fn commands(rows: &[EndedCommand]) -> ColumnTable {
    type Row = EndedCommand;
    let text = |name, what, of: fn(&Row) -> Option<&'static str>| {
        Column::text(name, what, rows.iter().map(of))
    };
    let count =
        |name, what, of: fn(&Row) -> Option<u64>| Column::count(name, what, rows.iter().map(of));
    ColumnTable {
        name: "commands",
        version: 1,
        columns: vec![
            count("arm", "arm, or drive of a mirror, from 0", |c| {
                Some(c.arm.into())
            }),
            text(
                "role",
                "request, request-with-free-blocks, stream, background-in-gap or background-idle",
                |c| Some(role(c)),
            ),
            text("action", "read, write, seek, flush or settings", |c| {
                Some(action(c).0)
            }),
            count("lbn", "first block of the drive", |c| {
                Some(action(c).1?.start().0)
            }),
            count("blocks", "length in blocks of the drive", |c| {
                Some(action(c).1?.length().0)
            }),
            count(
                "free_blocks",
                "free blocks that it reads besides",
                |c| match c.role {
                    CommandRole::Merged(free) => Some(free.length().0),
                    _ => Some(0),
                },
            ),
            count(
                "began_ns",
                "virtual time of its earliest possible start",
                |c| Some(c.began.as_nanos()),
            ),
            count("ended_ns", "virtual time of the end", |c| {
                Some(c.outcome.at.as_nanos())
            }),
            text(
                "status",
                "good, medium-error, timed-out, write-pointer or aborted",
                |c| Some(status_name(c.outcome.status)),
            ),
            count("overhead_ns", "electronics of the drive", |c| {
                Some(c.outcome.account?.overhead.as_nanos())
            }),
            count("seek_ns", "arm, head switch, settling", |c| {
                Some(c.outcome.account?.seek.as_nanos())
            }),
            count("rotation_ns", "rotational latency", |c| {
                Some(c.outcome.account?.rotation.as_nanos())
            }),
            count("transfer_ns", "media transfer", |c| {
                Some(c.outcome.account?.transfer.as_nanos())
            }),
            count("bus_ns", "bus transfer after the media transfer", |c| {
                Some(c.outcome.account?.bus.as_nanos())
            }),
        ],
    }
}

fn role(command: &EndedCommand) -> &'static str {
    match command.role {
        CommandRole::Request => "request",
        CommandRole::Merged(_) => "request-with-free-blocks",
        CommandRole::Stream => "stream",
        CommandRole::Gap => "background-in-gap",
        CommandRole::Idle => "background-idle",
    }
}

fn action(command: &EndedCommand) -> (&'static str, Option<Extent>) {
    match command.action {
        Action::Read { extent, .. } => ("read", Some(extent)),
        Action::Write { extent, .. } => ("write", Some(extent)),
        Action::Seek { .. } => ("seek", None),
        Action::Flush => ("flush", None),
        Action::SetLookAhead(_) | Action::SetWriteCache(_) => ("settings", None),
    }
}

/// Rows of a batch. A choice, as of requests.
const BATCH: usize = 16_384;
