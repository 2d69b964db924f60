//! One command at a time: how buffer, arm, platter and bus serve it.
//!
//! ```text
//!             overhead     seek      rotation   transfer
//!   arm     |----------|----------|-----------|==========|~~~~ look-ahead ~~~~>
//!   bus                                          |===========|
//!           ready-overhead                                  done
//! ```
//!
//! A command's whole course is worked out when the drive takes it up: nothing that comes later
//! changes it.

use std::sync::Arc;

use block::{
    Account, Action, BufferHit, Direction, Durability, Duration, Extent, Instant, Lba, Sectors,
    Status, Switch,
};

use crate::angle::Angle;
use crate::buffer::{Ahead, Buffer, Dirty, Found};
use crate::firmware::{AfterPrevious, WriteBack};
use crate::flow::{ReadFlow, WriteFlow};
use crate::geometry::Run;
use crate::imperfection::{Imperfections, Luck, Mishap, Reading};
use crate::mechanics::{Pass, Position, Target};
use crate::profile::Profile;

/// The electronics and mechanics of a drive.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) truth: Arc<Profile>,
    pub(crate) arms: Vec<Arm>,
    pub(crate) buffer: Buffer,
    luck: Luck,
    bus_free: Instant,
    last: Direction,
    /// What was put on the medium last, and until when: torn if the power fails before.
    putting: Option<(Extent, Instant)>,
    /// The write pointers of the sequential-write zones; empty without such zones.
    pointers: Vec<u64>,
}

/// One actuator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arm {
    pub(crate) position: Position,
    /// When it has done what it was told.
    pub(crate) free_at: Instant,
}

/// How a command went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub(crate) at: Instant,
    pub(crate) status: Status,
    pub(crate) account: Account,
}

/// What the passes of a command add up to.
#[derive(Clone, Copy, Debug, Default)]
struct Travel {
    /// Waiting for the arm to be free of the command before.
    waited: Duration,
    seek: Duration,
    rotation: Duration,
    transfer: Duration,
    unreadable: Option<Lba>,
}

impl Travel {
    fn add(&mut self, pass: &Pass, mishap: Mishap) {
        self.seek += pass.seek;
        self.rotation += pass.rotation;
        self.transfer += pass.transfer + mishap.lost;
        self.unreadable = self.unreadable.or(mishap.unreadable);
    }
}

impl Service {
    pub(crate) fn new(truth: Arc<Profile>, imperfections: Imperfections, seed: u64) -> Self {
        let arms = vec![
            Arm {
                position: Position::default(),
                free_at: Instant::ZERO
            };
            usize::from(truth.actuators)
        ];
        let buffer = Buffer::new(truth.buffer);
        let mut luck = Luck::new(imperfections, seed, truth.spindle);
        let mut truth = truth;
        if !luck.is_perfect() {
            let spindle = luck.spindle(truth.spindle, Instant::ZERO);
            Arc::make_mut(&mut truth).spindle = spindle;
        }
        let zones = luck
            .sequential_zone()
            .map_or(0, |z| truth.geometry.sectors().0.div_ceil(z));
        let pointers = vec![0; zones as usize];
        Service {
            truth,
            arms,
            buffer,
            luck,
            bus_free: Instant::ZERO,
            last: Direction::Read,
            putting: None,
            pointers,
        }
    }

    /// Whatever was done is over at `now`, and the head where it should be.
    pub(crate) fn resync(&mut self, now: Instant) {
        for arm in &mut self.arms {
            if arm.free_at > now {
                arm.free_at = now;
            }
        }
        if let Some(ahead) = &mut self.buffer.ahead {
            ahead.at = ahead.at.min(now);
        }
        self.bus_free = self.bus_free.min(now);
    }

    /// The platter stood at `phase` at the beginning.
    pub(crate) fn turn_platter(&mut self, phase: Angle) {
        let spindle = self.truth.spindle.with_phase(phase);
        Arc::make_mut(&mut self.truth).spindle = spindle;
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

    /// Which actuator serves a block: they share the blocks equally.
    pub(crate) fn arm_of(&self, lba: Lba) -> usize {
        match self.arms.len() {
            1 => 0,
            arms => {
                let capacity = self.truth.geometry.sectors().0;
                (u128::from(lba.0) * arms as u128 / u128::from(capacity)) as usize
            }
        }
    }

    /// Serves a command that was submitted at `submitted` and is taken up by its arm now.
    pub(crate) fn serve(&mut self, action: Action, submitted: Instant) -> Served {
        if !self.luck.is_perfect() {
            self.befall(action, submitted);
        }
        match action {
            Action::Read { extent, durability } => self.read(extent, durability, submitted),
            Action::Write { extent, durability } => self.write(extent, durability, submitted),
            Action::Seek { to } => self.seek(to, submitted),
            Action::Flush => self.flush(submitted),
            Action::SetLookAhead(switch) => {
                if switch == Switch::Off {
                    self.buffer.ahead = None;
                }
                self.buffer.look_ahead = switch;
                self.electronics_only(submitted)
            }
            Action::SetWriteCache(switch) => {
                self.buffer.write_cache = switch;
                match switch {
                    Switch::On => self.electronics_only(submitted),
                    Switch::Off => self.flush(submitted),
                }
            }
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

    /// What keeps the drive from taking up a command at once, and its spindle's mood.
    fn befall(&mut self, action: Action, submitted: Instant) {
        let arm = match action {
            Action::Read { extent, .. } | Action::Write { extent, .. } => {
                self.arm_of(extent.start())
            }
            Action::Seek { to } => self.arm_of(to),
            Action::Flush | Action::SetLookAhead(_) | Action::SetWriteCache(_) => 0,
        };
        let now = submitted.max(self.arms[arm].free_at);
        let stall = self.luck.stall(now);
        if !stall.is_zero() {
            self.stop_ahead(arm, submitted);
            self.arms[arm].free_at = now + stall;
        }
        if self.luck.drifts() {
            let spindle = self.luck.spindle(self.truth.spindle, now);
            Arc::make_mut(&mut self.truth).spindle = spindle;
        }
    }

    fn overhead(&self, by: AfterPrevious) -> Duration {
        match self.last {
            Direction::Read => by.read,
            Direction::Write => by.write,
        }
    }

    fn electronics_only(&mut self, submitted: Instant) -> Served {
        let overhead = self.overhead(self.truth.overheads.read_hit);
        Served {
            at: submitted + overhead,
            status: Status::Good,
            account: Account {
                overhead,
                ..Account::default()
            },
        }
    }

    // Reads.

    fn read(&mut self, extent: Extent, durability: Durability, submitted: Instant) -> Served {
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

    fn write_end(&self, hit: BufferHit) -> (BufferHit, Duration) {
        (hit, self.truth.overheads.write_completion)
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

    // Look-ahead.

    fn begin_ahead(&mut self, arm: usize, segment: usize, extent: Extent) {
        let Arm { position, free_at } = self.arms[arm];
        self.buffer.ahead = None;
        self.buffer
            .look_ahead(&self.truth.geometry, segment, extent, free_at, position);
    }

    /// Brings the look-ahead up to `now`: whole tracks move its anchor, the present track only
    /// its segment.
    fn follow_ahead(&mut self, now: Instant) {
        let Some(mut ahead) = self.buffer.ahead else {
            return;
        };
        let segment = ahead.segment;
        let truth = Arc::clone(&self.truth);
        let Some(rest) = ahead.rest() else { return };
        for run in truth.geometry.runs(rest) {
            let pass = truth.pass(ahead.position, ahead.at, &run, Direction::Read);
            let start = ahead.at + pass.seek + pass.rotation;
            let end = start + pass.transfer;
            if end > now {
                let read = now.since(start).as_nanos() * u64::from(run.blocks)
                    / pass.transfer.as_nanos().max(1);
                self.buffer
                    .advance(segment, run.first.0 + read.min(u64::from(run.blocks)));
                self.buffer.ahead = Some(ahead);
                return;
            }
            let next = run.first.0 + u64::from(run.blocks);
            self.buffer.advance(segment, next);
            let position = Position {
                cylinder: run.cylinder,
                head: run.head,
            };
            ahead = Ahead {
                next,
                at: end,
                position,
                ..ahead
            };
        }
        // It has reached its limit: the arm rests where it ended.
        let arm = self.arm_of(Lba(ahead.next.saturating_sub(1)));
        self.arms[arm].position = ahead.position;
        self.buffer.ahead = None;
    }

    /// Ends the look-ahead; the arm is where it has come to. Answers when the arm has settled,
    /// which is later than `now` if it was just on its way to another track.
    fn stop_ahead(&mut self, arm: usize, now: Instant) -> Instant {
        self.follow_ahead(now);
        let Some(ahead) = self.buffer.ahead.take() else {
            return now;
        };
        let Some(run) = ahead
            .rest()
            .and_then(|rest| self.truth.geometry.runs(rest).next())
        else {
            return now;
        };
        if now <= ahead.at {
            self.arms[arm].position = ahead.position;
            return now;
        }
        let target = Target::from(&run).position;
        let seek = self
            .truth
            .reposition(ahead.position, target, Direction::Read);
        self.arms[arm].position = target;
        now.max(ahead.at + seek)
    }

    // Writes.

    fn write(&mut self, extent: Extent, durability: Durability, submitted: Instant) -> Served {
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
    fn put(
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

    /// Writes the oldest dirty blocks to the medium; answers when they are there.
    fn destage(&mut self) -> Instant {
        let Some(dirty) = self.buffer.dirty.pop_front() else {
            return Instant::ZERO;
        };
        let arm = self.arm_of(dirty.extent.start());
        let ready = dirty.since.max(self.arms[arm].free_at);
        self.put(arm, dirty.extent, ready, dirty.since, dirty.since);
        self.arms[arm].free_at
    }

    /// Writes what overlaps `extent` (and all before it) to the medium.
    fn destage_overlapping(&mut self, extent: Extent) {
        while self
            .buffer
            .dirty
            .iter()
            .any(|dirty| dirty.extent.overlaps(extent))
        {
            self.destage();
        }
    }

    fn flush(&mut self, submitted: Instant) -> Served {
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

    fn seek(&mut self, to: Lba, submitted: Instant) -> Served {
        let arm = self.arm_of(to);
        let overhead = self.overhead(self.truth.overheads.read_miss);
        let stopped = self.stop_ahead(arm, submitted);
        let ready = (submitted + overhead)
            .max(self.arms[arm].free_at)
            .max(stopped);
        let position = match self.truth.geometry.locate(to) {
            Some(place) => Target::from(&place).position,
            None => self.arms[arm].position,
        };
        let ideal = self
            .truth
            .reposition(self.arms[arm].position, position, Direction::Read);
        let seek = self.luck.seek(ideal);
        self.arms[arm] = Arm {
            position,
            free_at: ready + seek,
        };
        let waited = ready.since(submitted + overhead);
        let travel = Travel {
            waited,
            seek,
            ..Travel::default()
        };
        self.done(
            submitted,
            overhead,
            ready + seek,
            travel,
            (BufferHit::Miss, Duration::ZERO),
        )
    }

    // One pass, as it really happens.

    fn pass(&mut self, from: Position, ready: Instant, run: &Run, direction: Direction) -> Pass {
        let zero_latency = match direction {
            Direction::Read => self.truth.buffer.zero_latency_read,
            Direction::Write => self.truth.buffer.zero_latency_write,
        };
        if self.luck.is_perfect() {
            return if zero_latency {
                self.truth.pass_zero_latency(from, ready, run, direction)
            } else {
                self.truth.pass(from, ready, run, direction)
            };
        }
        // A seek that takes longer is one that begins later and takes as long as it should.
        let position = Target::from(run).position;
        let ideal = self.truth.reposition(from, position, direction);
        let seek = self.luck.seek(ideal);
        let settled = ready + seek;
        let there = if zero_latency {
            self.truth
                .pass_zero_latency(position, settled, run, direction)
        } else {
            self.truth.pass(position, settled, run, direction)
        };
        Pass { seek, ..there }
    }

    fn mishap(&mut self, run: &Run, reading: Reading) -> Mishap {
        if self.luck.is_perfect() {
            return Mishap::default();
        }
        let period = self.truth.spindle.period();
        self.luck.pass(run, reading, period)
    }

    /// Closes a command: `data_end` is when the last block is where it should be.
    fn done(
        &mut self,
        submitted: Instant,
        overhead: Duration,
        data_end: Instant,
        travel: Travel,
        (hit, completion): (BufferHit, Duration),
    ) -> Served {
        self.bus_free = self.bus_free.max(data_end);
        let at = data_end + completion;
        let known =
            travel.waited + overhead + travel.seek + travel.rotation + travel.transfer + completion;
        let account = Account {
            queue: travel.waited,
            overhead: overhead + completion,
            seek: travel.seek,
            rotation: travel.rotation,
            transfer: travel.transfer,
            bus: at.since(submitted).saturating_sub(known),
            hit,
        };
        let status = travel
            .unreadable
            .map_or(Status::Good, |at| Status::MediumError { at });
        Served {
            at,
            status,
            account,
        }
    }
}
