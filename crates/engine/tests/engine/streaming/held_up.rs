//! Earlier requests over the same blocks come before a batch, however many they are. That batch may be
//! late, by no more than they hold it up. No other one is.

use block::{Direction, Duration};
use engine::StreamInput;
use engine::streams::StreamEvent;
use stream::playout::AccessId;
use stream::streams::{Answer, Notice, StreamId};

use super::world::{MB, PAGE, World, promise};

/// Writes of others to one block of the first recording: each takes a revolution at least, so that they take
/// longer than a round.
const WRITES: u64 = 400;

/// Recordings that take what the drive has to give, and the first of which others write to.
fn recordings() -> (World, Vec<StreamId>) {
    let mut world = World::new(promise(3));
    let streams = world.record_all(|before| 100_000 + 30_000_000 * before);
    (world, streams)
}

/// Records a second with all of them.
fn record(world: &mut World, streams: &[StreamId], second: u64) {
    for tick in 0..100 {
        let recorded = |ticks: u64| ticks * MB / 100 / PAGE * PAGE;
        let from = recorded(second * 100 + tick);
        let to = recorded(second * 100 + tick + 1);
        for stream in streams {
            let write = StreamInput::Write(AccessId(from), (from, to - from));
            let taken = world.engine.stream(world.now, *stream, write);
            // The first one has no room while it is held up.
            assert!(taken.is_ok() || *stream == streams[0], "{taken:?}");
        }
        world.run_for(10);
    }
}

/// By how much batches of each stream were late, and how long others had held those up.
fn late(world: &World) -> Vec<(StreamId, Duration, Duration)> {
    let events = world.events.iter();
    let notices = events.filter_map(|(_, event)| match event {
        StreamEvent::Answer(Answer::Notice {
            stream,
            notice: Notice::Late { by, held_up },
        }) => Some((*stream, *by, *held_up)),
        _ => None,
    });
    notices.collect()
}

#[test]
fn writes_to_the_blocks_of_one_recording_make_no_other_one_late() {
    let (mut world, streams) = recordings();
    world.run_for(12_000);
    (0..20).for_each(|second| record(&mut world, &streams, second));
    assert_eq!(late(&world), []);
    // What is recorded next comes after all of them.
    let next = 100_000 + 20 * MB / PAGE;
    for _ in 0..WRITES {
        world.request(Direction::Write, next, 1, 3);
    }
    (20..32).for_each(|second| record(&mut world, &streams, second));
    let late = late(&world);
    assert!(!late.is_empty(), "they hold nothing up");
    for (stream, by, held_up) in late {
        assert_eq!(stream, streams[0]);
        assert!(by <= held_up, "{by} late, held up for {held_up}");
    }
}
