//! What a run came to: the metrics of `shared/specs/cache-and-pfc.md`, 9.

use block::{Duration, Instant};
use engine::Tallies;
use hdrhistogram::Histogram;

use super::disk::DiskCounts;

/// A whole run.
#[derive(Clone, Debug)]
pub struct CachingReport {
    /// Requests of clients.
    pub requests: u64,
    /// The times from a request until all its blocks are in L1.
    pub response: Responses,
    /// The clients' caches together, then each lower level.
    pub levels: Vec<LevelReport>,
    /// The disk.
    pub disk: DiskCounts,
    /// What it read in the background.
    pub slack: Slack,
    /// What the ends of commands said of what is believed of the drive, if that is not the truth.
    pub told: Option<Tallies>,
    /// Blocks that stand both in a client's cache and in the level below at the end.
    pub duplicated: u64,
    /// When the last event happened.
    pub ended: Instant,
}

/// What was read for wishes, and what it cost. Of what was read a part comes too late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slack {
    /// Wished sectors that were read on the way to requests.
    pub free: u64,
    /// Wished sectors that were read while no request was there.
    pub idle: u64,
    /// Nanoseconds by which requests were later than without, as far as the engine can tell.
    pub lost: i64,
    /// Nanoseconds that all requests took at the disk, if it has background reads.
    pub responses: u64,
}

impl Slack {
    /// What requests lost, in percent of what they took.
    pub fn lost_percent(&self) -> f64 {
        100.0 * self.lost as f64 / self.responses.max(1) as f64
    }
}

/// Response times, to three digits; those of nought are counted exactly.
#[derive(Clone, Debug)]
pub struct Responses {
    times: Histogram<u64>,
    total: u128,
    count: u64,
}

/// One level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelReport {
    /// Requests of the level above, or of clients.
    pub requests: u64,
    /// Blocks that were asked for.
    pub asked: u64,
    /// Those that were there.
    pub valid: u64,
    /// Those that were on their way.
    pub in_flight: u64,
    /// Those, of both, that the native part of the level did not see.
    pub silent: u64,
    /// Blocks that were read past the cache.
    pub bypassed: u64,
    /// Blocks that the prefetcher fetched.
    pub prefetched: u64,
    /// Blocks that the coordinator added.
    pub readmore: u64,
    /// Those of them that were used.
    pub readmore_used: u64,
    /// Blocks that the coordinator wished.
    pub wished: u64,
    /// Those of them that were read and kept: they are among those that it added.
    pub granted: u64,
    /// Of all that was fetched ahead, what was evicted unused, or stand there unused at the end.
    pub unused: u64,
    /// Blocks that found every frame in flight and were not kept.
    pub refused: u64,
}

/// A longer response counts as one of so many nanoseconds, a day, in percentiles.
const LONGEST: u64 = 86_400_000_000_000;

impl LevelReport {
    /// The share of blocks that were there or on their way.
    pub fn hit_ratio(&self) -> f64 {
        (self.valid + self.in_flight) as f64 / self.asked.max(1) as f64
    }

    /// All that was fetched ahead, by whomever.
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

    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all, in nanoseconds, exact.
    pub fn total_nanos(&self) -> u128 {
        self.total
    }

    /// The mean in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        self.total as f64 / self.count.max(1) as f64 / 1e6
    }

    /// In milliseconds, the time within which `percent` of all were answered.
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        self.times.value_at_percentile(percent) as f64 / 1e6
    }
}
