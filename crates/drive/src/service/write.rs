//! Writes: into the buffer, or through it to the medium.

use std::sync::Arc;

use block::{BufferHit, Direction, Durability, Duration, Extent, Instant, Lba, Status, Switch};

use super::{Arm, Served, Service, Travel};
use crate::buffer::Dirty;
use crate::firmware::WriteBack;
use crate::flow::WriteFlow;
use crate::imperfection::Reading;
use crate::mechanics::Position;

impl Service {
    pub(super) fn write(
        &mut self,
        extent: Extent,
        durability: Durability,
        submitted: Instant,
    ) -> Served {
        if let Some(expected) = self.advance_pointer(extent) {
            let served = self.electronics_only(submitted);
            return Served {
                status: Status::WritePointer { expected },
                ..served
            };
        }
        let arm = self.arm_of(extent.start());
        self.follow_ahead(submitted);
        let early = durability == Durability::Volatile
            && self.buffer.write_cache == Switch::On
            && extent.length().0 <= u64::from(self.truth.buffer.segment_blocks)
            && match self.truth.buffer.write_back {
                WriteBack::None => false,
                WriteBack::All => true,
                WriteBack::Append => self
                    .buffer
                    .dirty
                    .back()
                    .is_none_or(|dirty| dirty.extent.end() == extent.start()),
            };
        let served = if early {
            self.write_early(extent, submitted)
        } else {
            self.destage_overlapping(extent);
            self.write_through(arm, extent, submitted)
        };
        self.buffer.keep_written(extent);
        self.last = Direction::Write;
        served
    }

    fn write_end(&self, hit: BufferHit) -> (BufferHit, Duration) {
        (hit, self.truth.overheads.write_completion)
    }

    fn write_early(&mut self, extent: Extent, submitted: Instant) -> Served {
        let mut accepted = submitted;
        while !self.buffer.has_room() {
            accepted = accepted.max(self.destage());
        }
        let overhead = self.overhead(self.truth.overheads.write_hit);
        let begins = (accepted + overhead).max(self.bus_free);
        let end = begins + self.truth.bus.write_block * extent.length().0;
        self.buffer.dirty.push_back(Dirty {
            extent,
            since: begins,
        });
        let travel = Travel {
            waited: accepted.since(submitted),
            ..Travel::default()
        };
        self.done(
            submitted,
            overhead,
            end,
            travel,
            self.write_end(BufferHit::Full),
        )
    }

    fn write_through(&mut self, arm: usize, extent: Extent, submitted: Instant) -> Served {
        let overhead = self.overhead(self.truth.overheads.write_miss);
        let ready = submitted + overhead;
        let bus_begins = (ready + self.truth.overheads.write_reselect).max(self.bus_free);
        let travel = self.put(arm, extent, ready, bus_begins, submitted);
        let end = self.arms[arm].free_at;
        self.done(
            submitted,
            overhead,
            end,
            travel,
            self.write_end(BufferHit::Miss),
        )
    }

    /// Writes to the medium; the data come over the bus from `bus_begins` on.
    pub(super) fn put(
        &mut self,
        arm: usize,
        extent: Extent,
        ready: Instant,
        bus_begins: Instant,
        submitted: Instant,
    ) -> Travel {
        let stopped = self.stop_ahead(arm, submitted);
        let Arm {
            mut position,
            free_at,
        } = self.arms[arm];
        let mut at = ready.max(free_at).max(stopped);
        let mut travel = Travel {
            waited: at.since(ready),
            ..Travel::default()
        };
        let flow = WriteFlow::new(
            extent.length().0,
            self.truth.bus.write_block,
            self.truth.buffer.write_watermark,
            bus_begins,
        );
        let mut before = 0;
        let truth = Arc::clone(&self.truth);
        for run in truth.geometry.runs(extent) {
            let blocks = u64::from(run.blocks);
            let mut pass = self.pass(position, at, &run, Direction::Write);
            let mishap = self.mishap(&run, Reading::Writes);
            let earliest = flow.earliest(before, blocks, pass.transfer);
            let start = at + pass.seek + pass.rotation;
            if start < earliest {
                // The data are late: the sector has to come round again.
                let again = earliest + truth.spindle.wait(earliest, run.start);
                pass.rotation += again.since(start);
            }
            travel.add(&pass, mishap);
            at += pass.total() + mishap.lost;
            position = Position {
                cylinder: run.cylinder,
                head: run.head,
            };
            before += blocks;
        }
        self.arms[arm] = Arm {
            position,
            free_at: at,
        };
        self.putting = Some((extent, at));
        travel
    }

    /// Moves the write pointer of a sequential-write zone; answers where it is if the write does
    /// not begin there. A write to a zone's first block resets the zone.
    fn advance_pointer(&mut self, extent: Extent) -> Option<Lba> {
        let zone_blocks = self.luck.sequential_zone()?;
        let zone = (extent.start().0 / zone_blocks) as usize;
        let zone_start = zone as u64 * zone_blocks;
        let offset = extent.start().0 - zone_start;
        let expected = self.pointers[zone];
        if offset != 0 && offset != expected || offset + extent.length().0 > zone_blocks {
            return Some(Lba(zone_start + expected));
        }
        self.pointers[zone] = offset + extent.length().0;
        None
    }
}
