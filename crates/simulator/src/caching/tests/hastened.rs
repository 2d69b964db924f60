//! Fetches ahead that are less urgent than demands, and whoever waits for one of them.

use block::Class;
use cache::BlockState;

use super::*;
use crate::caching::EngineScheduling;

/// Two clients over a disk that serves in the order of arrival, fetches ahead last.
fn system(l1: &str, l2: &str) -> System {
    let mut setup = two_levels((20_000, 20_000), l1, "none");
    setup.lower[0].level.prefetcher = l2.to_owned();
    setup.clients.push(setup.clients[0].clone());
    setup.scheduler = Scheduler::Engine(EngineScheduling {
        prefetches: Class::Background,
        ..EngineScheduling::by("fcfs")
    });
    System::new(&setup).expect("a system")
}

fn ask(system: &mut System, client: u32, first: u64, count: u64) {
    let asked = CacheArrival {
        client,
        file: u64::from(client),
        ..read(0, first, first + count - 1)
    };
    let now = system.now();
    system.request(now, &asked).expect("blocks of the disk");
}

/// Lets all end that is under way.
fn drain(system: &mut System) {
    while !system.is_over() {
        system.step();
    }
    while system.answered().is_some() {}
}

/// Jumps of the second client.
fn jumps(system: &mut System, count: u64, from: u64) {
    for jump in from..from + count {
        ask(system, 1, 1_000_000 + 600 * (jump * 7_919 % 2_000), 1);
    }
}

/// How many requests of the second client are answered before the next one of the first; one more of them
/// comes with each that is answered, up to `more`.
fn before(system: &mut System, more: u64, from: u64) -> u64 {
    let mut answered = 0;
    loop {
        match system.answered() {
            Some(0) => return answered,
            Some(_) => {
                answered += 1;
                if answered <= more {
                    jumps(system, 1, from + answered);
                }
            }
            None => system.step(),
        }
    }
}

/// The prefetcher reads 8 to 11 ahead once 4 to 7 were found, `first` requests of another client wait
/// already, and more keep coming; then somebody asks for block 8.
fn asked_for_too_soon(l1: &str, l2: &str, first: u64) -> u64 {
    let mut system = system(l1, l2);
    ask(&mut system, 0, 0, 4);
    drain(&mut system);
    jumps(&mut system, first, 0);
    ask(&mut system, 0, 4, 4);
    while system.answered() != Some(0) {
        system.step();
    }
    ask(&mut system, 0, 8, 1);
    let answered = before(&mut system, 100, first);
    drain(&mut system);
    let report = system.report();
    assert_eq!(report.requests, first + 3 + answered.min(100));
    answered
}

#[test]
fn a_demand_for_what_is_fetched_ahead_is_not_passed_by_later_ones() {
    // By the upper level, and by the lower one.
    for (l1, l2) in [("ra(p=4)", "none"), ("none", "ra(p=4)")] {
        let answered = asked_for_too_soon(l1, l2, 20);
        assert!((10..40).contains(&answered), "{answered}: {l1}, {l2}");
    }
}

#[test]
fn what_is_fetched_ahead_for_another_fetch_ahead_stays_the_last() {
    let mut system = system("ra(p=4)", "ra(p=8)");
    ask(&mut system, 0, 0, 4);
    drain(&mut system);
    // The upper level fetches 8 to 11 ahead, and the lower one 16 to 19; then the upper one asks for these.
    jumps(&mut system, 20, 0);
    let mut answered = 0;
    for first in [4, 8, 12] {
        ask(&mut system, 0, first, 4);
        while system.answered() != Some(0) {
            system.step();
        }
    }
    while answered < 60 {
        match system.answered() {
            Some(_) => {
                answered += 1;
                jumps(&mut system, 1, 20 + answered);
            }
            None => system.step(),
        }
    }
    let residency = system.level(2).residency();
    assert_eq!(residency.state(16), BlockState::InFlight);
}

#[test]
fn nor_is_it_where_the_engine_has_no_room_for_it_yet() {
    // The engine has room for 1024.
    let answered = asked_for_too_soon("none", "ra(p=4)", 1_060);
    assert!((900..1_080).contains(&answered), "{answered}");
}

#[test]
fn demands_get_the_first_room_however_much_is_to_be_fetched_ahead() {
    let mut system = system("ra(p=4)", "none");
    let place = |stream: u64| 1_200 * stream;
    for stream in 0..1_300 {
        ask(&mut system, 0, place(stream), 4);
    }
    drain(&mut system);
    for stream in 0..1_300 {
        ask(&mut system, 0, place(stream) + 4, 4);
    }
    // All of that was there: what is under way is fetched ahead, more of it than the engine has room for.
    while system.answered().is_some() {}
    let asked = system.now();
    ask(&mut system, 1, 2_000_000, 1);
    while system.answered() != Some(1) {
        system.step();
    }
    let waited = system.now().since(asked).as_nanos();
    assert!(waited < 100_000_000, "{waited}");
}
