//! Reads: from the buffer, from a look-ahead in progress, and from the medium.

use block::{BufferHit, Direction, Durability, Duration, Extent, Instant, Lba, Sectors};

use super::pass::mishap;
use super::{CommandCompletion, CommandTimes, DriveService, ServiceRecord, Travel};
use crate::buffer::{BufferLookup, OngoingLookAhead};
use crate::flow::ReadFlow;
use crate::geometry::TrackExtent;
use crate::imperfection::{Mishap, PassDirection};
use crate::mechanics::{Pass, Position, SeekTarget};

/// A read that has started.
#[derive(Clone, Copy, Debug)]
struct OngoingRead {
    arm: usize,
    extent: Extent,
    taken: CommandTimes,
    /// Where the arm was before.
    from: Position,
}

impl DriveService {
    pub(super) fn read(
        &mut self,
        extent: Extent,
        durability: Durability,
        taken: CommandTimes,
    ) -> ServiceRecord {
        let arm = self.arm_of(extent.start());
        for arm in 0..self.arms.len() {
            self.follow_ahead(arm, taken.at);
        }
        let (found, segment) = match durability {
            Durability::Volatile => self.find(arm, extent),
            Durability::Durable => {
                self.destage_before(extent);
                (BufferLookup::Nothing, 0)
            }
        };
        let read = OngoingRead {
            arm,
            extent,
            taken,
            from: self.arms[arm].position,
        };
        let served = match found {
            BufferLookup::All => self.read_hit(read, segment),
            BufferLookup::Coming(from) => self.read_coming(read, segment, from),
            BufferLookup::Until(from) => self.read_rest(read, segment, from),
            BufferLookup::Nothing => self.read_miss(read),
        };
        self.last = Direction::Read;
        served
    }

    /// Looks up a read in the buffer. Dirty blocks that are not in a segment are destaged first.
    fn find(&mut self, arm: usize, extent: Extent) -> (BufferLookup, usize) {
        let found = self.buffer.find(arm, extent);
        if found.0 != BufferLookup::All && self.destage_before(extent) {
            return self.buffer.find(arm, extent);
        }
        match found {
            // The look-ahead ends at the share of its arm.
            (BufferLookup::Coming(from), segment) if extent.end().0 > self.truth.share_end(arm) => {
                (BufferLookup::Until(from), segment)
            }
            found => found,
        }
    }

    fn flow(&self, read: &OngoingRead, ready: Instant) -> ReadFlow {
        ReadFlow::new(
            read.extent.length().0,
            self.truth.bus.read_block,
            self.truth.buffer.read_watermark,
            ready.max(self.arms[read.arm].bus_free),
        )
        .with_reselect(self.truth.overheads.read_reselect)
        .within(self.truth.buffer.blocks())
    }

    fn read_hit(&mut self, read: OngoingRead, segment: usize) -> ServiceRecord {
        let OngoingRead {
            arm, extent, taken, ..
        } = read;
        let overhead = self.overhead(self.truth.overheads.read_hit);
        let ready = taken.ready(overhead);
        let mut flow = self.flow(&read, ready);
        flow.buffered(extent.length().0, ready);
        self.buffer.touch(segment);
        let ahead = self.buffer.aheads[arm];
        let running = ahead.is_some_and(|ahead| ahead.segment == segment);
        if running || (self.truth.buffer.look_ahead_on_hit && ahead.is_none()) {
            let at = taken.at.max(self.arms[arm].free_at);
            self.look_ahead(arm, segment, extent, at);
        }
        let end = flow.end();
        self.read_done(&read, overhead, end, Travel::default(), BufferHit::Full)
    }

    /// Serves a read from a look-ahead in progress, which continues without repositioning.
    fn read_coming(&mut self, read: OngoingRead, segment: usize, from: Lba) -> ServiceRecord {
        let OngoingRead {
            arm, extent, taken, ..
        } = read;
        let Some(ahead) = self.buffer.aheads[arm].take() else {
            return self.read_rest(read, segment, from);
        };
        let overhead = self.overhead(self.truth.overheads.read_hit);
        let ready = taken.ready(overhead);
        let mut flow = self.flow(&read, ready);
        let here = from.0 - extent.start().0;
        if here > 0 {
            flow.buffered(here, ready);
        }
        let (travel, at) = self.continue_ahead(&ahead, (from, extent.end()), ready, &mut flow);
        self.arms[arm].free_at = at.max(taken.at);
        self.arms[arm].turn = at.max(taken.at);
        let end = travel.unreadable.unwrap_or(extent.end()).0;
        self.buffer.fill_on(segment, end);
        if travel.unreadable.is_none() {
            self.look_ahead(arm, segment, extent, at);
        }
        let end = flow.end().max(ready);
        self.read_done(&read, overhead, end, travel, BufferHit::Partial)
    }

    /// Continues the look-ahead `ahead` to `end`, and delivers the blocks from `from` on. Returns the
    /// travel after `ready`, and the moment of the end.
    fn continue_ahead(
        &mut self,
        ahead: &OngoingLookAhead,
        (from, end): (Lba, Lba),
        ready: Instant,
        flow: &mut ReadFlow,
    ) -> (Travel, Instant) {
        let mut travel = Travel::default();
        let arm = self.arm_of(from);
        let DriveService {
            truth, arms, luck, ..
        } = self;
        let (mut at, mut position) = (ahead.at, ahead.position);
        let span = Extent::new(Lba(ahead.next), Sectors(end.0 - ahead.next));
        for run in span.into_iter().flat_map(|span| truth.geometry.runs(span)) {
            let mut pass = truth.pass(position, at, &run, Direction::Read);
            if let (true, Some(begins)) = (at == ahead.at, ahead.begins) {
                pass.rotation = begins.since(at + pass.seek);
            }
            let start = at + pass.seek + pass.rotation;
            let old = from.0.saturating_sub(run.first.0).min(run.blocks.into());
            let new = u64::from(run.blocks) - old;
            let mut mishap_of_new = Mishap::default();
            if new > 0 {
                let skipped = pass.transfer.as_nanos() * old / u64::from(run.blocks);
                let part = Pass {
                    transfer: pass.transfer - Duration::from_nanos(skipped),
                    ..pass
                };
                let unread = TrackExtent {
                    first: Lba(run.first.0 + old),
                    blocks: new as u32,
                    ..run
                };
                mishap_of_new = mishap(truth, luck, (&unread, &part), PassDirection::Reads);
                let start = start + Duration::from_nanos(skipped) + mishap_of_new.lost;
                flow.pass(start, &part, new);
            }
            travel.add_after(ready, at, &pass, mishap_of_new);
            at += pass.total() + mishap_of_new.lost;
            position = SeekTarget::from(&run).position;
            if mishap_of_new.unreadable.is_some() {
                break;
            }
        }
        arms[arm].position = position;
        (travel, at)
    }

    /// Serves a read whose first blocks are in the buffer, and fetches the others.
    fn read_rest(&mut self, read: OngoingRead, segment: usize, from: Lba) -> ServiceRecord {
        let OngoingRead { extent, taken, .. } = read;
        let Ok(rest) = Extent::new(from, Sectors(extent.end().0 - from.0)) else {
            return self.read_miss(read);
        };
        let hit = self.overhead(self.truth.overheads.read_hit);
        let overhead = self.overhead(self.truth.overheads.read_miss);
        let here = taken.ready(hit);
        let mut flow = self.flow(&read, here);
        flow.buffered(from.0 - extent.start().0, here);
        let travel = self.fetch(rest, taken.ready(overhead), taken.at, &mut flow);
        let end = travel.unreadable.unwrap_or(extent.end()).0;
        self.buffer.fill_on(segment, end);
        self.begin_ahead(&read, segment, &travel);
        let end = flow.end().max(taken.ready(overhead));
        self.read_done(&read, overhead, end, travel, BufferHit::Partial)
    }

    fn read_miss(&mut self, read: OngoingRead) -> ServiceRecord {
        let OngoingRead { extent, taken, .. } = read;
        let overhead = self.overhead(self.truth.overheads.read_miss);
        let ready = taken.ready(overhead);
        let mut flow = self.flow(&read, ready);
        let travel = self.fetch(extent, ready, taken.at, &mut flow);
        if let Some(segment) = self.recycle(taken.at) {
            let before = self.passed_before(extent, travel.rotation);
            let end = travel.unreadable.unwrap_or(extent.end()).0;
            self.buffer.fill(segment, extent.start().0 - before, end);
            self.begin_ahead(&read, segment, &travel);
        }
        self.read_done(&read, overhead, flow.end(), travel, BufferHit::Miss)
    }

    /// The number of blocks before `extent` that passed while the head waited for it.
    fn passed_before(&self, extent: Extent, waited: Duration) -> u64 {
        if !self.truth.buffer.read_on_arrival {
            return 0;
        }
        let start = extent.start();
        let Some(track) = self.truth.geometry.track_of(start) else {
            return 0;
        };
        if !(track.first..=track.last).contains(&start) {
            return 0;
        }
        let sector = self.truth.spindle.time_of(track.width).as_nanos().max(1);
        let readable = self.luck.readable_until(start.0);
        (waited.as_nanos() / sector).min(start.0 - track.first.0.max(readable))
    }

    /// Begins the look-ahead after a fetched read, by the arm of its last block.
    fn begin_ahead(&mut self, read: &OngoingRead, segment: usize, travel: &Travel) {
        if travel.unreadable.is_some() {
            return;
        }
        let arm = self.arm_of(read.extent.last());
        let at = self.arms[arm].free_at;
        self.look_ahead(arm, segment, read.extent, at);
        self.hold_ahead(arm, read.extent, read.from);
    }

    /// Completes a read whose bus transfer ends at `end`. A failed read ends with its last attempt.
    fn read_done(
        &mut self,
        read: &OngoingRead,
        overhead: Duration,
        end: Instant,
        travel: Travel,
        hit: BufferHit,
    ) -> ServiceRecord {
        let end = match travel.unreadable {
            None => end,
            Some(_) => read.taken.ready(overhead) + travel.waited + travel.head(),
        };
        let bus = &mut self.arms[read.arm].bus_free;
        *bus = end.max(*bus);
        let ending = CommandCompletion {
            hit,
            completion: self.truth.overheads.read_completion,
        };
        self.done(read.taken, overhead, end, travel, ending)
    }
}
