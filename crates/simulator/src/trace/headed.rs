//! CSV with a header line, as `pandas` and spreadsheets write it: `time,op,offset,size`. Or without one, if the user
//! names the columns (`--columns`).
//!
//! The header names the columns, in any order; others are ignored. A name may have its unit behind it:
//!
//! | Column | Names | Without a unit |
//! |---|---|---|
//! | time | `time`, `timestamp`, `ts`, `arrival` with `_s`, `_ms`, `_us`, `_ns` | `--time-unit`, else seconds |
//! | address | `offset`, `address` with `_bytes`, `_kib`, `_sectors`, `_blocks`; `lba`, `lbn`, `sector`, `block`, `blkno` | bytes; the last five blocks of `--block-bytes`, else 512 bytes |
//! | length | `size`, `length`, `len` with `_bytes`, `_kib`, `_sectors`, `_blocks`; `bytes`; `sectors`, `blocks`, `bcount` | `--size-unit`, else bytes; the last three blocks |
//! | direction | `op`, `type`, `rw`, `direction`, `opcode`, `io_type`, `operation`; `is_write` | all are reads |
//! | device | `device`, `dev`, `disk`, `volume`, `device_id`, `volume_id` | one device |
//!
//! The headers of the traces of Alibaba, Tencent, MSR Cambridge and CloudPhysics have the units of these traces.
//!
//! Fields are separated by commas, semicolons or tabs, whichever the header has, and may be in double quotes. Whole
//! numbers may end with `.0`, and times may have an exponent, as `pandas` writes columns of floating point. The first
//! request is the start of the trace, because such files often have times since 1970.

use super::error::Reason;
use super::fields::{Field, FirstTime, blank_separated, byte_range, missing, one_too_many};
use super::layout::{Columns, Delimiter, HeadedLayout};
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
    "one column each for time, address and length, such as time_us,op,offset,size; --columns names those of a file",
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
pub(super) struct Headed {
    layout: HeadedLayout,
    columns: Option<Columns>,
    is_begun: bool,
    /// In nanoseconds.
    first: FirstTime,
}

impl Headed {
    /// The parser of a trace of which this is known.
    pub(super) fn new(layout: HeadedLayout) -> Self {
        Headed {
            columns: layout.columns.clone(),
            layout,
            ..Headed::default()
        }
    }

    fn record(
        &self,
        line: &[u8],
        columns: &Columns,
        devices: &mut DeviceTable,
    ) -> Result<(Record, u64), Fault> {
        let fields = columns.fields(line)?;
        let at = |place: usize| move |fault| in_column(fault, place);
        let (place, unit) = columns.time;
        let plain = plain_time(fields.time);
        let time = plain.as_deref().unwrap_or(fields.time);
        let nanos = TIME.nanos(time, unit).map_err(at(place))?;
        let since = (self.first.since(TIME, fields.time, nanos, " ns")).map_err(at(place))?;
        let direction = match (fields.direction, columns.direction) {
            (Some(text), Some(place)) => {
                (DIRECTION.direction(text, &READS, &WRITES)).map_err(at(place))?
            }
            _ => Direction::Read,
        };
        let (address, length) = (whole(fields.address), whole(fields.length));
        ADDRESS.number(address).map_err(at(columns.address.0))?;
        LENGTH.number(length).map_err(at(columns.length.0))?;
        let address = ADDRESS.units(address, columns.address.1);
        let bytes = byte_range(address, LENGTH.units(length, columns.length.1))?;
        let device = devices.index(DEVICE, fields.device.unwrap_or(ONE))?;
        let record = Record {
            at: Instant::from_nanos(since),
            device,
            direction,
            bytes,
            owner: block::Owner::NOBODY,
            measured: None,
        };
        Ok((record, nanos))
    }
}

impl Parse for Headed {
    fn line(&mut self, line: &[u8], devices: &mut DeviceTable) -> Result<Parsed, Fault> {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        if is_first
            && self.layout.delimiter.is_none()
            && let (Some(columns), Some(mark)) = (&mut self.columns, separator(line))
        {
            columns.delimiter = Delimiter::Byte(mark);
        }
        let Some(columns) = &self.columns else {
            self.columns = Some(header(line, &self.layout)?);
            return Ok(Parsed::Other);
        };
        match self.record(line, columns, devices) {
            Ok((record, nanos)) => {
                self.first.note(nanos);
                Ok(Parsed::Request(record))
            }
            // A header whose columns the user has named otherwise.
            Err(_) if is_first && is_heading(line, columns) => Ok(Parsed::Other),
            Err(fault) => Err(fault),
        }
    }
}

/// Whether the first line names the columns: its time has no digit.
fn is_heading(line: &[u8], columns: &Columns) -> bool {
    let fields = columns.fields(line);
    fields.is_ok_and(|fields| !fields.time.iter().any(u8::is_ascii_digit))
}

/// What separates the fields of a line.
fn separator(line: &[u8]) -> Option<u8> {
    SEPARATORS.into_iter().find(|mark| line.contains(mark))
}

/// Whether a line can only be a header: words between separators, and no number.
pub(super) fn is_words(line: &[u8]) -> bool {
    let line = line.strip_prefix(MARK).unwrap_or(line);
    let Some(mark) = separator(line) else {
        return false;
    };
    let is_word = |field: &[u8]| bare(field).first().is_some_and(u8::is_ascii_alphabetic);
    let mut fields = line.split(|&byte| byte == mark);
    fields.clone().count() >= LEAST_FIELDS && fields.all(is_word)
}

/// Time, address and length.
const LEAST_FIELDS: usize = 3;

/// The columns of a header.
fn header(line: &[u8], layout: &HeadedLayout) -> Result<Columns, Fault> {
    let line = line.strip_prefix(MARK).unwrap_or(line);
    let delimiter = layout.delimiter.or(separator(line).map(Delimiter::Byte));
    let delimiter = delimiter.ok_or_else(|| HEADER.fault(Reason::Malformed, line))?;
    let names = split(line, delimiter).map(bare);
    let names: Vec<String> = names
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let units = layout.units.of_header(&names);
    Columns::of(&names, delimiter, units).map_err(|why| {
        let fault = HEADER.fault(Reason::Malformed, line);
        Fault {
            found: format!("{why} in {}", fault.found),
            ..fault
        }
    })
}

/// The fault of a field, with the number of its column from 1.
fn in_column(fault: Fault, place: usize) -> Fault {
    Fault {
        found: format!("{} in column {}", fault.found, place + 1),
        ..fault
    }
}

/// The fields of a line.
fn split(line: &[u8], delimiter: Delimiter) -> Box<dyn Iterator<Item = &[u8]> + '_> {
    match delimiter {
        Delimiter::Byte(mark) => Box::new(line.split(move |&byte| byte == mark)),
        Delimiter::Blanks => Box::new(blank_separated(line)),
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
    fn fields<'a>(&self, line: &'a [u8]) -> Result<Fields<'a>, Fault> {
        let mut found = Fields::default();
        let mut count = 0;
        let mut take = |text: &'a [u8]| {
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
            Ok(())
        };
        match self.delimiter {
            Delimiter::Byte(mark) => line.split(|&byte| byte == mark).try_for_each(&mut take)?,
            Delimiter::Blanks => blank_separated(line).try_for_each(&mut take)?,
        }
        match count == self.count {
            true => Ok(found),
            false => Err(missing(HEADER, line)),
        }
    }
}

/// A whole number without the `.0` of a column of floating point.
fn whole(text: &[u8]) -> &[u8] {
    text.strip_suffix(b".0").unwrap_or(text)
}

/// A time with an exponent, such as `5e-05`, without it. `None` for other texts.
fn plain_time(text: &[u8]) -> Option<Vec<u8>> {
    let mark = text.iter().position(|byte| matches!(byte, b'e' | b'E'))?;
    let (mantissa, exponent) = (&text[..mark], &text[mark + 1..]);
    let exponent: i32 = std::str::from_utf8(exponent).ok()?.parse().ok()?;
    if exponent.unsigned_abs() > MOST_EXPONENT || mantissa.len() > MOST_DIGITS {
        return None;
    }
    let point = mantissa.iter().position(|&byte| byte == b'.');
    let whole = &mantissa[..point.unwrap_or(mantissa.len())];
    let decimals = point.map_or(&b""[..], |point| &mantissa[point + 1..]);
    let digits = [whole, decimals].concat();
    if whole.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let point = whole.len() as i32 + exponent;
    let leading = usize::try_from(1 - point).unwrap_or(0);
    let mut plain = vec![b'0'; leading];
    plain.extend_from_slice(&digits);
    let point = usize::try_from(point).unwrap_or(0).max(1);
    while plain.len() < point + 1 {
        plain.push(b'0');
    }
    plain.insert(point, b'.');
    Some(plain)
}

/// The largest exponent of a time. A choice: 64 bits of nanoseconds have 20 digits.
const MOST_EXPONENT: u32 = 20;

/// The most digits of a time with an exponent. A choice: floating point of 64 bits has 17.
const MOST_DIGITS: usize = 40;

/// A field without blanks around it and without its quotes.
fn bare(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii();
    let inner = text.strip_prefix(b"\"");
    inner
        .and_then(|inner| inner.strip_suffix(b"\""))
        .unwrap_or(text)
}
