//! One rule at a time.

use block::{Class, Extent, Lba, Sectors};

use super::{CacheSetting, OFFSET, SECTOR, Step, World};
use crate::cache_setting::{PAGE, Readmore, Writes};

pub(super) fn plain(bytes: u64, writes: Writes) -> CacheSetting {
    CacheSetting {
        bytes,
        replacement: "lru".to_owned(),
        prefetch: "none".to_owned(),
        coordinator: "none".to_owned(),
        readmore: Readmore::Ordinary,
        writes,
        ahead: Class::BestEffort(6),
    }
}

#[test]
fn what_is_read_again_is_not_fetched_again() {
    let mut world = World::new(&plain(8 * PAGE, Writes::Through));
    for _ in 0..3 {
        world.take_step(Step::Read(0, 16));
        world.end(0, true);
        world.settle();
    }
    let told = world.cached.status();
    assert_eq!(
        (told.asked_bytes_total, told.hit_bytes_total),
        (6 * PAGE, 4 * PAGE)
    );
    assert_eq!(
        (told.missed_bytes_total, told.used_bytes),
        (2 * PAGE, 2 * PAGE)
    );
}

#[test]
fn the_last_block_of_the_volume_is_kept_like_any_other() {
    let mut world = World::new(&plain(8 * PAGE, Writes::Through));
    for _ in 0..2 {
        world.take_step(Step::Read(23 * 8, 8));
        while world.end(0, true) {
            world.settle();
        }
    }
    assert_eq!(world.cached.status().hit_bytes_total, PAGE);
    assert!(world.reads.is_empty());
}

/// Whoever waits for what another one has asked for is late, and has missed nothing.
#[test]
fn what_is_being_fetched_is_fetched_once() {
    let mut world = World::new(&plain(8 * PAGE, Writes::Through));
    world.take_step(Step::Read(0, 16));
    world.take_step(Step::Read(8, 16));
    let told = world.cached.status();
    assert_eq!(
        (told.asked_bytes_total, told.hit_bytes_total),
        (4 * PAGE, 0)
    );
    assert_eq!(
        (told.late_bytes_total, told.missed_bytes_total),
        (PAGE, 3 * PAGE)
    );
    while world.end(0, true) {
        world.settle();
    }
    assert!(world.reads.is_empty());
}

#[test]
fn what_nobody_flushes_is_written_when_it_is_a_second_old() {
    let mut world = World::new(&plain(32 * PAGE, Writes::Back));
    world.take_step(Step::Store(0, 8));
    assert!(world.asked.is_empty(), "it is acknowledged and not written");
    assert_eq!(world.cached.status().unwritten_bytes, PAGE);
    world.take_step(Step::Wait(999));
    assert!(world.asked.is_empty());
    let due = world
        .cached
        .next_wakeup(world.now)
        .expect("it will be written");
    world.take_step(Step::Wait(1));
    assert_eq!(due, world.now);
    assert_eq!(world.asked.len(), 1);
    assert!(world.cached.has_unwritten(u64::MAX), "until that has ended");
    world.end(0, true);
    assert!(!world.cached.has_unwritten(u64::MAX));
}

#[test]
fn what_could_not_be_written_is_told_once() {
    let mut world = World::new(&plain(32 * PAGE, Writes::Back));
    world.take_step(Step::Store(0, 8));
    world.take_step(Step::Wait(1000));
    world.end(0, false);
    assert!(world.cached.take_failure());
    assert!(!world.cached.take_failure());
    assert_eq!(world.cached.status().lost_bytes_total, PAGE);
}

#[test]
fn what_is_beyond_a_volume_that_has_become_shorter_is_neither_kept_nor_written() {
    // Two that are unwritten are no more than half of what may be.
    let mut world = World::new(&plain(32 * PAGE, Writes::Back));
    world.take_step(Step::Store(0, 8));
    world.take_step(Step::Store(160, 8));
    world.cached.resize(10 * PAGE);
    world.cached.resize(24 * PAGE);
    world.values[160..168]
        .iter_mut()
        .for_each(|had| had.push((world.time, 0)));
    world.take_step(Step::Wait(1000));
    let asked: Vec<u64> = world.asked.iter().map(|asked| asked.bytes.start).collect();
    assert_eq!(asked, [0], "only what is within is written");
    world.end(0, true);
    assert!(!world.cached.has_unwritten(u64::MAX));
    world.take_step(Step::Read(160, 8));
    while world.end(0, true) {
        world.settle();
    }
    assert!(world.reads.is_empty());
}

/// The engine has the read before the write, and the page is gone before the read has ended: only the
/// write under way has what was acknowledged.
#[test]
fn a_read_past_the_cache_finds_what_is_being_written_and_has_no_page_any_more() {
    // Two may be unwritten, and fourteen have frames.
    let mut world = World::new(&plain(16 * PAGE, Writes::Back));
    world.take_step(Step::Store(0, 8));
    world.take_step(Step::Past(0, 8));
    world.take_step(Step::Wait(1000));
    assert!(world.asked[1].is_write, "it is old enough");
    world.take_step(Step::Read(64, 14 * 8));
    assert_eq!(world.cached.contents.level().residency().frame(0), None);
    // What it looks for is checked when it ends.
    world.take_step(Step::End(0, true));
    assert_eq!(world.reads.len(), 1);
    while world.end(0, true) {
        world.settle();
    }
}

#[test]
fn neighbours_that_wait_are_asked_for_together() {
    let mut world = World::new(&plain(8 * PAGE, Writes::Through));
    // The engine has no room for more.
    for block in 10..14 {
        world.take_step(Step::Write(block * 8, 8));
    }
    for block in [1, 2, 4] {
        world.take_step(Step::Read(block * 8, 8));
    }
    assert_eq!(world.asked.len(), 4);
    for _ in 0..2 {
        world.take_step(Step::End(0, true));
    }
    let last = world.asked[2..].iter().map(|asked| asked.bytes);
    let last: Vec<_> = last.map(|b| (b.start, b.memory.length as u64)).collect();
    assert_eq!(last, [(PAGE, 2 * PAGE), (4 * PAGE, PAGE)]);
    while world.end(0, true) {
        world.settle();
    }
    assert!(world.reads.is_empty());
}

/// All frames wait for their reads, so that the other blocks are read past them.
#[test]
fn what_was_read_before_a_trim_reaches_nobody_who_asks_after_it() {
    let mut world = World::new(&plain(PAGE, Writes::Through));
    world.take_step(Step::Write(8, 8));
    world.take_step(Step::End(0, true));
    world.take_step(Step::Read(0, 8));
    world.take_step(Step::Read(8, 8));
    world.take_step(Step::Act(1));
    world.take_step(Step::Trim(8, 8));
    world.take_step(Step::Read(0, 16));
    assert_eq!(world.asked.len(), 3);
    // The last, the one that was done before, the one for which the last reader waits, too.
    for which in [2, 1, 0] {
        world.take_step(Step::End(which, true));
    }
    // What became void is read again by whoever asked for it.
    while world.end(0, true) {
        world.settle();
    }
    assert!(world.reads.is_empty());
}

/// Of a fetch in two pieces the first has come, and what it has brought is void; the second is on its way.
#[test]
fn what_came_of_a_fetch_before_a_trim_is_found_by_nobody_who_asks_after_it() {
    let mut world = World::new(&plain(24 * PAGE, Writes::Through));
    world.take_step(Step::Write(0, 8));
    world.take_step(Step::End(0, true));
    world.take_step(Step::Read(0, 24 * 8));
    assert_eq!(world.asked.len(), 2);
    world.take_step(Step::End(0, true));
    world.take_step(Step::Trim(0, 8));
    world.take_step(Step::Past(0, 8));
    // What it finds is checked when it ends.
    world.take_step(Step::End(1, true));
    while world.end(0, true) {
        world.settle();
    }
    assert!(world.reads.is_empty());
}

#[test]
fn a_demand_for_what_is_fetched_ahead_makes_it_urgent() {
    let mut setting = plain(64 * PAGE, Writes::Through);
    setting.prefetch = "ra(p=8)".to_owned();
    let mut world = World::new(&setting);
    world.take_step(Step::Read(0, 8));
    world.end(0, true);
    world.settle();
    // A hit: what follows is fetched in a message of its own.
    world.take_step(Step::Read(64, 8));
    let ahead = world.asked.last().expect("something is fetched ahead");
    let (id, bytes) = (ahead.id, ahead.bytes);
    let mut upgrades = Vec::new();
    let class = Class::BestEffort(0);
    world
        .cached
        .hasten((bytes.start, PAGE), class, &mut upgrades);
    let blocks = Extent::new(
        Lba((OFFSET + bytes.start) / SECTOR),
        Sectors(bytes.memory.length as u64 / SECTOR),
    );
    let told: Vec<_> = upgrades.iter().map(|u| (u.id, u.extent, u.class)).collect();
    assert_eq!(told, [(id, blocks.expect("blocks"), class)]);
    upgrades.clear();
    world
        .cached
        .hasten((bytes.start, PAGE), class, &mut upgrades);
    assert!(upgrades.is_empty(), "it is urgent already");
}

/// A volume has no files: what kernels keep for each open file is kept for each client.
#[test]
fn without_files_a_prefetcher_keeps_a_state_for_each_client() {
    let ahead = |prefetch: &str, reads: &[(u32, u64)]| {
        let mut setting = plain(64 * PAGE, Writes::Through);
        setting.prefetch = prefetch.to_owned();
        let mut world = World::new(&setting);
        for &(client, block) in reads {
            world.read(client, block * 8, 8);
            world.settle();
            while world.end(0, true) {
                world.settle();
            }
        }
        world.cached.status().prefetched_bytes_total
    };
    let (one, other) = ([(1, 0), (1, 1), (1, 2)], [(2, 12), (2, 13), (2, 14)]);
    let both: Vec<_> = one
        .into_iter()
        .zip(other)
        .flat_map(|(a, b)| [a, b])
        .collect();
    let together = ahead("linux-2.4", &both);
    assert_eq!(
        together,
        ahead("linux-2.4", &one) + ahead("linux-2.4", &other)
    );
    assert!(together > ahead("linux-2.4(context=one)", &both));
}

#[test]
fn sizes_and_names_that_cannot_be_are_refused() {
    let good = plain(2 * PAGE, Writes::Back);
    assert_eq!(good.check(), Ok(()));
    let said = |change: fn(&mut CacheSetting)| {
        let mut setting = good.clone();
        change(&mut setting);
        setting.check().expect_err("it is wrong").to_string()
    };
    let small = said(|setting| setting.bytes = PAGE);
    assert_eq!(
        small,
        "4096 bytes: expected 8192 bytes at least and 2 TiB at most"
    );
    let large = said(|setting| setting.bytes = 1 << 42);
    assert!(large.contains("2 TiB at most"), "{large}");
    let unknown = said(|setting| setting.replacement = "xyz".to_owned());
    assert!(
        unknown.starts_with("replacement \"xyz\": expected one of lru, "),
        "{unknown}"
    );
    let unknown = said(|setting| setting.prefetch = "xyz".to_owned());
    assert!(
        unknown.starts_with("prefetcher \"xyz\": expected one of none, "),
        "{unknown}"
    );
    let unknown = said(|setting| setting.coordinator = "xyz".to_owned());
    assert!(
        unknown.starts_with("coordinator \"xyz\": expected one of none, "),
        "{unknown}"
    );
    // A queue that would be larger than the cache.
    let queue = said(|setting| setting.coordinator = "pfc(queue=101)".to_owned());
    assert!(
        queue.starts_with("pfc: queue = \"101\": expected "),
        "{queue}"
    );
    let marks = said(|setting| setting.coordinator = "du".to_owned());
    assert!(
        marks.ends_with("expected replacement du, which looks at its marks"),
        "{marks}"
    );
    let nothing = said(|setting| setting.readmore = Readmore::Free);
    assert_eq!(
        nothing,
        "readmore free with coordinator none: expected one that reads more, pfc or adaptive"
    );
}
