//! Writes: into the buffer, or through to the medium.

use block::{BufferHit, Direction, Durability, Duration, Extent, Instant, Sectors, Status, Switch};

use super::power::Put;
use super::{CommandCompletion, CommandTimes, DriveService, ServiceRecord, Travel};
use crate::buffer::Dirty;
use crate::firmware::WriteBack;
use crate::flow::WriteFlow;

impl DriveService {
    pub(super) fn write(
        &mut self,
        extent: Extent,
        durability: Durability,
        taken: CommandTimes,
    ) -> ServiceRecord {
        if let Some(zones) = &mut self.zones
            && let Err(expected) = zones.write(extent)
        {
            let served = self.electronics_only(taken);
            return ServiceRecord {
                status: Status::WritePointer { expected },
                ..served
            };
        }
        for arm in 0..self.arms.len() {
            self.follow_ahead(arm, taken.at);
        }
        let served = if self.takes_early(extent, durability) {
            self.write_early(extent, taken)
        } else {
            let waits = self.waits_behind_cached(extent, durability, taken);
            self.destage_before(extent);
            self.write_through(extent, taken, waits)
        };
        self.keep_written(extent, taken.at);
        self.last = Direction::Write;
        served
    }

    /// Whether a write counts as done once the buffer holds it.
    pub(super) fn takes_early(&self, extent: Extent, durability: Durability) -> bool {
        let arm = self.arm_of(extent.start());
        let mut latest = self.buffer.dirty.iter().rev();
        let mut continues = || {
            let last = latest.find(|dirty| self.arm_of(dirty.extent.start()) == arm);
            last.is_none_or(|dirty| dirty.extent.end() == extent.start())
        };
        (durability == Durability::Volatile || !self.luck.keeps_durable())
            && self.buffer.write_cache == Switch::On
            && self.buffer.takes_writes(extent.length().0)
            && match self.truth.buffer.write_back {
                WriteBack::None => false,
                WriteBack::All => true,
                WriteBack::Append => continues(),
            }
    }

    /// Drops the blocks that a write replaces, and keeps the new ones for later reads if the profile
    /// does.
    fn keep_written(&mut self, extent: Extent, now: Instant) {
        while let Some(old) = self.buffer.overlapping(extent) {
            self.empty(old, now);
        }
        if self.truth.buffer.read_written
            && let Some(index) = self.recycle(now)
        {
            self.buffer.fill(index, extent.start().0, extent.end().0);
        }
    }

    fn write_early(&mut self, extent: Extent, taken: CommandTimes) -> ServiceRecord {
        let arm = self.arm_of(extent.start());
        let mut accepted = taken.submitted;
        while !self.buffer.has_room(extent) {
            accepted = accepted.max(self.destage_next());
            self.arms[arm].turn = self.arms[arm].turn.max(accepted);
        }
        let overhead = self.overhead(self.truth.overheads.write_hit);
        let ready = taken.ready(overhead).max(accepted + overhead);
        let begins = ready.max(self.arms[arm].bus_free);
        let end = begins + self.truth.bus.write_block * extent.length().0;
        self.arms[arm].bus_free = end;
        let travel = Travel {
            waited: ready.since(taken.ready(overhead)),
            ..Travel::default()
        };
        let served = self.write_done(taken, overhead, end, travel, BufferHit::Full);
        self.buffer.dirty.push(Dirty {
            extent,
            since: begins,
            done: served.at,
        });
        served
    }

    /// The wait of a durable write that continues a cached one, which is not on the medium yet.
    fn waits_behind_cached(
        &self,
        extent: Extent,
        durability: Durability,
        taken: CommandTimes,
    ) -> Duration {
        let mut dirty = self.buffer.dirty.iter();
        let continues = dirty.any(|dirty| dirty.extent.end() == extent.start())
            || self
                .last_cached
                .is_some_and(|(end, until)| end == extent.start() && until > taken.submitted);
        match durability != Durability::Volatile && continues {
            true => self.luck.behind_cached(),
            false => Duration::ZERO,
        }
    }

    fn write_through(
        &mut self,
        extent: Extent,
        taken: CommandTimes,
        waits: Duration,
    ) -> ServiceRecord {
        let overhead = self.overhead(self.truth.overheads.write_miss);
        // The data arrive as soon as the bus is free, even while the arm is busy.
        let decoded = taken.submitted + overhead;
        let arm = self.arm_of(extent.start());
        let bus_begins =
            (decoded + self.truth.overheads.write_reselect).max(self.arms[arm].bus_free);
        let ready = match waits {
            Duration::ZERO => taken.ready(overhead),
            _ => taken.ready(overhead).max(self.arms[arm].free_at + waits),
        };
        let (travel, [begins, until]) = self.put_parts(extent, ready, taken.at, bus_begins);
        self.keep_turn(extent);
        self.log_put(Put {
            extent,
            arm: self.arm_of(extent.last()),
            begins,
            until,
            done: None,
        });
        self.write_done(taken, overhead, until, travel, BufferHit::Miss)
    }

    /// Writes an extent to the medium, at once or in parts. Its data arrive from `bus_begins` on.
    /// Returns as [`DriveService::put`] does.
    fn put_parts(
        &mut self,
        extent: Extent,
        ready: Instant,
        taken: Instant,
        bus_begins: Instant,
    ) -> (Travel, [Instant; 2]) {
        let arm = self.arm_of(extent.start());
        let most = match self.truth.buffer.writes_in_parts {
            true => self.truth.buffer.write_blocks().max(1),
            false => extent.length().0,
        };
        let (mut travel, mut begins) = (Travel::default(), None);
        let (mut at, mut bus_begins, mut ready) = (extent.start(), bus_begins, ready);
        while let Ok(part) = Extent::new(at, Sectors(most.min(extent.end().0 - at.0))) {
            let flow = self.write_flow(part, bus_begins);
            self.arms[arm].bus_free = bus_begins + self.truth.bus.write_block * part.length().0;
            let (one, [first, until]) = self.put(part, ready, taken, &flow);
            travel.join(&one);
            begins = begins.or(Some(first));
            at = part.end();
            (bus_begins, ready) = (until, until);
        }
        (travel, [begins.unwrap_or(ready), ready])
    }

    pub(super) fn write_flow(&self, extent: Extent, bus_begins: Instant) -> WriteFlow {
        WriteFlow::new(
            extent.length().0,
            self.truth.bus.write_block,
            self.truth.buffer.write_watermark,
            bus_begins,
        )
        .within(self.truth.buffer.blocks())
    }

    fn write_done(
        &mut self,
        taken: CommandTimes,
        overhead: Duration,
        end: Instant,
        travel: Travel,
        hit: BufferHit,
    ) -> ServiceRecord {
        let ending = CommandCompletion {
            hit,
            completion: self.truth.overheads.write_completion,
        };
        self.done(taken, overhead, end, travel, ending)
    }
}
