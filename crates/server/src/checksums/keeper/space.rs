//! Changes of space: trims, zeroes without a transfer, and a new length of the volume.

use std::ops::Range;

use super::{Keeper, Kind, Trimmed, chunks};
use crate::checksums::CHUNK;
use crate::checksums::orders::Order;
use crate::checksums::record::Record;

/// The largest number of trims without a flush that are told apart. A choice: a file system deletes as many files
/// within a second. With more, no read counts until a flush.
const MOST_TRIMS: usize = 1024;

/// Changes of space.
impl Keeper {
    /// Space is to be changed without a transfer. It may go to the drive after [`Report::Voided`] of this key.
    ///
    /// [`Report::Voided`]: crate::checksums::orders::Report::Voided
    pub fn punch_begun(&mut self, key: u64, range: Range<u64>) {
        let record = match self.trimmed {
            Trimmed::Fixed => Record::Nothing,
            Trimmed::Undefined => Record::Undefined,
        };
        let chunks = chunks(&range);
        self.forget_changes(&chunks);
        self.orders.push_back(Order::Void {
            key,
            chunks,
            record,
        });
        self.begin(key, range, Vec::new(), Kind::Punch);
    }

    /// A trim has ended. What these chunks read as now may be undone by a power cut until a flush.
    pub(super) fn trim_ended(&mut self, chunks: Range<u64>) {
        let ended = self.ended;
        match self.trims.last_mut() {
            Some((last, number)) if last.end == chunks.start => {
                (last.end, *number) = (chunks.end, ended);
            }
            _ => self.trims.push((chunks, ended)),
        }
        if self.trims.len() > MOST_TRIMS {
            self.trims.clear();
            self.reads.clear();
            self.has_flushed = false;
        }
    }

    /// What is known of these chunks' changes is void.
    fn forget_changes(&mut self, chunks: &Range<u64>) {
        for (_, active) in self.active.range_mut(chunks.clone()) {
            active.cover.clear();
            active.touched = u16::MAX;
        }
    }

    /// The volume has another length now. A pass ends.
    pub fn resize(&mut self, length: u64) {
        let end = length.div_ceil(CHUNK);
        self.forget_changes(&(self.length.min(length) / CHUNK..u64::MAX));
        self.length = length;
        self.pass = None;
        self.reads.clear();
        // Those in flight past the end are awaited: their ends are counted.
        self.active
            .retain(|&chunk, active| chunk < end || active.in_flight > 0);
        self.dirty
            .retain(|&chunk, dirty| chunk < end || dirty.in_flight > 0);
        self.doubts.retain(|&chunk, _| chunk < end);
        let Keeper {
            intended, dirty, ..
        } = self;
        intended.retain(|chunk, _| *chunk < end || dirty.contains_key(chunk));
        self.orders.push_back(Order::Resize(length));
    }
}
