//! Reads: what the buffer has, what is on its way, what the arm has to fetch.

use std::sync::Arc;

use block::{BufferHit, Direction, Durability, Duration, Extent, Instant, Lba, Sectors};

use super::{Arm, Served, Service, Travel};
use crate::buffer::Found;
use crate::flow::ReadFlow;
use crate::imperfection::Reading;
use crate::mechanics::{Pass, Position};

impl Service {
    pub(super) fn read(
        &mut self,
        extent: Extent,
        durability: Durability,
        submitted: Instant,
    ) -> Served {
        let arm = self.arm_of(extent.start());
        self.follow_ahead(submitted);
        let (found, segment) = match durability {
            Durability::Volatile => self.buffer.find(extent),
            Durability::Durable => {
                self.destage_overlapping(extent);
                (Found::Nothing, 0)
            }
        };
        let served = match found {
            Found::All => self.read_hit(arm, segment, extent, submitted),
            Found::Coming(from) => self.read_coming(arm, segment, extent, from, submitted),
            Found::Until(from) => self.read_rest(arm, segment, extent, from, submitted),
            Found::Nothing => self.read_miss(arm, extent, submitted),
        };
        self.last = Direction::Read;
        served
    }

    fn read_end(&self, hit: BufferHit) -> (BufferHit, Duration) {
        (hit, self.truth.overheads.read_completion)
    }

    fn read_flow(&self, total: u64, ready: Instant) -> ReadFlow {
        ReadFlow::new(
            total,
            self.truth.bus.read_block,
            self.truth.buffer.read_watermark,
            ready.max(self.bus_free),
        )
        .with_reselect(self.truth.overheads.read_reselect)
    }

    fn read_hit(
        &mut self,
        arm: usize,
        segment: usize,
        extent: Extent,
        submitted: Instant,
    ) -> Served {
        let overhead = self.overhead(self.truth.overheads.read_hit);
        let ready = submitted + overhead;
        let blocks = extent.length().0;
        let mut flow = self.read_flow(blocks, ready);
        flow.buffered(blocks, ready);
        self.buffer.touch(segment);
        let running = self
            .buffer
            .ahead
            .is_some_and(|ahead| ahead.segment == segment);
        if running || (self.truth.buffer.look_ahead_on_hit && self.buffer.ahead.is_none()) {
            let at = submitted.max(self.arms[arm].free_at);
            let position = self.arms[arm].position;
            self.buffer
                .look_ahead(&self.truth.geometry, segment, extent, at, position);
        }
        self.done(
            submitted,
            overhead,
            flow.end(),
            Travel::default(),
            self.read_end(BufferHit::Full),
        )
    }

    /// The look-ahead is on its way: the medium goes on without repositioning.
    fn read_coming(
        &mut self,
        arm: usize,
        segment: usize,
        extent: Extent,
        from: Lba,
        submitted: Instant,
    ) -> Served {
        let overhead = self.overhead(self.truth.overheads.read_hit);
        let ready = submitted + overhead;
        let mut flow = self.read_flow(extent.length().0, ready);
        let here = from.0 - extent.start().0;
        if here > 0 {
            flow.buffered(here, ready);
        }
        let Some(ahead) = self.buffer.ahead else {
            return self.read_miss(arm, extent, submitted);
        };
        // What the look-ahead read on the present track before `from` is not counted twice.
        let mut travel = Travel::default();
        let mut at = ahead.at;
        let mut position = ahead.position;
        let span = Extent::new(Lba(ahead.next), Sectors(extent.end().0 - ahead.next));
        let truth = Arc::clone(&self.truth);
        for run in span.into_iter().flat_map(|span| truth.geometry.runs(span)) {
            let pass = self.pass(position, at, &run, Direction::Read);
            let start = at + pass.seek + pass.rotation;
            let old = from
                .0
                .saturating_sub(run.first.0)
                .min(u64::from(run.blocks));
            let new = u64::from(run.blocks) - old;
            if new > 0 {
                let skipped = pass.transfer.as_nanos() * old / u64::from(run.blocks);
                let part = Pass {
                    transfer: pass.transfer - Duration::from_nanos(skipped),
                    ..pass
                };
                flow.pass(start + Duration::from_nanos(skipped), &part, new);
            }
            at += pass.total();
            position = Position {
                cylinder: run.cylinder,
                head: run.head,
            };
        }
        let wait = at.since(ready);
        travel.transfer += wait;
        self.arms[arm] = Arm {
            position,
            free_at: at.max(submitted),
        };
        self.buffer.fill_on(segment, extent.end().0);
        self.buffer.ahead = None;
        self.buffer
            .look_ahead(&self.truth.geometry, segment, extent, at, position);
        self.done(
            submitted,
            overhead,
            flow.end(),
            travel,
            self.read_end(BufferHit::Partial),
        )
    }

    /// The first blocks are there, the others have to be fetched.
    fn read_rest(
        &mut self,
        arm: usize,
        segment: usize,
        extent: Extent,
        from: Lba,
        submitted: Instant,
    ) -> Served {
        let hit = self.overhead(self.truth.overheads.read_hit);
        let overhead = self.overhead(self.truth.overheads.read_miss);
        let mut flow = self.read_flow(extent.length().0, submitted + hit);
        flow.buffered(from.0 - extent.start().0, submitted + hit);
        let Ok(rest) = Extent::new(from, Sectors(extent.end().0 - from.0)) else {
            return self.read_miss(arm, extent, submitted);
        };
        let travel = self.fetch(arm, rest, submitted + overhead, submitted, &mut flow);
        self.buffer.fill_on(segment, extent.end().0);
        self.begin_ahead(arm, segment, extent);
        self.done(
            submitted,
            overhead,
            flow.end(),
            travel,
            self.read_end(BufferHit::Partial),
        )
    }

    fn read_miss(&mut self, arm: usize, extent: Extent, submitted: Instant) -> Served {
        let overhead = self.overhead(self.truth.overheads.read_miss);
        let mut flow = self.read_flow(extent.length().0, submitted + overhead);
        let travel = self.fetch(arm, extent, submitted + overhead, submitted, &mut flow);
        if let Some(segment) = self.buffer.recycle() {
            let before = self.passed_before(extent, travel.rotation);
            self.buffer
                .fill(segment, extent.start().0 - before, extent.end().0);
            self.begin_ahead(arm, segment, extent);
        }
        self.done(
            submitted,
            overhead,
            flow.end(),
            travel,
            self.read_end(BufferHit::Miss),
        )
    }

    /// How many of the blocks just before `extent` passed by while the head waited for it.
    fn passed_before(&self, extent: Extent, waited: Duration) -> u64 {
        if !self.truth.buffer.read_on_arrival {
            return 0;
        }
        let Some(track) = self.truth.geometry.track_of(extent.start()) else {
            return 0;
        };
        let sector = self.truth.spindle.time_of(track.width).as_nanos().max(1);
        (waited.as_nanos() / sector).min(extent.start().0 - track.first.0)
    }

    /// Reads from the medium into the flow.
    fn fetch(
        &mut self,
        arm: usize,
        extent: Extent,
        ready: Instant,
        submitted: Instant,
        flow: &mut ReadFlow,
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
        let truth = Arc::clone(&self.truth);
        for run in truth.geometry.runs(extent) {
            let pass = self.pass(position, at, &run, Direction::Read);
            let mishap = self.mishap(&run, Reading::Reads);
            travel.add(&pass, mishap);
            let start = at + pass.seek + pass.rotation + mishap.lost;
            flow.pass(start, &pass, u64::from(run.blocks));
            at += pass.total() + mishap.lost;
            position = Position {
                cylinder: run.cylinder,
                head: run.head,
            };
        }
        self.arms[arm] = Arm {
            position,
            free_at: at,
        };
        travel
    }
}
