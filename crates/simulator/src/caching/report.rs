//! The results of a run: the metrics of `shared/specs/cache-and-pfc.md`, 9.

use block::{Duration, Instant};
use engine::Tallies;
use hdrhistogram::Histogram;

use super::disk::DiskCounts;

/// The results of a run.
#[derive(Clone, Debug)]
pub struct CachingReport {
    /// Number of requests of clients.
    pub requests: u64,
    /// Times from a request until all its blocks are in L1.
    pub response: Responses,
    /// The clients' caches together, then each lower level.
    pub levels: Vec<LevelReport>,
    /// Totals of the disk.
    pub disk: DiskCounts,
    /// Totals of background reads.
    pub slack: Slack,
    /// Comparison of the ends of commands with the belief; `None` if the belief is the truth.
    pub tallies: Option<Tallies>,
    /// Number of blocks that are both in a client's cache and in the level below at the end.
    pub duplicated: u64,
    /// The time of the last event.
    pub ended: Instant,
}

/// The yield and the cost of background reads for wishes. Some of the blocks arrive too late to be
/// used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slack {
    /// Wished sectors that were read in gaps of requests.
    pub free: u64,
    /// Wished sectors that were read in idle time.
    pub idle: u64,
    /// The engine's estimate of the delay of all requests, in nanoseconds.
    pub lost: i64,
    /// The sum of all response times at the disk in nanoseconds, if it has background reads.
    pub responses: u64,
}

impl Slack {
    /// The delay of requests in percent of their response times.
    pub fn lost_percent(&self) -> f64 {
        100.0 * self.lost as f64 / self.responses.max(1) as f64
    }
}

/// Response times, to three digits; the sum is exact.
#[derive(Clone, Debug)]
pub struct Responses {
    times: Histogram<u64>,
    total: u128,
    count: u64,
}

/// The totals of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelReport {
    /// Number of requests of the level above, or of clients.
    pub requests: u64,
    /// Number of requested blocks.
    pub asked: u64,
    /// Number of hits.
    pub valid: u64,
    /// Number of hits on blocks in flight.
    pub in_flight: u64,
    /// Number of hits, of both kinds, that the native part of the level did not see.
    pub silent: u64,
    /// Number of blocks read past the cache.
    pub bypassed: u64,
    /// Number of blocks that the prefetcher fetched.
    pub prefetched: u64,
    /// Number of blocks that the coordinator added.
    pub readmore: u64,
    /// Number of added blocks that were used.
    pub readmore_used: u64,
    /// Number of blocks that the coordinator wished.
    pub wished: u64,
    /// Number of wished blocks that were read and kept; included in `readmore`.
    pub granted: u64,
    /// Number of prefetched or added blocks that were evicted unused, or are unused at the end.
    pub unused: u64,
    /// Number of blocks that were not kept because every frame was in flight.
    pub refused: u64,
}

/// The longest response in percentiles, in nanoseconds: a day.
const LONGEST: u64 = 86_400_000_000_000;

impl LevelReport {
    /// The fraction of requested blocks that were resident or in flight.
    pub fn hit_ratio(&self) -> f64 {
        (self.valid + self.in_flight) as f64 / self.asked.max(1) as f64
    }

    /// Number of blocks fetched ahead, by prefetcher and coordinator.
    pub fn fetched_ahead(&self) -> u64 {
        self.prefetched + self.readmore
    }

    pub(super) fn add(&mut self, other: &LevelReport) {
        self.requests += other.requests;
        self.asked += other.asked;
        self.valid += other.valid;
        self.in_flight += other.in_flight;
        self.silent += other.silent;
        self.bypassed += other.bypassed;
        self.prefetched += other.prefetched;
        self.readmore += other.readmore;
        self.readmore_used += other.readmore_used;
        self.wished += other.wished;
        self.granted += other.granted;
        self.unused += other.unused;
        self.refused += other.refused;
    }
}

impl Responses {
    pub(super) fn new() -> Self {
        let times = Histogram::new_with_bounds(1, LONGEST, 3);
        let times = times.expect("three digits are possible");
        Responses {
            times,
            total: 0,
            count: 0,
        }
    }

    pub(super) fn add(&mut self, response: Duration) {
        let nanos = response.as_nanos();
        self.count += 1;
        self.total += u128::from(nanos);
        self.times.saturating_record(nanos);
    }

    /// Number of responses.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The exact sum of all response times, in nanoseconds.
    pub fn total_nanos(&self) -> u128 {
        self.total
    }

    /// The mean response time in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        self.total as f64 / self.count.max(1) as f64 / 1e6
    }

    /// A percentile of the response time, in milliseconds.
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        self.times.value_at_percentile(percent) as f64 / 1e6
    }
}
