//! What holds for every line of the table.

use block::Interval;
use cache::replacement::{ALL, BadReplacement};
use cache::residency::{MAX_CAPACITY, Residency};
use cache::{
    BlockState, Cache, Evicted, FetchOrigin, FirstTouch, MAX_BLOCK, Pattern, Refusal, Verdict,
};
use proptest::prelude::*;

fn make(policy: &str, capacity: u64) -> Cache {
    Cache::named(policy, capacity, FirstTouch::default()).expect(policy)
}

fn admit(cache: &mut Cache, block: u64, origin: FetchOrigin) -> Result<Option<Evicted>, Refusal> {
    cache.admit(block, origin, Pattern::Random, |_, _| Verdict::Evict)
}

#[test]
fn every_capacity_from_one_on_works() {
    for entry in ALL {
        for capacity in (1..=12).chain([99, 100, 101, 1000]) {
            let mut cache = make(entry.name, capacity);
            let demands: Vec<u64> = (0..4 * capacity).map(|n| n * n % (2 * capacity)).collect();
            for _ in 0..3 {
                cache.replay(&demands).expect("blocks that exist");
                let contents = cache.residency();
                let all = (0..2 * capacity).filter(|block| contents.is_resident(*block));
                assert_eq!(all.count(), contents.resident() as usize, "{}", entry.name);
                assert!(contents.resident() <= contents.capacity());
                assert_eq!(contents.in_flight(), 0);
            }
        }
    }
}

#[test]
fn what_fits_is_never_evicted() {
    for entry in ALL {
        let mut cache = make(entry.name, 50);
        let demands: Vec<u64> = (0..500).map(|n| n * 7 % 50).collect();
        let hits = cache.replay(&demands).expect("blocks that exist");
        assert_eq!(hits, 450, "{}", entry.name);
        assert!(cache.residency().is_full());
    }
}

#[test]
fn when_all_frames_are_in_flight_nothing_goes() {
    for entry in ALL {
        let mut cache = make(entry.name, 3);
        for block in 0..3 {
            assert_eq!(admit(&mut cache, block, FetchOrigin::Prefetch), Ok(None));
        }
        assert_eq!(
            admit(&mut cache, 3, FetchOrigin::Demand),
            Err(Refusal::AllInFlight)
        );
        // A touch does not make it valid.
        assert_eq!(cache.demand(1, Pattern::Random), BlockState::InFlight);
        assert_eq!(
            admit(&mut cache, 3, FetchOrigin::Demand),
            Err(Refusal::AllInFlight)
        );
        cache.complete(1);
        let gone = admit(&mut cache, 3, FetchOrigin::Demand).expect("a frame");
        assert_eq!(gone.map(|gone| gone.block), Some(1), "{}", entry.name);
        cache.withdraw(0);
        assert_eq!(admit(&mut cache, 4, FetchOrigin::Demand), Ok(None));
        assert_eq!(cache.residency().in_flight(), 3);
    }
}

#[test]
fn who_goes_says_why_it_came_and_whether_it_was_used() {
    for entry in ALL {
        for (origin, is_used) in [
            (FetchOrigin::Demand, true),
            (FetchOrigin::Prefetch, false),
            (FetchOrigin::Readmore, true),
        ] {
            let mut cache = make(entry.name, 1);
            assert_eq!(admit(&mut cache, 7, origin), Ok(None));
            cache.complete(7);
            if is_used {
                // The silent use counts, and tells the policy nothing.
                assert_eq!(cache.demand_silently(7), BlockState::Valid);
                let frame = cache.residency().frame(7).expect("resident");
                assert_eq!(
                    cache.residency().is_untouched(frame),
                    origin != FetchOrigin::Demand
                );
            }
            let gone = admit(&mut cache, 8, FetchOrigin::Demand);
            let expected = Evicted {
                block: 7,
                origin,
                was_used: is_used,
            };
            assert_eq!(gone, Ok(Some(expected)), "{}", entry.name);
        }
    }
}

#[test]
fn a_second_chance_is_asked_for_every_frame_at_most_once() {
    for entry in ALL {
        let mut cache = make(entry.name, 4);
        for block in 0..4 {
            assert_eq!(admit(&mut cache, block, FetchOrigin::Prefetch), Ok(None));
            cache.complete(block);
        }
        // Whoever always asks for another chance gets one for each frame, and then a block goes.
        let mut asked = 0;
        let gone = cache.admit(9, FetchOrigin::Demand, Pattern::Random, |_, _| {
            asked += 1;
            Verdict::SecondChance
        });
        assert!(gone.expect("a frame").is_some(), "{}", entry.name);
        assert_eq!(asked, 4, "{}", entry.name);
    }
}

#[test]
fn bad_sizes_names_and_blocks_are_errors() {
    for entry in ALL {
        let sized = |capacity| Cache::named(entry.name, capacity, FirstTouch::default()).err();
        for capacity in [0, u64::from(MAX_CAPACITY) + 1, u64::MAX] {
            assert_eq!(sized(capacity), Some(BadReplacement::Capacity(capacity)));
        }
        let mut cache = make(entry.name, 2);
        assert_eq!(admit(&mut cache, MAX_BLOCK, FetchOrigin::Demand), Ok(None));
        let beyond = MAX_BLOCK + 1;
        assert_eq!(
            admit(&mut cache, beyond, FetchOrigin::Demand),
            Err(Refusal::NoSuchBlock(beyond))
        );
        assert_eq!(cache.demand(beyond, Pattern::Random), BlockState::Absent);
        assert_eq!(
            admit(&mut cache, MAX_BLOCK, FetchOrigin::Demand),
            Err(Refusal::Resident(MAX_BLOCK))
        );
    }
}

#[test]
fn an_error_says_what_was_expected() {
    for (policy, capacity, message) in [
        ("lru", 0, "a cache of 0 blocks: expected 1 to 536870912"),
        (
            "lrv",
            4,
            "replacement \"lrv\": expected one of lru, fifo, du, sarc, arc, lirs, mq, s3-fifo, sieve, w-tinylfu",
        ),
        (
            "s3-fifo(small=1001)",
            4,
            "s3-fifo: small = \"1001\": expected a whole number, 0 to 1000",
        ),
        (
            "mq(life=long)",
            4,
            "mq: life = \"long\": expected one of measured, constant",
        ),
        (
            "sieve(hand=1)",
            4,
            "sieve: parameter \"hand\": expected one of none",
        ),
    ] {
        let error = Cache::named(policy, capacity, FirstTouch::default()).err();
        assert_eq!(error.expect(policy).to_string(), message);
    }
}

proptest! {
    /// What prefetchers and coordinators ask, against one block at a time.
    #[test]
    fn runs_and_intervals_agree_with_single_blocks(
        present in prop::collection::btree_set(0_u64..40, 0..30),
        first in 0_u64..40,
        len in 0_u64..40,
        most in 0_u64..10,
    ) {
        let mut cache = make("lru", 40);
        for &block in &present {
            admit(&mut cache, block, FetchOrigin::Demand).expect("room");
        }
        let contents: &Residency = cache.residency();
        let blocks = Interval::of(first, len);
        let is_there = |block: &u64| present.contains(block);
        let absent: Vec<u64> = blocks.blocks().filter(|block| !is_there(block)).collect();
        prop_assert_eq!(contents.has_all(blocks), absent.is_empty() && len > 0);
        prop_assert_eq!(contents.has_any(blocks), absent.len() < len as usize);
        prop_assert_eq!(contents.first_absent(blocks), absent.first().copied());
        let runs: Vec<Interval> = contents.absent_runs(blocks).collect();
        let listed: Vec<u64> = runs.iter().flat_map(|run| run.blocks()).collect();
        prop_assert_eq!(listed, absent);
        for pair in runs.windows(2) {
            prop_assert!(pair[0].last + 1 < pair[1].first, "{} and {}", pair[0], pair[1]);
        }
        let before = (1..=most).take_while(|back| first >= *back && is_there(&(first - back)));
        prop_assert_eq!(contents.resident_before(first, most), before.count() as u64);
    }

    /// The same demands one by one and as a trace.
    #[test]
    fn a_replay_is_a_demand_after_another(
        which in 0..ALL.len(),
        capacity in 1_u64..20,
        demands in prop::collection::vec(0_u64..40, 0..300),
    ) {
        let mut one_by_one = make(ALL[which].name, capacity);
        let mut at_once = make(ALL[which].name, capacity);
        let mut hits = 0;
        for &block in &demands {
            if one_by_one.demand(block, Pattern::Random) == BlockState::Absent {
                admit(&mut one_by_one, block, FetchOrigin::Demand).expect("a frame");
                one_by_one.complete(block);
            } else {
                hits += 1;
            }
        }
        prop_assert_eq!(at_once.replay(&demands), Ok(hits));
        for block in 0..40 {
            prop_assert_eq!(at_once.residency().state(block), one_by_one.residency().state(block));
        }
    }
}
