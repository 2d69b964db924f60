//! Policies that mean harm, and priorities.

use block::{Direction, Duration, Instant, RequestId};
use drive::Imperfections;
use scheduler::{Choice, EligibleRequest, Policy, Sight, View};
use stream::playout::{AccessId, Served, Standing};

use super::world::{LONGEST, MB, PAGE, World, ask, drive, map, promise};
use crate::hostile;

/// Always waits.
struct Idler;

impl Policy for Idler {
    fn sight(&self) -> Sight {
        Sight::Order
    }

    fn add(&mut self, _: &EligibleRequest) {}

    fn withdraw(&mut self, _: &EligibleRequest) {}

    fn select(&mut self, view: &View) -> Choice {
        Choice::WaitUntil(view.now + Duration::from_secs(3_600))
    }
}

/// Those that wait for an hour, and those that answer nonsense, beside eight greedy tasks: as many
/// streams as are granted.
#[test]
fn hostile_policies_make_nothing_late() {
    let newest = hostile::COUNT - 2;
    // With large batches two rounds wait at once.
    let all = (0..hostile::COUNT).map(|which| (which, 2));
    for (which, megabytes) in all.chain([(newest, 8)]) {
        let make = || hostile::make(which);
        let mut world = World::under(&make, promise(0), Imperfections::default());
        let blocks = drive().geometry.sectors().0;
        let mut streams = Vec::new();
        loop {
            let start = blocks - 20_000 * (streams.len() as u64 + 1);
            let film = {
                let mut ask = ask(Direction::Read, map(start, 60));
                ask.terms.memory = Some(megabytes * MB);
                ask
            };
            match world.engine.attach(world.now, film) {
                Ok(attached) => streams.push(attached.stream),
                Err(_) => break,
            }
        }
        assert!(streams.len() > 40, "{}", streams.len());
        while streams
            .iter()
            .any(|stream| world.engine.guarantees().standing(*stream) != Some(Standing::Serving))
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
                let moved =
                    world
                        .engine
                        .stream(world.now, *stream, engine::StreamInput::Position(point));
                moved.expect("it is open");
                let access = AccessId(tick * 100 + access as u64);
                let taken = world.engine.stream(
                    world.now,
                    *stream,
                    engine::StreamInput::Read(access, (point, PAGE)),
                );
                taken.expect("it is taken");
            }
            world.run_for(10);
        }
        assert_eq!(world.engine.guarantees().late(), 0, "{which}");
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
    let film = {
        let mut ask = ask(Direction::Read, map(5_000, 60));
        ask.terms.buffer = 900_000;
        ask.terms.memory = Some(6 * MB);
        ask
    };
    let attached = world.engine.attach(world.now, film);
    let stream = attached.expect("there is room").stream;
    while world.engine.guarantees().standing(stream) != Some(Standing::Serving) {
        world.run_for(100);
    }
    world.events.clear();
    for tick in 0..40 {
        let point = tick * 900_000;
        let moved = world
            .engine
            .stream(world.now, stream, engine::StreamInput::Position(point));
        moved.expect("it is open");
        let taken = world.engine.stream(
            world.now,
            stream,
            engine::StreamInput::Read(AccessId(tick), (point, 900_000)),
        );
        taken.expect("it is taken");
        world.run(world.now + seldom);
    }
    assert_eq!(world.engine.guarantees().late(), 0);
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
            let moved = world.engine.stream(
                world.now,
                stream,
                engine::StreamInput::Position(tick * MB / 1000),
            );
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
    assert_eq!(world.engine.guarantees().late(), 0);
}
