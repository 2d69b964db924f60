//! The same system with the engine before its disk.

use block::Class;
use engine::Rules;
use scheduler::policy;

use super::*;
use crate::caching::EngineScheduling;

/// The system with the engine before its disk.
fn over_engine(setup: &CachingSetup, scheduled: EngineScheduling) -> CachingSetup {
    CachingSetup {
        scheduler: Scheduler::Engine(scheduled),
        ..setup.clone()
    }
}

fn closed(setup: &CachingSetup, requests: &[(u64, u64)]) -> CachingReport {
    let mut system = System::new(setup).expect("a system");
    let mut load = requests.iter().map(|&(first, last)| read(0, first, last));
    run(&mut system, &mut load, ArrivalTiming::Closed).expect("a run")
}

#[test]
fn over_the_engine_a_miss_costs_the_disk_and_one_reply() {
    let setup = over_engine(
        &two_levels((4, 100), "none", "none"),
        EngineScheduling::by("sptf"),
    );
    let waits = waits(&setup, &[(1000, 1003), (1000, 1003), (5000, 5000)]);
    assert_eq!(waits[0], alone(1000, 1003) + 6_000_000 + 4 * 30_000);
    assert_eq!(waits[1], 0);
    assert!(waits[2] > 6_030_000);
}

#[test]
fn neighbours_of_one_instant_are_one_request_to_the_engine() {
    let two = two_levels((100, 100), "ra(p=4)", "none");
    let setup = over_engine(&two, EngineScheduling::by("c-look"));
    // L1 asks for five blocks, L2 for nine; then both fetch ahead, and L2 has some of it.
    let waits = waits(&setup, &[(1000, 1000)]);
    assert_eq!(waits[0], alone(1000, 1008) + 6_000_000 + 5 * 30_000);
    let report = closed(&setup, &[(1000, 1039)]);
    // 48 blocks in commands of 16.
    assert_eq!((report.disk.commands, report.disk.blocks), (3, 48));
}

#[test]
fn the_disk_is_busy_while_it_has_a_command() {
    let two = two_levels((100, 100), "none", "none");
    let setup = over_engine(&two, EngineScheduling::by("fcfs"));
    let report = closed(&setup, &[(1000, 1003)]);
    assert_eq!(report.disk.busy.as_nanos(), alone(1000, 1003));
}

#[test]
fn prefetches_of_a_lower_class_let_demands_pass() {
    let two = two_levels((400, 400), "ra(p=16)", "none");
    let mut scheduled = EngineScheduling::by("fcfs");
    let same = over_engine(&two, scheduled.clone());
    scheduled.prefetches = Class::Background;
    let lower = over_engine(&two, scheduled);
    // Streams that L1 fetches ahead by messages of their own, and jumps that wait behind these.
    let each = (0..40).map(|turn| match turn % 4 {
        3 => read(
            turn * 1_000_000,
            900_000 - 5_000 * turn,
            900_000 - 5_000 * turn,
        ),
        stream => {
            let first = 100_000 * stream + 4 * (turn / 4);
            read(turn * 1_000_000, first, first + 3)
        }
    });
    let load: Vec<CacheArrival> = each.collect();
    let serve = |setup: &CachingSetup| {
        let mut system = System::new(setup).expect("a system");
        run(&mut system, &mut load.iter().copied(), ArrivalTiming::Open).expect("a run")
    };
    let (same, lower) = (serve(&same), serve(&lower));
    assert!(lower.response.mean_ms() < same.response.mean_ms());
    assert_eq!(lower.requests, same.requests);
}

#[test]
fn an_engine_that_cannot_be_is_an_error() {
    let expect = |scheduled: EngineScheduling, message: &str| {
        let setup = over_engine(&two_levels((10, 10), "ra", "none"), scheduled);
        let error = System::new(&setup).err().expect(message);
        assert!(error.to_string().starts_with(message), "{error}");
    };
    let unknown = "no policy is called \"elevator\": expected one of fcfs";
    expect(EngineScheduling::by("elevator"), unknown);
    for class in [
        Class::BestEffort(7),
        Class::RealTime {
            deadline: Instant::ZERO,
        },
    ] {
        let mut scheduled = EngineScheduling::by("sptf");
        scheduled.prefetches = class;
        expect(scheduled, "prefetches of class ");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn over_the_engine_every_request_is_answered(
        which in (0..prefetch::ALL.len(), 0..coordinator::ALL.len(), 0..policy::ALL.len()),
        levels in 1usize..4,
        clients in 1u32..4,
        has_background in any::<bool>(),
        requests in prop::collection::vec((0u64..900, 1u64..20, 0u8..4), 1..80),
    ) {
        let names = (prefetch::ALL[which.0].name, coordinator::ALL[which.1].name);
        let mut scheduled = EngineScheduling::by(policy::ALL[which.2].name);
        scheduled.background = has_background.then(Rules::default);
        let scheduler = Scheduler::Engine(scheduled);
        let report = many_over(&scheduler, levels, clients, names, &requests);
        prop_assert_eq!(report.requests, requests.len() as u64 * u64::from(clients));
        let asked: u64 = requests.iter().map(|request| request.1).sum();
        prop_assert_eq!(report.levels[0].asked, asked * u64::from(clients));
        prop_assert!(report.disk.blocks >= footprint(&requests));
        prop_assert!(report.disk.busy <= report.ended.since(Instant::ZERO));
        // The same again is the same.
        let again = many_over(&scheduler, levels, clients, names, &requests);
        prop_assert_eq!(&report.levels, &again.levels);
        prop_assert_eq!(report.ended, again.ended);
        prop_assert_eq!(report.disk, again.disk);
    }

    #[test]
    fn without_prefetching_the_engine_reads_what_the_elevator_reads(
        coordinator in 0..2usize,
        levels in 1usize..4,
        requests in prop::collection::vec((0u64..900, 1u64..20, 0u8..4), 1..80),
    ) {
        // One client that waits for each answer: the order of requests is the load's own.
        let names = ("none", ["none", "du"][coordinator]);
        let elevator = many_over(&Scheduler::Elevator, levels, 1, names, &requests);
        let scheduler = Scheduler::Engine(EngineScheduling::by("c-look"));
        let engine = many_over(&scheduler, levels, 1, names, &requests);
        prop_assert_eq!(&engine.levels, &elevator.levels);
        prop_assert_eq!(engine.disk.blocks, elevator.disk.blocks);
        prop_assert_eq!(engine.duplicated, elevator.duplicated);
    }
}

#[test]
fn background_reads_of_a_drive_that_takes_one_command_are_refused() {
    let setup = |background| {
        let mut setup = two_levels((600, 1_200), "none", "none");
        Arc::make_mut(&mut setup.drive).queue.depth = 1;
        setup.scheduler = Scheduler::Engine(EngineScheduling {
            background,
            ..EngineScheduling::by("sptf")
        });
        setup
    };
    assert!(System::new(&setup(None)).is_ok());
    let refused = System::new(&setup(Some(Rules::default()))).err();
    assert!(matches!(refused, Some(BadSetup::OneCommand)), "{refused:?}");
}
