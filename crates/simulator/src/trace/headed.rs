//! CSV with a header line, as `pandas` and spreadsheets write it: `time,op,offset,size`.
//!
//! The header names the columns, in any order; others are ignored. A name may have its unit behind it:
//!
//! | Column | Names | Without a unit |
//! |---|---|---|
//! | time | `time`, `timestamp`, `ts`, `arrival` with `_s`, `_ms`, `_us`, `_ns` | seconds |
//! | address | `offset`, `address` with `_bytes`, `_sectors`; `lba`, `lbn`, `sector`, `block`, `blkno` | bytes; the others sectors of 512 bytes |
//! | length | `size`, `length`, `len` with `_bytes`, `_sectors`; `bytes`; `sectors`, `blocks`, `bcount` | bytes; the last three sectors |
//! | direction | `op`, `type`, `rw`, `direction`, `opcode`, `io_type`, `operation`; `is_write` | all are reads |
//! | device | `device`, `dev`, `disk`, `volume`, `device_id`, `volume_id` | one device |
//!
//! Fields are separated by commas, semicolons or tabs, whichever the header has, and may be in double quotes. The
//! first request is the start of the trace, because such files often have times since 1970.

use super::error::{Reason, quoted};
use super::fields::{Cell, Field, FirstTime, Unit, byte_range, missing, one_too_many};
use super::{DeviceTable, Fault, Format, Parse, Parsed, Record};
use block::{Direction, Instant};

pub(super) const FORMAT: Format = Format {
    name: "headed",
    summary: "CSV with a header, in any order: time, offset or lba, size; op, device if it has them",
    shape: "a header such as time_us,op,offset,size or ts;lba;sectors, then lines of such fields",
    extensions: &["csv", "tsv"],
    time_field: TIME.name,
    parser: || Box::new(Headed::default()),
    encoder: None,
};

const HEADER: Field = Field::new(
    "header",
    "one column each for time, address and length, such as time_us,op,offset,size",
);
const TIME: Field = Field::new("time", "a time, not negative, like 12.000345");
const ADDRESS: Field = Field::new("address", "a whole number of bytes or sectors");
const LENGTH: Field = Field::new("length", "a whole number of bytes or sectors");
const DIRECTION: Field = Field::new("direction", "R, read or 0, or W, write or 1");
const DEVICE: Field = Field::new("device", "a name without blanks");

/// What separates fields: the first of them that the header has.
const SEPARATORS: [u8; 3] = [b';', b'\t', b','];

/// Spellings of reads and writes. The numbers are those of the Tencent traces and of `is_write`.
const READS: [&[u8]; 7] = [b"R", b"r", b"read", b"Read", b"READ", b"0", b"False"];
const WRITES: [&[u8]; 7] = [b"W", b"w", b"write", b"Write", b"WRITE", b"1", b"True"];

/// The device of a trace without devices.
const ONE: &[u8] = b"0";

/// The UTF-8 byte order mark, which spreadsheets put before the header.
const MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Default)]
struct Headed {
    columns: Option<Columns>,
    /// In nanoseconds.
    first: FirstTime,
}

/// The places of the columns, from 0, and their units.
struct Columns {
    separator: u8,
    count: usize,
    time: (usize, Unit),
    address: (usize, Grain),
    length: (usize, Grain),
    direction: Option<usize>,
    device: Option<usize>,
}

/// The unit of an address or a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grain {
    Bytes,
    Sectors,
}

/// What a name of the header stands for.
enum Meaning {
    Time(Unit),
    Address(Grain),
    Length(Grain),
    Direction,
    Device,
    Other,
}

impl Parse for Headed {
    fn line(&mut self, line: &[u8], devices: &mut DeviceTable) -> Result<Parsed, Fault> {
        let Some(columns) = &self.columns else {
            self.columns = Some(Columns::of(line)?);
            return Ok(Parsed::Other);
        };
        let fields = columns.fields(line)?;
        let nanos = TIME.nanos(fields.time, columns.time.1)?;
        let since = self.first.since(TIME, fields.time, nanos, " ns")?;
        let direction = match fields.direction {
            Some(text) => DIRECTION.direction(text, &READS, &WRITES)?,
            None => Direction::Read,
        };
        let address = columns.address.1.cell(ADDRESS, fields.address);
        let bytes = byte_range(address, columns.length.1.cell(LENGTH, fields.length))?;
        let device = devices.index(DEVICE, fields.device.unwrap_or(ONE))?;
        self.first.note(nanos);
        Ok(Parsed::Request(Record {
            at: Instant::from_nanos(since),
            device,
            direction,
            bytes,
            owner: block::Owner::NOBODY,
            measured: None,
        }))
    }
}

/// The fields of a line that have a meaning.
#[derive(Default)]
struct Fields<'a> {
    time: &'a [u8],
    address: &'a [u8],
    length: &'a [u8],
    direction: Option<&'a [u8]>,
    device: Option<&'a [u8]>,
}

impl Columns {
    /// The columns of a header.
    fn of(header: &[u8]) -> Result<Columns, Fault> {
        let header = header.strip_prefix(MARK).unwrap_or(header);
        let separator = SEPARATORS.into_iter().find(|mark| header.contains(mark));
        let separator = separator.ok_or_else(|| HEADER.fault(Reason::Malformed, header))?;
        let (mut time, mut address, mut length) = (None, None, None);
        let (mut direction, mut device) = (None, None);
        let mut count = 0;
        for name in header.split(|&byte| byte == separator) {
            let is_new = match Meaning::of(bare(name)) {
                Meaning::Time(unit) => time.replace((count, unit)).is_none(),
                Meaning::Address(grain) => address.replace((count, grain)).is_none(),
                Meaning::Length(grain) => length.replace((count, grain)).is_none(),
                Meaning::Direction => direction.replace(count).is_none(),
                Meaning::Device => device.replace(count).is_none(),
                Meaning::Other => true,
            };
            if !is_new {
                return Err(Fault {
                    found: format!("a second column of its kind, {}", quoted(name)),
                    ..HEADER.fault(Reason::Malformed, header)
                });
            }
            count += 1;
        }
        match (time, address, length) {
            (Some(time), Some(address), Some(length)) => Ok(Columns {
                separator,
                count,
                time,
                address,
                length,
                direction,
                device,
            }),
            _ => Err(HEADER.fault(Reason::Malformed, header)),
        }
    }

    fn fields<'a>(&self, line: &'a [u8]) -> Result<Fields<'a>, Fault> {
        let mut found = Fields::default();
        let mut count = 0;
        for text in line.split(|&byte| byte == self.separator) {
            let text = bare(text);
            if count == self.count {
                return Err(one_too_many(text));
            }
            if count == self.time.0 {
                found.time = text;
            } else if count == self.address.0 {
                found.address = text;
            } else if count == self.length.0 {
                found.length = text;
            } else if Some(count) == self.direction {
                found.direction = Some(text);
            } else if Some(count) == self.device {
                found.device = Some(text);
            }
            count += 1;
        }
        match count == self.count {
            true => Ok(found),
            false => Err(missing(HEADER, line)),
        }
    }
}

impl Meaning {
    fn of(name: &[u8]) -> Meaning {
        let name = name.to_ascii_lowercase();
        let Ok(name) = std::str::from_utf8(&name) else {
            return Meaning::Other;
        };
        let (stem, unit) = match name.rsplit_once('_') {
            Some((stem, unit)) => (stem, unit),
            None => (name, ""),
        };
        match (name, stem, unit) {
            ("time" | "timestamp" | "ts" | "arrival", ..) => Meaning::Time(Unit::Seconds),
            (_, "time" | "timestamp" | "ts" | "arrival", unit) => match unit {
                "s" | "seconds" => Meaning::Time(Unit::Seconds),
                "ms" => Meaning::Time(Unit::Milliseconds),
                "us" => Meaning::Time(Unit::Microseconds),
                "ns" => Meaning::Time(Unit::Nanoseconds),
                _ => Meaning::Other,
            },
            ("offset" | "address" | "byte_offset", ..) | (_, "offset" | "address", "bytes") => {
                Meaning::Address(Grain::Bytes)
            }
            ("lba" | "lbn" | "sector" | "block" | "blkno", ..)
            | (_, "offset" | "address", "sectors") => Meaning::Address(Grain::Sectors),
            ("size" | "length" | "len" | "bytes" | "byte_length" | "io_size", ..)
            | (_, "size" | "length" | "len", "bytes") => Meaning::Length(Grain::Bytes),
            ("sectors" | "blocks" | "bcount", ..) | (_, "size" | "length" | "len", "sectors") => {
                Meaning::Length(Grain::Sectors)
            }
            (
                "op" | "type" | "rw" | "direction" | "opcode" | "io_type" | "operation"
                | "is_write",
                ..,
            ) => Meaning::Direction,
            ("device" | "dev" | "disk" | "volume" | "device_id" | "volume_id", ..) => {
                Meaning::Device
            }
            _ => Meaning::Other,
        }
    }
}

impl Grain {
    fn cell(self, field: Field, text: &[u8]) -> Cell<'_> {
        match self {
            Grain::Bytes => field.bytes(text),
            Grain::Sectors => field.blocks(text),
        }
    }
}

/// A field without blanks around it and without its quotes.
fn bare(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii();
    let inner = text.strip_prefix(b"\"");
    inner
        .and_then(|inner| inner.strip_suffix(b"\""))
        .unwrap_or(text)
}
