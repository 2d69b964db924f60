//! Readmore that is wished, and read by the engine in gaps and idle time.

use proptest::prelude::*;

use super::*;
use crate::caching::{EngineScheduling, Readmore};

pub(super) fn exact(readmore: Readmore) -> Scheduler {
    Scheduler::Engine(EngineScheduling::exact(readmore))
}

fn setup(scheduler: &Scheduler, coordinator: &str) -> CachingSetup {
    CachingSetup {
        scheduler: scheduler.clone(),
        ..two_levels((600, 1_200), "ra(p=4)", coordinator)
    }
}

/// Eight streams far from each other, whose next requests come in pairs, so that the disk has one to do while
/// it chooses the way to the other.
pub(super) fn streams() -> impl Iterator<Item = CacheArrival> {
    (0..3_200u64).map(|number| {
        let (stream, turn) = (number % 8, number / 8);
        let first = 200_000 * stream + 4_000 * (turn / 40) + 4 * (turn % 40);
        CacheArrival {
            file: stream,
            ..read(number / 2 * 40_000_000, first, first + 3)
        }
    })
}

pub(super) fn pairs(scheduler: &Scheduler, coordinator: &str) -> CachingReport {
    let mut system = System::new(&setup(scheduler, coordinator)).expect("a system");
    run(&mut system, &mut streams(), ArrivalTiming::Open).expect("a run")
}

/// One of the streams, whose reader asks as soon as he has the answer.
fn alone(scheduler: &Scheduler) -> CachingReport {
    let mut system = System::new(&setup(scheduler, "pfc")).expect("a system");
    let mut load = (0..3_200u64).map(|turn| {
        let first = 4_000 * (turn / 40) + 4 * (turn % 40);
        read(0, first, first + 3)
    });
    run(&mut system, &mut load, ArrivalTiming::Closed).expect("a run")
}

#[test]
fn wishes_of_a_busy_disk_are_granted_in_gaps_and_used() {
    for readmore in [Readmore::Wished, Readmore::WishedWhileGranted] {
        let report = pairs(&exact(readmore), "pfc");
        let (l2, slack) = (report.levels[1], report.slack);
        assert!(l2.granted > 500, "{l2:?}");
        // Streams use all of it but what is left at their ends.
        assert!(l2.readmore_used * 10 > l2.granted * 8, "{l2:?}");
        assert_eq!(l2.readmore, l2.granted);
        // A block is eight sectors.
        assert!(slack.free + slack.idle >= 8 * l2.granted, "{slack:?}");
        assert!(slack.free > 0, "{slack:?}");
        // In gaps alone.
        let mut scheduler = exact(readmore);
        if let Scheduler::Engine(scheduled) = &mut scheduler
            && let Some(rules) = &mut scheduled.background
        {
            rules.idle_after = None;
        }
        let report = pairs(&scheduler, "pfc");
        let (l2, slack) = (report.levels[1], report.slack);
        assert_eq!(slack.idle, 0);
        assert!(l2.granted > 50, "{l2:?}");
        assert!(slack.free >= 8 * l2.granted, "{slack:?}");
    }
}

#[test]
fn without_wishes_nothing_is_read_in_the_background() {
    let fetched = pairs(&exact(Readmore::Fetched), "pfc");
    let l2 = fetched.levels[1];
    assert!(l2.readmore > 0);
    assert_eq!((l2.wished, l2.granted), (0, 0));
    assert_eq!((fetched.slack.free, fetched.slack.idle), (0, 0));
    // Nobody coordinates, so nobody wishes.
    let wished = pairs(&exact(Readmore::Wished), "none");
    assert_eq!(wished.levels[1].wished, 0);
    let fetched = pairs(&exact(Readmore::Fetched), "none");
    assert_eq!(
        (wished.levels, wished.ended),
        (fetched.levels, fetched.ended)
    );
}

#[test]
fn whoever_is_back_before_wishes_are_granted_gets_them_with_his_request() {
    let reports = [
        Readmore::Fetched,
        Readmore::Wished,
        Readmore::WishedWhileGranted,
    ];
    let [fetched, wished, either] = reports.map(|readmore| alone(&exact(readmore)));
    let l2 = |report: &CachingReport| report.levels[1];
    assert!(
        l2(&wished).granted * 4 < l2(&wished).wished,
        "{:?}",
        l2(&wished)
    );
    assert!(
        l2(&either).wished * 4 < l2(&wished).wished,
        "{:?}",
        l2(&either)
    );
    // Nearly all of it is fetched, as if nothing were ever wished.
    assert!(
        l2(&either).readmore > 8 * l2(&either).granted,
        "{:?}",
        l2(&either)
    );
    let read_more = l2(&fetched).readmore.abs_diff(l2(&either).readmore);
    assert!(read_more * 5 < l2(&fetched).readmore, "{:?}", l2(&fetched));
}

#[test]
fn wishes_that_nobody_could_grant_are_an_error() {
    let mut setup = two_levels((10, 10), "ra", "pfc");
    setup.scheduler = Scheduler::Engine(EngineScheduling {
        readmore: Readmore::Wished,
        ..EngineScheduling::by("sptf")
    });
    let error = System::new(&setup).err().expect("no rules");
    let expected = "readmore that is wished, without background reads: expected rules for these";
    assert_eq!(error.to_string(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn with_wishes_every_request_is_answered_and_every_wish_is_accounted_for(
        which in (0..prefetch::ALL.len(), 0..coordinator::ALL.len()),
        is_always in any::<bool>(),
        levels in 2usize..4,
        clients in 1u32..5,
        requests in prop::collection::vec((0u64..900, 1u64..20, 0u8..4), 1..80),
    ) {
        let names = (prefetch::ALL[which.0].name, coordinator::ALL[which.1].name);
        let scheduler = exact(match is_always {
            true => Readmore::Wished,
            false => Readmore::WishedWhileGranted,
        });
        let report = many_over(&scheduler, levels, clients, names, &requests);
        prop_assert_eq!(report.requests, requests.len() as u64 * u64::from(clients));
        prop_assert!(report.disk.blocks >= footprint(&requests));
        let lowest = report.levels[levels - 1];
        prop_assert!(lowest.granted <= lowest.wished);
        prop_assert!(8 * lowest.granted <= report.slack.free + report.slack.idle);
        prop_assert!(lowest.readmore_used <= lowest.readmore);
        if is_always {
            prop_assert_eq!(lowest.readmore, lowest.granted);
        }
        for upper in &report.levels[..levels - 1] {
            prop_assert_eq!(upper.wished, 0);
        }
        // The same again is the same.
        let again = many_over(&scheduler, levels, clients, names, &requests);
        prop_assert_eq!(&report.levels, &again.levels);
        prop_assert_eq!(report.ended, again.ended);
        prop_assert_eq!((report.disk, report.slack), (again.disk, again.slack));
    }
}
