//! Writes a trace. The file gets its name only when it is complete.

use super::fields::Unit;
use super::{Format, Record};
use block::{Duration, Instant};
use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Turns the records of one trace into lines.
pub(super) trait Encode: Send {
    /// The resolution of its times, which are rounded down.
    fn resolution(&self) -> Duration;

    /// Appends the lines of a record.
    ///
    /// # Errors
    /// If the format cannot express it; nothing is appended then.
    fn record(
        &mut self,
        out: &mut Vec<u8>,
        record: &Record,
        device: &str,
    ) -> Result<(), UnencodableField>;

    /// Appends the lines after the last record.
    fn end(&mut self, _out: &mut Vec<u8>) {}

    /// A remark for the user about the names in the file.
    fn remark(&self) -> Option<String> {
        None
    }
}

/// A field of a record that a format cannot express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnencodableField {
    /// The field of the record.
    pub field: &'static str,
    /// Its value.
    pub found: String,
    /// The values that the format can hold.
    pub expected: String,
}

/// An error that prevents writing a trace.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file exists and must not be replaced.
    #[error("{}: exists, and is not replaced without --force", .0.display())]
    Exists(PathBuf),
    /// The format can only be read.
    #[error("the format {0} is read, not written")]
    NotWritten(&'static str),
    /// A record does not fit the format.
    #[error("{}: request {number} does not fit {format}: {}: found {}, expected {}",
        .file.display(), .unfit.field, .unfit.found, .unfit.expected)]
    Unfit {
        /// The file to write.
        file: PathBuf,
        /// The number of the record, from 1.
        number: u64,
        /// The format.
        format: &'static str,
        /// The field that the format cannot express.
        unfit: UnencodableField,
    },
    /// The system reported an error.
    #[error("{}: {source}", .file.display())]
    Failed {
        /// The file to write.
        file: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// Treatment of an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfExists {
    /// Keep it and report an error.
    Refuse,
    /// Replace it by the complete new file.
    Replace,
}

/// A trace that is being written.
///
/// The lines go to a temporary file beside the target, which [`TraceWriter::finish`] renames; a
/// writer that is dropped earlier leaves no file. A file whose name ends in `.zst` is compressed.
pub struct TraceWriter {
    path: PathBuf,
    if_exists: IfExists,
    format: &'static Format,
    encoder: Box<dyn Encode>,
    lines: Vec<u8>,
    records: u64,
    now: Instant,
    sink: OutputFile,
}

impl fmt::Debug for TraceWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceWriter")
            .field("path", &self.path)
            .field("format", &self.format)
            .field("records", &self.records)
            .finish_non_exhaustive()
    }
}

/// Number of buffered bytes at which lines are written: an efficient size. A choice.
const LINES_BYTES: usize = 64 * 1024;

impl TraceWriter {
    /// Starts a trace in `path`.
    ///
    /// # Errors
    /// If the format can only be read, the file exists and must be kept, or the directory is not
    /// writable.
    pub fn create(
        path: &Path,
        format: &'static Format,
        if_exists: IfExists,
    ) -> Result<Self, WriteError> {
        let encoder = format.encoder.ok_or(WriteError::NotWritten(format.name))?;
        if if_exists == IfExists::Refuse && path.symlink_metadata().is_ok() {
            return Err(WriteError::Exists(path.into()));
        }
        let failed = |source| WriteError::Failed {
            file: path.into(),
            source,
        };
        let target = target(path).map_err(failed)?;
        let sink = OutputFile::beside(&target).map_err(failed)?;
        Ok(TraceWriter {
            path: target,
            if_exists,
            format,
            encoder: encoder(),
            lines: Vec::with_capacity(LINES_BYTES),
            records: 0,
            now: Instant::ZERO,
            sink,
        })
    }

    /// Appends a record of a device with this name.
    ///
    /// # Errors
    /// If the record does not fit the format, or cannot be written.
    ///
    /// # Panics
    /// If the record is earlier than the previous one; a reader never returns such records.
    pub fn write(&mut self, record: &Record, device: &str) -> Result<(), WriteError> {
        assert!(record.at >= self.now, "records come in order of time");
        self.now = record.at;
        self.records += 1;
        self.encoder
            .record(&mut self.lines, record, device)
            .map_err(|unfit| WriteError::Unfit {
                file: self.path.clone(),
                number: self.records,
                format: self.format.name,
                unfit,
            })?;
        if self.lines.len() >= LINES_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Completes the trace and gives the file its name. Returns a remark for the user about the
    /// names in it.
    ///
    /// # Errors
    /// If the file cannot be written, or a file of that name has appeared and must be kept.
    pub fn finish(mut self) -> Result<Option<String>, WriteError> {
        self.encoder.end(&mut self.lines);
        self.flush()?;
        let (path, if_exists) = (self.path, self.if_exists);
        match self.sink.finish(&path, if_exists) {
            Ok(()) => Ok(self.encoder.remark()),
            Err(source) if source.kind() == io::ErrorKind::AlreadyExists => {
                Err(WriteError::Exists(path))
            }
            Err(source) => Err(WriteError::Failed { file: path, source }),
        }
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        let written = self.sink.as_write().write_all(&self.lines);
        self.lines.clear();
        written.map_err(|source| WriteError::Failed {
            file: self.path.clone(),
            source,
        })
    }
}

/// The file behind a name, through links: a regular file, or a new one in an existing folder. Other
/// named objects, such as devices, must not be replaced by a file.
fn target(path: &Path) -> io::Result<PathBuf> {
    match path.metadata() {
        Ok(found) if found.is_file() => path.canonicalize(),
        Ok(_) => Err(io::Error::other(
            "neither a file nor a new name: expected one of these",
        )),
        Err(_) => match folder(path).is_dir() {
            true => Ok(path.into()),
            false => Err(io::Error::other(format!(
                "there is no folder {}",
                folder(path).display()
            ))),
        },
    }
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// A temporary file, plain or through zstd.
enum OutputFile {
    Plain(BufWriter<NamedTempFile>),
    Zstd(zstd::Encoder<'static, NamedTempFile>),
}

impl OutputFile {
    fn beside(path: &Path) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".headtime-").suffix(".partial");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            // As for any new file; the user's mask takes away what it takes away.
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(folder(path))?;
        Ok(match path.extension().is_some_and(|last| last == "zst") {
            true => {
                let mut encoder = zstd::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                encoder.include_checksum(true)?;
                OutputFile::Zstd(encoder)
            }
            false => OutputFile::Plain(BufWriter::new(file)),
        })
    }

    fn as_write(&mut self) -> &mut dyn Write {
        match self {
            OutputFile::Plain(plain) => plain,
            OutputFile::Zstd(encoder) => encoder,
        }
    }

    fn finish(self, path: &Path, if_exists: IfExists) -> io::Result<()> {
        let file = match self {
            OutputFile::Plain(plain) => plain.into_inner()?,
            OutputFile::Zstd(encoder) => encoder.finish()?,
        };
        file.as_file().sync_all()?;
        match if_exists {
            IfExists::Refuse => file.persist_noclobber(path)?,
            IfExists::Replace => file.persist(path)?,
        };
        Ok(())
    }
}

/// Appends a line and its newline.
pub(super) fn push_line(out: &mut Vec<u8>, line: fmt::Arguments<'_>) {
    out.write_fmt(line).expect("memory takes every byte");
    out.push(b'\n');
}

/// Appends a time: six decimals of a second where that is exact, as in the published traces, and
/// nine otherwise.
pub(super) fn push_decimal(out: &mut Vec<u8>, nanos: u64, unit: Unit) {
    let written = match unit {
        Unit::Seconds if nanos.is_multiple_of(1_000) => {
            let micros = nanos / 1_000;
            write!(out, "{}.{:06}", micros / 1_000_000, micros % 1_000_000)
        }
        Unit::Seconds => write!(
            out,
            "{}.{:09}",
            nanos / 1_000_000_000,
            nanos % 1_000_000_000
        ),
        Unit::Milliseconds => write!(out, "{}.{:06}", nanos / 1_000_000, nanos % 1_000_000),
        Unit::Microseconds => write!(out, "{}.{:03}", nanos / 1_000, nanos % 1_000),
        Unit::FileTimes => write!(out, "{}.{:02}", nanos / 100, nanos % 100),
        Unit::Nanoseconds => write!(out, "{nanos}"),
    };
    written.expect("memory takes every byte");
}
