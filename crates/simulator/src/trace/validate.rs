//! DiskSim's `validate` format: the requests to a real drive, one at a time, with their service
//! times. `direction action lbn blocks service_us think_us`, between blanks.
//!
//! ```text
//!   issue(0) = 0          completion(i)                issue(i+1)
//!      |---- service(i) ------->|-------- think(i) -------->|
//! ```
//!
//! DiskSim issues the next request relative to *its own* completion. The time of a record here is
//! the issue on the real drive, computed from measured completions. Skipping a bad line also
//! removes its time: later requests move forward.

use super::error::Reason;
use super::fields::{Field, Unit, at_blanks, byte_range};
use super::{CacheAction, DeviceTable, Fault, Format, MeasuredService, Parse, Parsed, Record};
use block::{Duration, Instant};

pub(super) const FORMAT: Format = Format {
    name: "validate",
    summary: "DiskSim validate: requests with the times of a real drive",
    shape: "R|W action lbn blocks service_us think_us",
    extensions: &["validate", "trace"],
    time_field: THINK.name,
    parser: || Box::new(Validate::default()),
    encoder: None,
};

const DIRECTION: Field = Field::new("direction", "R or W");
const ACTION: Field = Field::new("action", "Hit, Miss, Doub or Trip");
const START: Field = Field::new("lbn", "a whole number of 512-byte blocks");
const COUNT: Field = Field::new("blocks", "a whole number of 512-byte blocks");
const SERVICE: Field = Field::new("service_us", "microseconds, not negative, like 18228.5");
const THINK: Field = Field::new("think_us", "microseconds, not negative, like 20935.44");

/// The drive is the only one of its trace.
const DEVICE: Field = Field::new("device", "a number");

#[derive(Default)]
struct Validate {
    /// When the next request is issued.
    issue: Instant,
}

impl Parse for Validate {
    fn line(&mut self, line: &[u8], devices: &mut DeviceTable) -> Result<Parsed, Fault> {
        let columns = [DIRECTION, ACTION, START, COUNT, SERVICE, THINK];
        let [direction, action, start, count, service, think_text] = at_blanks(line, &columns)?;
        let direction = DIRECTION.direction(direction, &[b"R"], &[b"W"])?;
        let cache = cache_action(action)?;
        let start = START.blocks(start);
        let count = COUNT.blocks(count);
        let bytes = byte_range(start, count)?;
        let service = Duration::from_nanos(SERVICE.nanos(service, Unit::Microseconds)?);
        let think = Duration::from_nanos(THINK.nanos(think_text, Unit::Microseconds)?);
        let next = self
            .issue
            .checked_add(service)
            .and_then(|completion| completion.checked_add(think))
            .ok_or_else(|| THINK.too_late(think_text))?;
        let at = std::mem::replace(&mut self.issue, next);
        Ok(Parsed::Request(Record {
            at,
            device: devices.number(DEVICE, 0)?,
            direction,
            bytes,
            owner: block::Owner::NOBODY,
            measured: Some(MeasuredService {
                service,
                think,
                cache,
            }),
        }))
    }
}

fn cache_action(text: &[u8]) -> Result<CacheAction, Fault> {
    match text {
        b"Hit" => Ok(CacheAction::Hit),
        b"Miss" => Ok(CacheAction::Miss),
        b"Doub" => Ok(CacheAction::Double),
        b"Trip" => Ok(CacheAction::Triple),
        _ => Err(ACTION.fault(Reason::Malformed, text)),
    }
}
