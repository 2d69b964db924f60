//! What is refused, what fails, what overlaps, what is large.

use block::{Action, Direction, Durability, Instant, Status};
use drive::Imperfections;
use engine::streams::{NotGranted, Promise, StreamEvent};
use engine::{Engine, Limits};
use scheduler::policy::find;
use stream::LocationMap;
use stream::admission::Reason;
use stream::playout::{AccessId, Served, Standing};
use stream::streams::{Answer, Notice};

use super::world::{LONGEST, MB, PAGE, World, ask, drive, extent, map, promise};

#[test]
fn what_cannot_be_granted_is_refused_with_its_reason() {
    let mut world = World::new(promise(0));
    let read = |map| ask(Direction::Read, map);
    let refused =
        |world: &mut World, ask| world.engine.attach(world.now, ask).expect_err("refused");
    let rate = {
        let mut ask = read(map(0, 8));
        ask.terms.rate = 0;
        ask
    };
    let reason = refused(&mut world, rate);
    assert!(matches!(reason, NotGranted::Refused(refusal) if refusal.reason == Reason::ZeroRate));
    let rate = {
        let mut ask = read(map(0, 8));
        ask.terms.rate = 1_000 * MB;
        ask
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
    let small = {
        let mut ask = read(map(0, 8));
        ask.terms.memory = Some(8 * 1024);
        ask
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
    assert_eq!(world.engine.guarantees().streams().count(), 0);
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
    let listed: Vec<_> = world.engine.guarantees().streams().collect();
    assert_eq!(
        (
            listed[0].stream,
            listed[0].user,
            listed[0].terms.name.as_str()
        ),
        (stream, 7, "film")
    );
    assert_eq!(listed[0].standing, Standing::Filling);
    world.run_for(2_000);
    assert_eq!(
        world.engine.guarantees().standing(stream),
        Some(Standing::Serving)
    );
    world.play(stream, 3_000);
    let served = world.served();
    assert_eq!(served.len(), 75);
    assert!(
        served.iter().all(|served| *served == Served::Memory),
        "{served:?}"
    );
    let (from, to) = world
        .engine
        .guarantees()
        .window(stream)
        .expect("it is open");
    assert!(from <= 3 * MB && 3 * MB < to, "{from}..{to}");
    world
        .engine
        .stream(world.now, stream, engine::StreamInput::Detach)
        .expect("it is open");
    world.run_for(1_000);
    assert!(world.is_told(&Notice::Closed));
    assert_eq!(world.engine.guarantees().streams().count(), 0);
    assert_eq!(world.engine.guarantees().plan(), None);
    assert!(
        world
            .engine
            .stream(world.now, stream, engine::StreamInput::Detach)
            .is_err()
    );
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
    world
        .engine
        .stream(world.now, stream, engine::StreamInput::Detach)
        .expect("it is open");
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
    let taken = world.engine.stream(
        world.now,
        stream,
        engine::StreamInput::Read(AccessId(1), read),
    );
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
        assert_eq!(
            world.engine.guarantees().standing(stream),
            Some(Standing::Serving)
        );
    }
    world.events.clear();
    let mut failed = [0, 0];
    for tick in 0..800 {
        let point = tick * 10 * MB / 1000;
        for (place, stream) in [bad, good].into_iter().enumerate() {
            let moved =
                world
                    .engine
                    .stream(world.now, stream, engine::StreamInput::Position(point));
            moved.expect("it is open");
            let access = AccessId(tick * 2 + place as u64);
            let taken = world.engine.stream(
                world.now,
                stream,
                engine::StreamInput::Read(access, (point, 2 * PAGE)),
            );
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
    assert_eq!((failed[1], world.engine.guarantees().late()), (0, 0));
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
        let moved = world
            .engine
            .stream(world.now, stream, engine::StreamInput::Position(point));
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
    assert_eq!(world.engine.guarantees().late(), 0);
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
        let taken = world.engine.stream(
            world.now,
            stream,
            engine::StreamInput::Write(AccessId(access), write),
        );
        taken.expect("it is taken");
        world.run_for(at_once * 1000 / MB + 1);
    }
    world
        .engine
        .stream(world.now, stream, engine::StreamInput::Detach)
        .expect("it is open");
    world.run_for(5_000);
    assert!(world.is_told(&Notice::Closed));
    assert_eq!(world.engine.guarantees().late(), 0);
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
