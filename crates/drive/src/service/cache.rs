//! Destaging of the write cache, in idle time and on demand, in the profile's order.

use block::{BufferHit, Direction, Duration, Extent, Instant};

use super::power::Put;
use super::{CommandCompletion, CommandTimes, DriveService, ServiceRecord, Travel};
use crate::buffer::Dirty;
use crate::firmware::QueueOrder;
use crate::mechanics::SeekTarget;

impl DriveService {
    /// Destages in the idle time before `until`, each arm its own blocks. Returns whether any arm
    /// began to.
    pub(crate) fn idle_until(&mut self, until: Instant) -> bool {
        let mut any = false;
        if self.buffer.dirty.is_empty() {
            return any;
        }
        for arm in 0..self.arms.len() {
            while let Some(index) = self.next_dirty(arm) {
                let since = self.buffer.dirty[index].since;
                if self.arms[arm].free_at.max(since) >= until {
                    break;
                }
                self.destage(index);
                any = true;
            }
        }
        any
    }

    /// The dirty extent that an arm destages next: the oldest one, or the cheapest by the profile's
    /// order. An extent that overlaps an older one waits for it.
    fn next_dirty(&self, arm: usize) -> Option<usize> {
        let dirty = &self.buffer.dirty;
        let order = self.truth.buffer.destage_order;
        if order == QueueOrder::Fcfs && self.arms.len() == 1 {
            return (!dirty.is_empty()).then_some(0);
        }
        let mut own =
            (0..dirty.len()).filter(|&index| self.arm_of(dirty[index].extent.start()) == arm);
        if order == QueueOrder::Fcfs {
            return own.next();
        }
        let is_first = |&index: &usize| {
            let extent = dirty[index].extent;
            let mut older = dirty[..index].iter();
            older.all(|older| !older.extent.overlaps(extent))
        };
        own.filter(is_first)
            .min_by_key(|&index| (self.destage_cost(&dirty[index], order), index))
    }

    /// The cost of destaging an extent by the profile's order, in nanoseconds.
    fn destage_cost(&self, dirty: &Dirty, order: QueueOrder) -> u64 {
        let arm = self.arms[self.arm_of(dirty.extent.start())];
        let at = arm.free_at.max(dirty.since);
        let Some(place) = self.truth.geometry.locate(dirty.extent.start()) else {
            return at.as_nanos();
        };
        let target = SeekTarget::from(&place);
        let truth = &self.truth;
        let way = truth.positioning(arm.position, at, &target, Direction::Write);
        order.cost((at + way.total()).as_nanos(), at.since(dirty.since))
    }

    /// Destages an extent of the arm with the oldest one. Returns its end on the medium.
    pub(super) fn destage_next(&mut self) -> Instant {
        let oldest = self.buffer.dirty.first();
        let arm = oldest.map_or(0, |dirty| self.arm_of(dirty.extent.start()));
        self.destage(self.next_dirty(arm).unwrap_or(0)).1
    }

    /// Destages a dirty extent. Returns its travel, and its end on the medium.
    fn destage(&mut self, index: usize) -> (Travel, Instant) {
        if index >= self.buffer.dirty.len() {
            return (Travel::default(), Instant::ZERO);
        }
        let dirty = self.buffer.dirty.remove(index);
        let flow = self.write_flow(dirty.extent, dirty.since);
        let (travel, [begins, until]) = self.put(dirty.extent, dirty.since, dirty.since, &flow);
        self.last_cached = Some((dirty.extent.end(), until));
        self.log_put(Put {
            extent: dirty.extent,
            arm: self.arm_of(dirty.extent.last()),
            begins,
            until,
            done: Some(dirty.done),
        });
        (travel, until)
    }

    /// Destages the extents that overlap `extent`, and those before them in the order. Returns
    /// whether there were any.
    pub(super) fn destage_overlapping(&mut self, extent: Extent) -> bool {
        let mut any = false;
        loop {
            let mut dirty = self.buffer.dirty.iter();
            let Some(found) = dirty.find(|dirty| dirty.extent.overlaps(extent)) else {
                return any;
            };
            let arm = self.arm_of(found.extent.start());
            any = true;
            if let Some(index) = self.next_dirty(arm) {
                self.destage(index);
            }
        }
    }

    /// Destages what must be on the medium before a transfer of `extent`. Returns whether there was
    /// any.
    pub(super) fn destage_before(&mut self, extent: Extent) -> bool {
        let first = self.destage_first(extent);
        self.destage_overlapping(extent) || first
    }

    /// Destages all blocks of the arms of `extent`, if the profile destages first. Returns whether
    /// there were any.
    pub(super) fn destage_first(&mut self, extent: Extent) -> bool {
        let mut any = false;
        if !self.truth.buffer.destage_first {
            return any;
        }
        for arm in self.arm_of(extent.start())..=self.arm_of(extent.last()) {
            while let Some(index) = self.next_dirty(arm) {
                self.destage(index);
                any = true;
            }
        }
        any
    }

    /// Flushes the write cache. The account is that of the arm which ends last; its earlier activity
    /// counts as waiting.
    pub(super) fn flush(&mut self, taken: CommandTimes) -> ServiceRecord {
        let overhead = self.overhead(self.truth.overheads.write_miss);
        let ready = taken.ready(overhead);
        let mut last = (ready, Travel::default());
        for arm in 0..self.arms.len() {
            let under_way = self.puts.iter().filter(|put| put.arm == arm);
            let mut end = under_way.map(|put| put.until).max().unwrap_or(ready);
            let mut travel = Travel::default();
            while let Some(index) = self.next_dirty(arm) {
                let (one, until) = self.destage(index);
                travel.seek += one.seek;
                travel.rotation += one.rotation;
                travel.transfer += one.transfer;
                end = end.max(until);
            }
            if end > last.0 {
                last = (end, travel);
            }
        }
        let (end, travel) = last;
        for arm in &mut self.arms {
            arm.turn = arm.turn.max(arm.free_at.min(end));
        }
        let ending = CommandCompletion {
            hit: BufferHit::Miss,
            completion: Duration::ZERO,
        };
        let travel = travel.at_most(end.since(ready));
        self.done(taken, overhead, end, travel, ending)
    }
}

impl Travel {
    /// The last `length` of the travel; the rest of it counts as waiting.
    fn at_most(self, length: Duration) -> Travel {
        let transfer = self.transfer.min(length);
        let rotation = self.rotation.min(length.saturating_sub(transfer));
        let seek = self.seek.min(length.saturating_sub(transfer + rotation));
        Travel {
            waited: length.saturating_sub(transfer + rotation + seek),
            seek,
            rotation,
            transfer,
            ..self
        }
    }
}
