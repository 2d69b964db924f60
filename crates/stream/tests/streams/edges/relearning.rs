//! The drive turns out to take longer than was believed when streams were granted.

use block::{Direction, Duration, StreamMode};
use stream::admission::{Promises, Reason};
use stream::head_times::AccessTimes;
use stream::playout::Standing;
use stream::streams::Attach;
use stream::{HeadTimes, LocationMap, Zone};

use super::{MB, at_the_last_moment};
use crate::disk::{BLOCK, times, zone};
use crate::world::{World, attach, file, with_memory};

/// Every access takes so much longer.
fn slower(by: Duration) -> HeadTimes {
    let AccessTimes { overhead, settle } = times().read;
    let access = AccessTimes {
        overhead: overhead + by,
        settle,
    };
    HeadTimes {
        read: access,
        write: access,
        ..times()
    }
}

/// A film with a second of memory, so that fewer fit than there may be.
fn film() -> Attach {
    let attach = attach(StreamMode::Play, MB, 100 * BLOCK, file(0, 60_000));
    with_memory(100 * BLOCK + MB, attach)
}

fn here(_: &LocationMap, _: Direction) -> Zone {
    zone()
}

#[test]
fn promises_stand_when_the_drive_is_found_to_be_slower_and_no_others_are_given() {
    let mut world = World::new(at_the_last_moment());
    let mut streams = Vec::new();
    while let Ok(attached) = world.attach(film()) {
        streams.push(attached.stream);
    }
    for &stream in &streams {
        world.until_serving(stream);
    }
    assert!(streams.len() > 10, "{}", streams.len());
    let plan = world.streams.admission().plan();
    let promises = |world: &World| world.streams.admission().promises();
    assert_eq!(promises(&world), Promises::Kept);

    let slower = slower(Duration::from_millis(2));
    world.streams.relearn(world.now, slower.clone(), here);
    assert_eq!(promises(&world), Promises::Strained);
    assert_eq!(world.streams.admission().plan(), plan, "rounds go on");
    world.run_for(Duration::from_secs(20));
    for &stream in &streams {
        assert!(world.streams.is_held(stream));
        assert_eq!(world.streams.standing(stream), Some(Standing::Serving));
    }
    let refused = world.attach(film());
    let refused = refused.expect_err("what is there is too much");
    assert_eq!(refused.reason, Reason::Strained);

    // As many end as are too many; then there is a plan again, and it is of the slower drive.
    let mut ended = 0;
    while promises(&world) == Promises::Strained {
        let stream = streams.pop().expect("one alone would be granted");
        world.streams.close(world.now, stream).expect("open");
        world.run_for(Duration::from_secs(20));
        ended += 1;
    }
    assert!(ended > 0 && !streams.is_empty(), "{ended}");
    let refused = world.attach(film());
    let reason = refused.expect_err("as many as fit are there").reason;
    assert!(matches!(reason, Reason::HeadTime { .. }), "{reason}");
    assert_eq!(world.streams.admission().times(), &slower);
}

#[test]
fn a_drive_that_is_found_to_be_faster_has_room_for_more() {
    let mut world = World::new(at_the_last_moment());
    let slower = slower(Duration::from_millis(2));
    world.streams.relearn(world.now, slower, here);
    while world.attach(film()).is_ok() {}
    let before = world.streams.admission().streams();
    world.streams.relearn(world.now, times(), here);
    assert!(world.attach(film()).is_ok());
    let mut fresh = World::new(at_the_last_moment());
    while fresh.attach(film()).is_ok() {}
    while world.attach(film()).is_ok() {}
    let [relearned, fresh] = [&world, &fresh].map(|world| world.streams.admission());
    assert!(fresh.streams() > before);
    assert_eq!(
        relearned.plan(),
        fresh.plan(),
        "sums are as if it had been known"
    );
}
