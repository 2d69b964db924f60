//! The canonical CSV, the target of all conversions:
//! `timestamp_seconds,device,R|W,byte_offset,byte_length`.
//!
//! Seconds have up to nine decimals and are those of the trace: nothing is subtracted.

use super::fields::{Field, Unit, at_commas, byte_range};
use super::writer::{Encode, UnencodableField, push_decimal, push_line};
use super::{DeviceTable, Fault, Format, Parse, Parsed, Record};
use block::{Direction, Duration};

pub(super) const FORMAT: Format = Format {
    name: "canonical",
    summary: "the CSV of Headtime: seconds, bytes",
    shape: "timestamp_seconds,device,R|W,byte_offset,byte_length",
    extensions: &["csv"],
    time_field: TIME.name,
    parser: || Box::new(Canonical),
    encoder: Some(|| Box::new(Canonical)),
};

const TIME: Field = Field::new("timestamp_seconds", "seconds, not negative, like 12.000345");
const DEVICE: Field = Field::new("device", "a name without blanks");
const DIRECTION: Field = Field::new("direction", "R or W");
const OFFSET: Field = Field::new("byte_offset", "a whole number of bytes");
const LENGTH: Field = Field::new("byte_length", "a whole number of bytes");

struct Canonical;

impl Parse for Canonical {
    fn line(&mut self, line: &[u8], devices: &mut DeviceTable) -> Result<Parsed, Fault> {
        let columns = [TIME, DEVICE, DIRECTION, OFFSET, LENGTH];
        let [time, device, direction, offset, length] = at_commas(line, &columns)?;
        Ok(Parsed::Request(Record {
            at: TIME.instant(time, Unit::Seconds)?,
            direction: DIRECTION.direction(direction, &[b"R"], &[b"W"])?,
            bytes: byte_range(OFFSET.bytes(offset), LENGTH.bytes(length))?,
            device: devices.index(DEVICE, device)?,
            owner: block::Owner::NOBODY,
            measured: None,
        }))
    }
}

impl Encode for Canonical {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(1)
    }

    fn record(
        &mut self,
        out: &mut Vec<u8>,
        record: &Record,
        device: &str,
    ) -> Result<(), UnencodableField> {
        push_decimal(out, record.at.as_nanos(), Unit::Seconds);
        let direction = match record.direction {
            Direction::Read => 'R',
            Direction::Write => 'W',
        };
        let (offset, length) = (record.bytes.offset(), record.bytes.length());
        push_line(out, format_args!(",{device},{direction},{offset},{length}"));
        Ok(())
    }
}
