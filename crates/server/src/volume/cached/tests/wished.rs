//! What a coordinator reads more, on free blocks: one rule at a time.

use proptest::prelude::*;

use super::plain::plain;
use super::{SECTOR, Step, World, play, setting, step};
use crate::cache_setting::{CacheSetting, PAGE, Readmore, Writes};

const SECTORS_OF_PAGE: u64 = PAGE / SECTOR;

fn wishing(bytes: u64, writes: Writes) -> CacheSetting {
    CacheSetting {
        coordinator: "pfc".to_owned(),
        readmore: Readmore::Free,
        ..plain(bytes, writes)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn pages_have_what_the_volume_will_have_where_more_is_wished(
        setting in setting(),
        coordinator in prop_oneof![Just("pfc"), Just("adaptive(watch=off)")],
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let coordinator = coordinator.to_owned();
        play(&CacheSetting { coordinator, readmore: Readmore::Free, ..setting }, steps);
    }
}

/// The sectors of pages.
pub(super) fn pages(first: u64, count: u64) -> (u64, u64) {
    (first * SECTORS_OF_PAGE, count * SECTORS_OF_PAGE)
}

pub(super) fn end_all(world: &mut World) {
    while world.end(0, true) {
        world.settle();
    }
}

/// Pages 0 to 7 were read in order, and 8 to 11 are wished.
pub(super) fn with_wishes(writes: Writes) -> World {
    let mut world = World::new(&wishing(64 * PAGE, writes));
    for first in [0, 4] {
        let (at, count) = pages(first, 4);
        world.take_step(Step::Read(at, count));
        end_all(&mut world);
    }
    let (at, count) = pages(8, 4);
    assert!(world.wanted.iter().copied().eq(at..at + count));
    world
}

/// What was granted of what passes, in pages.
fn granted(world: &World) -> u64 {
    world.cached.status().granted_bytes_total / PAGE
}

pub(super) fn pass(world: &mut World, first: u64, count: u64) {
    let (at, count) = pages(first, count);
    world.take_step(Step::Pass(at, count));
}

pub(super) fn passed(world: &mut World, ends: Option<bool>) {
    world.take_step(Step::Passed(0, ends));
}

#[test]
fn what_passes_and_is_wished_is_a_hit() {
    let mut world = with_wishes(Writes::Through);
    let before = world.cached.status();
    // Others are not taken, nor is a part of a page.
    world.take_step(Step::Pass(9 * SECTORS_OF_PAGE - 1, 6 * SECTORS_OF_PAGE));
    passed(&mut world, Some(true));
    assert_eq!(granted(&world), 3);
    assert_eq!(world.wanted.len() as u64, SECTORS_OF_PAGE - 1);
    let (at, count) = pages(9, 3);
    world.take_step(Step::Read(at, count));
    let told = world.cached.status();
    assert_eq!(told.hit_bytes_total - before.hit_bytes_total, 3 * PAGE);
    assert_eq!(told.readmore_bytes_total, 3 * PAGE);
    assert_eq!(
        (before.wished_bytes_total, before.readmore.as_str()),
        (4 * PAGE, "free")
    );
    assert!(world.reads.is_empty(), "it is answered");
}

#[test]
fn what_failed_or_was_asked_for_meanwhile_is_not_taken() {
    let mut world = with_wishes(Writes::Through);
    pass(&mut world, 8, 4);
    passed(&mut world, Some(false));
    assert_eq!(granted(&world), 0);
    pass(&mut world, 8, 4);
    let (at, count) = pages(8, 4);
    world.take_step(Step::Read(at, count));
    passed(&mut world, Some(true));
    assert_eq!(granted(&world), 0);
    assert_eq!(world.cached.status().withdrawn_bytes_total, 4 * PAGE);
    end_all(&mut world);
}

/// Whether a page is wanted of the engine.
fn is_wanted(world: &World, page: u64) -> bool {
    let (at, count) = pages(page, 1);
    (at..at + count).all(|sector| world.wanted.contains(&sector))
}

pub(super) fn is_here(world: &World, page: u64) -> bool {
    world.cached.contents.level().residency().is_resident(page)
}

/// Pages 8 and 9 are read, so that the coordinator wishes for the one behind them.
fn wish_for_the_tenth(world: &mut World) {
    for page in [8, 9] {
        let (at, count) = pages(page, 1);
        world.take_step(Step::Read(at, count));
        end_all(world);
    }
    assert!(is_wanted(world, 10));
}

/// The read is done before the write is, and ends when the block is wished anew.
#[test]
fn what_was_read_before_a_write_is_not_taken_after_it() {
    let mut world = with_wishes(Writes::Through);
    pass(&mut world, 8, 4);
    passed(&mut world, None);
    let (at, count) = pages(10, 1);
    world.take_step(Step::Write(at, count));
    end_all(&mut world);
    wish_for_the_tenth(&mut world);
    passed(&mut world, Some(true));
    assert!(!is_here(&world, 10));
    let (at, count) = pages(10, 1);
    world.take_step(Step::Read(at, count));
    end_all(&mut world);
    assert!(world.reads.is_empty());
}

/// Only what a change overlaps is of no use, also if it changes while a write is under way.
#[test]
fn what_was_read_beside_a_change_is_taken() {
    let at = |page: u64, more: u64| page * SECTORS_OF_PAGE + more;
    let changes = [
        // A part of one, the end of the first and the beginning of the second, all, none.
        (Step::Write(at(10, 1), 1), [8, 9, 11].as_slice()),
        (Step::Trim(at(10, 1), 1), &[8, 9, 11]),
        (Step::Write(at(8, 7), 2), &[10, 11]),
        (Step::Trim(at(11, 3), 20), &[8, 9, 10]),
        (Step::Write(at(8, 0), 32), &[]),
        (Step::Write(at(12, 0), 1), &[8, 9, 10, 11]),
    ];
    for (change, left) in changes {
        for is_before in [true, false] {
            let mut world = with_wishes(Writes::Through);
            if is_before && matches!(change, Step::Write(..)) {
                world.take_step(change.clone());
                pass(&mut world, 8, 4);
            } else {
                pass(&mut world, 8, 4);
                passed(&mut world, None);
                world.take_step(change.clone());
            }
            end_all(&mut world);
            passed(&mut world, Some(true));
            let here: Vec<u64> = (8..12).filter(|&page| is_here(&world, page)).collect();
            assert_eq!(here, left, "{change:?}, {is_before}");
            let (at, count) = pages(8, 4);
            world.take_step(Step::Read(at, count));
            end_all(&mut world);
            assert!(world.reads.is_empty());
        }
    }
}

/// Several changes of one read.
#[test]
fn what_is_left_of_a_read_is_left_after_another_change() {
    let mut world = with_wishes(Writes::Through);
    pass(&mut world, 8, 4);
    for page in [9, 11] {
        let (at, _) = pages(page, 1);
        world.take_step(Step::Write(at, 1));
    }
    end_all(&mut world);
    passed(&mut world, Some(true));
    assert!(is_here(&world, 8) && is_here(&world, 10));
    assert_eq!(granted(&world), 2);
    assert!(world.cached.background.are_none_in_flight());
}

/// The write is under way when the read begins, which is done first.
#[test]
fn what_is_read_while_a_write_is_under_way_is_not_taken() {
    let mut world = with_wishes(Writes::Through);
    let (at, count) = pages(10, 1);
    world.take_step(Step::Write(at, count));
    pass(&mut world, 10, 1);
    passed(&mut world, None);
    end_all(&mut world);
    wish_for_the_tenth(&mut world);
    passed(&mut world, Some(true));
    assert!(!is_here(&world, 10));
}

/// As above, but that the write has not ended when the block would be wished anew.
#[test]
fn nothing_is_wished_that_is_being_written() {
    let mut world = with_wishes(Writes::Through);
    let (at, count) = pages(10, 1);
    world.take_step(Step::Write(at, count));
    for page in [8, 9] {
        let (at, count) = pages(page, 1);
        world.take_step(Step::Read(at, count));
    }
    assert!(!is_wanted(&world, 10));
    end_all(&mut world);
}

/// Page 10 was here, and has left. The engine has room for nothing more.
fn has_left(was_here: Step) -> World {
    // Fourteen have frames, and two may be unwritten: one of them waits until it is old. All that is
    // read is kept.
    let mut world = World::new(&CacheSetting {
        coordinator: "pfc(actions=readmore,queue=100)".to_owned(),
        ..wishing(16 * PAGE, Writes::Back)
    });
    world.take_step(was_here);
    end_all(&mut world);
    assert!(world.cached.contents.level().residency().is_resident(10));
    for sector in 0..4 {
        let (at, _) = pages(23, 1);
        world.take_step(Step::Write(at + sector, 1));
    }
    for (first, count) in [(12, 10), (0, 4)] {
        let (at, count) = pages(first, count);
        world.take_step(Step::Read(at, count));
    }
    assert!(!world.cached.contents.level().residency().is_resident(10));
    world
}

/// Reads what goes on with the first pages; whether page 10, which is among those behind, is wished.
fn wishes_ten(world: &mut World) -> bool {
    let (at, count) = pages(4, 4);
    world.take_step(Step::Read(at, count));
    is_wanted(world, 10)
}

#[test]
fn nothing_is_wished_that_is_still_to_be_written() {
    let (at, count) = pages(10, 1);
    for (was_here, is_wished) in [
        (Step::Read(at, count), true),
        (Step::Store(at, count), false),
    ] {
        let mut world = has_left(was_here);
        assert_eq!(wishes_ten(&mut world), is_wished);
        end_all(&mut world);
    }
}

/// It is read in the background before its page, which has left, is written.
#[test]
fn what_was_read_before_its_page_was_written_is_not_taken_after_it() {
    let (at, count) = pages(10, 1);
    let mut world = has_left(Step::Store(at, count));
    pass(&mut world, 10, 1);
    passed(&mut world, None);
    end_all(&mut world);
    assert!(!world.cached.has_unwritten(u64::MAX));
    assert!(wishes_ten(&mut world));
    end_all(&mut world);
    passed(&mut world, Some(true));
    assert_eq!(granted(&world), 0);
}
