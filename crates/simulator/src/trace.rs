//! Traces of block requests: records and formats.
//!
//! ```text
//!   file --zstd?--> lines --format's parser--> order check --> Record, Record, ...
//!                     |            |                |
//!                     '------------+----------------'--> TraceError: refused, or skipped and counted
//! ```
//!
//! A [`TraceReader`] is an iterator with one buffer, independent of the length of the trace. A
//! [`TraceWriter`] gives its file its name only when it is complete. A new format is one file
//! beside this one, one line in [`ALL`], and one fuzz target; the tests then include it.

mod baleen;
mod blkparse;
mod canonical;
mod clouds;
pub mod conformance;
mod devices;
mod disksim;
mod error;
mod fields;
mod fio;
mod headed;
mod layout;
mod lines;
mod msr;
pub mod objects;
mod reader;
mod record;
mod spc;
mod statistics;
mod validate;
mod writer;

pub use devices::DeviceTable;
pub use error::{Fault, Reason, SkippedLines, TraceError};
pub use layout::{ColumnOptions, Delimiter, LayoutError, SizeUnit, TimeUnit, TraceForm};
pub use reader::{OnBad, STANDARD_INPUT, TraceReader};
pub use record::{ByteRange, CacheAction, DeviceIndex, MeasuredService, RangeError, Record};
pub use statistics::{DeviceSummary, Quantiles, Statistics, TraceSummary, doubts_of_first};
pub use writer::{IfExists, TraceWriter, UnencodableField, WriteError};

use block::Duration;
use std::path::Path;
use writer::Encode;

/// Maximum length of a line without its end; a longer line is bad, and is not held in memory. A
/// choice: the longest field of any format, a file name in a fio log, has at most 256 bytes.
pub const MAX_LINE_BYTES: usize = 8192;

/// Maximum number of devices in a trace; a record of a further one is bad. A choice, far above the
/// 36 volumes of the MSR Cambridge traces.
pub const MAX_DEVICES: usize = 4096;

/// Maximum length of a device name: the limit of `fio` (its buffer is 256 bytes).
pub const MAX_DEVICE_NAME_BYTES: usize = 255;

/// Maximum length of a request: lengths in NBD and in `fio` logs have 32 bits.
pub const MAX_REQUEST_BYTES: u64 = u32::MAX as u64;

/// The block size of SPC, DiskSim and `blkparse`.
const BLOCK_BYTES: u64 = 512;

/// A trace format.
pub struct Format {
    /// The name on the command line.
    pub name: &'static str,
    /// A description for the help.
    pub summary: &'static str,
    /// The fields of a line, for the help and for messages.
    pub shape: &'static str,
    /// File extensions, without the dot and without `.zst`.
    pub extensions: &'static [&'static str],
    /// The field that holds the time, for messages.
    pub time_field: &'static str,
    /// Creates a parser at the beginning of a trace.
    parser: fn() -> Box<dyn Parse>,
    /// Creates an encoder, if the format can be written.
    encoder: Option<fn() -> Box<dyn Encode>>,
}

/// Every format, in the order in which the help names them.
pub static ALL: &[Format] = &[
    canonical::FORMAT,
    spc::FORMAT,
    msr::FORMAT,
    clouds::ALIBABA,
    clouds::TENCENT,
    clouds::CLOUDPHYSICS,
    headed::FORMAT,
    disksim::FORMAT,
    validate::FORMAT,
    baleen::FORMAT,
    blkparse::FORMAT,
    fio::V3,
    fio::V2,
];

/// The result of parsing a line.
enum Parsed {
    /// A request.
    Request(Record),
    /// A valid line of the format that is no request: counted and ignored.
    Other,
}

/// Parses the lines of one trace in order.
trait Parse: Send {
    /// Parses the next line, given without its end.
    fn line(&mut self, line: &[u8], devices: &mut DeviceTable) -> Result<Parsed, Fault>;
}

impl Format {
    /// The format with this name on the command line.
    pub fn named(name: &str) -> Option<&'static Format> {
        ALL.iter().find(|format| format.name == name)
    }

    /// The first format with this file extension (before `.zst`) that `wanted` accepts.
    pub fn by_extension(path: &Path, wanted: impl Fn(&Format) -> bool) -> Option<&'static Format> {
        let name = path.file_name()?.to_str()?;
        let (_, extension) = name.strip_suffix(".zst").unwrap_or(name).rsplit_once('.')?;
        ALL.iter()
            .find(|format| wanted(format) && format.extensions.contains(&extension))
    }

    /// Whether the format can be written.
    pub fn is_written(&self) -> bool {
        self.encoder.is_some()
    }

    /// The resolution of written times, if the format can be written; times are rounded down.
    pub fn resolution(&self) -> Option<Duration> {
        self.encoder.map(|encoder| encoder().resolution())
    }

    /// Whether a trace of this format can begin with `line`.
    fn begins_with(&self, line: &[u8]) -> bool {
        (self.parser)()
            .line(line, &mut DeviceTable::default())
            .is_ok()
    }

    /// The format of a trace, detected from its first complete lines: the one that parses the
    /// earliest of them. No line is valid in two formats (tested).
    fn sniff(head: &[u8]) -> Option<&'static Format> {
        head.split(|&byte| byte == b'\n')
            .take(SNIFFED_LINES)
            .map(lines::without_return)
            .find_map(|line| ALL.iter().find(|format| format.begins_with(line)))
    }

    /// The format with a header, if the first line is one with names that nobody knows: its error says what they
    /// may be.
    fn of_header(head: &[u8]) -> Option<&'static Format> {
        let line = head.split(|&byte| byte == b'\n').next();
        let line = line.map(lines::without_return).unwrap_or_default();
        headed::is_words(line).then_some(&headed::FORMAT)
    }
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Format").field(&self.name).finish()
    }
}

/// Number of lines that detection examines: a few may be bad. A choice.
const SNIFFED_LINES: usize = 16;

#[cfg(test)]
mod tests;
