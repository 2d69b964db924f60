//! Host-managed zones: whatever the policy, no write is off its pointer, and reads are free.

use std::collections::BTreeMap;
use std::sync::Arc;

use block::{
    Action, Class, Direction, Duration, Extent, Instant, Lba, Request, RequestId, Sectors, Status,
};
use drive::{Imperfections, Profile, VirtualDrive, ZoneAction, ZoneCondition, invented};
use engine::{Engine, Limits, Unchanged};
use scheduler::Preemption;
use scheduler::policy::find;

/// Blocks of a zone. The drive has 28 of them.
const ZONE: u64 = 100;

/// Random operations.
const OPERATIONS: u64 = 10_000;

/// What a request saw or will write; content of a block: the request that wrote it last.
struct Known {
    request: Request,
    /// What a FIFO would read.
    expected: Vec<u64>,
    read: BTreeMap<u64, u64>,
}

/// A host that writes at the pointers of its own naive model, an engine and a drive.
struct World {
    engine: Engine,
    drive: VirtualDrive,
    now: Instant,
    dice: u64,
    /// The model: where each zone is written next, as a list that knows nothing of the drive.
    pointers: Vec<u64>,
    /// The contents after all accepted requests, and those on the drive.
    accepted: Vec<u64>,
    contents: Vec<u64>,
    open: BTreeMap<RequestId, Known>,
    /// Requests that ended otherwise than well.
    failed: Vec<(Request, Status)>,
    served: u64,
}

impl World {
    fn new(profile: Profile, adapt: impl FnOnce(Engine) -> Engine) -> Self {
        let profile = Arc::new(profile);
        let policy = find("sptf").expect("a policy of the table");
        let limits = Limits {
            requests: 40,
            reserved_for_real_time: 4,
            patience: Duration::from_millis(80),
            ..Limits::default()
        };
        let zoned = Imperfections {
            sequential_zone: Some(ZONE),
            ..Imperfections::default()
        };
        let blocks = profile.geometry.sectors().0;
        World {
            engine: adapt(Engine::new(Arc::clone(&profile), &|| policy.make(), limits)),
            drive: VirtualDrive::imperfect(profile, zoned, 1),
            now: Instant::ZERO,
            dice: 7,
            pointers: (0..blocks / ZONE).map(|zone| zone * ZONE).collect(),
            accepted: vec![0; blocks as usize],
            contents: vec![0; blocks as usize],
            open: BTreeMap::new(),
            failed: Vec::new(),
            served: 0,
        }
    }

    /// Knuth, MMIX.
    fn throw(&mut self, sides: u64) -> u64 {
        self.dice = self
            .dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % sides
    }

    /// One random operation.
    fn operate(&mut self, number: u64) {
        // Some zones are in use more than others, so that many writes of one zone meet.
        let zones = self.pointers.len() as u64;
        let zone = match self.throw(3) {
            0 => self.throw(zones),
            _ => self.throw(4),
        };
        match self.throw(20) {
            0..11 => self.write(number, zone),
            11..19 => {
                let blocks = self.accepted.len() as u64;
                let near = zone * ZONE + self.throw(ZONE);
                let start = [near, self.throw(blocks)][self.throw(4) as usize / 3];
                let length = 1 + self.throw(30.min(blocks - start));
                self.submit(number, Direction::Read, start, length);
            }
            _ => self.change(zone),
        }
    }

    /// Writes at the pointer. A full zone is reset first, for which its writes and reads must have ended.
    fn write(&mut self, number: u64, zone: u64) {
        let end = (zone + 1) * ZONE;
        if self.pointers[zone as usize] == end {
            self.reset(zone);
        }
        let pointer = self.pointers[zone as usize];
        let length = 1 + self.throw(24.min(end - pointer));
        if self.submit(number, Direction::Write, pointer, length) {
            self.pointers[zone as usize] += length;
        }
    }

    fn reset(&mut self, zone: u64) {
        self.pass(None);
        let reset = self.drive.change_zone(Lba(zone * ZONE), ZoneAction::Reset);
        assert_eq!(reset, Ok(()));
        self.pointers[zone as usize] = zone * ZONE;
    }

    /// Opens, closes or finishes a zone; finishing waits for its writes.
    fn change(&mut self, zone: u64) {
        let first = Lba(zone * ZONE);
        let is_full = self.pointers[zone as usize] == (zone + 1) * ZONE;
        match self.throw(4) {
            0 => {
                self.pass(None);
                let finished = self.drive.change_zone(first, ZoneAction::Finish);
                assert_eq!(finished, Ok(()));
                self.pointers[zone as usize] = (zone + 1) * ZONE;
            }
            kind if !is_full => {
                let action = [ZoneAction::Open, ZoneAction::Close][kind as usize % 2];
                assert_eq!(self.drive.change_zone(first, action), Ok(()));
            }
            _ => {}
        }
    }

    fn submit(&mut self, number: u64, direction: Direction, start: u64, length: u64) -> bool {
        let extent = Extent::new(Lba(start), Sectors(length)).expect("blocks");
        let class = match self.throw(10) {
            0 => Class::RealTime {
                deadline: Instant::ZERO,
            },
            8.. => Class::Background,
            priority => Class::BestEffort(priority as u8 - 1),
        };
        let request = Request {
            id: RequestId(number + 1),
            direction,
            extent,
            class,
            durability: block::Durability::Volatile,
            owner: block::Owner::NOBODY,
        };
        while !self.engine.has_room(class) {
            self.step();
        }
        if self.engine.submit(self.now, request).is_err() {
            return false;
        }
        let range = start as usize..(start + length) as usize;
        let mut expected = Vec::new();
        match direction {
            Direction::Read => expected.extend_from_slice(&self.accepted[range]),
            Direction::Write => self.accepted[range].fill(number + 1),
        }
        let known = Known {
            request,
            expected,
            read: BTreeMap::new(),
        };
        self.open.insert(request.id, known);
        true
    }

    /// Goes on to the next event; false if there is none.
    fn step(&mut self) -> bool {
        self.instant();
        let wakeups = [self.drive.next_wakeup(), self.engine.next_wakeup()];
        match wakeups.into_iter().flatten().min() {
            Some(then) => self.now = then,
            None => return false,
        }
        self.instant();
        true
    }

    /// Goes on until `until`, or to the end of everything.
    fn pass(&mut self, until: Option<Instant>) {
        loop {
            self.instant();
            let wakeups = [self.drive.next_wakeup(), self.engine.next_wakeup()];
            let next = wakeups.into_iter().flatten().min();
            match (next, until) {
                (Some(next), until) if until.is_none_or(|until| next <= until) => self.now = next,
                (_, Some(until)) => return self.now = self.now.max(until),
                (_, None) => return assert_eq!(self.engine.held(), 0),
            }
        }
    }

    fn instant(&mut self) {
        while let Some(outcome) = self.drive.poll(self.now) {
            self.engine.complete(self.now, outcome.id, outcome);
        }
        while let Some(finished) = self.engine.poll_finished() {
            let known = self.open.remove(&finished.request.id).expect("it is open");
            assert_eq!(finished.request, known.request);
            assert!(finished.waited_order <= finished.waited);
            self.served += 1;
            if finished.status != Status::Good {
                self.failed.push((finished.request, finished.status));
            } else {
                let read: Vec<u64> = known.read.into_values().collect();
                assert_eq!(read, known.expected, "{:?}", finished.request);
            }
        }
        while let Some(command) = self.engine.poll(self.now) {
            self.drive.submit(self.now, command).expect("room");
            self.transfer(command.id, command.action);
        }
    }

    /// Moves contents as the command is given: overlapping commands are not at the drive together.
    fn transfer(&mut self, id: block::CommandId, action: Action) {
        let Some(request) = self.engine.request_of(id) else {
            return;
        };
        let extent = action.extent().expect("a transfer");
        for block in extent.start().0..extent.end().0 {
            match action {
                Action::Write { .. } => self.contents[block as usize] = request.id.0,
                _ => {
                    let known = self.open.get_mut(&request.id).expect("it is open");
                    known.read.insert(block, self.contents[block as usize]);
                }
            }
        }
    }

    /// All operations, and their end.
    fn run(&mut self, operations: u64) {
        for number in 0..operations {
            self.operate(number);
            let pause = self.throw(4) * self.throw(4_000);
            self.pass(Some(self.now + Duration::from_micros(pause)));
        }
        self.pass(None);
        assert!(self.open.is_empty());
    }

    /// The drive reports what the model has.
    fn check(&self) {
        assert_eq!(self.failed, []);
        assert_eq!(self.contents, self.accepted);
        let all = Extent::new(Lba(0), Sectors(self.accepted.len() as u64)).expect("blocks");
        let zones: Vec<_> = self.drive.zones(all).collect();
        let reported: Vec<u64> = zones.iter().map(|zone| zone.pointer.0).collect();
        assert_eq!(reported, self.pointers);
        for zone in zones {
            let is_full = zone.pointer == zone.extent.end();
            assert_eq!(zone.condition == ZoneCondition::Full, is_full, "{zone:?}");
        }
    }
}

fn zoned(engine: Engine) -> Engine {
    engine.with_zones(Sectors(ZONE))
}

#[test]
fn ten_thousand_random_operations_are_never_off_the_pointer() {
    let mut world = World::new(invented::profile(), zoned);
    world.run(OPERATIONS);
    world.check();
    assert!(world.served > OPERATIONS * 9 / 10, "{}", world.served);
}

/// A write in a gap is not divided: its zone would get the rest of it first.
#[test]
fn writes_in_gaps_keep_the_order_of_a_zone() {
    let in_gaps = |engine: Engine| zoned(engine.with_background(engine::Rules::default()));
    let mut world = World::new(invented::profile(), in_gaps);
    world.run(OPERATIONS);
    world.check();
    let gaps = world.engine.gaps();
    assert!(gaps.request_blocks[1] > 0, "{gaps:?}");
}

#[test]
fn writes_in_parts_and_two_actuators_keep_the_order_of_a_zone() {
    let preempting = |engine: Engine| {
        let rules = Preemption {
            chunk: Some(Sectors(4)),
            ..Preemption::suited_to(engine.profile())
        };
        zoned(engine.with_preemption(rules))
    };
    let mut world = World::new(invented::profile(), preempting);
    world.run(OPERATIONS / 5);
    world.check();

    let mut dual = invented::profile();
    dual.actuators = 2;
    let mut world = World::new(dual, zoned);
    world.run(OPERATIONS / 5);
    world.check();
}

#[test]
fn without_the_order_of_zones_the_drive_refuses_writes() {
    let mut world = World::new(invented::profile(), |engine| engine);
    world.run(OPERATIONS / 20);
    let off = |(_, status): &(Request, Status)| matches!(status, Status::WritePointer { .. });
    assert!(world.failed.iter().any(off), "{:?}", world.failed);
}

#[test]
fn aborted_writes_let_those_behind_them_go_on() {
    let mut world = World::new(invented::profile(), zoned);
    for (number, start) in [(0, 0), (1, 4), (2, 8)] {
        assert!(world.submit(number, Direction::Write, start, 4));
    }
    assert!(world.submit(3, Direction::Read, 6, 4));
    // The second waits for the first, and the third for it.
    assert_eq!(world.engine.abort(world.now, RequestId(3)), Ok(()));
    assert!(world.engine.abort(world.now, RequestId(9)).is_err());
    assert_eq!(world.engine.held(), 4);
    let mut ended = Vec::new();
    while world.engine.held() > 0 {
        while let Some(outcome) = world.drive.poll(world.now) {
            world.engine.complete(world.now, outcome.id, outcome);
        }
        ended.extend(std::iter::from_fn(|| world.engine.poll_finished()));
        while let Some(command) = world.engine.poll(world.now) {
            world.drive.submit(world.now, command).expect("room");
        }
        let wakeups = [world.drive.next_wakeup(), world.engine.next_wakeup()];
        world.now = wakeups.into_iter().flatten().min().unwrap_or(world.now);
    }
    let ended: Vec<(u64, Status)> = ended
        .iter()
        .map(|finished: &block::Finished| (finished.request.id.0, finished.status))
        .collect();
    let good = Status::Good;
    assert_eq!(
        ended,
        [(3, Status::Aborted), (1, good), (2, good), (4, good)]
    );
}

/// The gate of zones refuses what the engine behind it would, and keeps nothing of it.
#[test]
fn a_zoned_engine_refuses_what_any_engine_does() {
    let limits = Limits {
        requests: 3,
        reserved_for_real_time: 1,
        ..Limits::default()
    };
    let profile = Arc::new(invented::profile());
    let blocks = profile.geometry.sectors().0;
    let policy = find("sptf").expect("a policy of the table");
    let plain = || Engine::new(Arc::clone(&profile), &|| policy.make(), limits);
    let mut engines = [plain(), zoned(plain())];
    let real_time = Class::RealTime {
        deadline: Instant::ZERO,
    };
    let best = Class::BestEffort(2);
    // All but the first write wait for it.
    for (id, (start, length, class), is_taken) in [
        (1, (blocks - 1, 2, best), false),
        (2, (0, 4, Class::BestEffort(7)), false),
        (3, (0, 4, best), true),
        (4, (4, 4, best), true),
        (5, (8, 4, best), false),
        (6, (8, 4, real_time), true),
        (7, (12, 4, real_time), false),
        (8, (blocks - 1, 1, best), false),
    ] {
        let request = Request {
            id: RequestId(id),
            direction: Direction::Write,
            extent: Extent::new(Lba(start), Sectors(length)).expect("blocks"),
            class,
            durability: block::Durability::Volatile,
            owner: block::Owner::NOBODY,
        };
        let answers = engines
            .each_mut()
            .map(|engine| engine.submit(Instant::ZERO, request));
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[0].is_ok(), is_taken, "{answers:?}");
        let [plain, zoned] = engines.each_ref().map(Engine::held);
        assert_eq!(plain, zoned);
    }
}

/// A divided write would be two of its zone; reads are raised as everywhere.
#[test]
fn writes_of_zones_are_not_raised_and_reads_are() {
    let mut world = World::new(invented::profile(), zoned);
    for (number, start) in [(0, 0), (1, 4)] {
        assert!(world.submit(number, Direction::Write, start, 4));
    }
    assert!(world.submit(2, Direction::Read, 1_000, 8));
    let class = Class::RealTime {
        deadline: Instant::ZERO,
    };
    let mut raise = |id, start| {
        let part = Extent::new(Lba(start), Sectors(4)).expect("blocks");
        world.engine.upgrade(world.now, RequestId(id), part, class)
    };
    // One is at work, and one waits for it.
    for (id, start) in [(1, 0), (2, 4)] {
        let id = RequestId(id);
        assert_eq!(raise(id.0, start), Err(Unchanged::NotWaiting { id }));
    }
    assert_eq!(raise(3, 1_000), Ok(()));
    assert_eq!(raise(4, 0), Err(Unchanged::Unknown { id: RequestId(4) }));
}
