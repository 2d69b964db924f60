//! The layout of a tracepoint's events, from the kernel's description of it (tracefs, `format`).
//!
//! ```text
//!   name: block_rq_issue
//!   ID: 2104
//!   format:
//!           field:sector_t sector;  offset:16;  size:8;  signed:0;
//! ```
//!
//! The layout differs between kernels, so that no offset is known before the file was read.

use std::ops::Range;

use super::priority::{IoPriority, ProcessName, Purpose};

/// The layout of `block_rq_issue`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFormat {
    /// The number of the tracepoint, for perf_event_open(2).
    pub id: u64,
    device: usize,
    sector: usize,
    sectors: usize,
    priority: usize,
    /// The letters of the operation.
    letters: Range<usize>,
    process: usize,
    /// The number of bytes with all these fields.
    bytes: usize,
}

/// A request that the kernel gave to the driver of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IssueEvent {
    /// The number of the device, as the kernel has it: major << 20 | minor.
    pub device: u32,
    /// The first sector of 512 bytes, counted from the begin of the device.
    pub sector: u64,
    /// The number of sectors; 0 for a flush.
    pub sectors: u32,
    /// The I/O priority.
    pub priority: IoPriority,
    /// The use of the request for the file system.
    pub purpose: Purpose,
    /// The process that issued the request.
    pub process: ProcessName,
}

/// Why a description cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the description of block_rq_issue has {found}: expected {expected}")]
pub struct UnknownFormat {
    found: String,
    expected: String,
}

impl EventFormat {
    /// Reads a description.
    ///
    /// # Errors
    /// The first field that is missing or has another size or place, and what was expected.
    pub fn parse(text: &str) -> Result<Self, UnknownFormat> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"));
        let id = id.and_then(|number| number.trim().parse().ok());
        let id = id.ok_or_else(|| unknown("no number", "a line such as ID: 2104"))?;
        let mut bytes = 0;
        let mut place = |name: &str, sizes: &[usize]| {
            let place = field(text, name, sizes)?;
            bytes = bytes.max(place.end);
            Ok(place)
        };
        let mut offset = |name: &str, size: usize| place(name, &[size]).map(|place| place.start);
        Ok(EventFormat {
            id,
            device: offset("dev", 4)?,
            sector: offset("sector", 8)?,
            sectors: offset("nr_sector", 4)?,
            priority: offset("ioprio", 2)?,
            process: offset("comm", size_of::<ProcessName>())?,
            letters: place("rwbs", &LETTERS)?,
            bytes,
        })
    }

    /// The event of a raw sample, or `None` if it is too short.
    pub fn event(&self, raw: &[u8]) -> Option<IssueEvent> {
        Some(IssueEvent {
            device: u32::from_ne_bytes(part(raw, self.device)?),
            sector: u64::from_ne_bytes(part(raw, self.sector)?),
            sectors: u32::from_ne_bytes(part(raw, self.sectors)?),
            priority: IoPriority::of(u16::from_ne_bytes(part(raw, self.priority)?)),
            purpose: Purpose::of(raw.get(self.letters.clone())?),
            process: part(raw, self.process)?,
        })
    }

    /// The number of bytes of a sample that hold the fields.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The place of a field of one of these sizes.
fn field(text: &str, name: &str, sizes: &[usize]) -> Result<Range<usize>, UnknownFormat> {
    let line = text.lines().find(|line| is_of(line, name));
    let Some(line) = line else {
        let expected = "a kernel that tells it (ioprio: Linux 6.11 or later)";
        return Err(unknown(format!("no field {name}"), expected));
    };
    match (number(line, "offset:"), number(line, "size:")) {
        (Some(at), Some(size)) if sizes.contains(&size) && at <= MOST_BYTES - size => {
            Ok(at..at + size)
        }
        _ => {
            let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
            let sizes = sizes.join(" or ");
            Err(unknown(
                format!("\"{}\"", line.trim()),
                format!("{name} of {sizes} bytes within the first {MOST_BYTES}"),
            ))
        }
    }
}

/// Whether a line describes the field of this name: `field:char comm[16];`.
fn is_of(line: &str, name: &str) -> bool {
    let declared = line.trim_start().strip_prefix("field:");
    let declared = declared.and_then(|rest| rest.split(';').next());
    let last = declared.and_then(|text| text.split_whitespace().last());
    last.and_then(|word| word.split('[').next()) == Some(name)
}

/// The number behind a key: `offset:16;`.
fn number(line: &str, key: &str) -> Option<usize> {
    let mut parts = line.split(';').map(str::trim);
    parts.find_map(|part| part.strip_prefix(key))?.parse().ok()
}

fn part<const N: usize>(raw: &[u8], at: usize) -> Option<[u8; N]> {
    raw.get(at..at + N)?.try_into().ok()
}

fn unknown(found: impl Into<String>, expected: impl Into<String>) -> UnknownFormat {
    UnknownFormat {
        found: found.into(),
        expected: expected.into(),
    }
}

/// The sizes of the letters (`RWBS_LEN`): 8 for long, 10 in Linux 6.18.
const LETTERS: [usize; 3] = [8, 9, 10];

/// The most bytes of a sample that are read. A choice: the fields end at byte 60 in Linux 6.18.
pub const MOST_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::priority::IoClass;
    use super::*;

    /// As Linux 6.18 has it, without the fields that all events have.
    const FORMAT: &str = "name: block_rq_issue\nID: 2104\nformat:\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned int bytes;\toffset:28;\tsize:4;\tsigned:0;\n\
        \tfield:unsigned short ioprio;\toffset:32;\tsize:2;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
        \tfield:char comm[16];\toffset:44;\tsize:16;\tsigned:0;\n\
        \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"%d,%d dev sector\", REC->dev, REC->comm\n";

    #[test]
    fn the_fields_of_an_event_are_where_the_kernel_says() {
        let format = EventFormat::parse(FORMAT).expect("a format");
        assert_eq!((format.id, format.bytes()), (2104, 60));
        let mut raw = [0xAA; 64];
        raw[8..12].copy_from_slice(&(7_u32 << 20 | 3).to_ne_bytes());
        raw[16..24].copy_from_slice(&123_456_u64.to_ne_bytes());
        raw[24..28].copy_from_slice(&8_u32.to_ne_bytes());
        raw[32..34].copy_from_slice(&0x6000_u16.to_ne_bytes());
        raw[34..44].copy_from_slice(b"FWFSM\0\0\0\0\0");
        raw[44..60].copy_from_slice(b"fio\0\0\0\0\0\0\0\0\0\0\0\0\0");
        let event = format.event(&raw).expect("an event");
        assert_eq!(
            (event.device, event.sector, event.sectors),
            (0x70_0003, 123_456, 8)
        );
        assert_eq!(event.priority.class, IoClass::Idle);
        assert_eq!(event.purpose, Purpose::MetadataWrite);
        assert_eq!(&event.process[..4], b"fio\0");
        for short in 0..60 {
            assert_eq!(format.event(&raw[..short]), None, "{short}");
        }
    }

    #[test]
    fn a_description_that_does_not_fit_says_what_was_expected() {
        for (from, to, part) in [
            (
                "ID: 2104",
                "ID: many",
                "no number: expected a line such as ID: 2104",
            ),
            (
                "ioprio",
                "prio",
                "no field ioprio: expected a kernel that tells it",
            ),
            ("dev_t dev", "dev_t device", "no field dev:"),
            (
                "offset:16;\tsize:8",
                "offset:16;\tsize:4",
                "expected sector of 8 bytes",
            ),
            (
                "offset:44;",
                "offset:1000;",
                "comm of 16 bytes within the first 256",
            ),
            ("offset:24;", "offset:-4;", "nr_sector of 4 bytes"),
            ("offset:32;", "", "ioprio of 2 bytes"),
            (
                "offset:34;\tsize:10",
                "offset:34;\tsize:7",
                "rwbs of 8 or 9 or 10 bytes",
            ),
        ] {
            let text = FORMAT.replace(from, to);
            assert_ne!(text, FORMAT, "{from}");
            let problem = EventFormat::parse(&text).expect_err(to).to_string();
            assert!(problem.contains(part), "{problem}");
        }
    }

    proptest! {
        #[test]
        fn any_text_and_any_bytes_are_refused_or_read(
            text in "(field:|offset:|size:|ID: |[a-z0-9 ;\\[\\]\n]){0,60}",
            cut in 0..FORMAT.len(),
            raw in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let _ = EventFormat::parse(&text);
            let _ = EventFormat::parse(&FORMAT[..cut]);
            let format = EventFormat::parse(FORMAT).expect("a format");
            prop_assert_eq!(format.event(&raw).is_some(), raw.len() >= format.bytes());
        }
    }
}
