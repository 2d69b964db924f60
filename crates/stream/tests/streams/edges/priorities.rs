//! At which priority buffers fill.

use block::{Class, Duration, StreamMode};
use stream::LocationMap;
use stream::admission::Reason;
use stream::streams::Transfer;

use super::{MB, at_the_last_moment};
use crate::disk::BLOCK;
use crate::world::{World, attach, file, piece};

/// Each buffer fills at its file's priority, and the blocks of two files at the higher one of both, as
/// long as somebody has it.
#[test]
fn buffers_fill_at_their_own_priority_and_shared_blocks_at_the_highest() {
    // The second file has blocks 300 to 600 of the first one, and others of its own.
    let pieces = vec![piece(0, 300, 300), piece(300 * BLOCK, 90_000, 700)];
    let second = LocationMap::new(pieces, BLOCK, 1_000 * BLOCK).expect("a map");
    let mut world = World::new(at_the_last_moment());
    let ask = |world: &mut World, map: LocationMap, priority| {
        let mut asked = attach(StreamMode::Play, MB, 64 * BLOCK, map);
        asked.terms.priority = priority;
        world.attach(asked)
    };
    let low = ask(&mut world, file(0, 3_000), Some(5)).expect("an empty disk");
    let high = ask(&mut world, second, Some(1)).expect("there is room");
    let usual = ask(&mut world, file(200_000, 1_000), None).expect("there is room");
    world.run_for(Duration::from_secs(1));
    let mut seen = [0; 4];
    let class = |transfer: &Transfer| match transfer.class {
        Class::BestEffort(priority) => Some(priority),
        _ => None,
    };
    let filled = world
        .ordered
        .iter()
        .filter_map(|(_, t)| Some((t, class(t)?)));
    for (transfer, priority) in filled {
        let blocks = transfer.extent;
        let shared = blocks.start().0 < 600 && blocks.end().0 > 300;
        let (which, expected) = match transfer.stream {
            stream if stream == high.stream => (0, 1),
            stream if stream == usual.stream => (1, 3),
            _ if shared => (2, 1),
            _ => (3, 5),
        };
        assert_eq!(priority, expected, "{blocks}");
        seen[which] += 1;
    }
    assert!(seen.iter().all(|count| *count > 5), "{seen:?}");
    // Alone, and from the beginning again.
    for stream in [high.stream, usual.stream] {
        world.streams.close(world.now, stream).expect("open");
    }
    world.run_for(Duration::from_secs(60));
    let before = world.ordered.len();
    world.position(low.stream, 2_900 * BLOCK);
    world.position(low.stream, 0);
    world.run_for(Duration::from_secs(1));
    let alone = &world.ordered[before..];
    assert!(alone.iter().filter(|(_, t)| class(t) == Some(5)).count() > 20);
    assert!(alone.iter().all(|(_, t)| class(t) != Some(1)));
    let refused = ask(&mut world, file(0, 1_000), Some(7)).expect_err("there are seven");
    assert_eq!(refused.reason, Reason::Priority { priority: 7 });
}
