//! Demands for what is just being read in the background: one rule at a time.

use block::Class;
use block::Interval;
use cache::coordinator::Purpose;

use super::wished::{end_all, pages, pass, passed, with_wishes};
use super::{SECTOR, Step, World};
use crate::cache_setting::{PAGE, Writes};
use crate::volume::cached::Upgrade;

fn read(world: &mut World, first: u64, count: u64) {
    let (at, count) = pages(first, count);
    world.take_step(Step::Read(at, count));
}

/// What the engine is asked to read, in pages; in their order on the volume.
fn asked(world: &World) -> Vec<(u64, u64)> {
    let reads = world.asked.iter().filter(|asked| !asked.is_write);
    let mut reads: Vec<(u64, u64)> = reads
        .map(|asked| {
            (
                asked.bytes.start / PAGE,
                asked.bytes.memory.length as u64 / PAGE,
            )
        })
        .collect();
    reads.sort_unstable();
    reads
}

fn joined(world: &World) -> u64 {
    world.cached.status().joined_bytes_total / PAGE
}

/// Pages 0 to 7 were read, and 8 to 11 are being read in the background.
fn with_a_read() -> World {
    let mut world = with_wishes(Writes::Through);
    // The volume has something to find.
    let (at, count) = pages(8, 16);
    world.take_step(Step::Write(at, count));
    end_all(&mut world);
    pass(&mut world, 8, 4);
    world
}

#[test]
fn who_asks_for_what_is_being_read_waits_for_that_read() {
    let mut world = with_a_read();
    read(&mut world, 8, 4);
    assert_eq!(asked(&world), []);
    assert_eq!(world.reads.len(), 1, "it is not there yet");
    // Another one waits for the same.
    read(&mut world, 9, 2);
    passed(&mut world, Some(true));
    // Whatever the coordinator let past was read for each of them.
    end_all(&mut world);
    assert!(world.reads.is_empty());
    assert!(joined(&world) >= 4);
    assert!(world.cached.background.joined().is_empty() && world.cached.is_idle());
}

#[test]
fn what_is_not_being_read_is_asked_for() {
    for ((from, length), (first, count), expected, joins) in [
        ((8, 4), (10, 4), &[(12, 2)][..], 2),
        ((10, 4), (8, 4), &[(8, 2)], 2),
        ((8, 4), (8, 8), &[(12, 4)], 4),
        ((6, 12), (8, 8), &[], 8),
    ] {
        let mut world = with_wishes(Writes::Through);
        pass(&mut world, from, length);
        read(&mut world, first, count);
        assert_eq!(asked(&world), expected, "{first} {count}");
        passed(&mut world, Some(true));
        end_all(&mut world);
        assert_eq!(joined(&world), joins, "{first} {count}");
        assert!(world.reads.is_empty());
    }
}

/// Two commands would be asked for in place of one.
#[test]
fn what_is_being_read_of_its_middle_is_read_again() {
    let mut world = with_wishes(Writes::Through);
    pass(&mut world, 9, 2);
    let all = Interval::new(8, 11);
    let [first, middle, last] = world.cached.background.divide(all);
    assert!(first.0.is_empty() && last.0.is_empty());
    assert_eq!(middle, (all, None));
    passed(&mut world, Some(true));
}

/// Two reads have its ends.
#[test]
fn what_two_reads_have_waits_for_both() {
    let mut world = with_wishes(Writes::Through);
    pass(&mut world, 7, 3);
    pass(&mut world, 11, 3);
    read(&mut world, 8, 5);
    assert_eq!(asked(&world), [(10, 1)]);
    end_all(&mut world);
    passed(&mut world, Some(true));
    assert_eq!(world.reads.len(), 1);
    passed(&mut world, Some(true));
    assert!(world.reads.is_empty());
    assert_eq!(joined(&world), 4);
}

#[test]
fn where_that_read_fails_it_is_read_by_itself() {
    let mut world = with_a_read();
    read(&mut world, 8, 3);
    passed(&mut world, Some(false));
    assert_eq!(asked(&world), [(8, 3)]);
    assert_eq!((joined(&world), world.reads.len()), (0, 1));
    end_all(&mut world);
    assert!(world.reads.is_empty());
}

/// The read is done before or after the write is; whoever waits gets what the volume has, in order.
#[test]
fn where_its_blocks_change_the_engine_is_asked() {
    for is_done in [false, true] {
        let mut world = with_a_read();
        read(&mut world, 8, 1);
        read(&mut world, 10, 1);
        if is_done {
            passed(&mut world, None);
        }
        let (at, _) = pages(10, 1);
        world.take_step(Step::Write(at + 1, 1));
        assert_eq!(
            asked(&world),
            [(10, 1)],
            "behind the write, and only this one"
        );
        assert!(world.asked[0].is_write);
        end_all(&mut world);
        assert_eq!(world.reads.len(), 1);
        passed(&mut world, Some(true));
        assert!(world.reads.is_empty());
        assert_eq!(joined(&world), 1);
        read(&mut world, 8, 4);
        end_all(&mut world);
        assert!(world.reads.is_empty());
    }
}

#[test]
fn where_its_blocks_are_trimmed_or_the_drive_forgets_it_is_read_anew() {
    let (at, _) = pages(9, 1);
    let changes: [fn(&mut World, u64); 3] = [
        |world, at| world.take_step(Step::Trim(at, 1)),
        |world, _| world.cached.void_all(),
        |world, _| world.cached.resize(10 * PAGE),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut world = with_a_read();
        read(&mut world, 8, 2);
        change(&mut world, at);
        world.settle();
        if number < 2 {
            assert!(world.cached.background.joined().is_empty(), "{number}");
            end_all(&mut world);
            assert!(world.reads.is_empty(), "{number}: without that read");
        }
        passed(&mut world, Some(true));
        end_all(&mut world);
        assert!(world.reads.is_empty() && world.cached.is_idle(), "{number}");
    }
}

/// A piece of a prefetch has joined, then somebody wants it: if nothing comes of the read it is as urgent as he.
#[test]
fn what_has_joined_is_as_urgent_as_whoever_waits_for_it() {
    let mut world = with_a_read();
    read(&mut world, 8, 2);
    let class_of = |world: &mut World| {
        let joined = world.cached.background.joined()[0];
        let piece = world.cached.transfers.piece(joined.piece);
        (piece.class, joined.purpose)
    };
    let joined = &mut world.cached.background.joined()[0];
    joined.purpose = Purpose::Prefetch;
    let piece = world.cached.transfers.piece(joined.piece);
    piece.class = Class::BestEffort(6);
    let mut upgrades: Vec<Upgrade> = Vec::new();
    let span = |page: u64| (page * PAGE, SECTOR);
    world
        .cached
        .hasten(span(10), Class::BestEffort(0), &mut upgrades);
    assert_eq!(
        class_of(&mut world),
        (Class::BestEffort(6), Purpose::Prefetch),
        "another one"
    );
    world
        .cached
        .hasten(span(9), Class::BestEffort(0), &mut upgrades);
    assert_eq!(
        class_of(&mut world),
        (Class::BestEffort(0), Purpose::Demand)
    );
    assert!(upgrades.is_empty(), "the engine was asked for nothing");
    passed(&mut world, Some(false));
    end_all(&mut world);
    assert!(world.reads.is_empty());
}
