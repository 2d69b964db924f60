//! The default output of `blkparse` for a recording of `blktrace`.
//!
//! ```text
//!     8,0    3       11     0.009507758   697  Q   W 223490 + 8 [kjournald]
//!   maj,min cpu  sequence     seconds     pid  |  rwbs block + blocks [process]
//!                                              action
//! ```
//!
//! A request is a `Q` event: its submission to the block layer. The `D` events of the same requests
//! depend on one kernel's scheduler and one drive, so they do not describe the load. All other
//! actions, `Q` events without data (flush, discard, zone management), messages and the final
//! summary are valid lines; they are counted and ignored. A device is called `major:minor`.
//!
//! `blkparse` may print events of several CPUs slightly out of order: sort by time first, or skip
//! bad lines.

use super::error::Reason;
use super::fields::{Field, Unit, blank_separated, byte_range, missing};
use super::{DeviceTable, Fault, Format, Parse, Parsed, Record};
use block::{Direction, Owner};

pub(super) const FORMAT: Format = Format {
    name: "blkparse",
    summary: "blkparse text; its Q events are the requests",
    shape: "maj,min cpu seq seconds pid action rwbs block + blocks [process]",
    extensions: &["blkparse"],
    time_field: TIME.name,
    parser: || {
        Box::new(Blkparse {
            part: OutputPart::Events,
        })
    },
    encoder: None,
};

const DEVICE: Field = Field::new("device", "major,minor");
const CPU: Field = Field::new("cpu", "a whole number");
const SEQUENCE: Field = Field::new("sequence", "a whole number");
const TIME: Field = Field::new("time", "seconds, not negative, like 0.009507758");
const PROCESS: Field = Field::new("pid", "a whole number");
const ACTION: Field = Field::new("action", "an action of one or two letters, like Q");
const RWBS: Field = Field::new("rwbs", "letters of FRWDNSAMEZB");
const START: Field = Field::new("block", "a whole number of 512-byte blocks");
const PLUS: Field = Field::new("plus", "+ between block and count");
const COUNT: Field = Field::new("blocks", "a whole number of 512-byte blocks");

/// The part of the output that contains a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputPart {
    Events,
    /// The counts per CPU and in total, at the end.
    Summary,
}

struct Blkparse {
    part: OutputPart,
}

impl Parse for Blkparse {
    fn line(&mut self, line: &[u8], devices: &mut DeviceTable) -> Result<Parsed, Fault> {
        if line.starts_with(b"CPU") || line.starts_with(b"Total (") {
            self.part = OutputPart::Summary;
        }
        let first = line.trim_ascii_start().first();
        let is_text = first.is_none_or(u8::is_ascii_alphabetic);
        if (is_text && self.part == OutputPart::Summary) || line.starts_with(b"Input file ") {
            return Ok(Parsed::Other);
        }
        event(line, devices)
    }
}

fn event(line: &[u8], devices: &mut DeviceTable) -> Result<Parsed, Fault> {
    let mut fields = blank_separated(line);
    let mut next = |column| fields.next().ok_or_else(|| missing(column, line));
    let (major, minor) = major_minor(next(DEVICE)?)?;
    CPU.small_number(next(CPU)?)?;
    SEQUENCE.number(next(SEQUENCE)?)?;
    let at = TIME.instant(next(TIME)?, Unit::Seconds)?;
    let process = PROCESS.small_number(next(PROCESS)?)?;
    let action = next(ACTION)?;
    if !(1..=2).contains(&action.len()) || !action.iter().all(u8::is_ascii_alphabetic) {
        return Err(ACTION.fault(Reason::Malformed, action));
    }
    if action != b"Q" {
        return Ok(Parsed::Other);
    }
    let Some(direction) = moved(next(RWBS)?)? else {
        return Ok(Parsed::Other);
    };
    let start = next(START)?;
    if start.starts_with(b"[") {
        // A flush is queued as a write of nothing: no block, only the process.
        return Ok(Parsed::Other);
    }
    let plus = next(PLUS)?;
    if plus != b"+" {
        return Err(PLUS.fault(Reason::Malformed, plus));
    }
    let count = next(COUNT)?;
    let start = START.blocks(start);
    let count = COUNT.blocks(count);
    Ok(Parsed::Request(Record {
        at,
        direction,
        bytes: byte_range(start, count)?,
        device: devices.index(DEVICE, format_device(&mut [0; 21], major, minor))?,
        owner: Owner::process(process),
        measured: None,
    }))
}

fn major_minor(text: &[u8]) -> Result<(u32, u32), Fault> {
    let fault = || DEVICE.fault(Reason::Malformed, text);
    let comma = text
        .iter()
        .position(|&byte| byte == b',')
        .ok_or_else(fault)?;
    let major = DEVICE.small_number(&text[..comma]).map_err(|_| fault())?;
    let minor = DEVICE
        .small_number(&text[comma + 1..])
        .map_err(|_| fault())?;
    Ok((major, minor))
}

/// `major:minor` in a buffer that holds two numbers of 32 bits and the colon.
fn format_device(buffer: &mut [u8; 21], major: u32, minor: u32) -> &[u8] {
    use std::io::Write as _;
    let mut rest = &mut buffer[..];
    write!(rest, "{major}:{minor}").expect("two numbers of ten digits and a colon fit");
    let free = rest.len();
    &buffer[..21 - free]
}

/// The direction of the data transfer; `None` without one.
fn moved(rwbs: &[u8]) -> Result<Option<Direction>, Fault> {
    if rwbs.is_empty() || !rwbs.iter().all(|letter| b"FRWDNSAMEZB".contains(letter)) {
        return Err(RWBS.fault(Reason::Malformed, rwbs));
    }
    let has = |letter| rwbs.contains(letter);
    Ok(if has(&b'D') || has(&b'E') || has(&b'Z') {
        None
    } else if has(&b'W') {
        Some(Direction::Write)
    } else if has(&b'R') {
        Some(Direction::Read)
    } else {
        None
    })
}
