//! Block traces of clouds, published as CSV without a header.
//!
//! | Format | A line | Source |
//! |---|---|---|
//! | `alibaba` | `device_id,opcode,offset,length,timestamp`: bytes, microseconds | Li et al., IISWC 2020 |
//! | `tencent` | `timestamp,offset,size,io_type,volume_id`: seconds, sectors of 512 bytes, 0 reads | Zhang et al., USENIX ATC 2020 |
//! | `cloudphysics` | `ts,lba,op,size`: microseconds, sectors of 512 bytes, `r` or `w`, bytes | Waldspurger et al., FAST 2015, in the CSV that Cydonia reads |
//!
//! Times are those of a clock; the first request is the start of the trace.

use super::fields::{Field, FirstTime, Unit, at_commas, byte_range};
use super::{DeviceTable, Fault, Format, Parse, Parsed, Record};
use block::Instant;

pub(super) const ALIBABA: Format = Format {
    name: "alibaba",
    summary: "Alibaba block traces",
    shape: "device_id,R|W,offset,length,timestamp_us",
    extensions: &["csv"],
    time_field: TIME.name,
    parser: || Box::new(Alibaba::default()),
    encoder: None,
};

pub(super) const TENCENT: Format = Format {
    name: "tencent",
    summary: "Tencent block storage traces: sectors of 512 bytes",
    shape: "timestamp_s,offset,size,0|1,volume_id",
    extensions: &["csv"],
    time_field: TIME.name,
    parser: || Box::new(Tencent::default()),
    encoder: None,
};

pub(super) const CLOUDPHYSICS: Format = Format {
    name: "cloudphysics",
    summary: "CloudPhysics CSV: microseconds, sectors of 512 bytes, bytes",
    shape: "ts_us,lba,r|w,size",
    extensions: &["csv"],
    time_field: TIME.name,
    parser: || Box::new(CloudPhysics::default()),
    encoder: None,
};

const TIME: Field = Field::new("timestamp", "a whole number");
const DEVICE: Field = Field::new("device_id", "a whole number");
const OPCODE: Field = Field::new("opcode", "R or W");
const OFFSET: Field = Field::new("offset", "a whole number of bytes");
const LENGTH: Field = Field::new("length", "a whole number of bytes");
const SECTOR: Field = Field::new("offset", "a whole number of 512-byte sectors");
const LBA: Field = Field::new("lba", "a whole number of 512-byte sectors");
const SIZE: Field = Field::new("size", "a whole number of bytes");
const OP: Field = Field::new("op", "r or w");
const SECTORS: Field = Field::new("size", "a whole number of 512-byte sectors");
const KIND: Field = Field::new("io_type", "0 or 1");
const VOLUME: Field = Field::new("volume_id", "a whole number");

#[derive(Default)]
struct Alibaba(FirstTime);

#[derive(Default)]
struct Tencent(FirstTime);

#[derive(Default)]
struct CloudPhysics(FirstTime);

/// A time in nanoseconds. All clouds write whole numbers.
fn clock(text: &[u8], unit: Unit) -> Result<u64, Fault> {
    TIME.number(text)?;
    TIME.nanos(text, unit)
}

impl Parse for Alibaba {
    fn line(&mut self, line: &[u8], devices: &mut DeviceTable) -> Result<Parsed, Fault> {
        let columns = [DEVICE, OPCODE, OFFSET, LENGTH, TIME];
        let [device, opcode, offset, length, time] = at_commas(line, &columns)?;
        let nanos = clock(time, Unit::Microseconds)?;
        let since = self.0.since(TIME, time, nanos, " ns")?;
        let record = Record {
            at: Instant::from_nanos(since),
            direction: OPCODE.direction(opcode, &[b"R"], &[b"W"])?,
            bytes: byte_range(OFFSET.bytes(offset), LENGTH.bytes(length))?,
            device: devices.number(DEVICE, DEVICE.small_number(device)?)?,
            owner: block::Owner::NOBODY,
            measured: None,
        };
        self.0.note(nanos);
        Ok(Parsed::Request(record))
    }
}

impl Parse for Tencent {
    fn line(&mut self, line: &[u8], devices: &mut DeviceTable) -> Result<Parsed, Fault> {
        let columns = [TIME, SECTOR, SECTORS, KIND, VOLUME];
        let [time, sector, sectors, kind, volume] = at_commas(line, &columns)?;
        let nanos = clock(time, Unit::Seconds)?;
        let since = self.0.since(TIME, time, nanos, " ns")?;
        let record = Record {
            at: Instant::from_nanos(since),
            direction: KIND.direction(kind, &[b"0"], &[b"1"])?,
            bytes: byte_range(SECTOR.blocks(sector), SECTORS.blocks(sectors))?,
            device: devices.number(VOLUME, VOLUME.small_number(volume)?)?,
            owner: block::Owner::NOBODY,
            measured: None,
        };
        self.0.note(nanos);
        Ok(Parsed::Request(record))
    }
}

impl Parse for CloudPhysics {
    fn line(&mut self, line: &[u8], devices: &mut DeviceTable) -> Result<Parsed, Fault> {
        let [time, lba, op, size] = at_commas(line, &[TIME, LBA, OP, SIZE])?;
        let nanos = clock(time, Unit::Microseconds)?;
        let since = self.0.since(TIME, time, nanos, " ns")?;
        let record = Record {
            at: Instant::from_nanos(since),
            direction: OP.direction(op, &[b"r"], &[b"w"])?,
            bytes: byte_range(LBA.blocks(lba), SIZE.bytes(size))?,
            device: devices.number(LBA, 0)?,
            owner: block::Owner::NOBODY,
            measured: None,
        };
        self.0.note(nanos);
        Ok(Parsed::Request(record))
    }
}
