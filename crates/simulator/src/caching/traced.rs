//! Genuine traces as loads: each device is a volume, and the volumes follow each other on the disk.
//!
//! A trace may address more than the disk has. Untouched regions are then omitted, in the largest
//! unit for which the rest fits. Neighbouring blocks stay neighbours within a region.
//!
//! ```text
//!   device 0   |##|  |#.|  |  |  |.#|        regions, of which . is untouched and left out if all of it is
//!   disk       |##|#.|.#| device 1 ..
//! ```

use std::collections::BTreeMap;

use block::{Instant, Interval};

use super::load::CacheArrival;
use super::setup::BadSetup;
use crate::trace::Record;

/// The requests of a trace on a disk of `disk` blocks, with gaps multiplied by `stretch`. Each
/// device is one file.
///
/// # Errors
/// If the trace does not fit the disk in any unit, or a request is too long for caches.
pub fn arrivals(
    records: &[Record],
    disk: u64,
    stretch: u64,
) -> Result<Vec<CacheArrival>, BadSetup> {
    let mut spans: Vec<(u64, Interval)> = Vec::new();
    for record in records {
        let blocks = blocks(record);
        if blocks.len() > cache::coordinator::LONGEST_REQUEST {
            return Err(BadSetup::Length(blocks.len()));
        }
        spans.push((record.device.place() as u64, blocks));
    }
    let (unit, places) = places(&spans, disk)?;
    let mut volumes: BTreeMap<u64, Interval> = BTreeMap::new();
    for (&(device, _), &place) in &places {
        let blocks = Interval::of(place * unit, unit);
        let volume = volumes.entry(device).or_insert(blocks);
        volume.first = volume.first.min(blocks.first);
        volume.last = volume.last.max(blocks.last).min(disk - 1);
    }
    let each = records
        .iter()
        .zip(&spans)
        .map(|(record, &(device, blocks))| {
            let place = places[&(device, blocks.first / unit)];
            let first = place * unit + blocks.first % unit;
            let blocks = Interval::of(first, blocks.len());
            CacheArrival {
                at: Instant::ZERO + record.at.since(Instant::ZERO) * stretch,
                client: 0,
                file: device,
                blocks,
                within: volumes[&device],
                direction: record.direction,
            }
        });
    Ok(each.collect())
}

/// The unit in blocks, and the position of each touched region of each device in units.
type Places = (u64, BTreeMap<(u64, u64), u64>);

fn places(spans: &[(u64, Interval)], disk: u64) -> Result<Places, BadSetup> {
    let mut unit = LARGEST_UNIT;
    loop {
        let mut places = BTreeMap::new();
        for &(device, blocks) in spans {
            for region in blocks.first / unit..=blocks.last / unit {
                places.insert((device, region), 0);
            }
        }
        if places.len() as u64 * unit <= disk {
            for (at, place) in (0..).zip(places.values_mut()) {
                *place = at;
            }
            return Ok((unit, places));
        }
        if unit == 1 {
            return Err(BadSetup::TooLarge {
                blocks: places.len() as u64,
                disk,
            });
        }
        unit /= 2;
    }
}

/// The blocks of 4 KiB that a record touches.
fn blocks(record: &Record) -> Interval {
    let bytes = record.bytes;
    Interval::new(bytes.offset() / BLOCK, (bytes.end() - 1) / BLOCK)
}

/// Bytes per block.
const BLOCK: u64 = 4096;

/// 256 MiB, in blocks: large enough to keep a volume practically whole. A choice.
const LARGEST_UNIT: u64 = 1 << 16;

#[cfg(test)]
mod tests;
