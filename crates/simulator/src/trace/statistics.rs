//! What a trace is like: sizes, gaps, footprint, randomness.

use super::{DeviceIndex, DeviceTable, Record};
use block::{Direction, Instant};
use hdrhistogram::Histogram;
use roaring::RoaringTreemap;
use serde::Serialize;

/// The page in which footprints are counted (shared/traces/README.md).
const PAGE_BYTES: u64 = 4096;

/// How far back a request may continue an earlier one and is not random: the ends of the last
/// requests of the trace that are remembered. With 32 the table of shared/traces/README.md comes
/// out; interleaved sequential readers then count as sequential.
const REMEMBERED_ENDS: usize = 32;

/// Significant decimal digits of the percentiles: within 0.1 %.
const DIGITS: u8 = 3;

/// The greatest value that is told apart: 292 years in nanoseconds. Histograms of this range and
/// these digits have a fixed size of half a megabyte.
const GREATEST: u64 = i64::MAX as u64;

/// Collects what a trace is like.
///
/// The footprint is a compressed set of pages: at most 8 KiB for each 256 MiB of a device that the
/// trace touches. Everything else is of a fixed size for each device.
pub struct Statistics {
    requests: u64,
    reads: u64,
    read_bytes: u64,
    bytes: u64,
    continued: u64,
    first: Instant,
    last: Instant,
    ends: RecentEnds,
    devices: Vec<OneDevice>,
    sizes: Distribution,
    gaps: Distribution,
}

/// What a trace is like.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceSummary {
    /// Requests.
    pub requests: u64,
    /// Those that read.
    pub reads: u64,
    /// Their share.
    pub read_percent: f64,
    /// Bytes moved.
    pub bytes: u64,
    /// Those read.
    pub read_bytes: u64,
    /// Distinct 4 KiB pages, in bytes.
    pub footprint_bytes: u64,
    /// From the first arrival to the last.
    pub span_seconds: f64,
    /// Share of the requests that do not start where, on the same device, one of the last 32
    /// requests of the trace ended.
    pub random_percent: f64,
    /// Bytes of a request.
    pub size_bytes: Quantiles,
    /// From one arrival to the next, in nanoseconds; none if there is one request.
    pub gap_nanos: Option<Quantiles>,
    /// The devices, in the order of first appearance.
    pub devices: Vec<DeviceSummary>,
}

/// How a quantity is distributed; percentiles within 0.1 %.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// The mean.
    pub mean: f64,
    /// The least.
    pub min: u64,
    /// The median.
    pub p50: u64,
    /// Nine of ten are not above it.
    pub p90: u64,
    /// 99 of 100.
    pub p99: u64,
    /// 999 of 1000.
    pub p999: u64,
    /// The greatest.
    pub max: u64,
}

/// One device of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceSummary {
    /// Its name.
    pub name: String,
    /// Its requests.
    pub requests: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Distinct 4 KiB pages, in bytes.
    pub footprint_bytes: u64,
    /// Past the last byte that was touched.
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
            ends: RecentEnds::default(),
            devices: Vec::new(),
            sizes: Distribution::default(),
            gaps: Distribution::default(),
        }
    }
}

impl Statistics {
    /// Counts a record, which is not earlier than the one before.
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
        self.sizes.add(length);
        self.continued += u64::from(self.ends.contains(record.device, record.bytes.offset()));
        self.ends.push(record.device, record.bytes.end());
        let place = record.device.place();
        if self.devices.len() <= place {
            self.devices.resize_with(place + 1, OneDevice::default);
        }
        self.devices[place].add(record);
    }

    /// What the records are like, or `None` if there are none.
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
        Some(TraceSummary {
            requests: self.requests,
            reads: self.reads,
            read_percent: percent(self.reads),
            bytes: self.bytes,
            read_bytes: self.read_bytes,
            footprint_bytes: devices.iter().map(|device| device.footprint_bytes).sum(),
            span_seconds: self.last.since(self.first).as_nanos() as f64 / 1e9,
            random_percent: percent(self.requests - self.continued),
            size_bytes: self.sizes.spread(),
            gap_nanos: (self.requests > 1).then(|| self.gaps.spread()),
            devices,
        })
    }
}

/// One device, as it is counted.
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

/// Where the last requests of the trace ended.
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

/// A quantity as it is counted. Mean, least and greatest are exact.
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
