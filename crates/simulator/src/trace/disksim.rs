//! DiskSim's `ascii` format: `time_ms devno blkno bcount flags`, between blanks.
//!
//! Blocks have 512 bytes. The flags are hexadecimal (DiskSim 4.0 scans them with `%x` in
//! `disksim_iotrace.c`), and bit 0 means read; the other bits are not used.

use super::error::Reason;
use super::fields::{Field, Unit, at_blanks, byte_range};
use super::writer::{Encode, UnencodableField, push_decimal, push_line};
use super::{BLOCK_BYTES, DeviceIndex, DeviceTable, Fault, Format, Parse, Parsed, Record};
use block::{Direction, Duration};
use std::collections::BTreeMap;

pub(super) const FORMAT: Format = Format {
    name: "disksim",
    summary: "DiskSim ascii: milliseconds, 512-byte blocks",
    shape: "time_ms devno blkno bcount flags",
    extensions: &["disksim", "dis", "ascii"],
    time_field: TIME.name,
    parser: || Box::new(DiskSim),
    encoder: Some(|| Box::new(Numbering::default())),
};

const TIME: Field = Field::new("time_ms", "milliseconds, not negative, like 12.345");
const DEVICE: Field = Field::new("devno", "the number of a device");
const START: Field = Field::new("blkno", "a whole number of 512-byte blocks");
const COUNT: Field = Field::new("bcount", "a whole number of 512-byte blocks");
const FLAGS: Field = Field::new("flags", "a hexadecimal number, bit 0 set for a read");

/// The bit of the flags that means read.
const READ_FLAG: u32 = 1;

struct DiskSim;

impl Parse for DiskSim {
    fn line(&mut self, line: &[u8], devices: &mut DeviceTable) -> Result<Parsed, Fault> {
        let columns = [TIME, DEVICE, START, COUNT, FLAGS];
        let [time, device, start, count, flags] = at_blanks(line, &columns)?;
        let device = DEVICE.small_number(device)?;
        let flags = hexadecimal(flags).ok_or_else(|| FLAGS.fault(Reason::Malformed, flags))?;
        Ok(Parsed::Request(Record {
            at: TIME.instant(time, Unit::Milliseconds)?,
            direction: match flags & READ_FLAG {
                0 => Direction::Write,
                _ => Direction::Read,
            },
            bytes: byte_range(START.blocks(start), COUNT.blocks(count))?,
            device: devices.number(DEVICE, device)?,
            owner: block::Owner::NOBODY,
            measured: None,
        }))
    }
}

fn hexadecimal(text: &[u8]) -> Option<u32> {
    if !text.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

/// The DiskSim numbers of the devices of a trace.
///
/// A name that is a number keeps it. Any other name gets the smallest free number at its first
/// appearance.
#[derive(Default)]
struct Numbering {
    numbers: BTreeMap<DeviceIndex, u32>,
    taken: BTreeMap<u32, String>,
}

impl Numbering {
    fn number(&mut self, device: DeviceIndex, name: &str) -> Result<u32, UnencodableField> {
        if let Some(&number) = self.numbers.get(&device) {
            return Ok(number);
        }
        let number = match name.parse() {
            Ok(number) => number,
            Err(_) => (0..)
                .find(|number| !self.taken.contains_key(number))
                .expect("fewer devices than numbers"),
        };
        if let Some(other) = self.taken.get(&number) {
            return Err(UnencodableField {
                field: DEVICE.name,
                found: format!("device {name}"),
                expected: format!("another number: device {other} already has that one"),
            });
        }
        self.numbers.insert(device, number);
        self.taken.insert(number, name.into());
        Ok(number)
    }
}

impl Encode for Numbering {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    fn record(
        &mut self,
        out: &mut Vec<u8>,
        record: &Record,
        device: &str,
    ) -> Result<(), UnencodableField> {
        let number = self.number(record.device, device)?;
        let start = whole_blocks("byte_offset", record.bytes.offset())?;
        let count = whole_blocks("byte_length", record.bytes.length())?;
        let flags = match record.direction {
            Direction::Read => READ_FLAG,
            Direction::Write => 0,
        };
        push_decimal(out, record.at.as_nanos(), Unit::Milliseconds);
        push_line(out, format_args!(" {number} {start} {count} {flags:x}"));
        Ok(())
    }

    fn remark(&self) -> Option<String> {
        let renamed: Vec<String> = self
            .taken
            .iter()
            .filter(|(number, name)| number.to_string() != **name)
            .map(|(number, name)| format!("{name} is {number}"))
            .collect();
        (!renamed.is_empty()).then(|| format!("devices: {}", renamed.join(", ")))
    }
}

fn whole_blocks(field: &'static str, bytes: u64) -> Result<u64, UnencodableField> {
    if bytes.is_multiple_of(BLOCK_BYTES) {
        return Ok(bytes / BLOCK_BYTES);
    }
    Err(UnencodableField {
        field,
        found: format!("{bytes} bytes"),
        expected: format!("whole blocks of {BLOCK_BYTES} bytes, in which DiskSim counts"),
    })
}
