//! Sets of streams in files, and groups on the command line.
//!
//! ```toml
//! drive = "modern-20tb"
//! [streams]                  # the keys of [drive.streams] of the service's configuration
//! foreground_percent = 30
//! [[stream]]
//! name = "camera"
//! mode = "record"            # or play, record-sync
//! count = 64
//! rate = "500 kB"            # a second
//! buffer = "64 KiB"
//! ```

use std::ops::Range;

use block::StreamMode;
use document::{Document, DocumentError, Section};
use server::clock::TimeScale;
use server::config::{StreamsConfig, bytes};

use super::{MOST_STREAMS, StreamGroup, StreamSet};
use crate::amount::amount;

const MODES: [(&str, StreamMode); 3] = [
    ("play", StreamMode::Play),
    ("record", StreamMode::Record),
    ("record-sync", StreamMode::RecordSync),
];

/// Bytes that are read or written at once. A choice: those of `headtime play`.
const BUFFER: u64 = 64 * 1024;

impl StreamSet {
    /// Parses a set; `file` is the name in errors.
    ///
    /// # Errors
    /// If the text is not TOML, or a key is missing, unknown or invalid.
    pub fn parse(file: &str, text: &str) -> Result<StreamSet, DocumentError> {
        let document = Document::parse(file, text)?;
        let root = document.root();
        root.only(&["drive", "streams", "stream"])?;
        let promise = root.section("streams", &StreamsConfig::KEYS)?;
        let promise = promise.map(|table| StreamsConfig::read(&table));
        let groups = root.sections("stream")?;
        let groups = groups.iter().map(|table| {
            table.only(&GROUP_KEYS)?;
            read_group(table)
        });
        let groups: Vec<StreamGroup> = groups.collect::<Result<_, _>>()?;
        if groups.is_empty() {
            return Err(root.missing("stream", "missing: expected tables [[stream]]"));
        }
        Ok(StreamSet {
            drive: root.text("drive", "a drive")?.to_owned(),
            time_scale: TimeScale::REAL,
            promise: promise.transpose()?.unwrap_or_default(),
            groups,
        })
    }
}

/// The keys of a group.
pub const GROUP_KEYS: [&str; 7] = [
    "name", "mode", "count", "rate", "buffer", "memory", "blocks",
];

/// Reads a group, whose keys were checked.
///
/// # Errors
/// If a key is missing, or a value is invalid.
pub fn read_group(table: &Section<'_>) -> Result<StreamGroup, DocumentError> {
    let count = table.get("count").map(|count| {
        let expected = format!("a whole number of streams from 1 to {MOST_STREAMS}");
        count.whole(1..=MOST_STREAMS.into(), &expected)
    });
    let rate = table.need("rate", "bytes a second")?;
    let rate = match bytes(&rate, 1)? {
        0 => return Err(rate.mismatch("at least one byte a second")),
        rate => rate,
    };
    let buffer = table.get("buffer").map(|buffer| match bytes(&buffer, 1)? {
        0 => Err(buffer.mismatch("what is read or written at once, at least")),
        bytes => Ok(bytes),
    });
    let memory = table.get("memory").map(|memory| bytes(&memory, 1));
    let places = table.get("blocks").map(|places| {
        let range = range(places.text("a range of blocks")?);
        range.ok_or_else(|| places.mismatch("a range of blocks such as \"0..1000000\""))
    });
    Ok(StreamGroup {
        name: table.text("name", "a name")?.to_owned(),
        mode: table
            .need("mode", "play, record or record-sync")?
            .choice(&MODES)?,
        count: count.transpose()?.map_or(1, |count| count as u32),
        rate,
        buffer: buffer.transpose()?.unwrap_or(BUFFER),
        memory: memory.transpose()?,
        blocks: places.transpose()?,
    })
}

fn range(text: &str) -> Option<Range<u64>> {
    let (start, end) = text.split_once("..")?;
    let (start, end) = (start.trim().parse().ok()?, end.trim().parse().ok()?);
    (start < end).then_some(start..end)
}

/// Parses a group of the command line: `64x500kB/s,buffer=64KiB,memory=2M,blocks=0..1000000`. The `/s` is optional.
///
/// # Errors
/// The expected form.
pub fn group(name: &str, mode: StreamMode, text: &str) -> Result<StreamGroup, String> {
    let mut words = text.split(',').map(str::trim);
    let first = words.next().unwrap_or_default();
    let (count, rate) = match first.split_once('x') {
        None => (1, first),
        Some((count, rate)) => {
            let count = count
                .parse()
                .ok()
                .filter(|count| (1..=MOST_STREAMS).contains(count));
            let expected = || format!("\"{first}\": expected 1 to {MOST_STREAMS} before the x");
            (count.ok_or_else(expected)?, rate)
        }
    };
    let sized = |key: &str, text: &str| match amount(text) {
        Ok(0) => Err(format!("{key} {text}: expected at least one byte")),
        Ok(bytes) => Ok(bytes),
        Err(expected) => Err(format!("{key} \"{text}\": {expected}")),
    };
    let mut group = StreamGroup {
        name: name.to_owned(),
        mode,
        count,
        rate: sized("rate", rate.trim().strip_suffix("/s").unwrap_or(rate))?,
        buffer: BUFFER,
        memory: None,
        blocks: None,
    };
    for word in words {
        match word.split_once('=') {
            Some(("buffer", text)) => group.buffer = sized("buffer", text)?,
            Some(("memory", text)) => group.memory = Some(sized("memory", text)?),
            Some(("blocks", text)) => {
                let expected = || format!("blocks \"{text}\": expected a range such as 0..1000000");
                group.blocks = Some(range(text).ok_or_else(expected)?);
            }
            _ => {
                return Err(format!(
                    "\"{word}\": expected buffer=SIZE, memory=SIZE or blocks=FIRST..END"
                ));
            }
        }
    }
    Ok(group)
}
