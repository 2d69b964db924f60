//! The format of the Storage Performance Council (SPC Trace File Format Specification, 1.0.1):
//! `ASU,LBA,size,op,timestamp`.
//!
//! The LBA counts 512-byte blocks, the size bytes, the timestamp seconds. The specification permits
//! blanks around a field and further, optional fields at the end; both are ignored.

use super::fields::{Field, Unit, byte_range, missing};
use super::{DeviceTable, Fault, Format, Parse, Parsed, Record};

pub(super) const FORMAT: Format = Format {
    name: "spc",
    summary: "Storage Performance Council (UMass Financial, WebSearch)",
    shape: "ASU,LBA,size,op,timestamp",
    extensions: &["spc"],
    time_field: TIME.name,
    parser: || Box::new(Spc),
    encoder: None,
};

const UNIT: Field = Field::new("ASU", "a number of an application storage unit");
const LBA: Field = Field::new("LBA", "a whole number of 512-byte blocks");
const SIZE: Field = Field::new("size", "a whole number of bytes");
const OPERATION: Field = Field::new("op", "R, r, W or w");
const TIME: Field = Field::new("timestamp", "seconds, not negative, like 12.000345");

struct Spc;

impl Parse for Spc {
    fn line(&mut self, line: &[u8], devices: &mut DeviceTable) -> Result<Parsed, Fault> {
        let mut fields = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        let mut next = |column| fields.next().ok_or_else(|| missing(column, line));
        let (unit, lba, size) = (next(UNIT)?, next(LBA)?, next(SIZE)?);
        let (operation, time) = (next(OPERATION)?, next(TIME)?);
        let unit = UNIT.small_number(unit)?;
        Ok(Parsed::Request(Record {
            at: TIME.instant(time, Unit::Seconds)?,
            direction: OPERATION.direction(operation, &[b"R", b"r"], &[b"W", b"w"])?,
            bytes: byte_range(LBA.blocks(lba), SIZE.bytes(size))?,
            device: devices.number(UNIT, unit)?,
            owner: block::Owner::NOBODY,
            measured: None,
        }))
    }
}
