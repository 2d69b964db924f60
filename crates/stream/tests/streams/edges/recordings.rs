//! What recorders do wrong, and what becomes of what they write.

use block::{Direction, Duration, Lba, Status, StreamMode};
use stream::LocationMap;
use stream::location::Change;
use stream::playout::{AccessId, NotTaken, Served, Standing};
use stream::streams::{Notice, StreamId};

use super::{MB, at_the_last_moment};
use crate::disk::{BLOCK, LATENCY, zone};
use crate::world::{World, attach, file, piece};

fn recorder(world: &mut World, mode: StreamMode) -> StreamId {
    let attached = world.attach(attach(mode, MB, 100 * BLOCK, file(0, 60_000)));
    let stream = attached.expect("an empty disk").stream;
    world.until_serving(stream);
    stream
}

#[test]
fn a_recording_that_moves_is_written_again_at_its_rate() {
    let mut world = World::new(at_the_last_moment());
    let stream = recorder(&mut world, StreamMode::Record);
    let mut written = 0;
    let mut write = |world: &mut World, steps| {
        for _ in 0..steps {
            world.run_for(Duration::from_millis(41));
            world.write(stream, written, 10 * BLOCK);
            written += 10 * BLOCK;
        }
    };
    write(&mut world, 200);
    let (drained, _) = world.streams.window(stream).expect("open");
    let before = world.ordered.len();
    let change = world
        .streams
        .refresh(world.now, stream, file(100_000, 60_000), zone());
    assert_eq!(change, Ok(Change::Moved(0)));
    write(&mut world, 400);
    let batches: Vec<_> = world.ordered[before..].iter().map(|(_, t)| t).collect();
    assert_eq!(batches[0].offset, drained, "all that was not on the media");
    let plan = world.streams.admission().plan().expect("one stream");
    let most = MB * (plan.round + LATENCY).as_nanos() / 1_000_000_000 + 201 * BLOCK;
    let mut at = drained;
    for batch in batches {
        assert_eq!(batch.offset, at);
        assert_eq!(batch.extent.start().0, 100_000 + at / BLOCK);
        let length = batch.extent.length().0 * BLOCK;
        assert!(length <= most, "{length} of {most}");
        at += length;
    }
}

#[test]
fn recordings_are_sequential_whole_pages_in_allocated_blocks() {
    let mut world = World::new(at_the_last_moment());
    let stream = recorder(&mut world, StreamMode::Record);
    let access = AccessId(1);
    let mut write = |from, length| {
        world
            .streams
            .write(world.now, stream, access, (from, length))
    };
    assert!(matches!(
        write(BLOCK, BLOCK),
        Err(NotTaken::NotSequential { expected: 0, .. })
    ));
    assert!(matches!(
        write(0, BLOCK + 1),
        Err(NotTaken::NotWholePages { .. })
    ));
    assert!(matches!(write(0, 0), Err(NotTaken::NotWholePages { .. })));
    assert!(write(0, BLOCK).is_ok());
    let holes = LocationMap::new(
        vec![piece(0, 0, 2), piece(3 * BLOCK, 3, 1)],
        BLOCK,
        4 * BLOCK,
    );
    world
        .streams
        .refresh(world.now, stream, holes.expect("a map"), zone())
        .expect("open");
    let mut write = |from, length| {
        world
            .streams
            .write(world.now, stream, access, (from, length))
    };
    assert!(
        matches!(write(BLOCK, 2 * BLOCK), Err(NotTaken::NotAllocated { offset }) if offset == 2 * BLOCK)
    );
}

#[test]
fn a_synchronous_write_is_answered_when_it_is_on_the_media() {
    let mut world = World::new(at_the_last_moment());
    let stream = recorder(&mut world, StreamMode::RecordSync);
    assert_eq!(world.write(stream, 0, 3 * BLOCK), None);
    let (access, written) = (AccessId(world.accesses), world.now);
    world.run_for(Duration::from_secs(20));
    assert_eq!(world.served(access), Some(Served::Waited(written)));
    let (_, last) = world.ordered.last().expect("it was written");
    assert_eq!(last.durability, block::Durability::Durable);
}

#[test]
fn a_recorder_that_is_too_fast_waits_and_is_served_again() {
    let mut world = World::new(at_the_last_moment());
    let stream = recorder(&mut world, StreamMode::Record);
    let mut at = 0;
    while world.streams.standing(stream) == Some(Standing::Serving) {
        world.write(stream, at, 100 * BLOCK);
        at += 100 * BLOCK;
    }
    let (access, written) = (AccessId(world.accesses), world.now);
    assert_eq!(world.streams.standing(stream), Some(Standing::Behind));
    world.run_for(Duration::from_secs(30));
    assert_eq!(world.served(access), Some(Served::Waited(written)));
    assert_eq!(world.streams.standing(stream), Some(Standing::Serving));
    assert_eq!(world.streams.late(), 0);
}

#[test]
fn what_could_not_be_written_is_told() {
    let mut world = World::new(Box::new(|now, _| (now, Status::MediumError { at: Lba(0) })));
    let stream = recorder(&mut world, StreamMode::RecordSync);
    assert_eq!(world.write(stream, 0, 3 * BLOCK), None);
    let access = AccessId(world.accesses);
    world.run_for(Duration::from_secs(20));
    assert_eq!(world.served(access), Some(Served::Failed));
    let notice = Notice::WriteFailed {
        from: 0,
        to: 3 * BLOCK,
    };
    assert!(world.was_told(stream, &notice));
}

/// A file in so many pieces that no stream on it would be granted.
fn scattered() -> LocationMap {
    let pieces = (0..20_000).map(|at| piece(at * BLOCK, 200_000 + at * 2, 1));
    LocationMap::new(pieces.collect(), BLOCK, 20_000 * BLOCK).expect("a map")
}

/// The bytes that were ordered to be written since, from `from` on and without a gap.
fn written_from(world: &World, since: usize, from: u64) -> u64 {
    world.ordered[since..].iter().fold(from, |at, (_, write)| {
        assert_eq!(write.direction, Direction::Write);
        assert_eq!(write.offset, at, "nothing is left out or written twice");
        at + write.extent.length().0 * BLOCK
    })
}

#[test]
fn a_recording_that_loses_its_guarantee_is_written_at_best_effort_and_regains_it() {
    for mode in [StreamMode::Record, StreamMode::RecordSync] {
        let mut world = World::new(at_the_last_moment());
        let stream = recorder(&mut world, mode);
        world.write(stream, 0, 100 * BLOCK);
        let moved = world
            .streams
            .refresh(world.now, stream, scattered(), zone());
        assert_eq!(moved, Ok(Change::Moved(0)));
        assert!(!world.streams.is_held(stream));
        assert_eq!(world.streams.standing(stream), Some(Standing::Filling));
        world.write(stream, 100 * BLOCK, 50 * BLOCK);
        let access = AccessId(world.accesses);
        world.run_for(Duration::from_secs(30));
        assert_eq!(written_from(&world, 0, 0), 150 * BLOCK);
        assert!(world.served(access).is_some());
        let best_effort = |(_, write): &(_, stream::streams::Transfer)| {
            write.class == block::Class::BestEffort(3)
                && (write.durability == block::Durability::Durable)
                    == (mode == StreamMode::RecordSync)
        };
        assert!(world.ordered.iter().all(best_effort));
        let before = world.ordered.len();
        let back = world
            .streams
            .refresh(world.now, stream, file(0, 60_000), zone());
        back.expect("open");
        world.until_serving(stream);
        world.write(stream, 150 * BLOCK, 50 * BLOCK);
        world.streams.close(world.now, stream).expect("open");
        world.run_for(Duration::from_secs(30));
        assert_eq!(written_from(&world, before, 150 * BLOCK), 200 * BLOCK);
        assert!(world.was_told(stream, &Notice::Closed));
    }
}

#[test]
fn a_recording_that_lost_its_guarantee_is_written_to_its_end_when_it_closes() {
    let mut world = World::new(at_the_last_moment());
    let stream = recorder(&mut world, StreamMode::Record);
    world.write(stream, 0, 100 * BLOCK);
    let moved = world
        .streams
        .refresh(world.now, stream, scattered(), zone());
    moved.expect("open");
    world.streams.close(world.now, stream).expect("open");
    world.run_for(Duration::from_secs(30));
    assert!(world.was_told(stream, &Notice::Closed));
    assert_eq!(written_from(&world, 0, 0), 100 * BLOCK);
}

/// What has no blocks any more cannot be written: the client is told, and the stream ends all the same.
#[test]
fn what_was_punched_out_of_a_recording_is_told() {
    for blocks in [20_000, 60] {
        let mut world = World::new(at_the_last_moment());
        let stream = recorder(&mut world, StreamMode::Record);
        world.write(stream, 0, 100 * BLOCK);
        // Blocks 60 and on are gone; of the others there are many pieces, or one.
        let pieces = match blocks {
            60 => vec![piece(0, 0, 60)],
            _ => (0..60).map(|at| piece(at * BLOCK, at * 2, 1)).collect(),
        };
        let punched = LocationMap::new(pieces, BLOCK, 60_000 * BLOCK).expect("a map");
        let moved = world.streams.refresh(world.now, stream, punched, zone());
        moved.expect("open");
        world.streams.close(world.now, stream).expect("open");
        world.run_for(Duration::from_secs(30));
        let notice = Notice::WriteFailed {
            from: 60 * BLOCK,
            to: 100 * BLOCK,
        };
        assert!(world.was_told(stream, &notice));
        assert!(world.was_told(stream, &Notice::Closed));
        assert_eq!(written_from(&world, 0, 0), 60 * BLOCK);
    }
}

/// Who says that he is elsewhere goes on there when the rest is written, and is never late.
#[test]
fn a_recording_closes_although_what_it_wrote_last_has_no_blocks_any_more() {
    let mut world = World::new(at_the_last_moment());
    let stream = recorder(&mut world, StreamMode::Record);
    world.write(stream, 0, 10 * BLOCK);
    world.run_for(Duration::from_secs(10));
    world.write(stream, 10 * BLOCK, 10 * BLOCK);
    let shrunk = world
        .streams
        .refresh(world.now, stream, file(0, 10), zone());
    assert_eq!(shrunk, Ok(Change::Shrunk));
    world.streams.close(world.now, stream).expect("it is open");
    world.run_for(Duration::from_secs(10));
    let lost = Notice::WriteFailed {
        from: 10 * BLOCK,
        to: 20 * BLOCK,
    };
    assert!(world.was_told(stream, &lost));
    assert!(world.was_told(stream, &Notice::Closed));
    assert!(world.streams.is_empty());
}

#[test]
fn a_recorder_that_says_where_it_goes_on_does() {
    let mut world = World::new(at_the_last_moment());
    let stream = recorder(&mut world, StreamMode::Record);
    let access = AccessId(1_000_000);
    for (from, next) in [(0, 5_000), (5_000, 1_000), (1_000, 9_000)] {
        let before = world.ordered.len();
        world.write(stream, from * BLOCK, 100 * BLOCK);
        // The position of who goes straight on changes nothing.
        world.position(stream, (from + 100) * BLOCK);
        let elsewhere = (next * BLOCK, 100 * BLOCK);
        let early = |world: &mut World| {
            let taken = world.streams.write(world.now, stream, access, elsewhere);
            assert!(matches!(taken, Err(NotTaken::NotSequential { .. })));
        };
        early(&mut world);
        world.run_for(Duration::from_secs(30));
        early(&mut world);
        world.position(stream, next * BLOCK);
        // The rest of its last track.
        world.run_for(Duration::from_secs(30));
        assert_eq!(
            written_from(&world, before, from * BLOCK),
            (from + 100) * BLOCK
        );
    }
    world.write(stream, 9_000 * BLOCK, 100 * BLOCK);
    // Goes straight on after all.
    world.position(stream, 0);
    world.write(stream, 9_100 * BLOCK, 10 * BLOCK);
    world.run_for(Duration::from_secs(30));
    assert!(matches!(
        world.streams.write(world.now, stream, access, (0, BLOCK)),
        Err(NotTaken::NotSequential { .. })
    ));
    assert_eq!(
        (world.streams.standing(stream), world.streams.late()),
        (Some(Standing::Serving), 0)
    );
}
