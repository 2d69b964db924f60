//! A drive that is slower than it is believed to be: what was promised to streams cannot be kept, and
//! still nobody waits for ever.

use block::{Direction, Duration, Instant, RequestId};
use stream::playout::AccessId;
use stream::streams::{Notice, StreamId};

use super::world::{MB, PAGE, World, drive, promise};

/// As many recordings as are granted, on a drive so many times as slow.
fn overloaded(slowness: u64) -> (World, Vec<StreamId>) {
    let mut world = World {
        slowness,
        ..World::new(promise(3))
    };
    let blocks = drive().geometry.sectors().0;
    let streams = world.record_all(|before| blocks - 30_000_000 * (before + 1));
    (world, streams)
}

/// What others had of the drive while the recordings went on.
struct Course {
    /// The longest that one of them waited.
    longest: Duration,
    /// Their requests that ended.
    ended: usize,
    /// Flushes that were asked for and did not end.
    flushes: usize,
    /// The commands of both.
    commands: usize,
}

/// Records for so many seconds beside a client that always waits for one read.
fn record(world: &mut World, streams: &[StreamId], seconds: u64) -> Course {
    let mut course = Course {
        longest: Duration::ZERO,
        ended: 0,
        flushes: 0,
        commands: 0,
    };
    world.commands.clear();
    let mut next = vec![0; streams.len()];
    let mut waiting: (u64, Instant) = (world.request(Direction::Read, 90, 4, 3), world.now);
    for tick in 0..seconds * 100 {
        for (stream, next) in streams.iter().zip(&mut next) {
            while (*next + PAGE) * 1_000 <= tick * 10 * MB {
                let access = AccessId(*next);
                let write = (*next, PAGE);
                let engine = &mut world.engine;
                if engine
                    .stream(
                        world.now,
                        *stream,
                        engine::StreamInput::Write(access, write),
                    )
                    .is_err()
                {
                    break;
                }
                *next += PAGE;
            }
        }
        if tick % 500 == 0 && tick < (seconds - 10) * 100 {
            let asked = world.engine.flush(world.now, RequestId(tick));
            asked.expect("there is room");
            course.flushes += 1;
        }
        world.run_for(10);
        world.events.clear();
        course.flushes -= std::iter::from_fn(|| world.engine.poll_flushed()).count();
        course.longest = course.longest.max(world.now.since(waiting.1));
        let mut finished = world.finished.drain(..);
        if finished.any(|finished| finished.request.id == RequestId(waiting.0)) {
            course.ended += 1;
            drop(finished);
            let somewhere = tick * 7_919_000 % 4_000_000_000;
            waiting = (world.request(Direction::Read, somewhere, 4, 3), world.now);
        }
    }
    course.commands = world.commands.len();
    course
}

/// Best effort has at least a sixth of the commands, and the promise was broken all the same.
#[test]
fn where_every_round_is_late_others_have_their_share() {
    let (mut world, streams) = overloaded(4);
    let course = record(&mut world, &streams, 60);
    assert!(
        world.engine.guarantees().late() > 100,
        "{} late",
        world.engine.guarantees().late()
    );
    let Course {
        ended,
        longest,
        flushes,
        commands,
    } = course;
    assert!(ended * 6 > commands, "{ended} of {commands}");
    assert!(longest < Duration::from_secs(10), "{longest}");
    assert_eq!(flushes, 0, "flushes that wait for ever");
}

/// A batch waits for a read, and that for a write that has begun and has not ended: when nothing fits
/// any more, because the host has slept, the write goes on for the sake of the batch.
#[test]
fn what_a_batch_waits_for_goes_on_however_long_the_way_to_it() {
    let mut world = World::new(promise(3));
    let stream = world.ask(Direction::Write, 100_000, 30);
    world.run_for(100);
    for access in 0..48 {
        let write = (access * 16 * PAGE, 16 * PAGE);
        let taken = world.engine.stream(
            world.now,
            stream,
            engine::StreamInput::Write(AccessId(access), write),
        );
        taken.expect("it is taken");
    }
    let write = world.request(Direction::Write, 90_000, 2_000, 3);
    let read = world.request(Direction::Read, 91_999, 8_011, 3);
    let is_begun = |world: &World| !world.commands.is_empty();
    while !is_begun(&world) {
        world.run_for(1);
    }
    // What the host misses.
    world.now += Duration::from_secs(30);
    world.run_for(30_000);
    for id in [write, read] {
        assert!(world.ended(id).is_some(), "{id} waits for ever");
    }
    world
        .engine
        .stream(world.now, stream, engine::StreamInput::Detach)
        .expect("it is open");
    world.run_for(5_000);
    assert!(world.is_told(&Notice::Closed));
}
