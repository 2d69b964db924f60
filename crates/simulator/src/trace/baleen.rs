//! The storage traces of Meta's Tectonic that Baleen published (Wong et al., FAST 2024): fields between blanks,
//! `block_id io_offset io_size op_time op_name ...`, with or without that header.
//!
//! ```text
//!   3151242390 1048576 131072 1631059214.25 2 4 7 0 1 12        seconds; 131,072 bytes at 1 MiB of that block are read
//! ```
//!
//! | Field | Meaning |
//! |---|---|
//! | `block_id` | a block of Tectonic, of at most 8 MiB; its address here is its number times 8 MiB |
//! | `io_offset`, `io_size` | bytes within the block |
//! | `op_time` | seconds of a clock; the first request is the start of the trace |
//! | `op_name` | 1, 2 and 5 get, 3, 4 and 6 put |
//! | three to five more | name space, user, host and the like: not used |
//!
//! Numbers of blocks are sparse: replay such a trace with `--fit wrap`. It is one of blocks of a distributed file
//! system, so that neighbours here are not neighbours on a disk.

use super::error::Reason;
use super::fields::{Field, FirstTime, Unit, blank_separated, byte_range, missing, one_too_many};
use super::{DeviceTable, Fault, Format, Parse, Parsed, Record};
use block::Instant;

pub(super) const FORMAT: Format = Format {
    name: "baleen",
    summary: "Meta Tectonic traces of Baleen: seconds, bytes in blocks of 8 MiB",
    shape: "block_id io_offset io_size op_time_s op_name(1 to 6) and three to five more numbers",
    extensions: &["trace"],
    time_field: TIME.name,
    parser: || Box::new(Baleen::default()),
    encoder: None,
};

const BLOCK: Field = Field::new("block_id", "a whole number");
const OFFSET: Field = Field::new("io_offset", "a whole number of bytes, below 8 MiB");
const SIZE: Field = Field::new("io_size", "a whole number of bytes within a block of 8 MiB");
const TIME: Field = Field::new("op_time", "a time in seconds, not negative, like 12.000345");
const NAME: Field = Field::new("op_name", "a number from 1 to 6");
const FURTHER: Field = Field::new("further fields", "three to five whole numbers");

/// The size of a block of Tectonic, of which clients write at most so much (the traces' `utils`: `MAX_BLOCK_SIZE`).
const BLOCK_BYTES: u64 = 8 << 20;

/// The fields behind `op_name` in the traces of 2019, 2021 and 2023.
const FURTHER_FIELDS: std::ops::RangeInclusive<usize> = 3..=5;

/// The first name of a header.
const HEADER: &[u8] = b"block_id";

const GETS: [&[u8]; 3] = [b"1", b"2", b"5"];
const PUTS: [&[u8]; 3] = [b"3", b"4", b"6"];

#[derive(Default)]
struct Baleen(FirstTime);

impl Parse for Baleen {
    fn line(&mut self, line: &[u8], devices: &mut DeviceTable) -> Result<Parsed, Fault> {
        let mut fields = blank_separated(line);
        let mut next = |field| fields.next().ok_or_else(|| missing(field, line));
        let block = next(BLOCK)?;
        if block == HEADER {
            return Ok(Parsed::Other);
        }
        let [offset, size] = [next(OFFSET)?, next(SIZE)?];
        let [time, name] = [next(TIME)?, next(NAME)?];
        let mut further = 0;
        for field in fields {
            if further == *FURTHER_FIELDS.end() {
                return Err(one_too_many(field));
            }
            FURTHER.number(field)?;
            further += 1;
        }
        if further < *FURTHER_FIELDS.start() {
            return Err(missing(FURTHER, line));
        }
        let within = byte_range(OFFSET.bytes(offset), SIZE.bytes(size))?;
        if within.offset() >= BLOCK_BYTES {
            return Err(OFFSET.fault(Reason::Malformed, offset));
        }
        if within.end() > BLOCK_BYTES {
            return Err(SIZE.fault(Reason::TooLong, size));
        }
        let start = BLOCK
            .number(block)?
            .checked_mul(BLOCK_BYTES)
            .and_then(|start| start.checked_add(within.offset()))
            .ok_or_else(|| BLOCK.fault(Reason::Overflow, block))?;
        let bytes = super::ByteRange::new(start, within.length())
            .map_err(|_| BLOCK.fault(Reason::Overflow, block))?;
        let nanos = TIME.nanos(time, Unit::Seconds)?;
        let since = self.0.since(TIME, time, nanos, " ns")?;
        let record = Record {
            at: Instant::from_nanos(since),
            direction: NAME.direction(name, &GETS, &PUTS)?,
            bytes,
            device: devices.number(BLOCK, 0)?,
            owner: block::Owner::NOBODY,
            measured: None,
        };
        self.0.note(nanos);
        Ok(Parsed::Request(record))
    }
}
