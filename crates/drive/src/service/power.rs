//! Power cuts: blocks on the medium, blocks in transfer, and lost blocks.

use block::{Extent, Instant, Lba, Sectors};

use super::DriveService;

/// A write of an extent to the medium.
#[derive(Clone, Copy, Debug)]
pub(super) struct Put {
    pub(super) extent: Extent,
    /// The arm that ends it.
    pub(super) arm: usize,
    /// The start of its first sector.
    pub(super) begins: Instant,
    /// The end of its last sector.
    pub(super) until: Instant,
    /// The completion of the write, if that does not wait for the medium.
    pub(super) done: Option<Instant>,
}

/// The effect of a power cut on the medium.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cut {
    /// Completed writes that have not begun on the medium.
    pub(crate) unwritten: Vec<Extent>,
    /// Completed writes in progress on the medium.
    pub(crate) undecided: Vec<Extent>,
    /// The sectors under the writing heads.
    pub(crate) torn: Vec<Extent>,
}

impl DriveService {
    /// Stores a put until its end.
    pub(super) fn log_put(&mut self, put: Put) {
        self.puts.push(put);
    }

    /// Drops the puts that have ended by `now`.
    pub(super) fn forget_puts(&mut self, now: Instant) {
        let mut puts = self.puts.iter();
        let under_way = puts.position(|put| put.until > now);
        match under_way.unwrap_or(self.puts.len()) {
            0 => (),
            over => drop(self.puts.drain(..over)),
        }
    }

    /// Cuts the power at `now`, which clears the buffer.
    pub(crate) fn power_cut(&mut self, now: Instant) -> Cut {
        let mut cut = Cut::default();
        let dirty = self.buffer.dirty.iter();
        cut.unwritten
            .extend(dirty.filter(|d| d.done <= now).map(|d| d.extent));
        for put in self.puts.iter().filter(|put| put.until > now) {
            let begun = put.begins <= now;
            if begun {
                cut.torn.push(self.torn(put, now));
            }
            match put.done {
                Some(done) if done <= now && begun => cut.undecided.push(put.extent),
                Some(done) if done <= now => cut.unwritten.push(put.extent),
                _ => (),
            }
        }
        for arm in 0..self.arms.len() {
            self.stop_ahead(arm, now);
        }
        self.buffer.clear();
        self.puts.clear();
        self.resync(now);
        cut
    }

    /// The physical sector that a put writes at `now`, in proportion to the elapsed time.
    fn torn(&self, put: &Put, now: Instant) -> Extent {
        let length = put.until.since(put.begins).as_nanos().max(1);
        let gone = now.since(put.begins).as_nanos();
        let blocks = put.extent.length().0;
        let along = u128::from(blocks) * u128::from(gone) / u128::from(length);
        let at = put.extent.start().0 + (along as u64).min(blocks - 1);
        let sector = u64::from(self.truth.physical_block_bytes / self.truth.block_bytes.max(1));
        let first = at - at % sector.max(1);
        let end = (first + sector.max(1)).min(self.truth.geometry.sectors().0);
        Extent::new(Lba(first), Sectors(end.saturating_sub(first))).unwrap_or(put.extent)
    }

    /// Closes zones, and returns write pointers to the start of blocks that did not reach the medium.
    pub(crate) fn fall_back(&mut self, unwritten: &[Extent]) {
        if let Some(zones) = &mut self.zones {
            zones.fall_back(unwritten);
        }
    }
}
