//! A mirror under random writes, reads, flushes, failing legs and crashes, beside a naive list of what was written.
//!
//! The legs are files with a volatile cache. They carry out their commands in any order, one when the dice say so.
//! A crash keeps each cached write or loses it, and may carry out half of a command.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use block::{Class, Durability, Lba, Request, Sectors, Status, Switch};

use super::*;
use crate::arena::{Arena, Region};
use crate::clock::{Clock, TimeScale};
use crate::disk::Disk;
use crate::mirror::assembly::{FoundLeg, assemble};
use crate::mirror::{DATA_OFFSET, storage};

mod drive;
mod engines;
mod events;
mod written_legs;

use drive::{
    BLOCK, DATA_BLOCKS, Dice, Drive, Expected, FakeLeg, LEG_BYTES, Oracle, Written, fill, number_of,
};
use engines::{laid_out, with_gaps, without_gaps};

/// A service of the mirror, until the crash.
struct Service {
    disk: Disk,
    buffers: BTreeMap<RequestId, (Request, u64, Region)>,
    /// What each read may find.
    expected: BTreeMap<RequestId, Expected>,
    /// Writes that had ended when a flush began.
    flushes: BTreeMap<RequestId, Vec<(Extent, u64)>>,
    acknowledged: Vec<(Extent, u64)>,
    numbers: u64,
    /// What the last read found.
    found: Vec<u64>,
    is_cut: bool,
}

struct World {
    paths: [PathBuf; 2],
    drives: [Rc<RefCell<Drive>>; 2],
    dice: Dice,
    oracle: Oracle,
    /// Numbers of writes.
    writes: u64,
    seed: u64,
    /// The most bytes that gaps and idle time brought to a leg.
    from_gaps: u64,
    /// What an operator heard.
    events: Arc<Mutex<Vec<MirrorEvent>>>,
}

impl World {
    fn new(folder: &Path, seed: u64) -> Self {
        let paths = ["one", "two"].map(|name| folder.join(name));
        for path in &paths {
            let file = File::create(path).expect("a leg");
            file.set_len(LEG_BYTES).expect("a leg");
        }
        let lengths = [LEG_BYTES; 2];
        storage::create([&paths[0], &paths[1]], lengths).expect("a mirror");
        let drives = paths
            .each_ref()
            .map(|path| Rc::new(RefCell::new(Drive::new(path))));
        World {
            paths,
            drives,
            dice: Dice::new(seed),
            oracle: Oracle::new(),
            writes: 0,
            seed,
            from_gaps: 0,
            events: Arc::default(),
        }
    }

    fn paths(&self) -> [&Path; 2] {
        [&self.paths[0], &self.paths[1]]
    }

    /// Every other history has an engine that reads for copies.
    fn has_gaps(&self) -> bool {
        self.seed % 2 == 1
    }

    fn begin(&self) -> Service {
        let found = self.paths().map(storage::look);
        for leg in &found {
            assert!(matches!(leg, FoundLeg::Whole(_)), "seed {}", self.seed);
        }
        let assembly = assemble(found, Switch::Off);
        let assembly = assembly.unwrap_or_else(|why| panic!("seed {}: {why}", self.seed));
        storage::begin(self.paths(), &assembly).expect("legs");
        let legs = [0, 1].map(|leg| Leg {
            back_end: Some(Box::new(FakeLeg {
                drive: Rc::clone(&self.drives[leg]),
                dice: self.dice.clone(),
            })),
            name: format!("leg {leg}"),
        });
        let engine = match self.has_gaps() {
            false => without_gaps(),
            true => with_gaps(),
        };
        let arena = Arena::map(1).expect("memory");
        let ring = Ring::new(&arena).expect("a ring");
        let mirror = Mirror::new(legs, assembly).expect("memory");
        let events = Arc::clone(&self.events);
        let mirror = mirror.observed_by(Box::new(move |event| {
            events.lock().expect("no panic").push(event);
        }));
        let clock = Clock::start(TimeScale::REAL);
        let disk = Disk::new(clock, ring, engine, Box::new(mirror));
        let mut disk = disk.expect("a drive");
        disk.now = Instant::ZERO;
        Service {
            disk,
            buffers: BTreeMap::new(),
            expected: BTreeMap::new(),
            flushes: BTreeMap::new(),
            acknowledged: Vec::new(),
            numbers: 0,
            found: Vec::new(),
            is_cut: false,
        }
    }

    /// Blocks of a few places, so that they meet.
    fn extent(&self) -> Extent {
        let place = self.dice.roll(DATA_BLOCKS / 64) * 64 + 60;
        let first = (place + self.dice.roll(6)).min(DATA_BLOCKS - 6);
        let blocks = 1 + self.dice.roll(6);
        Extent::new(Lba(DATA_OFFSET / BLOCK + first), Sectors(blocks)).expect("blocks")
    }

    fn submit(&mut self, service: &mut Service, direction: Direction, extent: Extent) {
        service.numbers += 1;
        let request = Request {
            id: RequestId(service.numbers),
            direction,
            extent,
            class: Class::default(),
            durability: Durability::Volatile,
            owner: block::Owner::NOBODY,
        };
        let length = (extent.length().0 * BLOCK) as usize;
        let mut buffer = Region::map(length).expect("memory");
        if direction == Direction::Write {
            self.writes += 1;
            fill(buffer.bytes_mut(), self.writes);
        }
        if service.disk.submit(request).is_err() {
            return;
        }
        match direction {
            Direction::Write => {
                self.oracle.submit(extent, self.writes);
                let reads = service.expected.values_mut();
                reads.for_each(|read| read.later.push(self.writes));
            }
            Direction::Read => {
                let expected = self.oracle.expected(extent);
                service.expected.insert(request.id, expected);
            }
        }
        service
            .buffers
            .insert(request.id, (request, self.writes, buffer));
    }

    fn flush(&mut self, service: &mut Service) {
        service.numbers += 1;
        let id = RequestId(service.numbers);
        if service.disk.engine.flush(service.disk.now, id).is_ok() {
            service.flushes.insert(id, service.acknowledged.clone());
        }
    }

    /// Does everything that can be done now.
    fn turn(&mut self, service: &mut Service) {
        let disk = &mut service.disk;
        loop {
            let mut is_any = false;
            while let Some(ended) = disk.poll_ended() {
                is_any = true;
                let status = match ended.result {
                    Ok(()) => Status::Good,
                    Err(_) => Status::MediumError { at: Lba(0) },
                };
                disk.take_in_flight(ended.id);
                disk.complete(ended.id, status, None);
                while let Some(scratch) = disk.take_scratch(ended.id) {
                    disk.free(scratch);
                }
            }
            while let Some(command) = disk.engine.poll(disk.now) {
                is_any = true;
                let memory = laid_out(disk, &service.buffers, &command);
                // SAFETY: buffers are kept until their requests have ended.
                unsafe { disk.start(&command, &memory) };
            }
            while let Some(finished) = disk.poll_finished() {
                is_any = true;
                let (request, number, buffer) =
                    service.buffers.remove(&finished.request.id).expect("held");
                let is_good = finished.status == Status::Good;
                assert!(is_good || service.is_cut, "seed {}: a failure", self.seed);
                match request.direction {
                    Direction::Write if is_good => {
                        self.oracle
                            .end(request.extent, number, Written::Acknowledged);
                        service.acknowledged.push((request.extent, number));
                    }
                    Direction::Write => (),
                    Direction::Read => {
                        let expected = service.expected.remove(&request.id).expect("held");
                        let allowed = if self.is_any_failing() {
                            self.oracle.with_later(request.extent, expected)
                        } else {
                            expected.latest
                        };
                        if is_good {
                            service.found = self.found(&request, buffer.bytes(), &allowed);
                        }
                    }
                }
            }
            while let Some(flushed) = disk.poll_flushed() {
                is_any = true;
                let writes = service.flushes.remove(&flushed.id).expect("held");
                if flushed.status == Status::Good {
                    for (extent, number) in writes {
                        self.oracle.end(extent, number, Written::Flushed);
                    }
                }
            }
            if !is_any {
                let rebuild = disk.condition().and_then(|mirror| mirror.rebuild);
                let from_gaps = rebuild.map_or(0, |rebuild| rebuild.gap_bytes);
                self.from_gaps = self.from_gaps.max(from_gaps);
                return;
            }
        }
    }

    /// The writes that a read has found, which are expected there.
    fn found(&self, request: &Request, bytes: &[u8], expected: &[Vec<u64>]) -> Vec<u64> {
        let blocks = bytes.chunks(BLOCK as usize);
        let each = blocks.zip(expected).zip(request.extent.start().0..);
        each.map(|((read, allowed), block)| {
            let found = number_of(read).filter(|found| allowed.contains(found));
            found.unwrap_or_else(|| {
                let (seed, read) = (self.seed, number_of(read));
                panic!("seed {seed}: block {block} has {read:?}, and not of {allowed:?}")
            })
        })
        .collect()
    }

    fn give_credit(&self, most: u64) {
        for drive in &self.drives {
            drive.borrow_mut().credit = self.dice.roll(most);
        }
    }

    fn pass(&self, service: &mut Service, nanos: u64) {
        service.disk.now += block::Duration::from_nanos(nanos);
    }

    fn step(&mut self, service: &mut Service) {
        match self.dice.roll(20) {
            0..8 => {
                let extent = self.extent();
                self.submit(service, Direction::Write, extent);
            }
            8..12 => {
                let extent = self.extent();
                self.submit(service, Direction::Read, extent);
            }
            12 => self.flush(service),
            // Marks go only after a while.
            13 => self.pass(service, 11_000_000_000),
            _ => self.pass(service, 3_000_000),
        }
        self.give_credit(4);
        self.turn(service);
    }

    /// Goes on without new requests until all have ended.
    fn drain(&mut self, service: &mut Service) {
        for _ in 0..4000 {
            if service.buffers.is_empty() && service.flushes.is_empty() {
                return;
            }
            self.pass(service, 3_000_000);
            self.give_credit(5);
            self.turn(service);
        }
        panic!("seed {}: requests do not end", self.seed);
    }

    /// Goes on until both legs are in sync.
    fn settle(&mut self, service: &mut Service) {
        for _ in 0..4000 {
            let condition = service.disk.condition().expect("a mirror");
            if condition.legs.iter().all(status::Leg::is_in_sync) && !service.disk.is_busy() {
                return;
            }
            self.pass(service, 3_000_000);
            self.give_credit(5);
            self.turn(service);
        }
        let condition = service.disk.condition();
        panic!("seed {}: not in sync: {condition:?}", self.seed);
    }

    fn is_whole(&self, service: &Service) -> bool {
        let condition = service.disk.condition().expect("a mirror");
        let out = LegRecord::Out.name();
        condition.legs.iter().all(|leg| leg.state != out)
    }

    fn is_any_failing(&self) -> bool {
        self.drives.iter().any(|drive| drive.borrow().is_failing)
    }

    fn crash(&mut self, service: Service) {
        for drive in &self.drives {
            drive.borrow_mut().crash(&self.dice);
        }
        drop(service);
        for drive in &self.drives {
            let mut drive = drive.borrow_mut();
            drive.is_failing = false;
            drive.queue.clear();
            drive.cut.clear();
        }
    }

    /// Reads all blocks: each holds what it may, and that is what it holds from now on.
    fn look(&mut self, service: &mut Service) {
        for first in (0..DATA_BLOCKS).step_by(AT_ONCE as usize) {
            let extent = Extent::new(Lba(DATA_OFFSET / BLOCK + first), Sectors(AT_ONCE));
            let extent = extent.expect("blocks");
            self.submit(service, Direction::Read, extent);
            let id = RequestId(service.numbers);
            let each = first..first + AT_ONCE;
            let allowed = each.map(|block| self.oracle.may_hold(block as usize));
            let expected = service.expected.get_mut(&id).expect("submitted");
            expected.latest = allowed.collect();
            self.drain(service);
            for (block, &holds) in (first..).zip(&service.found) {
                self.oracle.blocks[block as usize] = vec![(holds, Written::Flushed)];
            }
        }
    }

    /// Both legs have the same data.
    fn compare(&self) {
        let mut data = [Vec::new(), Vec::new()];
        for (drive, data) in self.drives.iter().zip(&mut data) {
            drive.borrow_mut().flush();
            data.resize((DATA_BLOCKS * BLOCK) as usize, 0);
            drive.borrow().read(DATA_OFFSET, data);
        }
        let [one, other] = data;
        let differs = one.iter().zip(&other).position(|(one, other)| one != other);
        assert_eq!(differs, None, "seed {}", self.seed);
    }

    /// The leg that is recorded as out.
    fn recorded_out(&self) -> Option<usize> {
        let found = self.paths().map(storage::look);
        let assembly = assemble(found, Switch::Off).expect("a mirror");
        (0..2).find(|&leg| assembly.superblock.states[leg] == LegRecord::Out)
    }

    /// A leg that is out is filled from now on, if the dice say so.
    fn attach_some(&mut self) {
        let out = self.recorded_out();
        if let Some(leg) = out
            && self.dice.roll(2) == 0
        {
            storage::attach(self.paths(), leg).expect("it was out");
        }
    }

    /// A leg begins to fail, if both are in sync.
    fn fail_one(&self, service: &mut Service) {
        let condition = service.disk.condition().expect("a mirror");
        if condition.legs.iter().all(status::Leg::is_in_sync) {
            let leg = self.dice.roll(2) as usize;
            self.drives[leg].borrow_mut().is_failing = true;
        }
    }

    /// The power of both legs is cut under the service.
    fn cut(&mut self, service: &mut Service) {
        service.disk.power_cut().expect("legs that can be cut");
        // What was under way may fail, and reads may find anything.
        let all: Vec<u64> = (0..=self.writes).collect();
        let reads = service.expected.values_mut();
        for expected in reads.flat_map(|read| &mut read.latest) {
            expected.clone_from(&all);
        }
        service.is_cut = true;
        self.drain(service);
        service.is_cut = false;
        service.acknowledged.clear();
        // The look takes what it finds as flushed.
        self.flush(service);
        self.drain(service);
        self.look(service);
    }
}

/// Blocks of a read of [`World::look`]: a part of all.
const AT_ONCE: u64 = DATA_BLOCKS / 43;

/// Histories of the property: more with `HEADTIME_MIRROR_CASES`.
fn cases() -> u64 {
    let more = std::env::var("HEADTIME_MIRROR_CASES");
    more.ok().and_then(|count| count.parse().ok()).unwrap_or(10)
}

#[test]
fn nothing_acknowledged_is_lost_whatever_fails_and_both_legs_are_equal_at_the_end() {
    for seed in 0..cases() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut world = World::new(folder.path(), seed);
        for _ in 0..4 {
            let mut service = world.begin();
            if world.dice.roll(2) == 0 {
                world.look(&mut service);
            }
            let mut steps = world.dice.roll(150);
            let fails_at = world.dice.roll(250);
            let cut_at = world.dice.roll(300);
            let mut step = 0;
            while step < steps {
                world.step(&mut service);
                if step == fails_at {
                    world.fail_one(&mut service);
                    if world.dice.roll(2) == 0 {
                        // The crash comes about when the failure is recorded.
                        world.flush(&mut service);
                        steps = step + world.dice.roll(10);
                    }
                }
                if step == cut_at && !world.is_any_failing() {
                    world.cut(&mut service);
                }
                step += 1;
            }
            match world.dice.roll(3) {
                // Without anything else in between: what differs is seen.
                0 if world.is_whole(&service) && !world.is_any_failing() => {
                    world.drain(&mut service);
                    world.settle(&mut service);
                    world.compare();
                }
                _ => (),
            }
            world.crash(service);
            world.attach_some();
            let mut service = world.begin();
            world.look(&mut service);
            if world.is_whole(&service) {
                world.settle(&mut service);
                world.compare();
            }
            world.crash(service);
        }
        if let Some(leg) = world.recorded_out() {
            storage::attach(world.paths(), leg).expect("it was out");
        }
        let mut service = world.begin();
        world.look(&mut service);
        for _ in 0..40 {
            world.step(&mut service);
        }
        world.drain(&mut service);
        world.settle(&mut service);
        world.compare();
        assert_eq!(world.from_gaps > 0, world.has_gaps(), "seed {seed}");
    }
}
