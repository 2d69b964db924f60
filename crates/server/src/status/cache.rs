//! What the cache before a volume says of itself, and what all of a drive wish for.

use serde::{Deserialize, Serialize};

/// The cache before a volume. Totals are of blocks of 4 KiB that reads had a byte of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cache {
    /// The volume's name.
    pub volume: String,
    /// How large it may be.
    pub size_bytes: u64,
    /// How much of that is used.
    pub used_bytes: u64,
    /// Which block goes, as the configuration names it.
    pub replacement: String,
    /// What is fetched ahead, as the configuration names it.
    pub prefetch: String,
    /// What stands between it and the caches of its clients, as the configuration names it.
    pub coordinator: String,
    /// What becomes of what the coordinator reads more: `ordinary`, or `free` for free blocks.
    pub readmore: String,
    /// Asked for by clients.
    pub asked_bytes_total: u64,
    /// Of these, those that were there.
    pub hit_bytes_total: u64,
    /// Of these, those that were being fetched.
    pub late_bytes_total: u64,
    /// Of these, those that had to be fetched.
    pub missed_bytes_total: u64,
    /// Fetched ahead by the prefetcher.
    pub prefetched_bytes_total: u64,
    /// Fetched ahead by the coordinator.
    pub readmore_bytes_total: u64,
    /// Of `readmore = "free"`: what the coordinator would have now, and is not read.
    pub wished_bytes: u64,
    /// What it would have had so far.
    pub wished_bytes_total: u64,
    /// Of these, those that free blocks have brought; they count as fetched ahead by it.
    pub granted_bytes_total: u64,
    /// Of these, those that were asked for, fetched or changed before.
    pub withdrawn_bytes_total: u64,
    /// Of these, those that have left for newer ones.
    pub expired_bytes_total: u64,
    /// Fetched without a read of their own, because they were just being read in the background.
    #[serde(default)]
    pub joined_bytes_total: u64,
    /// Of what was fetched ahead, what was used.
    pub ahead_used_bytes_total: u64,
    /// Of what was fetched ahead, what went without having been used.
    pub ahead_unused_bytes_total: u64,
    /// Read past the cache, because the coordinator said so or all of it was being fetched.
    pub bypassed_bytes_total: u64,
    /// Of the hits, those of which the replacement was not told, because the coordinator said so.
    pub silent_bytes_total: u64,
    /// Acknowledged and not yet written: of `write = "back"`.
    pub unwritten_bytes: u64,
    /// Written after having been acknowledged, or tried to be.
    pub written_bytes_total: u64,
    /// Of these, those that could not be written.
    pub lost_bytes_total: u64,
}

impl Cache {
    /// What only grows, by the names of metrics.
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

    /// What goes up and down, by the names of metrics.
    pub fn held(&self) -> [(&'static str, u64); 4] {
        [
            ("size", self.size_bytes),
            ("used", self.used_bytes),
            ("unwritten", self.unwritten_bytes),
            ("wished", self.wished_bytes),
        ]
    }
}

/// A background task without an end: what caches wish for comes and goes, and is read where that costs nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// What it is for: `readmore`.
    pub name: String,
    /// 0 is looked for first.
    pub priority: u8,
    /// What it wants to have read now.
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
