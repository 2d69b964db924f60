//! Reads a trace, one record at a time.

use super::error::{Fault, Reason, SkippedLines, TraceError, quoted};
use super::headed::{self, Headed};
use super::layout::{Form, TraceForm};
use super::lines::{Lines, NextLine};
use super::{ALL, BLOCK_BYTES, DeviceTable, Format, MAX_LINE_BYTES, Parse, Parsed, Record};
use block::Instant;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Treatment of a bad line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnBad {
    /// Report the error and end.
    Refuse,
    /// Count it and continue with the next line.
    Skip,
}

/// The records of a trace, in order of time.
///
/// After an error, and after the last record, it stays at `None`. A compressed file (zstd, detected
/// by its first bytes) is decompressed transparently.
pub struct TraceReader {
    file: Arc<str>,
    lines: Lines<Box<dyn Read + Send>>,
    format: &'static Format,
    parser: Box<dyn Parse>,
    /// The user has named the columns: no other format is meant.
    has_own_columns: bool,
    devices: DeviceTable,
    on_bad: OnBad,
    /// The time of the previous record.
    now: Instant,
    records: u64,
    passed_over: u64,
    skipped: SkippedLines,
    ended: bool,
    /// The last line was valid and had no newline.
    unended: bool,
    position: Arc<AtomicU64>,
    size: Option<u64>,
}

impl TraceReader {
    /// Opens the trace in `path`; `-` is the standard input. Without a format, the first lines or else the file
    /// name determine it.
    ///
    /// # Errors
    /// If the file cannot be read, or its format is unknown.
    pub fn open(
        path: &Path,
        form: impl Into<TraceForm>,
        on_bad: OnBad,
    ) -> Result<Self, TraceError> {
        let form = form.into();
        if path == Path::new(STANDARD_INPUT) {
            return TraceReader::new("standard input", io::stdin(), form, on_bad);
        }
        let name = path.display().to_string();
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = match opened {
            Ok((metadata, _)) if metadata.is_dir() => {
                let error = io::Error::from(io::ErrorKind::IsADirectory);
                return Err(unreadable(&name, &error));
            }
            Ok(opened) => opened,
            Err(error) => return Err(unreadable(&name, &error)),
        };
        let by_name = || Format::by_extension(path, |_| true);
        let mut reader = TraceReader::begin(&name, file, form, by_name, on_bad)?;
        reader.size = metadata.is_file().then_some(metadata.len());
        Ok(reader)
    }

    /// Reads a trace from `input`, with `name` for messages. Without a format, the first lines
    /// determine it.
    ///
    /// # Errors
    /// If the input cannot be read, or its format is unknown.
    pub fn new(
        name: &str,
        input: impl Read + Send + 'static,
        form: impl Into<TraceForm>,
        on_bad: OnBad,
    ) -> Result<Self, TraceError> {
        TraceReader::begin(name, input, form.into(), || None, on_bad)
    }

    fn begin(
        name: &str,
        input: impl Read + Send + 'static,
        form: TraceForm,
        by_name: impl FnOnce() -> Option<&'static Format>,
        on_bad: OnBad,
    ) -> Result<Self, TraceError> {
        let position = Arc::new(AtomicU64::new(0));
        let counted = Counted {
            input,
            position: Arc::clone(&position),
        };
        let plain = decompressed(counted).map_err(|error| unreadable(name, &error))?;
        let mut lines = Lines::new(plain);
        if let Some(what) = columns(lines.head()) {
            return Err(columnar(name, what));
        }
        let format = match &form.0 {
            Form::Named(format) => format,
            Form::Headed(_) => &headed::FORMAT,
            Form::Detected => Format::sniff(lines.head())
                .or_else(|| Format::of_header(lines.head()))
                .or_else(by_name)
                .ok_or_else(|| match lines.failure() {
                    Some(error) => unreadable(name, error),
                    None => unrecognised(name, lines.head()),
                })?,
        };
        Ok(TraceReader {
            file: name.into(),
            lines,
            format,
            has_own_columns: matches!(form.0, Form::Headed(_)),
            parser: match form.0 {
                Form::Headed(layout) => Box::new(Headed::new(layout)),
                _ => (format.parser)(),
            },
            devices: DeviceTable::default(),
            on_bad,
            now: Instant::ZERO,
            records: 0,
            passed_over: 0,
            skipped: SkippedLines::default(),
            ended: false,
            unended: false,
            position,
            size: None,
        })
    }

    /// The name of the trace in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line of the last record, from 1.
    pub fn line(&self) -> u64 {
        self.lines.number()
    }

    /// The format of the trace.
    pub fn format(&self) -> &'static Format {
        self.format
    }

    /// The devices so far.
    pub fn devices(&self) -> &DeviceTable {
        &self.devices
    }

    /// The skipped bad lines so far.
    pub fn skipped(&self) -> &SkippedLines {
        &self.skipped
    }

    /// Number of valid lines so far that are no requests.
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// Whether the last line has no newline. It is valid, but may have been cut within its last
    /// number.
    pub fn is_unended(&self) -> bool {
        self.unended
    }

    /// Number of bytes of the file read so far, for progress.
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }

    /// The size of a regular file in bytes.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// The record of the next line; `Some(Ok(None))` for a line without a request, `None` at the
    /// end.
    fn step(&mut self) -> Option<Result<Option<Record>, Fault>> {
        let (line, is_last) = match self.lines.next() {
            Ok(NextLine::Line(line)) => (line, false),
            Ok(NextLine::Unended(line)) => (line, true),
            Ok(NextLine::TooLong) => return Some(Err(too_long())),
            Ok(NextLine::End) => return None,
            Err(error) => {
                self.ended = true;
                return Some(Err(broken(&error)));
            }
        };
        let parsed = self.parser.line(line, &mut self.devices);
        Some(match parsed {
            Ok(Parsed::Request(record)) if record.at < self.now => {
                Err(backwards(self.format, record.at, self.now))
            }
            Ok(Parsed::Request(record))
                if is_last && !record.bytes.length().is_multiple_of(BLOCK_BYTES) =>
            {
                Err(cut_short(line))
            }
            Ok(Parsed::Request(record)) => {
                self.unended = is_last;
                Ok(Some(record))
            }
            Ok(Parsed::Other) => {
                self.unended = is_last;
                self.passed_over += 1;
                Ok(None)
            }
            Err(fault) if is_last => Err(cut_off(fault)),
            Err(fault) if self.has_own_columns => Err(fault),
            Err(fault) => Err(foreign(self.format, line).unwrap_or(fault)),
        })
    }

    fn error(&self, fault: Fault) -> TraceError {
        TraceError {
            file: Arc::clone(&self.file),
            line: Some(self.lines.number()),
            fault,
        }
    }

    /// The error of the trace as a whole, at its end.
    fn end(&mut self) -> Option<TraceError> {
        self.ended = true;
        (self.records == 0).then(|| TraceError {
            file: Arc::clone(&self.file),
            line: None,
            fault: Fault {
                reason: Reason::Empty,
                field: "trace",
                found: format!(
                    "no request in {} lines ({} passed over, {} skipped)",
                    self.lines.number(),
                    self.passed_over,
                    self.skipped.total()
                ),
                expected: format!("{}: {}", self.format.name, self.format.shape),
            },
        })
    }
}

impl Iterator for TraceReader {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.step() {
                None => return self.end().map(Err),
                Some(Ok(None)) => {}
                Some(Ok(Some(record))) => {
                    self.now = record.at;
                    self.records += 1;
                    return Some(Ok(record));
                }
                Some(Err(fault)) => {
                    if self.on_bad == OnBad::Refuse || !fault.reason.is_skippable() {
                        self.ended = true;
                        return Some(Err(self.error(fault)));
                    }
                    self.skipped.count(fault.reason);
                    if self.ended {
                        return self.end().map(Err);
                    }
                }
            }
        }
        None
    }
}

/// The path of the standard input.
pub const STANDARD_INPUT: &str = "-";

/// Counts the bytes of a reader.
struct Counted<R> {
    input: R,
    position: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(into)?;
        self.position.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// The first bytes of a zstd frame, and of a skippable frame (whose first byte is 0x50 to 0x5f):
/// RFC 8878, sections 3.1.1 and 3.1.2.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const ZSTD_SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];

/// The input without its compression, if it has one.
pub(super) fn decompressed(
    mut input: impl Read + Send + 'static,
) -> io::Result<Box<dyn Read + Send>> {
    let mut magic = Vec::with_capacity(ZSTD_MAGIC.len());
    input
        .by_ref()
        .take(ZSTD_MAGIC.len() as u64)
        .read_to_end(&mut magic)?;
    let is_zstd = magic == ZSTD_MAGIC
        || matches!(magic[..], [0x50..=0x5f, ref rest @ ..] if *rest == ZSTD_SKIPPABLE);
    let whole = Cursor::new(magic).chain(input);
    Ok(if is_zstd {
        Box::new(zstd::Decoder::new(whole)?)
    } else {
        Box::new(whole)
    })
}

#[cold]
fn unreadable(name: &str, error: &io::Error) -> TraceError {
    TraceError {
        file: name.into(),
        line: None,
        fault: broken(error),
    }
}

/// The error of a failed read: a truncated file if it ends inside a compressed frame.
#[cold]
fn broken(error: &io::Error) -> Fault {
    let is_cut = error.kind() == io::ErrorKind::UnexpectedEof;
    Fault {
        reason: match is_cut {
            true => Reason::Truncated,
            false => Reason::Unreadable,
        },
        field: "file",
        found: match is_cut {
            true => "the end inside a zstd frame".into(),
            false => error.to_string(),
        },
        expected: match is_cut {
            true => "a complete frame".into(),
            false => "bytes".into(),
        },
    }
}

/// The format of a file of columns, by its first bytes: Apache Parquet's "File Format", and Arrow's "IPC File
/// Format".
pub(super) fn columns(head: &[u8]) -> Option<&'static str> {
    let formats = [
        (&b"PAR1"[..], "a Parquet file"),
        (b"ARROW1", "an Arrow file"),
    ];
    let found = formats
        .into_iter()
        .find(|(magic, _)| head.starts_with(magic));
    found.map(|(_, what)| what)
}

#[cold]
fn columnar(name: &str, what: &str) -> TraceError {
    let names: Vec<&str> = ALL.iter().map(|format| format.name).collect();
    TraceError {
        file: name.into(),
        line: None,
        fault: Fault {
            reason: Reason::Unrecognised,
            field: "trace",
            found: what.into(),
            expected: format!(
                "lines in one of the formats {}, such as the columns {} written as CSV",
                names.join(", "),
                ALL[0].shape
            ),
        },
    }
}

#[cold]
fn unrecognised(name: &str, head: &[u8]) -> TraceError {
    let first = head.split(|&byte| byte == b'\n').next().unwrap_or(head);
    let names: Vec<&str> = ALL.iter().map(|format| format.name).collect();
    let is_empty = head.is_empty();
    TraceError {
        file: name.into(),
        line: (!is_empty).then_some(1),
        fault: Fault {
            reason: match is_empty {
                true => Reason::Empty,
                false => Reason::Unrecognised,
            },
            field: "trace",
            found: match is_empty {
                true => "nothing".into(),
                false => quoted(first),
            },
            expected: format!("one of the formats {}", names.join(", ")),
        },
    }
}

#[cold]
fn too_long() -> Fault {
    Fault {
        reason: Reason::LineTooLong,
        field: "line",
        found: format!("more than {MAX_LINE_BYTES} bytes"),
        expected: "a newline before".into(),
    }
}

#[cold]
fn backwards(format: &Format, at: Instant, before: Instant) -> Fault {
    Fault {
        reason: Reason::Backwards,
        field: format.time_field,
        found: seconds(at),
        expected: format!("at least {}, that of the request before", seconds(before)),
    }
}

fn seconds(at: Instant) -> String {
    const NANOS: u64 = 1_000_000_000;
    format!("{}.{:09} s", at.as_nanos() / NANOS, at.as_nanos() % NANOS)
}

/// The error of a bad last line without a newline: it has probably been cut.
#[cold]
fn cut_off(fault: Fault) -> Fault {
    match fault.reason {
        Reason::Malformed | Reason::FieldCount => Fault {
            reason: Reason::Truncated,
            found: format!("{} on the last line, which has no newline", fault.found),
            ..fault
        },
        _ => fault,
    }
}

/// The error of a last line that lacks a newline and whose length is not whole sectors: of `8192`,
/// only `81` may be left.
#[cold]
fn cut_short(line: &[u8]) -> Fault {
    Fault {
        reason: Reason::Truncated,
        field: "line",
        found: format!("{} on the last line, which has no newline", quoted(line)),
        expected: format!("a newline, or a length of whole sectors of {BLOCK_BYTES} bytes"),
    }
}

/// The error of a bad line that is valid in another format.
#[cold]
fn foreign(format: &Format, line: &[u8]) -> Option<Fault> {
    let other = ALL
        .iter()
        .find(|other| other.name != format.name && other.begins_with(line))?;
    Some(Fault {
        reason: Reason::OtherFormat,
        field: "line",
        found: format!("{} in the format {}", quoted(line), other.name),
        expected: format!("{}: {}", format.name, format.shape),
    })
}
