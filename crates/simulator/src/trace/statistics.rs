//! Statistics of a trace: sizes, gaps, footprint and randomness.

use super::{BLOCK_BYTES, DeviceIndex, DeviceTable, Record, TraceReader};
use block::{Direction, Instant};
use hdrhistogram::Histogram;
use roaring::RoaringTreemap;
use serde::Serialize;

mod doubts;

use doubts::UnitFigures;

/// The page size of footprints (shared/traces/README.md).
const PAGE_BYTES: u64 = 4096;

/// Number of recent request ends that a request may continue without being random. With 32 the
/// table of shared/traces/README.md is reproduced; interleaved sequential readers then count as
/// sequential.
const REMEMBERED_ENDS: usize = 32;

/// Significant decimal digits of the percentiles: within 0.1 %.
const DIGITS: u8 = 3;

/// The largest distinguishable value: 292 years in nanoseconds. Histograms of this range and
/// precision have a fixed size of half a megabyte.
const GREATEST: u64 = i64::MAX as u64;

/// The first requests of a trace, by which its units are judged. A choice: they are read in milliseconds.
const FIRST: usize = 10_000;

/// Why sizes, addresses or times of a trace look like those of another unit, judged by its first requests. Bad lines
/// are left to who replays the trace.
pub fn doubts_of_first(reader: &mut TraceReader) -> Vec<String> {
    let mut statistics = Statistics::default();
    for record in reader.take(FIRST).map_while(Result::ok) {
        statistics.add(&record);
    }
    let summary = statistics.summary(reader.devices());
    summary.map_or_else(Vec::new, |summary| summary.doubts)
}

/// Collects the statistics of a trace.
///
/// The footprint is a compressed set of pages: at most 8 KiB for each touched 256 MiB of a device.
/// All other data have a fixed size per device.
pub struct Statistics {
    requests: u64,
    reads: u64,
    read_bytes: u64,
    bytes: u64,
    continued: u64,
    first: Instant,
    last: Instant,
    /// Requests whose address, and whose length, is a multiple of a sector.
    whole_addresses: u64,
    whole_sizes: u64,
    ends: RecentEnds,
    devices: Vec<OneDevice>,
    sizes: Distribution,
    gaps: Distribution,
}

/// The statistics of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceSummary {
    /// Number of requests.
    pub requests: u64,
    /// Number of reads.
    pub reads: u64,
    /// Reads in percent of the requests.
    pub read_percent: f64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Distinct 4 KiB pages, in bytes.
    pub footprint_bytes: u64,
    /// Time from the first arrival to the last.
    pub span_seconds: f64,
    /// Percentage of requests that do not start at the end of one of the last 32 requests of the
    /// trace on the same device.
    pub random_percent: f64,
    /// Bytes per request.
    pub size_bytes: Quantiles,
    /// Gaps between arrivals in nanoseconds; `None` for a single request.
    pub gap_nanos: Option<Quantiles>,
    /// The devices, in order of first appearance.
    pub devices: Vec<DeviceSummary>,
    /// Why sizes, addresses or times look like those of another unit.
    pub doubts: Vec<String>,
}

/// The distribution of a quantity; percentiles are within 0.1 %.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// The mean.
    pub mean: f64,
    /// The minimum.
    pub min: u64,
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    pub p999: u64,
    /// The maximum.
    pub max: u64,
}

/// The statistics of one device of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceSummary {
    /// The name of the device.
    pub name: String,
    /// Number of requests.
    pub requests: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Distinct 4 KiB pages, in bytes.
    pub footprint_bytes: u64,
    /// The byte after the last touched one.
    pub end_byte: u64,
}

impl Default for Statistics {
    fn default() -> Self {
        Statistics {
            requests: 0,
            reads: 0,
            read_bytes: 0,
            bytes: 0,
            continued: 0,
            first: Instant::ZERO,
            last: Instant::ZERO,
            whole_addresses: 0,
            whole_sizes: 0,
            ends: RecentEnds::default(),
            devices: Vec::new(),
            sizes: Distribution::default(),
            gaps: Distribution::default(),
        }
    }
}

impl Statistics {
    /// Counts a record, which is not earlier than the previous one.
    pub fn add(&mut self, record: &Record) {
        let length = record.bytes.length();
        if self.requests == 0 {
            self.first = record.at;
        } else {
            self.gaps.add(record.at.since(self.last).as_nanos());
        }
        self.last = record.at;
        self.requests += 1;
        self.bytes += length;
        if record.direction == Direction::Read {
            self.reads += 1;
            self.read_bytes += length;
        }
        let is_whole = |bytes: u64| u64::from(bytes.is_multiple_of(BLOCK_BYTES));
        self.whole_addresses += is_whole(record.bytes.offset());
        self.whole_sizes += is_whole(length);
        self.sizes.add(length);
        self.continued += u64::from(self.ends.contains(record.device, record.bytes.offset()));
        self.ends.push(record.device, record.bytes.end());
        let place = record.device.place();
        if self.devices.len() <= place {
            self.devices.resize_with(place + 1, OneDevice::default);
        }
        self.devices[place].add(record);
    }

    /// The statistics, or `None` without records.
    pub fn summary(&self, names: &DeviceTable) -> Option<TraceSummary> {
        if self.requests == 0 {
            return None;
        }
        let percent = |part: u64| 100.0 * part as f64 / self.requests as f64;
        let devices: Vec<DeviceSummary> = names
            .names()
            .zip(&self.devices)
            .filter(|(_, device)| device.requests > 0)
            .map(|(name, device)| device.summary(name))
            .collect();
        let span_seconds = self.last.since(self.first).as_nanos() as f64 / 1e9;
        let end_byte = devices.iter().map(|device| device.end_byte).max();
        let doubts = doubts::of(&UnitFigures {
            requests: self.requests,
            whole_sizes: self.whole_sizes,
            whole_addresses: self.whole_addresses,
            size_bytes: self.sizes.spread(),
            end_byte: end_byte.unwrap_or(0),
            span_seconds,
        });
        Some(TraceSummary {
            doubts,
            requests: self.requests,
            reads: self.reads,
            read_percent: percent(self.reads),
            bytes: self.bytes,
            read_bytes: self.read_bytes,
            footprint_bytes: devices.iter().map(|device| device.footprint_bytes).sum(),
            span_seconds,
            random_percent: percent(self.requests - self.continued),
            size_bytes: self.sizes.spread(),
            gap_nanos: (self.requests > 1).then(|| self.gaps.spread()),
            devices,
        })
    }
}

/// The counters of one device.
#[derive(Default)]
struct OneDevice {
    requests: u64,
    bytes: u64,
    end_byte: u64,
    pages: RoaringTreemap,
}

impl OneDevice {
    fn add(&mut self, record: &Record) {
        let (start, end) = (record.bytes.offset(), record.bytes.end());
        self.requests += 1;
        self.bytes += record.bytes.length();
        self.end_byte = self.end_byte.max(end);
        let (first, last) = (start / PAGE_BYTES, (end - 1) / PAGE_BYTES);
        if first == last {
            self.pages.insert(first);
        } else {
            self.pages.insert_range(first..=last);
        }
    }

    fn summary(&self, name: &str) -> DeviceSummary {
        DeviceSummary {
            name: name.into(),
            requests: self.requests,
            bytes: self.bytes,
            footprint_bytes: self.pages.len() * PAGE_BYTES,
            end_byte: self.end_byte,
        }
    }
}

/// The ends of the last requests of the trace.
#[derive(Default)]
struct RecentEnds {
    ends: [Option<(DeviceIndex, u64)>; REMEMBERED_ENDS],
    next: usize,
}

impl RecentEnds {
    fn contains(&self, device: DeviceIndex, start: u64) -> bool {
        self.ends.contains(&Some((device, start)))
    }

    fn push(&mut self, device: DeviceIndex, end: u64) {
        self.ends[self.next] = Some((device, end));
        self.next = (self.next + 1) % REMEMBERED_ENDS;
    }
}

/// The counters of a quantity. Mean, minimum and maximum are exact.
struct Distribution {
    histogram: Histogram<u64>,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Distribution {
    fn default() -> Self {
        Distribution {
            histogram: Histogram::new_with_bounds(1, GREATEST, DIGITS)
                .expect("the bounds and three digits are allowed"),
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl Distribution {
    fn add(&mut self, value: u64) {
        self.histogram.saturating_record(value);
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    fn spread(&self) -> Quantiles {
        let at = |quantile| {
            let value = self.histogram.value_at_quantile(quantile);
            self.histogram
                .lowest_equivalent(value)
                .clamp(self.min, self.max)
        };
        Quantiles {
            mean: self.sum as f64 / self.histogram.len() as f64,
            min: self.min,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: self.max,
        }
    }
}

#[cfg(test)]
mod tests;
