//! The CSV of the MSR Cambridge traces (Narayanan, Donnelly, Rowstron, FAST 2008):
//! `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
//!
//! The timestamp is a Windows file time, in units of 100 ns since 1601; the first request is the
//! start of the trace. A device is called `hostname_disk`, as the published files are. The response
//! time is that of the traced server and not used.

use super::fields::{Field, FirstTime, at_commas, byte_range};
use super::{DeviceTable, Fault, Format, Parse, Parsed, Record};
use block::Instant;

pub(super) const FORMAT: Format = Format {
    name: "msr",
    summary: "MSR Cambridge CSV",
    shape: "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
    extensions: &["csv", "msr"],
    time_field: TIME.name,
    parser: || Box::new(Msr::default()),
    encoder: None,
};

const TIME: Field = Field::new("Timestamp", "a Windows file time, in units of 100 ns");
const HOST: Field = Field::new("Hostname", "a name without blanks");
const DISK: Field = Field::new("DiskNumber", "a whole number");
const TYPE: Field = Field::new("Type", "Read or Write");
const OFFSET: Field = Field::new("Offset", "a whole number of bytes");
const SIZE: Field = Field::new("Size", "a whole number of bytes");
const RESPONSE: Field = Field::new("ResponseTime", "a whole number, in units of 100 ns");

/// Nanoseconds of one unit of a Windows file time.
const TICK_NANOS: u64 = 100;

#[derive(Default)]
struct Msr {
    /// A file time.
    first: FirstTime,
    /// Buffer for the name of a device.
    name: Vec<u8>,
}

impl Parse for Msr {
    fn line(&mut self, line: &[u8], devices: &mut DeviceTable) -> Result<Parsed, Fault> {
        let columns = [TIME, HOST, DISK, TYPE, OFFSET, SIZE, RESPONSE];
        let [time, host, disk, kind, offset, size, response] = at_commas(line, &columns)?;
        let ticks = TIME.number(time)?;
        let nanos = self
            .first
            .since(TIME, time, ticks, "")?
            .checked_mul(TICK_NANOS)
            .ok_or_else(|| TIME.too_late(time))?;
        let direction = TYPE.direction(kind, &[b"Read"], &[b"Write"])?;
        let offset = OFFSET.bytes(offset);
        let size = SIZE.bytes(size);
        let bytes = byte_range(offset, size)?;
        RESPONSE.number(response)?;
        DISK.small_number(disk)?;
        self.name.clear();
        self.name.extend_from_slice(host);
        self.name.push(b'_');
        self.name.extend_from_slice(disk);
        let device = devices.index(HOST, &self.name)?;
        self.first.note(ticks);
        Ok(Parsed::Request(Record {
            at: Instant::from_nanos(nanos),
            device,
            direction,
            bytes,
            owner: block::Owner::NOBODY,
            measured: None,
        }))
    }
}
