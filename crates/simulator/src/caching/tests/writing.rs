//! Writes that go through all levels to the disk.

use super::*;

fn write(at: u64, first: u64, last: u64) -> CacheArrival {
    CacheArrival {
        direction: Direction::Write,
        ..read(at, first, last)
    }
}

fn through(frames: (u64, u64), prefetcher: &str, coordinator: &str) -> CachingSetup {
    CachingSetup {
        writes: Writes::Through,
        ..two_levels(frames, prefetcher, coordinator)
    }
}

/// Serves one request after the other: how long each waited, and the report.
fn served(setup: &CachingSetup, requests: &[CacheArrival]) -> (Vec<u64>, CachingReport) {
    let mut system = System::new(setup).expect("a system");
    let mut waits = Vec::new();
    for asked in requests {
        let begun = system.now();
        system.request(begun, asked).expect("blocks of the disk");
        while system.answered().is_none() {
            system.step();
        }
        waits.push(system.now().since(begun).as_nanos());
        while system.next_event().is_some() {
            system.step();
        }
    }
    (waits, system.report())
}

#[test]
fn a_write_waits_for_the_disk_and_is_found_in_both_levels() {
    let setup = through((4, 100), "none", "none");
    let requests = [
        write(0, 1000, 1003),
        read(0, 1000, 1003),
        read(0, 2000, 2003),
        read(0, 1000, 1001),
        write(0, 1000, 1003),
    ];
    let (waits, report) = served(&setup, &requests);
    let reply = |pages: u64| 6_000_000 + 30_000 * pages;
    assert_eq!(waits[0], alone_in(Direction::Write, 1000, 1003) + reply(4));
    assert_eq!(waits[1], 0);
    // L1 has four frames: 1000 went, and is still in L2.
    assert_eq!(waits[3], reply(2));
    // What is cached is written all the same.
    assert!(waits[4] > reply(4), "{waits:?}");
    assert_eq!((report.disk.written, report.disk.blocks), (8, 12));
    // Hit ratios are those of reads.
    assert_eq!(report.levels[0].asked, 10);
}

#[test]
fn as_reads_writes_are_what_they_were() {
    let requests = [(0, 1000, 1003), (0, 1004, 1007), (0, 1000, 1001)];
    let reads = requests.map(|(at, first, last)| read(at, first, last));
    let writes = requests.map(|(at, first, last)| write(at, first, last));
    let setup = two_levels((4, 100), "ra(p=4)", "pfc");
    let (of_reads, of_writes) = (served(&setup, &reads), served(&setup, &writes));
    assert_eq!(of_reads.0, of_writes.0);
    assert_eq!(of_reads.1.disk, of_writes.1.disk);
    assert_eq!(of_writes.1.disk.written, 0);
}

#[test]
fn prefetchers_and_coordinators_do_not_see_writes() {
    let requests: Vec<CacheArrival> = (0..50)
        .map(|at| write(0, 1000 + 4 * at, 1003 + 4 * at))
        .collect();
    for coordinator in coordinator::ALL.iter().map(|entry| entry.name) {
        let (_, report) = served(&through((4, 100), "ra(p=4)", coordinator), &requests);
        for level in &report.levels {
            let seen = [
                level.prefetched,
                level.readmore,
                level.bypassed,
                level.asked,
            ];
            assert_eq!(seen, [0; 4], "{coordinator}");
        }
        assert_eq!(report.disk.written, 200);
    }
}

#[test]
fn a_command_has_at_most_128_sectors_and_one_direction() {
    let setup = through((100, 100), "none", "none");
    let (_, report) = served(&setup, &[write(0, 1000, 1039)]);
    assert_eq!((report.disk.commands, report.disk.written), (3, 40));
    // Neighbours of one instant, behind a first command: reads join, and the write between them does not.
    let mut system = System::new(&setup).expect("a system");
    let requests = [
        read(0, 9000, 9000),
        read(0, 2000, 2001),
        write(0, 2002, 2003),
        read(0, 2004, 2005),
        read(0, 2006, 2007),
    ];
    let mut requests = requests.into_iter();
    let report = run(&mut system, &mut requests, ArrivalTiming::Open).expect("blocks of the disk");
    assert_eq!((report.disk.commands, report.disk.blocks), (4, 9));
}

proptest! {
    #[test]
    fn every_written_block_reaches_the_disk_once(
        requests in prop::collection::vec((any::<bool>(), 0..300_u64, 1..40_u64, 0..20_u64), 1..60),
        frames in (1..40_u64, 1..40_u64),
        coordinator in 0..coordinator::ALL.len(),
        outstanding in 1..5_u32,
        is_scheduled in any::<bool>(),
    ) {
        let name = coordinator::ALL[coordinator].name;
        let mut setup = through(frames, "ra(p=4)", name);
        if is_scheduled {
            setup.scheduler = Scheduler::Engine(crate::caching::EngineScheduling::by("sptf"));
        }
        let mut written = 0;
        let mut arrivals = requests.iter().map(|&(is_write, first, blocks, at)| {
            written += u64::from(is_write) * blocks;
            let last = first + blocks - 1;
            match is_write {
                true => write(at * 1_000_000, first, last),
                false => read(at * 1_000_000, first, last),
            }
        });
        let mut system = System::new(&setup).expect("a system");
        let pace = ArrivalTiming::Outstanding(outstanding);
        let report = run(&mut system, &mut arrivals, pace).expect("blocks of the disk");
        prop_assert_eq!(report.disk.written, written);
        prop_assert_eq!(report.requests, requests.len() as u64);
    }
}
