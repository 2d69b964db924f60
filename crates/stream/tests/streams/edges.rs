//! What clients do wrong, files do, and disks do; each has its clear answer.

use block::{Class, Duration, Instant, Lba, Status, StreamMode};
use stream::LocationMap;
use stream::admission::Reason;
use stream::location::Change;
use stream::playout::{AccessId, NotTaken, Served, Standing};
use stream::quota::{Exceeded, Quotas, Rule, Who};
use stream::streams::{Attach, Notice, StreamId};

mod priorities;
mod recordings;
mod relearning;

use crate::disk::{BLOCK, LATENCY, zone};
use crate::world::{Fate, World, attach, file, piece, with_memory};

const MB: u64 = 1_000_000;

/// Real-time transfers end with their deadlines, others after five milliseconds.
fn at_the_last_moment() -> Fate {
    Box::new(|now, transfer| match transfer.class {
        Class::RealTime { deadline } => (deadline, Status::Good),
        _ => (now + Duration::from_millis(5), Status::Good),
    })
}

fn reader(world: &mut World, map: LocationMap) -> StreamId {
    let attached = world.attach(attach(StreamMode::Play, MB, 100 * BLOCK, map));
    let stream = attached.expect("an empty disk").stream;
    world.until_serving(stream);
    stream
}

#[test]
fn a_rate_of_zero_or_above_the_disk_or_a_buffer_below_a_read_is_refused() {
    let mut world = World::new(at_the_last_moment());
    let mut refusal = |rate, memory| {
        let attach = attach(StreamMode::Play, rate, 100 * BLOCK, file(0, 100));
        let attached = world
            .streams
            .attach(Instant::ZERO, with_memory(memory, attach), zone());
        attached.expect_err("it is not possible").reason
    };
    assert_eq!(refusal(0, 8 * MB), Reason::ZeroRate);
    let above = refusal(1_000 * MB, 8 * MB);
    assert!(matches!(above, Reason::AboveDisk { .. }), "{above}");
    let small = refusal(MB, 100 * BLOCK);
    assert!(
        matches!(small, Reason::BufferTooSmall { memory, .. } if memory == 100 * BLOCK),
        "{small}"
    );
    assert_eq!(world.streams.admission().streams(), 0);
}

#[test]
fn a_read_larger_than_the_buffer_is_not_taken() {
    let mut world = World::new(at_the_last_moment());
    let stream = reader(&mut world, file(0, 60_000));
    let access = AccessId(1);
    let taken = world.streams.read(world.now, stream, access, (0, 50 * MB));
    assert!(
        matches!(taken, Err(NotTaken::LargerThanBuffer { .. })),
        "{taken:?}"
    );
    assert_eq!(world.streams.standing(stream), Some(Standing::Serving));
    let way = world.streams.write(world.now, stream, access, (0, BLOCK));
    assert_eq!(way, Err(NotTaken::Direction));
}

#[test]
fn two_streams_on_one_file_are_two_streams() {
    let mut world = World::new(at_the_last_moment());
    let first = reader(&mut world, file(0, 60_000));
    let second = reader(&mut world, file(0, 60_000));
    assert_ne!(first, second);
    assert_eq!(world.streams.admission().streams(), 2);
    world.position(first, 50 * BLOCK);
    assert_eq!(world.streams.window(second).expect("open").0, 0);
    world.streams.close(world.now, first).expect("open");
    world.run_for(Duration::from_secs(30));
    assert_eq!(world.streams.admission().streams(), 1);
    assert_eq!(world.read(second, 0, 100 * BLOCK), Some(Served::Memory));
}

#[test]
fn a_reader_that_closes_while_batches_are_out_holds_its_share_until_they_are_in() {
    let mut world = World::new(at_the_last_moment());
    let stream = reader(&mut world, file(0, 60_000));
    while !world
        .ordered
        .iter()
        .any(|(_, transfer)| matches!(transfer.class, Class::RealTime { .. }))
    {
        world.run_for(LATENCY);
        let passed = world.now.as_nanos() / 1_000;
        world.position(stream, passed * MB / 1_000_000);
    }
    world.streams.close(world.now, stream).expect("open");
    assert_eq!(world.streams.admission().streams(), 1);
    assert_eq!(
        world.streams.position(world.now, stream, 0),
        Err(NotTaken::NoStream)
    );
    world.run_for(Duration::from_secs(30));
    assert!(world.was_told(stream, &Notice::Closed));
    assert_eq!(world.streams.admission().streams(), 0);
    assert_eq!(world.streams.next_wakeup(), None, "nothing is left to do");
    assert_eq!(
        world.streams.close(world.now, stream),
        Err(NotTaken::NoStream)
    );
}

#[test]
fn a_pause_is_followed_by_no_burst() {
    let mut world = World::new(at_the_last_moment());
    let stream = reader(&mut world, file(0, 60_000));
    let plan = world.streams.admission().plan().expect("one stream");
    world.run_for(Duration::from_secs(100));
    let before = world.ordered.len();
    // As far as the application may jump at once, and then on at its rate.
    world.position(stream, 100 * BLOCK - 1);
    for _ in 0..6_000 {
        world.run_for(LATENCY);
        let (low, _) = world.streams.window(stream).expect("open");
        world.position(stream, low + 100 * BLOCK - 1);
    }
    let mut at = None;
    let mut batch = 0;
    let most = MB * (plan.round + LATENCY).as_nanos() / 1_000_000_000 + 200 * BLOCK;
    for (when, transfer) in &world.ordered[before..] {
        if at != Some(*when) {
            (at, batch) = (Some(*when), 0);
        }
        batch += transfer.extent.length().0 * BLOCK;
        assert!(
            batch <= most,
            "{batch} bytes in a round at {when:?}, of {most}"
        );
        let Class::RealTime { deadline } = transfer.class else {
            panic!("{transfer:?} in service")
        };
        assert!(deadline.since(*when) >= plan.within, "{transfer:?}");
    }
    assert!(world.ordered.len() > before + 5);
}

#[test]
fn batches_are_whole_tracks() {
    let mut world = World::new(at_the_last_moment());
    let stream = reader(&mut world, file(77, 60_000));
    for step in 0..4_000 {
        world.run_for(LATENCY);
        world.position(stream, step * MB / 100);
    }
    let batches: Vec<_> = world
        .ordered
        .iter()
        .filter(|(_, transfer)| matches!(transfer.class, Class::RealTime { .. }))
        .collect();
    assert!(batches.len() > 3, "{}", batches.len());
    for (_, transfer) in batches {
        assert_eq!(transfer.extent.end().0 % 200, 0, "{transfer:?}");
    }
}

#[test]
fn who_waits_for_what_is_under_way_has_it_raised() {
    let mut world = World::new(at_the_last_moment());
    let attach = attach(StreamMode::Play, MB, 100 * BLOCK, file(0, 60_000));
    let attached = world.attach(attach);
    let stream = attached.expect("an empty disk").stream;
    assert_eq!(world.read(stream, 0, BLOCK), None, "nothing is there");
    let access = AccessId(world.accesses);
    world.run_for(Duration::ZERO);
    assert_eq!(world.raised.len(), 1);
    assert_eq!(world.raised[0].1, Class::BestEffort(0));
    world.run_for(Duration::from_millis(5));
    assert_eq!(world.served(access), Some(Served::Waited(Instant::ZERO)));
}

#[test]
fn what_is_under_way_when_service_begins_is_due() {
    // The last best-effort read is never served as such; the first one takes longer than all
    // others, so that never two end at once.
    let full = 100 * BLOCK + 4 * (1 << 20);
    let mut world = World::new(Box::new(move |now, transfer| match transfer.class {
        Class::RealTime { deadline } => (deadline, Status::Good),
        _ if transfer.offset == 0 => (now + Duration::from_millis(7), Status::Good),
        _ if transfer.offset + 32 * BLOCK < full => (now + Duration::from_millis(5), Status::Good),
        _ => (now + Duration::from_secs(1_000_000), Status::Good),
    }));
    let stream = reader(&mut world, file(0, 60_000));
    let class = world.raised.last().expect("it was raised").1;
    let Class::RealTime { deadline } = class else {
        panic!("{class:?} in service")
    };
    assert!(deadline > world.now);
    world.run(deadline);
    assert_eq!(world.read(stream, 0, full), Some(Served::Memory));
    assert_eq!(world.streams.late(), 0);
}

#[test]
fn a_late_disk_is_told_of() {
    let mut world = World::new(Box::new(|now, transfer| match transfer.class {
        Class::RealTime { deadline } => (deadline + Duration::from_nanos(1), Status::Good),
        _ => (now, Status::Good),
    }));
    let stream = reader(&mut world, file(0, 60_000));
    for step in 0..2_000 {
        world.run_for(LATENCY);
        world.position(stream, step * MB / 100);
    }
    assert!(world.streams.late() > 0);
    assert!(world.was_told(
        stream,
        &Notice::Late {
            by: Duration::from_nanos(1),
            held_up: Duration::ZERO
        }
    ));
}

#[test]
fn what_cannot_be_read_fails_and_the_rest_goes_on() {
    let bad = Lba(40);
    let mut world = World::new(Box::new(move |now, transfer| {
        let status = if transfer.extent.contains(bad) {
            Status::MediumError { at: bad }
        } else {
            Status::Good
        };
        (now, status)
    }));
    let stream = reader(&mut world, file(0, 60_000));
    assert_eq!(world.read(stream, 40 * BLOCK, BLOCK), Some(Served::Failed));
    assert_eq!(
        world.read(stream, 64 * BLOCK, 10 * BLOCK),
        Some(Served::Memory)
    );
}

#[test]
fn the_end_of_a_file_is_served_and_what_is_beyond_is_not_there() {
    let mut world = World::new(at_the_last_moment());
    let map = LocationMap::new(vec![piece(0, 7, 3)], BLOCK, 3 * BLOCK - 100).expect("a map");
    let stream = reader(&mut world, map);
    assert_eq!(world.read(stream, 2 * BLOCK, BLOCK), Some(Served::Memory));
    assert_eq!(
        world.read(stream, 3 * BLOCK - 100, 1),
        Some(Served::PastEnd)
    );
    assert_eq!(world.read(stream, u64::MAX, 1), Some(Served::PastEnd));
    world.position(stream, u64::MAX);
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.read(stream, u64::MAX, 1), Some(Served::PastEnd));
}

#[test]
fn holes_are_in_memory_without_being_read() {
    let mut world = World::new(at_the_last_moment());
    let pieces = vec![piece(10 * BLOCK, 1_000, 2), piece(50 * BLOCK, 70, 3)];
    let map = LocationMap::new(pieces, BLOCK, 80 * BLOCK).expect("a map");
    let stream = reader(&mut world, map);
    assert_eq!(world.read(stream, 0, 80 * BLOCK), Some(Served::Memory));
    let blocks: u64 = world
        .ordered
        .iter()
        .map(|(_, transfer)| transfer.extent.length().0)
        .sum();
    assert_eq!(blocks, 5);
}

#[test]
fn a_file_that_grows_goes_on_and_one_that_moves_or_shrinks_says_so() {
    let mut world = World::new(at_the_last_moment());
    let stream = reader(&mut world, file(0, 300));
    let refresh = |world: &mut World, map| {
        let change = world.streams.refresh(world.now, stream, map, zone());
        world.run_for(Duration::ZERO);
        change.expect("open")
    };
    assert_eq!(refresh(&mut world, file(0, 400)), Change::Grown);
    assert_eq!(
        world.streams.standing(stream),
        Some(Standing::Serving),
        "nothing lapses"
    );
    assert_eq!(refresh(&mut world, file(5_000, 400)), Change::Moved(0));
    assert_eq!(world.streams.standing(stream), Some(Standing::Filling));
    assert!(world.was_told(stream, &Notice::Stands(Standing::Filling)));
    let before = world.ordered.len();
    world.until_serving(stream);
    let elsewhere = |at: u64| (5_000..5_400).contains(&at);
    assert!(
        world.ordered[before..]
            .iter()
            .all(|(_, t)| elsewhere(t.extent.start().0))
    );

    let punched = LocationMap::new(
        vec![piece(0, 5_000, 10), piece(20 * BLOCK, 5_020, 380)],
        BLOCK,
        400 * BLOCK,
    );
    assert_eq!(
        refresh(&mut world, punched.expect("a map")),
        Change::Punched(10 * BLOCK)
    );
    world.until_serving(stream);
    assert_eq!(
        world.read(stream, 5 * BLOCK, 20 * BLOCK),
        Some(Served::Memory)
    );

    let shrunk = LocationMap::new(vec![piece(0, 5_000, 10)], BLOCK, 10 * BLOCK);
    let shrunk = refresh(&mut world, shrunk.expect("a map"));
    assert!(
        matches!(shrunk, Change::Shrunk | Change::Punched(_)),
        "{shrunk:?}"
    );
    world.run_for(Duration::from_secs(20));
    assert_eq!(world.read(stream, 10 * BLOCK, 1), Some(Served::PastEnd));
    assert_eq!(world.read(stream, 9 * BLOCK, BLOCK), Some(Served::Memory));
}

#[test]
fn a_file_that_moves_to_where_it_would_be_refused_loses_its_guarantee() {
    let mut world = World::new(at_the_last_moment());
    let stream = reader(&mut world, file(0, 60_000));
    let pieces = (0..20_000).map(|at| piece(at * BLOCK, at * 2, 1)).collect();
    let scattered = LocationMap::new(pieces, BLOCK, 20_000 * BLOCK).expect("a map");
    world
        .streams
        .refresh(world.now, stream, scattered, zone())
        .expect("open");
    world.run_for(Duration::from_secs(100));
    assert_eq!(world.streams.standing(stream), Some(Standing::Filling));
    assert_eq!(world.streams.admission().streams(), 0);
    let told = |answer: &stream::streams::Answer| {
        let stream::streams::Answer::Notice { notice, .. } = answer else {
            return false;
        };
        matches!(notice, Notice::Unguaranteed(refusal) if matches!(refusal.reason, Reason::HeadTime { .. }))
    };
    assert!(world.answers.iter().any(told));
    assert_eq!(
        world.read(stream, 0, BLOCK),
        Some(Served::Memory),
        "at best effort"
    );
    // And back again.
    let back = world
        .streams
        .refresh(world.now, stream, file(0, 60_000), zone());
    back.expect("open");
    world.until_serving(stream);
    assert_eq!(world.streams.admission().streams(), 1);
}

#[test]
fn a_quota_is_given_back_with_the_stream_and_when_it_is_refused() {
    let rule = Rule {
        who: Who::User(0),
        streams: 1,
        rate: MB,
        head_permille: 1_000,
    };
    let mut world = World::with_quotas(at_the_last_moment(), Quotas::new(vec![rule]));
    let tiny = attach(StreamMode::Play, MB, 100 * BLOCK, file(0, 60_000));
    let tiny = world.attach(with_memory(1, tiny));
    assert!(tiny.is_err());
    let first = reader(&mut world, file(0, 60_000));
    let again = |world: &mut World, user| {
        let attach = attach(StreamMode::Play, MB, 100 * BLOCK, file(0, 60_000));
        let attached = world.attach(Attach { user, ..attach });
        attached.map_err(|refusal| refusal.reason)
    };
    let full = Exceeded::Streams { rule: 0, limit: 1 };
    assert_eq!(again(&mut world, 0), Err(Reason::Quota(full)));
    assert!(matches!(
        again(&mut world, 1),
        Err(Reason::Quota(Exceeded::NotAllowed { .. }))
    ));
    world.streams.close(world.now, first).expect("open");
    world.run_for(Duration::from_secs(20));
    assert!(again(&mut world, 0).is_ok());
}

#[test]
fn who_comes_with_a_short_buffer_does_not_wait_for_the_end_of_a_long_round() {
    let mut world = World::new(at_the_last_moment());
    let long = attach(StreamMode::Play, 100_000, 100 * BLOCK, file(0, 60_000));
    let attached = world.attach(long);
    world.until_serving(attached.expect("an empty disk").stream);
    world.run_for(Duration::from_millis(100));
    let round = |world: &World| world.streams.admission().plan().expect("a stream").round;
    let before = round(&world);
    let short = attach(StreamMode::Play, MB, 100 * BLOCK, file(0, 60_000));
    let memory = 100 * BLOCK + MB;
    let attached = world.attach(with_memory(memory, short));
    let stream = attached.expect("there is room").stream;
    let (came, after) = (world.now, round(&world));
    assert!(before > after * 5, "{before} and {after}");
    world.until_serving(stream);
    let waited = world.now.since(came);
    assert!(waited < after * 3, "{waited} with rounds of {after}");
}

#[test]
fn a_read_that_the_playout_point_passes_is_not_waited_for() {
    // While the buffer fills.
    let mut world = World::new(at_the_last_moment());
    let asked = attach(StreamMode::Play, MB, 100 * BLOCK, file(0, 60_000));
    let attached = world.attach(asked);
    let stream = attached.expect("an empty disk").stream;
    world.run_for(Duration::ZERO);
    assert_eq!(world.read(stream, 0, BLOCK), None, "it is under way");
    let access = AccessId(world.accesses);
    world.position(stream, 2 * BLOCK);
    assert_eq!(world.served(access), Some(Served::Elsewhere));
    // In service, beside a disk that has stopped.
    let mut world = World::new(Box::new(|now, transfer| match transfer.class {
        Class::RealTime { .. } => (now + Duration::from_secs(1_000_000), Status::Good),
        _ => (now + Duration::from_millis(5), Status::Good),
    }));
    let stream = reader(&mut world, file(0, 60_000));
    world.position(stream, 100 * BLOCK);
    world.run_for(Duration::from_secs(20));
    let (_, edge) = world.streams.window(stream).expect("it is there");
    assert_eq!(
        world.read(stream, edge - BLOCK, BLOCK),
        None,
        "it is under way"
    );
    let access = AccessId(world.accesses);
    world.position(stream, edge);
    world.run_for(Duration::from_secs(20));
    assert_eq!(world.served(access), Some(Served::Elsewhere));
}
