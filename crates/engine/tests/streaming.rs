//! Streams inside the engine, at their edges: what is refused, what fails, what overlaps, what is large.

use std::sync::Arc;

use block::{
    Action, Class, Command, Direction, Durability, Duration, Extent, Finished, Instant, Lba,
    Request, RequestId, Sectors, Status,
};
use drive::{Imperfections, Profile, VirtualDrive, catalog};
use engine::guarantees::{Beyond, FOREGROUND_BYTES};
use engine::streams::{Ask, NotGranted, Promise, StreamEvent};
use engine::{Engine, Limits};
use scheduler::policy::find;
use scheduler::{Choice, Pending, Policy, Sight, View};
use stream::LocationMap;
use stream::admission::{Reason, Rules};
use stream::location::Piece;
use stream::playout::{AccessId, Answering, Served, Standing};
use stream::quota::Quotas;
use stream::streams::{Answer, Notice, Settings, StreamId};

#[path = "policies/hostile.rs"]
mod hostile;

const PAGE: u64 = 4096;
const MB: u64 = 1_000_000;
const LONGEST: u64 = FOREGROUND_BYTES / PAGE;

fn drive() -> Arc<Profile> {
    let entry = catalog::find("modern-20tb").expect("a shipped drive");
    Arc::new(entry.profile().expect("a valid profile"))
}

fn promise(priority: u8) -> Promise {
    Promise {
        beyond: Beyond::default(),
        rules: Rules {
            foreground_permille: 0,
            latency: Duration::from_millis(10),
            longest_round: Duration::from_secs(10),
            streams: 100,
        },
        quotas: Quotas::open(),
        settings: Settings {
            page: PAGE,
            fill: FOREGROUND_BYTES,
            priority,
        },
        place: None,
    }
}

/// Always waits.
struct Idler;

impl Policy for Idler {
    fn sight(&self) -> Sight {
        Sight::Order
    }

    fn add(&mut self, _: &Pending) {}

    fn withdraw(&mut self, _: &Pending) {}

    fn select(&mut self, view: &View) -> Choice {
        Choice::WaitUntil(view.now + Duration::from_secs(3_600))
    }
}

/// An engine, its drive, and all that came of them.
struct World {
    engine: Engine,
    drive: VirtualDrive,
    now: Instant,
    commands: Vec<Command>,
    events: Vec<(Instant, StreamEvent)>,
    finished: Vec<Finished>,
    asked: u64,
}

impl World {
    fn new(promise: Promise) -> World {
        World::imperfect(promise, Imperfections::default())
    }

    fn imperfect(promise: Promise, imperfections: Imperfections) -> World {
        let sptf = find("sptf").expect("a policy");
        World::under(&|| sptf.make(), promise, imperfections)
    }

    fn under(
        policy: &dyn Fn() -> Box<dyn Policy>,
        promise: Promise,
        imperfections: Imperfections,
    ) -> World {
        let belief = drive();
        let engine = Engine::new(Arc::clone(&belief), policy, Limits::default());
        World {
            engine: engine.with_guarantees(promise).expect("a seek curve"),
            drive: VirtualDrive::imperfect(belief, imperfections, 1),
            now: Instant::ZERO,
            commands: Vec::new(),
            events: Vec::new(),
            finished: Vec::new(),
            asked: 0,
        }
    }

    fn ask(&mut self, direction: Direction, start: u64, megabytes: u64) -> StreamId {
        let ask = ask(direction, map(start, megabytes));
        let attached = self.engine.attach(self.now, ask).expect("there is room");
        attached.stream
    }

    /// A client asks for blocks.
    fn request(&mut self, direction: Direction, start: u64, blocks: u64, priority: u8) -> u64 {
        self.asked += 1;
        let request = Request {
            id: RequestId(self.asked),
            direction,
            extent: extent(start, blocks),
            class: Class::BestEffort(priority),
            durability: Durability::Volatile,
        };
        self.engine.submit(self.now, request).expect("it has room");
        self.asked
    }

    /// Until then.
    fn run(&mut self, until: Instant) {
        loop {
            while let Some(outcome) = self.drive.poll(self.now) {
                self.engine.complete(self.now, outcome.id, outcome);
            }
            while let Some(command) = self.engine.poll(self.now) {
                self.drive.submit(self.now, command).expect("it has room");
                self.commands.push(command);
            }
            while let Some(event) = self.engine.poll_stream() {
                self.events.push((self.now, event));
            }
            self.finished
                .extend(std::iter::from_fn(|| self.engine.poll_finished()));
            if self
                .drive
                .next_wakeup()
                .is_some_and(|then| then <= self.now)
            {
                continue;
            }
            let wakeups = [self.engine.next_wakeup(), self.drive.next_wakeup()];
            let next = wakeups.into_iter().flatten().min();
            assert!(next.is_none_or(|next| next > self.now), "a stale wakeup");
            let next = next.filter(|&next| next <= until);
            self.now = next.unwrap_or(until);
            if next.is_none() {
                return;
            }
        }
    }

    fn run_for(&mut self, millis: u64) {
        self.run(self.now + Duration::from_millis(millis));
    }

    /// Plays from the beginning for so many milliseconds, a report every ten of them.
    fn play(&mut self, stream: StreamId, millis: u64) {
        for tick in 0..millis / 10 {
            let point = tick * 10 * MB / 1000;
            let moved = self.engine.position(self.now, stream, point);
            moved.expect("it is open");
            if tick % 4 == 0 {
                let read = (point, 32 * 1024);
                let taken = self
                    .engine
                    .stream_read(self.now, stream, AccessId(tick), read);
                taken.expect("it is taken");
            }
            self.run_for(10);
        }
    }

    fn served(&self) -> Vec<Served> {
        let answers = self.events.iter().filter_map(|(_, event)| match event {
            StreamEvent::Answer(Answer::Access { served, .. }) => Some(*served),
            _ => None,
        });
        answers.collect()
    }

    fn is_told(&self, what: &Notice) -> bool {
        self.events.iter().any(|(_, event)| {
            matches!(event, StreamEvent::Answer(Answer::Notice { notice, .. }) if notice == what)
        })
    }

    fn ended(&self, id: u64) -> Option<&Finished> {
        let mut finished = self.finished.iter();
        finished.find(|finished| finished.request.id == RequestId(id))
    }
}

fn extent(start: u64, blocks: u64) -> Extent {
    Extent::new(Lba(start), Sectors(blocks)).expect("blocks")
}

fn map(start: u64, megabytes: u64) -> LocationMap {
    let bytes = (megabytes * MB).next_multiple_of(PAGE);
    let piece = Piece {
        offset: 0,
        extent: extent(start, bytes / PAGE),
    };
    LocationMap::new(vec![piece], PAGE, bytes).expect("a valid map")
}

fn ask(direction: Direction, map: LocationMap) -> Ask<'static> {
    Ask {
        user: 7,
        name: "film",
        direction,
        rate: MB,
        application: 64 * 1024,
        memory: 4 * MB,
        map,
        start: 0,
        answer: Answering::Buffered,
    }
}

#[test]
fn what_cannot_be_granted_is_refused_with_its_reason() {
    let mut world = World::new(promise(0));
    let read = |map| ask(Direction::Read, map);
    let refused =
        |world: &mut World, ask| world.engine.attach(world.now, ask).expect_err("refused");
    let rate = Ask {
        rate: 0,
        ..read(map(0, 8))
    };
    let reason = refused(&mut world, rate);
    assert!(matches!(reason, NotGranted::Refused(refusal) if refusal.reason == Reason::ZeroRate));
    let rate = Ask {
        rate: 1_000 * MB,
        ..read(map(0, 8))
    };
    let reason = refused(&mut world, rate);
    let NotGranted::Refused(refusal) = &reason else {
        panic!("{reason:?}");
    };
    assert!(
        matches!(refusal.reason, Reason::AboveDisk { .. }),
        "{refusal}"
    );
    assert!(
        refusal.largest_rate.is_some(),
        "what would be granted is said: {refusal}"
    );
    let small = Ask {
        memory: 8 * 1024,
        ..read(map(0, 8))
    };
    let reason = refused(&mut world, small);
    let small = |reason: &Reason| matches!(reason, Reason::BufferTooSmall { .. });
    assert!(
        matches!(&reason, NotGranted::Refused(refusal) if small(&refusal.reason)),
        "{reason}"
    );
    let other = LocationMap::new(Vec::new(), 512, 0).expect("an empty map");
    let block = NotGranted::Block {
        block: 512,
        expected: PAGE,
    };
    assert_eq!(refused(&mut world, read(other)), block);
    let blocks = drive().geometry.sectors().0;
    let reason = refused(&mut world, read(map(blocks - 10, 8)));
    assert!(matches!(reason, NotGranted::Outside { .. }), "{reason}");
    assert_eq!(world.engine.streams().count(), 0);
    let silent = Engine::new(
        drive(),
        &|| find("sptf").expect("a policy").make(),
        Limits::default(),
    );
    let mut silent = silent;
    let reason = silent.attach(Instant::ZERO, read(map(0, 8)));
    assert_eq!(reason, Err(NotGranted::NoPromise));
}

#[test]
fn streams_lie_where_they_were_promised_to() {
    let place = extent(1_000_000, 1_000_000);
    let mut world = World::new(Promise {
        place: Some(place),
        ..promise(0)
    });
    let inside = ask(Direction::Read, map(1_000_000, 8));
    assert!(world.engine.attach(world.now, inside).is_ok());
    let outside = ask(Direction::Read, map(1_999_999, 8));
    let reason = world
        .engine
        .attach(world.now, outside)
        .expect_err("outside");
    assert!(matches!(reason, NotGranted::Outside { .. }), "{reason}");
}

#[test]
fn a_stream_is_listed_played_and_gone() {
    let mut world = World::new(promise(0));
    let stream = world.ask(Direction::Read, 5_000, 30);
    let listed: Vec<_> = world.engine.streams().collect();
    assert_eq!(
        (listed[0].stream, listed[0].user, listed[0].name),
        (stream, 7, "film")
    );
    assert_eq!(listed[0].standing, Standing::Filling);
    world.run_for(2_000);
    assert_eq!(world.engine.standing(stream), Some(Standing::Serving));
    world.play(stream, 3_000);
    let served = world.served();
    assert_eq!(served.len(), 75);
    assert!(
        served.iter().all(|served| *served == Served::Memory),
        "{served:?}"
    );
    let (from, to) = world.engine.window(stream).expect("it is open");
    assert!(from <= 3 * MB && 3 * MB < to, "{from}..{to}");
    world.engine.detach(world.now, stream).expect("it is open");
    world.run_for(1_000);
    assert!(world.is_told(&Notice::Closed));
    assert_eq!(world.engine.streams().count(), 0);
    assert_eq!(world.engine.rounds_plan(), None);
    assert!(world.engine.detach(world.now, stream).is_err());
    assert_eq!(
        world.drive.next_wakeup(),
        None,
        "nothing is under way for it"
    );
}

/// While there are streams. Before and after, they are given as they are.
#[test]
fn requests_of_others_go_in_parts_while_there_are_streams() {
    let mut world = World::new(promise(0));
    let longest = |world: &World| {
        let extents = world
            .commands
            .iter()
            .filter_map(|command| command.action.extent());
        extents.map(|extent| extent.length().0).max()
    };
    world.request(Direction::Read, 900_000, 20 * LONGEST, 0);
    world.run_for(1_000);
    assert_eq!(longest(&world), Some(20 * LONGEST));
    let stream = world.ask(Direction::Read, 5_000, 100);
    world.commands.clear();
    let read = world.request(Direction::Read, 900_000, 20 * LONGEST, 0);
    let write = world.request(Direction::Write, 990_000, 20 * LONGEST, 3);
    world.run_for(1_000);
    assert_eq!(longest(&world), Some(LONGEST));
    for id in [read, write] {
        assert_eq!(
            world.ended(id).map(|ended| ended.status),
            Some(Status::Good)
        );
    }
    let writes = world
        .commands
        .iter()
        .filter_map(|command| match command.action {
            Action::Write { durability, .. } => Some(durability),
            _ => None,
        });
    let writes: Vec<_> = writes.collect();
    assert!(writes.len() >= 20 && writes.iter().all(|kept| *kept == Durability::Durable));
    world.engine.detach(world.now, stream).expect("it is open");
    world.run_for(1_000);
    world.commands.clear();
    world.request(Direction::Read, 900_000, 20 * LONGEST, 0);
    world.run_for(1_000);
    assert_eq!(longest(&world), Some(20 * LONGEST));
}

#[test]
fn what_the_drives_buffer_holds_is_written_before_the_first_stream_is_read() {
    let mut world = World::new(promise(0));
    for write in 0..40 {
        world.request(Direction::Write, 1_000_000 * write, 4, 0);
    }
    world.run_for(20);
    world.ask(Direction::Read, 5_000, 8);
    world.commands.clear();
    world.run_for(5_000);
    assert_eq!(
        world.commands.first().map(|command| command.action),
        Some(Action::Flush)
    );
    let flushes = world.commands.iter();
    let flushes = flushes.filter(|command| command.action == Action::Flush);
    assert_eq!(flushes.count(), 1);
    assert!(
        world.engine.poll_flushed().is_none(),
        "no client asked for it"
    );
}

/// The page somebody waits for goes before others of its buffer's priority and of those above.
#[test]
fn a_page_that_is_waited_for_is_raised() {
    let mut world = World::new(promise(6));
    for request in 0..200 {
        world.request(Direction::Read, 1_000_000 * request, 4, 3);
    }
    let stream = world.ask(Direction::Read, 5_000, 8);
    world.run_for(200);
    assert_eq!(
        world.events,
        [],
        "its buffer fills behind what is more urgent"
    );
    let read = (0, 4 * PAGE);
    let taken = world
        .engine
        .stream_read(world.now, stream, AccessId(1), read);
    taken.expect("it is taken");
    world.run_for(100);
    let served = world.served();
    assert!(matches!(served[..], [Served::Waited(_)]), "{served:?}");
    assert!(world.finished.len() < 200, "others still wait");
}

/// The other stream's accesses are all served from memory; the bad one's are told.
#[test]
fn a_block_that_cannot_be_read_fails_its_own_access_alone() {
    let imperfections = Imperfections {
        unreadable: vec![extent(5_000 + 5 * MB / PAGE, 1)],
        ..Imperfections::default()
    };
    let mut world = World::imperfect(promise(0), imperfections);
    let bad = world.ask(Direction::Read, 5_000, 30);
    let good = world.ask(Direction::Read, 9_000_000, 30);
    // The second one waits for the next round.
    world.run_for(12_000);
    for stream in [bad, good] {
        assert_eq!(world.engine.standing(stream), Some(Standing::Serving));
    }
    world.events.clear();
    let mut failed = [0, 0];
    for tick in 0..800 {
        let point = tick * 10 * MB / 1000;
        for (place, stream) in [bad, good].into_iter().enumerate() {
            let moved = world.engine.position(world.now, stream, point);
            moved.expect("it is open");
            let access = AccessId(tick * 2 + place as u64);
            let taken = world
                .engine
                .stream_read(world.now, stream, access, (point, 2 * PAGE));
            taken.expect("it is taken");
        }
        world.run_for(10);
        for (_, event) in world.events.drain(..) {
            match event {
                StreamEvent::Answer(Answer::Access { stream, served, .. }) => match served {
                    Served::Memory => {}
                    Served::Failed => failed[usize::from(stream == good)] += 1,
                    other => panic!("{other:?}"),
                },
                StreamEvent::Moved { status, .. } => {
                    assert!(matches!(status, Status::Good | Status::MediumError { .. }));
                }
                StreamEvent::Answer(Answer::Notice { notice, .. }) => panic!("{notice:?}"),
            }
        }
    }
    assert!(
        failed[0] > 0,
        "the bad block is in the first eight megabytes"
    );
    assert_eq!((failed[1], world.engine.late()), (0, 0));
}

/// What is read is what was written before, and the others' batches are in time.
#[test]
fn a_write_into_the_file_that_plays_keeps_its_order() {
    let mut world = World::new(promise(0));
    let stream = world.ask(Direction::Read, 5_000, 60);
    world.run_for(2_000);
    let mut number = 0;
    for tick in 0..600 {
        let point = tick * 10 * MB / 1000;
        let moved = world.engine.position(world.now, stream, point);
        moved.expect("it is open");
        if tick % 20 == 0 {
            // Where its next batches lie, and far more than one command.
            number = world.request(Direction::Write, 5_000 + (point + 3 * MB) / PAGE, 2_000, 3);
        }
        world.run_for(10);
    }
    world.run_for(2_000);
    assert_eq!(
        world.ended(number).map(|ended| ended.status),
        Some(Status::Good)
    );
    assert_eq!(world.finished.len(), 30, "all of them ended");
    assert_eq!(world.engine.late(), 0);
    assert_eq!(world.engine.held(), 0);
}

/// A recording: what a client has written is on the medium when its stream is closed.
#[test]
fn a_recording_is_written_to_its_end() {
    let mut world = World::new(promise(0));
    let stream = world.ask(Direction::Write, 5_000, 30);
    world.run_for(100);
    let at_once = 16 * PAGE;
    for access in 0..100 {
        let write = (access * at_once, at_once);
        let taken = world
            .engine
            .stream_write(world.now, stream, AccessId(access), write);
        taken.expect("it is taken");
        world.run_for(at_once * 1000 / MB + 1);
    }
    world.engine.detach(world.now, stream).expect("it is open");
    world.run_for(5_000);
    assert!(world.is_told(&Notice::Closed));
    assert_eq!(world.engine.late(), 0);
    assert!(
        world
            .served()
            .iter()
            .all(|served| *served == Served::Memory)
    );
    let written = world
        .commands
        .iter()
        .filter_map(|command| match command.action {
            Action::Write { extent, .. } => Some(extent.length().0),
            _ => None,
        });
    assert_eq!(written.sum::<u64>(), 100 * 16);
}

/// And those of clients are theirs.
#[test]
fn commands_of_streams_say_which_bytes_they_move() {
    let mut world = World::new(promise(0));
    let stream = world.ask(Direction::Read, 5_000, 8);
    let request = world.request(Direction::Read, 1_000_000, 4, 0);
    let mut given = Vec::new();
    for _ in 0..100 {
        while let Some(outcome) = world.drive.poll(world.now) {
            world.engine.complete(world.now, outcome.id, outcome);
        }
        while let Some(command) = world.engine.poll(world.now) {
            let of_client = world
                .engine
                .request_of(command.id)
                .map(|request| request.id.0);
            given.push((of_client, world.engine.stream_of(command.id)));
            world.drive.submit(world.now, command).expect("it has room");
        }
        let Some(next) = world.drive.next_wakeup() else {
            break;
        };
        world.now = next;
    }
    let own = given
        .iter()
        .filter(|(of_client, _)| *of_client == Some(request));
    assert_eq!(own.count(), 1);
    let moved: Vec<_> = given
        .iter()
        .filter_map(|(of_client, moved)| {
            assert!(of_client.is_none() || moved.is_none());
            *moved
        })
        .collect();
    assert!(moved.len() > 10);
    for transfer in moved {
        assert_eq!(transfer.stream, stream);
        assert_eq!(transfer.offset, (transfer.extent.start().0 - 5_000) * PAGE);
    }
}

/// Those that wait for an hour, and those that answer nonsense, beside eight greedy tasks: as many
/// streams as are granted.
#[test]
fn hostile_policies_make_nothing_late() {
    for which in 0..hostile::COUNT {
        let make = || hostile::make(which);
        let mut world = World::under(&make, promise(0), Imperfections::default());
        let blocks = drive().geometry.sectors().0;
        let mut streams = Vec::new();
        loop {
            let start = blocks - 20_000 * (streams.len() as u64 + 1);
            let film = Ask {
                memory: 2 * MB,
                ..ask(Direction::Read, map(start, 60))
            };
            match world.engine.attach(world.now, film) {
                Ok(attached) => streams.push(attached.stream),
                Err(_) => break,
            }
        }
        assert!(streams.len() > 40, "{}", streams.len());
        while streams
            .iter()
            .any(|stream| world.engine.standing(*stream) != Some(Standing::Serving))
        {
            world.run_for(100);
            assert!(
                world.now < Instant::ZERO + Duration::from_secs(900),
                "{which}"
            );
        }
        world.events.clear();
        for tick in 0..1_000 {
            for request in 0..(8 - world.engine.held() as u64) {
                let somewhere = (tick * 8 + request) * 7_919_000_000 % (blocks - 64);
                world.request(Direction::Read, somewhere, LONGEST, 0);
            }
            for (access, stream) in streams.iter().enumerate() {
                let point = tick * 10 * MB / 1000;
                let moved = world.engine.position(world.now, *stream, point);
                moved.expect("it is open");
                let access = AccessId(tick * 100 + access as u64);
                let taken = world
                    .engine
                    .stream_read(world.now, *stream, access, (point, PAGE));
                taken.expect("it is taken");
            }
            world.run_for(10);
        }
        assert_eq!(world.engine.late(), 0, "{which}");
        let served = world.served();
        assert!(
            served.iter().all(|served| *served == Served::Memory),
            "{which}"
        );
    }
}

/// Nothing happens but what the engine asked to be woken for: an application of large accesses.
#[test]
fn a_policy_that_waits_for_an_hour_is_not_waited_for() {
    let seldom = Duration::from_millis(900);
    let mut promise = promise(0);
    promise.rules.latency = seldom;
    promise.rules.longest_round = Duration::from_secs(1);
    let mut world = World::under(&|| Box::new(Idler), promise, Imperfections::default());
    let film = Ask {
        application: 900_000,
        memory: 6 * MB,
        ..ask(Direction::Read, map(5_000, 60))
    };
    let attached = world.engine.attach(world.now, film);
    let stream = attached.expect("there is room").stream;
    while world.engine.standing(stream) != Some(Standing::Serving) {
        world.run_for(100);
    }
    world.events.clear();
    for tick in 0..40 {
        let point = tick * 900_000;
        let moved = world.engine.position(world.now, stream, point);
        moved.expect("it is open");
        let taken = world
            .engine
            .stream_read(world.now, stream, AccessId(tick), (point, 900_000));
        taken.expect("it is taken");
        world.run(world.now + seldom);
    }
    assert_eq!(world.engine.late(), 0);
    let served = world.served();
    assert!(
        served.iter().all(|served| *served == Served::Memory),
        "{served:?}"
    );
}

/// Each of three readers always has a request waiting: the more urgent, the sooner and the more.
#[test]
fn priorities_order_what_streams_leave() {
    let mut world = World::new(promise(0));
    let stream = world.ask(Direction::Read, 5_000, 60);
    world.run_for(2_000);
    let priorities = [0, 3, 6];
    let mut waiting = priorities.map(|priority| world.request(Direction::Read, 90, 4, priority));
    let mut served = [0u64; 3];
    for tick in 0..40_000u64 {
        if tick % 10 == 0 {
            let moved = world.engine.position(world.now, stream, tick * MB / 1000);
            moved.expect("it is open");
        }
        world.run_for(1);
        for (reader, id) in waiting.iter_mut().enumerate() {
            if world
                .finished
                .iter()
                .any(|finished| finished.request.id == RequestId(*id))
            {
                served[reader] += 1;
                let somewhere = (tick * 3 + reader as u64) * 7_919_000 % 4_000_000_000;
                *id = world.request(Direction::Read, somewhere, 4, priorities[reader]);
            }
        }
        world.finished.clear();
    }
    assert!(
        served[0] > served[1] && served[1] >= served[2] && served[2] > 0,
        "{served:?}"
    );
    assert_eq!(world.engine.late(), 0);
}
