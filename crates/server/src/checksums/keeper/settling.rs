//! From changes to records: what is quiet and durable is written, and its intent removed.

use block::{Duration, Instant};

use super::{Active, Keeper, bytes_of};
use crate::checksums::orders::Order;

/// The time without changes after which a chunk's record is written and its intent removed. A choice: file systems commit every five
/// seconds.
const QUIET: Duration = Duration::from_secs(10);
/// The time after which the record of a chunk is written although it is still being changed. A choice: a scrub meets
/// chunks with records.
const OLDEST: Duration = Duration::from_secs(30);
/// The interval of looks for quiet intents. A choice.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// The interval of looks while room for changes is short or a scrub waits. A choice.
const LOOK_SOON: Duration = Duration::from_millis(100);

/// Changes that become records.
impl Keeper {
    /// Writes records as soon as changes are durable, from the next [`Keeper::settle`] on, once.
    pub fn hasten(&mut self) {
        self.is_hasty = true;
    }

    /// Writes the records of quiet chunks. The answer is whether a flush of the drive is wanted before others.
    pub fn settle(&mut self, now: Instant) -> bool {
        if now < self.looked + self.interval() {
            return false;
        }
        let is_pressed = self.is_pressed();
        self.looked = now;
        let is_due = |at: Instant| is_pressed || now >= at + QUIET;
        let is_old = |active: &Active| active.since.is_some_and(|since| now >= since + OLDEST);
        self.settle_if(|active| is_due(active.at) || is_old(active), is_due);
        let mut left = self.dirty.values();
        let wants_flush = left
            .any(|dirty| dirty.in_flight == 0 && dirty.last > self.durable && is_due(dirty.at))
            || (self.active.values()).any(|active| active.last > self.durable && is_old(active));
        self.is_hasty &= wants_flush;
        wants_flush || self.waits_for_flush() || self.wants_reads() && !self.trims.is_empty()
    }

    fn is_pressed(&self) -> bool {
        self.active.len() > self.most_active / 2 || self.is_hasty
    }

    /// The interval of looks.
    pub(super) fn interval(&self) -> Duration {
        match self.is_pressed() {
            true => LOOK_SOON,
            false => LOOK,
        }
    }

    /// Writes the records of all durable changes, at the end of the service.
    pub fn settle_all(&mut self) {
        self.settle_if(|_| true, |_| true);
    }

    fn settle_if(
        &mut self,
        is_chunk_due: impl Fn(&Active) -> bool,
        is_intent_due: impl Fn(Instant) -> bool,
    ) {
        let durable = self.durable;
        let length = self.length;
        let mut changes = Vec::new();
        self.active.retain(|&chunk, active| {
            let is_settled =
                active.in_flight == 0 && active.last <= durable && is_chunk_due(active);
            if is_settled {
                let mut change = active.cover.changes(bytes_of(chunk, length));
                change.touched = active.touched;
                changes.push((chunk, change));
            }
            !is_settled
        });
        for (chunk, change) in &changes {
            // The record does not depend any more on what these pages had.
            self.undoubt(*chunk, change.known);
        }
        for dirty in self
            .dirty
            .values_mut()
            .filter(|dirty| dirty.last <= durable)
        {
            dirty.is_crowded_out = false;
        }
        // Their changes have all become records above. One that is asked for again is about to be written.
        let quiet = self.dirty.iter().filter(|(chunk, dirty)| {
            let is_durable = dirty.in_flight == 0 && dirty.last <= durable;
            is_durable && is_intent_due(dirty.at) && !self.asked.contains_key(chunk)
        });
        let mut clear: Vec<u64> = quiet.map(|(&chunk, _)| chunk).collect();
        for chunk in &clear {
            self.dirty.remove(chunk);
        }
        clear.retain(|chunk| !self.doubts.contains_key(chunk));
        for chunk in &clear {
            self.intended.remove(chunk);
        }
        if !changes.is_empty() || !clear.is_empty() {
            self.orders.push_back(Order::Settle { changes, clear });
        }
    }
}
