//! What the engine reads ahead in slack: one rule at a time.

use super::plain::plain;
use super::wished::{end_all, is_here, pages, pass, passed};
use super::{Step, World};
use crate::cache_setting::{PAGE, Writes};

fn world(writes: Writes) -> World {
    World::new(&plain(16 * PAGE, writes))
}

fn read_ahead(world: &mut World, first: u64, count: u64) {
    let (at, count) = pages(first, count);
    world.take_step(Step::Ahead(at, count));
}

fn here(world: &World) -> Vec<u64> {
    (0..24).filter(|&page| is_here(world, page)).collect()
}

#[test]
fn what_was_read_ahead_is_a_hit_and_counts_as_prefetched() {
    let mut world = world(Writes::Through);
    // A part of a page is not kept.
    let (at, count) = pages(8, 3);
    world.take_step(Step::Ahead(at - 1, count + 2));
    passed(&mut world, Some(true));
    assert_eq!(here(&world), [8, 9, 10]);
    world.take_step(Step::Read(at, count));
    assert!(world.asked.is_empty() && world.reads.is_empty());
    let told = world.cached.status();
    assert_eq!(told.prefetched_bytes_total, 3 * PAGE);
    assert_eq!(told.hit_bytes_total, 3 * PAGE);
    assert_eq!(told.ahead_used_bytes_total, 3 * PAGE);
}

#[test]
fn what_tasks_read_is_not_kept() {
    let mut world = world(Writes::Through);
    pass(&mut world, 8, 4);
    passed(&mut world, Some(true));
    assert!(here(&world).is_empty());
}

#[test]
fn what_failed_or_changed_meanwhile_is_not_kept() {
    let mut world = world(Writes::Through);
    read_ahead(&mut world, 8, 4);
    passed(&mut world, Some(false));
    assert!(here(&world).is_empty());
    read_ahead(&mut world, 8, 4);
    let (at, count) = pages(9, 1);
    world.take_step(Step::Write(at, count));
    passed(&mut world, Some(true));
    assert_eq!(here(&world), [8, 10, 11]);
    end_all(&mut world);
}

/// A page that was stored, evicted and not yet written is newer than what was read.
#[test]
fn what_is_still_to_be_written_is_not_kept() {
    let mut world = world(Writes::Back);
    let (at, count) = pages(8, 1);
    world.take_step(Step::Store(at, count));
    // Reads of as many other pages as there are frames.
    let (at, count) = pages(9, 15);
    world.take_step(Step::Read(at, count));
    let (at, count) = pages(0, 4);
    world.take_step(Step::Read(at, count));
    while let Some(place) = world.asked.iter().position(|asked| !asked.is_write) {
        world.end(place, true);
        world.settle();
    }
    assert!(!is_here(&world, 8), "it was evicted");
    read_ahead(&mut world, 8, 1);
    passed(&mut world, Some(true));
    assert!(!is_here(&world, 8), "the volume has older bytes");
    end_all(&mut world);
}

/// A demand waits for the read that has its blocks.
#[test]
fn who_asks_for_what_is_being_read_ahead_waits_for_that_read() {
    let mut world = world(Writes::Through);
    read_ahead(&mut world, 8, 4);
    let (at, count) = pages(8, 4);
    world.take_step(Step::Read(at, count));
    assert!(world.asked.is_empty());
    passed(&mut world, Some(true));
    assert!(world.reads.is_empty(), "it is answered");
    assert_eq!(world.cached.status().joined_bytes_total, 4 * PAGE);
}
