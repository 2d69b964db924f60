//! The logs that `fio` writes and replays (`write_iolog`, `read_iolog`), versions 2 and 3.
//!
//! ```text
//!   fio version 3 iolog                fio version 2 iolog
//!   0 /dev/sda add                     /dev/sda add
//!   0 /dev/sda open                    /dev/sda open
//!   1500 /dev/sda read 4096 8192       /dev/sda wait 1500 0
//!   2000 /dev/sda close                /dev/sda read 4096 8192
//! ```
//!
//! Offsets and lengths are bytes. Version 3 has a timestamp on each line, in microseconds (so
//! `log_io_u` in fio's `iolog.c` writes it; the manual names no unit). Version 2 has `wait` lines,
//! in microseconds after the `wait` before (fio's manual, "Trace file format v2"): the time of a
//! request is the sum of the waits before it, and without them every time is zero. `add`, `open`,
//! `close`, `sync`, `datasync` and `trim` are no requests and passed over; they are counted.
//!
//! Times that are no whole microseconds are rounded down when written.

use super::error::{Reason, quoted};
use super::fields::{Field, blank_separated, byte_range, missing, one_too_many};
use super::writer::{Encode, UnencodableField, push_line};
use super::{DeviceIndex, DeviceTable, Fault, Format, Parse, Parsed, Record};
use block::{Direction, Duration, Instant};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

pub(super) const V3: Format = Format {
    name: "fio-v3",
    summary: "fio iolog, version 3 (fio 3.31 and later): microseconds, bytes",
    shape: "timestamp filename action offset length",
    extensions: &["iolog", "fio"],
    time_field: TIME.name,
    parser: || Box::new(FioLog::new(Version::Three)),
    encoder: Some(|| Box::new(Encoder::new(Version::Three))),
};

pub(super) const V2: Format = Format {
    name: "fio-v2",
    summary: "fio iolog, version 2: waits in microseconds, bytes",
    shape: "filename action offset length",
    extensions: &["iolog", "fio"],
    time_field: WAIT.name,
    parser: || Box::new(FioLog::new(Version::Two)),
    encoder: Some(|| Box::new(Encoder::new(Version::Two))),
};

const HEADER: Field = Field::new("header", "fio version 2 iolog or fio version 3 iolog");
const TIME: Field = Field::new("timestamp", "a whole number of microseconds");
const FILE: Field = Field::new("filename", "a name without blanks and commas");
const ACTION: Field = Field::new(
    "action",
    "read, write, trim, sync, datasync, add, open or close, and wait in version 2",
);
const WAIT: Field = Field::new("wait", "a whole number of microseconds");
const OFFSET: Field = Field::new("offset", "a whole number of bytes");
const LENGTH: Field = Field::new("length", "a whole number of bytes");

/// Nanoseconds of the unit of time of both versions.
const MICRO_NANOS: u64 = 1_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Two,
    Three,
}

impl Version {
    fn header(self) -> &'static str {
        match self {
            Version::Two => "fio version 2 iolog",
            Version::Three => "fio version 3 iolog",
        }
    }
}

/// Where in the log the next line is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LogPart {
    Header,
    Actions,
}

struct FioLog {
    version: Version,
    part: LogPart,
    /// The sum of the waits, in version 2.
    waited: Instant,
}

impl FioLog {
    fn new(version: Version) -> Self {
        FioLog {
            version,
            part: LogPart::Header,
            waited: Instant::ZERO,
        }
    }

    fn action(&mut self, line: &[u8], devices: &mut DeviceTable) -> Result<Parsed, Fault> {
        let mut fields = blank_separated(line);
        let mut next = |column| fields.next().ok_or_else(|| missing(column, line));
        let stamp = match self.version {
            Version::Two => None,
            Version::Three => Some(micros(TIME, next(TIME)?)?),
        };
        let file = next(FILE)?;
        let action = next(ACTION)?;
        let parsed = match action {
            b"read" | b"write" => {
                let bytes = byte_range(OFFSET.bytes(next(OFFSET)?), LENGTH.bytes(next(LENGTH)?))?;
                end_of_line(fields)?;
                return Ok(Parsed::Request(Record {
                    at: stamp.unwrap_or(self.waited),
                    device: devices.index(FILE, file)?,
                    direction: ACTION.direction(action, &[b"read"], &[b"write"])?,
                    bytes,
                    owner: block::Owner::NOBODY,
                    measured: None,
                }));
            }
            b"wait" if self.version == Version::Two => {
                let text = next(WAIT)?;
                let waited = self
                    .waited
                    .checked_add(micros(WAIT, text)?.since(Instant::ZERO));
                let _length = fields.next();
                end_of_line(fields)?;
                self.waited = waited.ok_or_else(|| WAIT.too_late(text))?;
                Parsed::Other
            }
            b"trim" => {
                OFFSET.number(next(OFFSET)?)?;
                LENGTH.number(next(LENGTH)?)?;
                end_of_line(fields)?;
                Parsed::Other
            }
            b"sync" | b"datasync" => {
                for (column, text) in [OFFSET, LENGTH].into_iter().zip(&mut fields) {
                    column.number(text)?;
                }
                end_of_line(fields)?;
                Parsed::Other
            }
            b"add" | b"open" | b"close" => {
                end_of_line(fields)?;
                Parsed::Other
            }
            _ => return Err(ACTION.fault(Reason::Malformed, action)),
        };
        Ok(parsed)
    }
}

impl Parse for FioLog {
    fn line(&mut self, line: &[u8], devices: &mut DeviceTable) -> Result<Parsed, Fault> {
        match std::mem::replace(&mut self.part, LogPart::Actions) {
            LogPart::Actions => self.action(line, devices),
            LogPart::Header if line.trim_ascii() == self.version.header().as_bytes() => {
                Ok(Parsed::Other)
            }
            LogPart::Header => Err(Fault {
                found: quoted(line),
                expected: format!("\"{}\" on the first line", self.version.header()),
                ..HEADER.fault(Reason::Malformed, line)
            }),
        }
    }
}

fn micros(field: Field, text: &[u8]) -> Result<Instant, Fault> {
    let nanos = field.number(text)?.checked_mul(MICRO_NANOS);
    Ok(Instant::from_nanos(
        nanos.ok_or_else(|| field.too_late(text))?,
    ))
}

fn end_of_line<'a>(mut rest: impl Iterator<Item = &'a [u8]>) -> Result<(), Fault> {
    match rest.next() {
        None => Ok(()),
        Some(further) => Err(one_too_many(further)),
    }
}

struct Encoder {
    version: Version,
    part: LogPart,
    /// The files that were added and opened.
    open: BTreeMap<DeviceIndex, String>,
    /// The time of the line before, in microseconds.
    now: u64,
}

impl Encoder {
    fn new(version: Version) -> Self {
        Encoder {
            version,
            part: LogPart::Header,
            open: BTreeMap::new(),
            now: 0,
        }
    }

    /// What stands before the file name.
    fn stamp(&self) -> String {
        match self.version {
            Version::Two => String::new(),
            Version::Three => format!("{} ", self.now),
        }
    }

    fn header(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.part, LogPart::Actions) == LogPart::Header {
            push_line(out, format_args!("{}", self.version.header()));
        }
    }
}

impl Encode for Encoder {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(MICRO_NANOS)
    }

    fn record(
        &mut self,
        out: &mut Vec<u8>,
        record: &Record,
        file: &str,
    ) -> Result<(), UnencodableField> {
        self.header(out);
        let before = std::mem::replace(&mut self.now, record.at.as_nanos() / MICRO_NANOS);
        let stamp = self.stamp();
        if let Entry::Vacant(new) = self.open.entry(record.device) {
            new.insert(file.into());
            push_line(out, format_args!("{stamp}{file} add"));
            push_line(out, format_args!("{stamp}{file} open"));
        }
        if self.version == Version::Two && self.now > before {
            push_line(out, format_args!("{file} wait {} 0", self.now - before));
        }
        let action = match record.direction {
            Direction::Read => "read",
            Direction::Write => "write",
        };
        let (offset, length) = (record.bytes.offset(), record.bytes.length());
        push_line(
            out,
            format_args!("{stamp}{file} {action} {offset} {length}"),
        );
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.header(out);
        let stamp = self.stamp();
        for file in self.open.values() {
            push_line(out, format_args!("{stamp}{file} close"));
        }
    }
}
