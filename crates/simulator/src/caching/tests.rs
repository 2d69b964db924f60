//! Small systems whose times can be told by hand, and what must hold for all of them.

use std::sync::Arc;

use block::Interval;
use block::{Action, Command, CommandId, Direction, Durability, Extent, Instant, Lba, Sectors};
use cache::{coordinator, prefetch};
use drive::{Profile, VirtualDrive};
use proptest::prelude::*;

use super::{
    ArrivalTiming, BadSetup, CacheArrival, CacheLoad, CacheSpec, CachingReport, CachingSetup,
    FileEnds, LevelReport, Link, LowerLevel, Scheduler, System, Writes, run,
};
use crate::driver::serve_alone;

mod hastened;
mod outside;
mod plug;
mod scheduled;
mod stack;
mod switches;
mod wished;
mod writing;

const ALL: Interval = Interval::new(0, 2_000_000);

fn cheetah() -> Arc<Profile> {
    let entry = drive::catalog::find("seagate-cheetah-9lp").expect("a shipped drive");
    Arc::new(entry.profile().expect("a profile"))
}

/// Frames of L1 and L2, the prefetcher of both, and the coordinator.
fn two_levels(frames: (u64, u64), prefetcher: &str, coordinator: &str) -> CachingSetup {
    let replacement = match coordinator {
        "du" => "du",
        _ => "lru",
    };
    CachingSetup {
        clients: vec![CacheSpec::new(frames.0, "lru", prefetcher)],
        lower: vec![LowerLevel {
            level: CacheSpec::new(frames.1, replacement, prefetcher),
            coordinator: coordinator.to_owned(),
            link: Link::LAN,
        }],
        drive: cheetah(),
        scheduler: Scheduler::Elevator,
        file_ends: FileEnds::AllLevels,
        writes: Writes::AsReads,
    }
}

fn read(at: u64, first: u64, last: u64) -> CacheArrival {
    CacheArrival {
        at: Instant::from_nanos(at),
        client: 0,
        file: 0,
        blocks: Interval::new(first, last),
        within: ALL,
        direction: Direction::Read,
    }
}

/// How long each request waited, in nanoseconds, one after the other.
fn waits(setup: &CachingSetup, requests: &[(u64, u64)]) -> Vec<u64> {
    let mut system = System::new(setup).expect("a system");
    let each = requests.iter().map(|&(first, last)| {
        let begun = system.now();
        let asked = system.request(begun, &read(0, first, last));
        asked.expect("blocks of the disk");
        loop {
            if system.answered().is_some() {
                break;
            }
            system.step();
        }
        let waited = system.now().since(begun).as_nanos();
        // What is fetched ahead comes too, before the next one.
        while system.next_event().is_some() {
            system.step();
        }
        waited
    });
    each.collect()
}

/// How long the drive by itself takes to read these blocks, from its beginning.
fn alone(first: u64, last: u64) -> u64 {
    alone_in(Direction::Read, first, last)
}

/// How long the drive by itself takes for these blocks, from its beginning.
fn alone_in(direction: Direction, first: u64, last: u64) -> u64 {
    let mut drive = VirtualDrive::new(cheetah());
    let sectors = Sectors(8 * (last - first + 1));
    let extent = Extent::new(Lba(8 * first), sectors).expect("blocks");
    let durability = Durability::Volatile;
    let action = match direction {
        Direction::Read => Action::Read { extent, durability },
        Direction::Write => Action::Write { extent, durability },
    };
    let command = Command::new(CommandId(0), action);
    let outcome = serve_alone(&mut drive, Instant::ZERO, command);
    outcome.expect("on the disk").at.as_nanos()
}

#[test]
fn a_miss_costs_the_disk_and_one_reply_a_hit_below_the_reply_a_hit_above_nothing() {
    let setup = two_levels((4, 100), "none", "none");
    let requests = [(1000, 1003), (1000, 1003), (2000, 2003), (1000, 1001)];
    let waits = waits(&setup, &requests);
    let reply = |pages: u64| 6_000_000 + 30_000 * pages;
    assert_eq!(waits[0], alone(1000, 1003) + reply(4));
    assert_eq!(waits[1], 0);
    assert!(waits[2] > reply(4));
    // L1 has four frames: 1000 went, and is still in L2.
    assert_eq!(waits[3], reply(2));
}

#[test]
fn what_is_fetched_along_costs_a_page_and_saves_a_reply() {
    let setup = two_levels((100, 100), "ra(p=4)", "none");
    let waits = waits(&setup, &[(1000, 1000), (1001, 1004), (1005, 1005)]);
    // L1 asks for five blocks in one message, L2 reads nine in one command.
    assert_eq!(waits[0], alone(1000, 1008) + 6_000_000 + 5 * 30_000);
    assert_eq!(waits[1], 0);
    assert_eq!(waits[2], 0, "fetched when 1001 was hit");
}

#[test]
fn readmore_of_its_own_is_not_merged_with_the_demand_before_it() {
    let wait = |coordinator: &str| {
        let setup = two_levels((100, 100), "none", coordinator);
        waits(&setup, &[(1000, 1003), (1004, 1007)])[1]
    };
    // With 1004 to 1007 the disk reads readmore 1008 to 1011, and the request waits for it or not.
    assert!(wait("pfc") > wait("pfc(readmore=otherwise)"));
}

#[test]
fn levels_below_the_first_may_not_know_where_files_end() {
    let fetched = |file_ends: FileEnds| {
        let setup = CachingSetup {
            file_ends,
            ..two_levels((100, 100), "ra(p=4)", "none")
        };
        let mut system = System::new(&setup).expect("a system");
        let last_of_file = CacheArrival {
            within: Interval::new(900, 1003),
            ..read(0, 1000, 1003)
        };
        let mut load = [last_of_file].into_iter();
        let report = run(&mut system, &mut load, ArrivalTiming::Closed).expect("a run");
        let ahead = report.levels.iter().map(LevelReport::fetched_ahead);
        ahead.collect::<Vec<_>>()
    };
    assert_eq!(fetched(FileEnds::AllLevels), [0, 0]);
    assert_eq!(fetched(FileEnds::FirstLevel), [0, 4]);
}

/// Reads that never meet are as fast as the disk, however many wait for it.
#[test]
fn so_many_requests_are_outstanding_in_a_closed_loop() {
    let mean = |timing| {
        let mut system = System::new(&two_levels((4, 4), "none", "none")).expect("a system");
        let mut load = (0..200).map(|at| read(0, at * 7919 % 200 * 5_000, at * 7919 % 200 * 5_000));
        let report = run(&mut system, &mut load, timing).expect("a run");
        assert_eq!(report.requests, 200);
        (report.response.mean_ms(), report.ended.as_nanos())
    };
    let (one, eight) = (ArrivalTiming::Outstanding(1), ArrivalTiming::Outstanding(8));
    assert_eq!(mean(one), mean(ArrivalTiming::Closed));
    assert!(
        mean(eight).0 > 3.0 * mean(one).0,
        "they wait for each other"
    );
    assert!(mean(eight).1 < mean(one).1, "the disk never waits for them");
}

#[test]
fn who_comes_while_a_block_is_on_its_way_waits_for_it() {
    let setup = two_levels((100, 100), "none", "none");
    let mut system = System::new(&setup).expect("a system");
    let mut load = [read(0, 7, 7), read(1_000_000, 7, 7)].into_iter();
    let report = run(&mut system, &mut load, ArrivalTiming::Open).expect("a run");
    let first = alone(7, 7) + 6_030_000;
    let mean = (2 * first - 1_000_000) as f64 / 2e6;
    assert!((report.response.mean_ms() - mean).abs() < 1e-6);
    assert_eq!((report.disk.commands, report.disk.blocks), (1, 1));
    let l1 = report.levels[0];
    assert_eq!((l1.valid, l1.in_flight), (0, 1));
}

#[test]
fn large_requests_are_cut_and_neighbours_are_merged() {
    let setup = two_levels((100, 100), "none", "none");
    let mut system = System::new(&setup).expect("a system");
    let mut load = [
        // Three commands of 16, 16 and 8 blocks.
        read(0, 1000, 1039),
        // While the first one is under way: two neighbours, and one that is none.
        read(1000, 5000, 5003),
        read(2000, 5004, 5007),
        read(3000, 6000, 6000),
    ]
    .into_iter();
    let report = run(&mut system, &mut load, ArrivalTiming::Open).expect("a run");
    assert_eq!(report.disk.commands, 5);
    assert_eq!(report.disk.blocks, 49);
}

#[test]
fn the_elevator_goes_upwards_and_begins_again() {
    let setup = two_levels((100, 100), "none", "none");
    let mut system = System::new(&setup).expect("a system");
    // 500000 is under way; then come one below, two above.
    for (at, block) in [(0, 500_000), (1, 100), (2, 900_000), (3, 600_000)] {
        let request = read(at, block, block);
        system
            .request(request.at, &request)
            .expect("a block of the disk");
    }
    let mut order = vec![system.disk_position().expect("a command")];
    while system.next_event().is_some() {
        system.step();
        order.extend(system.disk_position());
    }
    order.dedup();
    assert_eq!(order, [500_000, 600_000, 900_000, 100]);
}

#[test]
fn bypassed_blocks_are_not_kept_below() {
    let setup = two_levels((100, 100), "none", "pfc");
    let mut system = System::new(&setup).expect("a system");
    let mut load = [read(0, 1000, 1003)].into_iter();
    let report = run(&mut system, &mut load, ArrivalTiming::Closed).expect("a run");
    let l2 = report.levels[1];
    assert_eq!((l2.asked, l2.bypassed), (4, 1));
    // The first block is in L1 only.
    assert_eq!(report.duplicated, 3);
    assert_eq!(report.disk.blocks, 4);
}

#[test]
fn what_is_fetched_ahead_and_not_used_is_counted() {
    let setup = two_levels((10, 10), "ra(p=4)", "none");
    let mut system = System::new(&setup).expect("a system");
    let jumps = (0..10).map(|step| read(0, 1000 * step, 1000 * step));
    let report = run(&mut system, &mut { jumps }, ArrivalTiming::Closed).expect("a run");
    for level in &report.levels {
        assert_eq!(level.prefetched, 40);
        assert_eq!(level.unused, 40);
    }
}

#[test]
fn a_system_that_cannot_be_is_an_error() {
    let expect = |setup: &CachingSetup, message: &str| {
        let error = System::new(setup).err().expect(message);
        assert_eq!(error.to_string(), message);
    };
    let good = two_levels((10, 10), "ra", "none");
    let mut setup = good.clone();
    setup.clients.clear();
    expect(&setup, "a system without clients: expected at least one");
    let setup = two_levels((0, 10), "ra", "none");
    let expected = "level 1: a cache of 0 blocks: expected 1 to 536870912";
    expect(&setup, expected);
    let setup = two_levels((10, 10), "ra", "pfd");
    let expected = "level 2: coordinator \"pfd\": expected one of none, du, pfc, adaptive";
    expect(&setup, expected);
    let mut setup = two_levels((10, 10), "ra", "du");
    setup.lower[0].level.replacement = "sarc".to_owned();
    let expected = "level 2: coordinator du with replacement sarc: expected replacement du";
    expect(&setup, expected);
    let mut system = System::new(&good).expect("a system");
    let error = system.request(Instant::ZERO, &read(0, 5_000_000, 5_000_000));
    assert!(matches!(error, Err(BadSetup::PastEnd { .. })));
    let error = system.request(Instant::ZERO, &read(0, 0, 1 << 20));
    assert!(matches!(error, Err(BadSetup::Length(1_048_577))));
    let of_another = CacheArrival {
        client: 1,
        ..read(0, 0, 0)
    };
    let error = system.request(Instant::ZERO, &of_another);
    assert_eq!(error, Err(BadSetup::NoSuchClient(1, 1)));
}

/// A stream for each client.
struct Streams(Vec<std::vec::IntoIter<CacheArrival>>);

impl CacheLoad for Streams {
    fn arrival(&mut self, client: u32) -> Result<Option<CacheArrival>, BadSetup> {
        Ok(self.0[client as usize].next())
    }
}

/// `levels` levels, `clients` clients, each reading its own and common blocks.
fn many(
    levels: usize,
    clients: u32,
    names: (&str, &str),
    requests: &[(u64, u64, u8)],
) -> CachingReport {
    many_over(&Scheduler::Elevator, levels, clients, names, requests)
}

/// The same with this before the disk.
fn many_over(
    scheduler: &Scheduler,
    levels: usize,
    clients: u32,
    names: (&str, &str),
    requests: &[(u64, u64, u8)],
) -> CachingReport {
    let two = two_levels((30, 40), names.0, names.1);
    let mut setup = two.clone();
    setup.scheduler = scheduler.clone();
    setup.clients = vec![two.clients[0].clone(); clients as usize];
    setup.lower = vec![two.lower[0].clone(); levels - 1];
    let mut system = System::new(&setup).expect("a system");
    let stream = |client: u32| {
        let mut at = 0;
        let each = requests.iter().map(move |&(place, count, kind)| {
            at = if kind == 0 {
                place + 500 * u64::from(client % 2)
            } else {
                at
            };
            let arrival = CacheArrival {
                client,
                file: u64::from(client) / 2,
                ..read(0, at, at + count - 1)
            };
            at += count;
            arrival
        });
        each.collect::<Vec<_>>().into_iter()
    };
    let mut load = Streams((0..clients).map(stream).collect());
    run(&mut system, &mut load, ArrivalTiming::Closed).expect("a run")
}

/// How many blocks these requests of one client touch.
fn footprint(requests: &[(u64, u64, u8)]) -> u64 {
    let mut blocks = std::collections::BTreeSet::new();
    let mut at = 0;
    for &(place, count, kind) in requests {
        at = if kind == 0 { place } else { at };
        blocks.extend(at..at + count);
        at += count;
    }
    blocks.len() as u64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_request_is_answered_whatever_stands_where(
        which in (0..prefetch::ALL.len(), 0..coordinator::ALL.len()),
        levels in 1usize..4,
        clients in 1u32..4,
        requests in prop::collection::vec((0u64..900, 1u64..20, 0u8..4), 1..120),
    ) {
        let names = (prefetch::ALL[which.0].name, coordinator::ALL[which.1].name);
        let report = many(levels, clients, names, &requests);
        prop_assert_eq!(report.requests, requests.len() as u64 * u64::from(clients));
        prop_assert_eq!(report.levels.len(), levels);
        let asked: u64 = requests.iter().map(|request| request.1).sum();
        prop_assert_eq!(report.levels[0].asked, asked * u64::from(clients));
        prop_assert!(report.disk.blocks >= footprint(&requests));
        for level in &report.levels {
            prop_assert!(level.valid + level.in_flight <= level.asked);
            prop_assert!(level.unused <= level.fetched_ahead());
            prop_assert!(level.silent <= level.valid + level.in_flight);
        }
        // The same again is the same.
        let again = many(levels, clients, names, &requests);
        prop_assert_eq!(&report.levels, &again.levels);
        prop_assert_eq!(report.ended, again.ended);
        prop_assert_eq!(report.disk, again.disk);
    }
}
