//! The status of a cache.

use cache::write_back::Unwritten;

use super::Cached;
use crate::cache_setting::PAGE;
use crate::status;

impl Cached {
    /// The status, without the name of the volume.
    pub fn status(&self) -> status::Cache {
        let level = self.contents.level();
        let counts = level.counts();
        let bytes = |blocks: u64| blocks * PAGE;
        let unwritten = self.contents.unwritten();
        let (written, lost) = unwritten.map_or((0, 0), Unwritten::written_and_lost);
        status::Cache {
            volume: String::new(),
            size_bytes: self.setting.bytes,
            used_bytes: bytes(self.contents.used_pages() as u64),
            replacement: self.setting.replacement.clone(),
            prefetch: self.setting.prefetch.clone(),
            coordinator: self.setting.coordinator.clone(),
            readmore: self.setting.readmore.name().to_owned(),
            asked_bytes_total: bytes(counts.asked),
            hit_bytes_total: bytes(counts.hits),
            late_bytes_total: bytes(counts.hits_in_flight),
            missed_bytes_total: bytes(counts.asked - counts.hits - counts.hits_in_flight),
            prefetched_bytes_total: bytes(counts.prefetched),
            readmore_bytes_total: bytes(counts.readmore),
            wished_bytes: bytes(level.wished()),
            wished_bytes_total: bytes(counts.wished),
            granted_bytes_total: bytes(counts.wishes_granted),
            withdrawn_bytes_total: bytes(counts.wishes_withdrawn),
            expired_bytes_total: bytes(counts.wishes_expired),
            joined_bytes_total: bytes(self.background.served()),
            ahead_used_bytes_total: bytes(counts.ahead_used),
            ahead_unused_bytes_total: bytes(counts.ahead_evicted_unused),
            bypassed_bytes_total: bytes(counts.bypassed),
            silent_bytes_total: bytes(counts.silent_hits),
            unwritten_bytes: unwritten.map_or(0, |unwritten| bytes(unwritten.count() as u64)),
            written_bytes_total: bytes(written),
            lost_bytes_total: bytes(lost),
        }
    }
}
