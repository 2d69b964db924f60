//! The status of caches, and of the background reads that they want.

use serde::{Deserialize, Serialize};

/// The cache of a volume. Totals count blocks of 4 KiB of which a read had a byte.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cache {
    /// The name of the volume.
    pub volume: String,
    /// The size.
    pub size_bytes: u64,
    /// The used part of the size.
    pub used_bytes: u64,
    /// The replacement in the configuration.
    pub replacement: String,
    /// The prefetcher in the configuration.
    pub prefetch: String,
    /// The coordinator with the caches of clients in the configuration.
    pub coordinator: String,
    /// The source of the coordinator's additional reads: `ordinary`, or `free` for free blocks.
    pub readmore: String,
    /// Requested by clients.
    pub asked_bytes_total: u64,
    /// Hits among those.
    pub hit_bytes_total: u64,
    /// Blocks of those that were being fetched.
    pub late_bytes_total: u64,
    /// Misses among those.
    pub missed_bytes_total: u64,
    /// Fetched by the prefetcher.
    pub prefetched_bytes_total: u64,
    /// Fetched by the coordinator.
    pub readmore_bytes_total: u64,
    /// With `readmore = "free"`: blocks that the coordinator wants and that are not read.
    pub wished_bytes: u64,
    /// Total of blocks that the coordinator wanted.
    pub wished_bytes_total: u64,
    /// Blocks of those that were read as free blocks. They count as fetched by the coordinator.
    pub granted_bytes_total: u64,
    /// Blocks of those that were requested, fetched or changed before.
    pub withdrawn_bytes_total: u64,
    /// Blocks of those that were replaced by newer ones.
    pub expired_bytes_total: u64,
    /// Fetched without a read of their own, from a background read in flight.
    #[serde(default)]
    pub joined_bytes_total: u64,
    /// Prefetched blocks that were used.
    pub ahead_used_bytes_total: u64,
    /// Prefetched blocks that were evicted unused.
    pub ahead_unused_bytes_total: u64,
    /// Read past the cache: the coordinator decided so, or all of it was being fetched.
    pub bypassed_bytes_total: u64,
    /// Hits that the coordinator hid from the replacement.
    pub silent_bytes_total: u64,
    /// Acknowledged and not yet written, with `write = "back"`.
    pub unwritten_bytes: u64,
    /// Written after the acknowledgement, including failures.
    pub written_bytes_total: u64,
    /// Blocks of those that could not be written.
    pub lost_bytes_total: u64,
}

impl Cache {
    /// The totals, by the names of metrics.
    pub fn totals(&self) -> [(&'static str, u64); 17] {
        [
            ("asked", self.asked_bytes_total),
            ("hit", self.hit_bytes_total),
            ("late", self.late_bytes_total),
            ("missed", self.missed_bytes_total),
            ("prefetched", self.prefetched_bytes_total),
            ("readmore", self.readmore_bytes_total),
            ("wished", self.wished_bytes_total),
            ("wished-granted", self.granted_bytes_total),
            ("wished-withdrawn", self.withdrawn_bytes_total),
            ("wished-expired", self.expired_bytes_total),
            ("joined", self.joined_bytes_total),
            ("ahead-used", self.ahead_used_bytes_total),
            ("ahead-unused", self.ahead_unused_bytes_total),
            ("bypassed", self.bypassed_bytes_total),
            ("silent", self.silent_bytes_total),
            ("written", self.written_bytes_total),
            ("lost", self.lost_bytes_total),
        ]
    }

    /// The gauges, by the names of metrics.
    pub fn held(&self) -> [(&'static str, u64); 4] {
        [
            ("size", self.size_bytes),
            ("used", self.used_bytes),
            ("unwritten", self.unwritten_bytes),
            ("wished", self.wished_bytes),
        ]
    }
}

/// A background task without an end, for blocks that caches want.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The purpose: `readmore`.
    pub name: String,
    /// The priority; 0 is the highest.
    pub priority: u8,
    /// Bytes that the task wants now.
    pub wanted_bytes: u64,
    /// Read for it in free time. Of a page that was wished some may be read in another gap, or too late.
    pub free_bytes_total: u64,
    /// Read for it in idle time.
    pub idle_bytes_total: u64,
    /// What could not be read.
    pub failed_bytes_total: u64,
    /// Wishes that came true: they took a place in a cache.
    pub satisfied_bytes_total: u64,
    /// Wishes that did not: asked for, fetched or changed before, or left for newer ones.
    pub dropped_bytes_total: u64,
}

impl Standing {
    /// What only grows, by the names of metrics.
    pub fn totals(&self) -> [(&'static str, u64); 5] {
        [
            ("free", self.free_bytes_total),
            ("idle", self.idle_bytes_total),
            ("failed", self.failed_bytes_total),
            ("satisfied", self.satisfied_bytes_total),
            ("dropped", self.dropped_bytes_total),
        ]
    }
}
