//! What one client does or suffers breaks no guarantee of another: its file moves, shrinks or is punched,
//! it asks for what cannot be, attaches twice, dies.

use block::Direction;
use engine::streams::{NotGranted, StreamEvent};
use stream::LocationMap;
use stream::admission::Reason;
use stream::location::{Change, Piece};
use stream::playout::{AccessId, Served, Standing};
use stream::streams::Attach;
use stream::streams::{Answer, StreamId};

use super::world::{MB, PAGE, World, ask, extent, map, promise};

/// Plays the good one from where it is for so many milliseconds, and the other, if it is open.
fn play(world: &mut World, good: StreamId, other: StreamId, (from, millis): (u64, u64)) {
    for tick in from / 10..(from + millis) / 10 {
        let point = tick * 10 * MB / 1000;
        let now = world.now;
        world
            .engine
            .stream(now, good, engine::StreamInput::Position(point))
            .expect("it is open");
        let read = (point, 4 * PAGE);
        let taken = world
            .engine
            .stream(now, good, engine::StreamInput::Read(AccessId(tick), read));
        taken.expect("it is taken");
        // The other one's reads have no names that are looked at; it may be gone.
        let _ = world
            .engine
            .stream(now, other, engine::StreamInput::Position(point % (2 * MB)));
        let access = AccessId(1_000_000 + tick);
        let _ = world.engine.stream(
            now,
            other,
            engine::StreamInput::Read(access, (point % (2 * MB), PAGE)),
        );
        world.run_for(10);
    }
}

/// Punched: nothing at its beginning.
fn punched() -> LocationMap {
    let piece = Piece {
        offset: 8 * MB / PAGE * PAGE,
        extent: extent(800_000, 1_000),
    };
    LocationMap::new(vec![piece], PAGE, 60 * MB).expect("a valid map")
}

fn ask_for_what_cannot_be(world: &mut World) {
    let film = || ask(Direction::Read, map(5_000, 60));
    let refused = |world: &mut World, ask: Attach| {
        let refused = world.engine.attach(world.now, ask).expect_err("refused");
        match refused {
            NotGranted::Refused(refusal) => refusal.reason,
            other => panic!("{other}"),
        }
    };
    let rate = {
        let mut ask = film();
        ask.terms.rate = 0;
        ask
    };
    assert_eq!(refused(world, rate), Reason::ZeroRate);
    let rate = {
        let mut ask = film();
        ask.terms.rate = 1_000 * MB;
        ask
    };
    assert!(matches!(refused(world, rate), Reason::AboveDisk { .. }));
    let memory = {
        let mut ask = film();
        ask.terms.memory = Some(PAGE);
        ask
    };
    assert!(matches!(
        refused(world, memory),
        Reason::BufferTooSmall { .. }
    ));
}

#[test]
fn what_befalls_one_stream_breaks_no_guarantee_of_another() {
    let mut world = World::new(promise(3));
    let good = world.ask(Direction::Read, 5_000, 60);
    let bad = world.ask(Direction::Read, 800_000, 60);
    // The second one waits for the next round.
    world.run_for(12_000);
    for stream in [good, bad] {
        assert_eq!(
            world.engine.guarantees().standing(stream),
            Some(Standing::Serving)
        );
    }
    world.events.clear();
    let mut at = 0;
    let mut on = |world: &mut World| {
        play(world, good, bad, (at, 4_000));
        at += 4_000;
    };
    on(&mut world);
    for (places, change) in [
        (map(4_000_000_000, 60), Change::Moved(0)),
        (map(4_000_000_000, 30), Change::Shrunk),
        (map(800_000, 60), Change::Moved(0)),
        (punched(), Change::Punched(0)),
        (map(800_000, 60), Change::Moved(0)),
    ] {
        let changed = world.engine.refresh(world.now, bad, places);
        assert_eq!(changed, Ok(change));
        on(&mut world);
    }
    ask_for_what_cannot_be(&mut world);
    // The same file twice; one of them dies while its buffer fills, the other in the middle of a round.
    let again = world.ask(Direction::Read, 5_000, 60);
    world.run_for(0);
    world
        .engine
        .stream(world.now, again, engine::StreamInput::Detach)
        .expect("it is open");
    let again = world.ask(Direction::Read, 5_000, 60);
    on(&mut world);
    for stream in [again, bad] {
        world
            .engine
            .stream(world.now, stream, engine::StreamInput::Detach)
            .expect("it is open");
    }
    on(&mut world);
    assert_eq!(world.engine.guarantees().late(), 0);
    assert_eq!(
        world.engine.guarantees().standing(good),
        Some(Standing::Serving)
    );
    let mut answered = 0;
    for (_, event) in &world.events {
        let StreamEvent::Answer(Answer::Access { stream, served, .. }) = event else {
            continue;
        };
        if *stream == good {
            assert_eq!(*served, Served::Memory);
            answered += 1;
        }
    }
    assert_eq!(answered, at / 10, "each of its reads");
}
