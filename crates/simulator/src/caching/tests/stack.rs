//! The system model and a plain stack of the same levels, which has no messages, no disk and no jobs: where
//! nothing goes for want of room and every read is complete before the next request, all counts are
//! equal, and so is what is kept.

use block::Interval;
use block::{Direction, Instant, RequestId};
use cache::coordinator::{self, Purpose, UpperRequest};
use cache::level::{Composition, Ending};
use cache::{Stack, prefetch};
use proptest::prelude::*;

use super::{ALL, read, two_levels};
use crate::caching::{System, merging};

/// More blocks than any run of the test reads, fetched ahead included.
const AMPLE: u64 = 20_000;

/// The system model after these requests.
fn modelled(names: (&str, &str), requests: &[Interval]) -> System {
    let setup = two_levels((AMPLE, AMPLE), names.0, names.1);
    let mut system = System::new(&setup).expect("a system");
    for blocks in requests {
        let request = read(0, blocks.first, blocks.last);
        let now = system.now();
        system.request(now, &request).expect("blocks of the disk");
        while system.next_event().is_some() {
            system.step();
        }
    }
    system
}

/// A stack of levels after them.
fn stacked(names: (&str, &str), requests: &[Interval]) -> Stack {
    let level = |coordinator, replacement| {
        let of = Composition {
            capacity: AMPLE,
            replacement,
            prefetch: names.0,
            coordinator,
            requests: 1_000,
        };
        cache::Level::new(&of).expect("lines of the tables")
    };
    let replacement = match names.1 {
        "du" => "du",
        _ => "lru",
    };
    let lower = level(names.1, replacement).with_longest_fetch(merging::LARGEST);
    let mut stack = Stack::new(vec![level("none", "lru"), lower]);
    for &blocks in requests {
        let asked = UpperRequest {
            client: 0,
            file: 0,
            blocks,
            within: ALL,
            purpose: Purpose::Demand,
            direction: Direction::Read,
        };
        let submitted = stack.submit(Instant::ZERO, RequestId(0), asked);
        submitted.expect("one request at a time");
        while let Some(fetch) = stack.poll() {
            stack.complete(Instant::ZERO, fetch.id, Ending::Done);
        }
        stack.poll_finished().expect("an answer");
    }
    stack
}

/// Every block that is there, why it came, and whether it was used.
fn kept(level: &cache::Level) -> Vec<(u64, String, bool)> {
    let residency = level.residency();
    let mut kept: Vec<_> = residency
        .frames()
        .map(|frame| {
            let origin = format!("{:?}", residency.origin(frame));
            (residency.block(frame), origin, residency.is_used(frame))
        })
        .collect();
    kept.sort();
    kept
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn it_counts_what_a_stack_of_levels_counts(
        which in (0..prefetch::ALL.len(), 0..coordinator::ALL.len()),
        requests in prop::collection::vec((0u64..900, 1u64..20, 0u8..4), 1..120),
    ) {
        let names = (prefetch::ALL[which.0].name, coordinator::ALL[which.1].name);
        let mut next = 0;
        let requests: Vec<Interval> = requests
            .iter()
            .map(|&(place, count, kind)| {
                let first = if kind == 0 { place } else { next };
                next = first + count;
                Interval::of(first, count)
            })
            .collect();
        let (system, stack) = (modelled(names, &requests), stacked(names, &requests));
        let reports = system.report().levels;
        for (number, level) in stack.levels().iter().enumerate() {
            let (modelled, stacked) = (reports[number], level.counts());
            let ours = (modelled.asked, modelled.valid, modelled.in_flight, modelled.silent);
            let theirs = (stacked.asked, stacked.hits, stacked.hits_in_flight, stacked.silent_hits);
            prop_assert_eq!(ours, theirs, "level {} of {:?}", number + 1, names);
            let ours = (modelled.bypassed, modelled.prefetched, modelled.readmore);
            let theirs = (stacked.bypassed, stacked.prefetched, stacked.readmore);
            prop_assert_eq!(ours, theirs, "level {} of {:?}", number + 1, names);
            let ours = kept(system.level(number));
            prop_assert_eq!(ours, kept(level), "level {} of {:?}", number + 1, names);
        }
    }
}
