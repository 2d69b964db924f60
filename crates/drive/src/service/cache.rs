//! What the write cache holds: destaged in idle time and on demand, lost with the power.

use block::{Account, Extent, Instant, Lba, Sectors, Status};

use super::{Served, Service};

impl Service {
    /// Writes the oldest dirty blocks to the medium; answers when they are there.
    pub(super) fn destage(&mut self) -> Instant {
        let Some(dirty) = self.buffer.dirty.pop_front() else {
            return Instant::ZERO;
        };
        let arm = self.arm_of(dirty.extent.start());
        let ready = dirty.since.max(self.arms[arm].free_at);
        self.put(arm, dirty.extent, ready, dirty.since, dirty.since);
        self.arms[arm].free_at
    }

    /// Writes what overlaps `extent` (and all before it) to the medium.
    pub(super) fn destage_overlapping(&mut self, extent: Extent) {
        while self
            .buffer
            .dirty
            .iter()
            .any(|dirty| dirty.extent.overlaps(extent))
        {
            self.destage();
        }
    }

    pub(super) fn flush(&mut self, submitted: Instant) -> Served {
        let overhead = self.overhead(self.truth.overheads.write_miss);
        let mut end = submitted + overhead;
        while !self.buffer.dirty.is_empty() {
            end = end.max(self.destage());
        }
        let account = Account {
            overhead,
            transfer: end.since(submitted + overhead),
            ..Account::default()
        };
        Served {
            at: end,
            status: Status::Good,
            account,
        }
    }

    /// Destages and recalibrates as the idle time before `until` allows.
    pub(crate) fn idle_until(&mut self, until: Instant) {
        while let Some(dirty) = self.buffer.dirty.front().copied() {
            let arm = self.arm_of(dirty.extent.start());
            if self.arms[arm].free_at.max(dirty.since) >= until {
                break;
            }
            self.destage();
        }
    }

    /// Loses the buffer; answers what had not reached the medium, and the torn sector.
    pub(crate) fn power_cut(&mut self, now: Instant) -> (Vec<Extent>, Option<Extent>) {
        let mut unwritten: Vec<Extent> =
            self.buffer.dirty.iter().map(|dirty| dirty.extent).collect();
        self.buffer.clear();
        let under_way = self.putting.take().filter(|(_, until)| *until > now);
        let torn = under_way.map(|(extent, _)| {
            unwritten.push(extent);
            // One physical sector of it, anywhere.
            let format = &self.truth;
            let blocks = u64::from((format.physical_block_bytes / format.block_bytes).max(1));
            let at = extent.start().0 + self.luck.below(extent.length().0);
            let first = at / blocks * blocks;
            Extent::new(Lba(first), Sectors(blocks)).unwrap_or(extent)
        });
        self.resync(now);
        (unwritten, torn)
    }
}
