//! Levels as their users see them: vectors of the specification, and what holds for every
//! composition.

mod parts;
mod wishes;

use std::collections::{BTreeMap, BTreeSet};

use block::{Direction, Instant, RequestId};
use proptest::prelude::*;

use super::{
    Answered, BadLevel, Composition, Ending, Fetch, Level, LevelCounters, LevelRefused, Stack,
};
use crate::cache::Cache;
use crate::coordinator::{self, Purpose, ReadmoreFetch, UpperRequest};
use crate::replacement::FirstTouch;
use crate::residency::{BlockState, MAX_BLOCK};
use crate::{prefetch, replacement};
use block::Interval;

const DEVICE: Interval = Interval::new(0, 9_999);

fn composed(prefetch: &'static str, coordinator: &'static str) -> Level {
    Level::new(&Composition {
        capacity: 1000,
        replacement: "lru",
        prefetch,
        coordinator,
        requests: 64,
    })
    .expect("a composition")
}

fn asked(first: u64, last: u64) -> UpperRequest {
    UpperRequest {
        client: 0,
        file: 0,
        blocks: Interval::new(first, last),
        within: DEVICE,
        purpose: Purpose::Demand,
        direction: Direction::Read,
    }
}

/// What a level fetches for a request, each fetch complete at once.
fn fetched(level: &mut Level, first: u64, last: u64) -> Vec<(Interval, Purpose)> {
    let now = Instant::ZERO;
    let id = RequestId(first);
    level.submit(now, id, asked(first, last)).expect("room");
    let fetches: Vec<Fetch> = std::iter::from_fn(|| level.poll()).collect();
    for fetch in &fetches {
        level.complete(now, fetch.id, Ending::Done);
    }
    let answered = Answered {
        id,
        ending: Ending::Done,
    };
    assert_eq!(level.poll_finished(), Some(answered));
    assert_eq!(level.poll_finished(), None);
    let all = fetches.iter();
    all.map(|fetch| (fetch.asked.blocks, fetch.asked.purpose))
        .collect()
}

/// Specification, section 1.
#[test]
fn readahead_travels_with_the_missing_blocks_or_alone() {
    let mut level = composed("ra", "none");
    let demand = |first, last| vec![(Interval::new(first, last), Purpose::Demand)];
    assert_eq!(fetched(&mut level, 10, 10), demand(10, 14));
    let alone = (Interval::new(15, 15), Purpose::Prefetch);
    assert_eq!(fetched(&mut level, 11, 11), [alone]);
    assert_eq!(fetched(&mut level, 50, 53), demand(50, 57));
    let counts = level.counts();
    assert_eq!((counts.asked, counts.hits, counts.prefetched), (6, 1, 9));
    assert_eq!(counts.ahead_used, 1);
}

/// Specification, section 8: the worked trace.
#[test]
fn pfc_becomes_a_pipeline_of_silent_hits() {
    let mut level = composed("none", "pfc");
    let demand = |first, last| (Interval::new(first, last), Purpose::Demand);
    assert_eq!(fetched(&mut level, 0, 3), [demand(0, 0), demand(1, 3)]);
    assert_eq!(fetched(&mut level, 4, 7), [demand(4, 5), demand(6, 11)]);
    let ahead = |first, last| (Interval::new(first, last), Purpose::Prefetch);
    assert_eq!(fetched(&mut level, 8, 11), [ahead(12, 15)]);
    assert_eq!(fetched(&mut level, 12, 15), [ahead(16, 19)]);
    let counts = level.counts();
    assert_eq!((counts.bypassed, counts.readmore), (3, 12));
    assert_eq!((counts.hits, counts.silent_hits), (8, 7));
    assert_eq!((counts.ahead_used, counts.ahead_evicted_unused), (8, 0));
    assert!(!level.residency().is_resident(0));
}

#[test]
fn one_submission_carries_what_goes_past_and_what_stays() {
    let mut level = composed("none", "pfc(a17=otherwise)");
    let all = |first, last| (Interval::new(first, last), Purpose::Demand);
    assert_eq!(fetched(&mut level, 0, 3), [all(0, 3)]);
    assert_eq!(fetched(&mut level, 4, 7), [all(4, 11)]);
    assert!(!level.residency().is_resident(0) && level.residency().is_resident(1));
}

#[test]
fn readmore_of_its_own_is_a_fetch_for_which_no_request_waits() {
    let now = Instant::ZERO;
    let mut level = composed("none", "pfc(readmore=otherwise)");
    fetched(&mut level, 0, 3);
    level.submit(now, RequestId(4), asked(4, 7)).expect("room");
    let fetches: Vec<Fetch> = std::iter::from_fn(|| level.poll()).collect();
    let parts = fetches.iter();
    let parts = parts.map(|fetch| (fetch.asked.blocks, fetch.readmore));
    assert_eq!(
        parts.collect::<Vec<_>>(),
        [
            (Interval::new(4, 5), ReadmoreFetch::Joined),
            (Interval::new(6, 7), ReadmoreFetch::Joined),
            (Interval::new(8, 11), ReadmoreFetch::Own),
        ]
    );
    level.complete(now, fetches[0].id, Ending::Done);
    level.complete(now, fetches[1].id, Ending::Done);
    assert!(level.poll_finished().is_some(), "8 to 11 are still read");
    level.complete(now, fetches[2].id, Ending::Done);
    assert_eq!(level.poll_finished(), None);
}

#[test]
fn a_demand_waits_for_the_read_that_is_under_way() {
    let now = Instant::ZERO;
    let mut level = composed("ra", "none");
    level
        .submit(now, RequestId(1), asked(10, 10))
        .expect("room");
    let first = level.poll().expect("10 to 14");
    level
        .submit(now, RequestId(2), asked(12, 13))
        .expect("room");
    let second = level.poll().expect("15 to 17, ahead");
    assert_eq!(second.asked.blocks, Interval::new(15, 17));
    assert_eq!((level.poll(), level.poll_finished()), (None, None));
    level.complete(now, second.id, Ending::Done);
    assert_eq!(level.poll_finished(), None);
    level.complete(now, first.id, Ending::Failed);
    let ids = |level: &mut Level| {
        let one = level.poll_finished().expect("an answer");
        assert_eq!(one.ending, Ending::Failed);
        one.id.0
    };
    assert_eq!((ids(&mut level), ids(&mut level)), (1, 2));
    // What failed is absent, and is read again.
    assert!(!level.residency().is_resident(12) && level.residency().is_resident(15));
    assert_eq!(level.counts().hits_in_flight, 2);
}

#[test]
fn without_a_frame_a_block_is_read_past_the_cache() {
    let now = Instant::ZERO;
    let of = Composition {
        capacity: 2,
        replacement: "lru",
        prefetch: "ra",
        coordinator: "none",
        requests: 2,
    };
    let mut level = Level::new(&of).expect("a composition");
    level.submit(now, RequestId(1), asked(0, 3)).expect("room");
    let [kept, past] = [level.poll(), level.poll()].map(|fetch| fetch.expect("two fetches"));
    assert_eq!(kept.asked.blocks, Interval::new(0, 1));
    assert_eq!(past.asked.blocks, Interval::new(2, 3));
    assert_eq!(level.poll(), None);
    level.submit(now, RequestId(2), asked(1, 1)).expect("room");
    let refused = level.submit(now, RequestId(3), asked(5, 5));
    assert_eq!(refused, Err(LevelRefused::Full(2)));
    assert_eq!(level.pending(), 2);
    level.complete(now, past.id, Ending::Done);
    assert_eq!(level.poll_finished(), None);
    level.complete(now, kept.id, Ending::Done);
    assert_eq!(level.counts().bypassed, 2);
    // 2, 3, and 4 ahead; then 2 ahead, for the second request.
    assert_eq!(level.counts().refused, 4);
    assert_eq!(level.pending(), 0);
}

#[test]
fn bad_compositions_and_requests_are_errors() {
    let good = Composition {
        capacity: 2,
        replacement: "lru",
        prefetch: "ra",
        coordinator: "none",
        requests: 2,
    };
    let message = |of: &Composition| match Level::new(of) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    let empty = Composition {
        capacity: 0,
        ..good
    };
    assert_eq!(
        message(&empty),
        "a cache of 0 blocks: expected 1 to 536870912"
    );
    let idle = Composition {
        requests: 0,
        ..good
    };
    assert_eq!(Level::new(&idle).err(), Some(BadLevel::NoRequests));
    for of in [
        Composition {
            replacement: "x",
            ..good
        },
        Composition {
            prefetch: "x",
            ..good
        },
        Composition {
            coordinator: "x",
            ..good
        },
    ] {
        assert!(message(&of).contains("\"x\": expected one of "), "{of:?}");
    }
    let mut level = Level::new(&good).expect("a composition");
    for blocks in [
        Interval::EMPTY,
        Interval::new(9_999, 10_000),
        Interval::new(5, 4),
    ] {
        let bad = UpperRequest {
            blocks,
            ..asked(0, 0)
        };
        let refused = level.submit(Instant::ZERO, RequestId(0), bad);
        let within = DEVICE;
        assert_eq!(refused, Err(LevelRefused::NoSuchBlocks { blocks, within }));
    }
    assert_eq!(
        (level.pending(), level.counts()),
        (0, LevelCounters::default())
    );
}

#[test]
fn the_last_block_of_all_is_read_and_none_beyond() {
    let beyond = |first, last| UpperRequest {
        within: Interval::new(0, MAX_BLOCK + 9),
        ..asked(first, last)
    };
    let mut level = composed("none", "none");
    let mut submit = |first, last| {
        let asked = beyond(first, last);
        level.submit(Instant::ZERO, RequestId(first), asked).is_ok()
    };
    assert!(submit(MAX_BLOCK - 1, MAX_BLOCK));
    for (first, last) in [(MAX_BLOCK, MAX_BLOCK + 1), (MAX_BLOCK + 9, MAX_BLOCK + 9)] {
        assert!(!submit(first, last), "{first} to {last}");
    }
}

/// What a run does next.
#[derive(Clone, Debug)]
enum Step {
    /// A request of so many blocks from there on, or where the last one ended.
    Ask(Option<u64>, u64, u64),
    /// One of the fetches under way ends.
    End(usize, bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (prop::option::of(0_u64..180), 1_u64..9, 0_u64..3)
            .prop_map(|(first, count, file)| Step::Ask(first, count, file)),
        (any::<usize>(), prop::bool::weighted(0.1)).prop_map(|(at, fails)| Step::End(at, fails)),
    ]
}

/// A line of each table, and a capacity.
type Lines = (usize, usize, usize, u64);

/// Some for each level.
fn lines() -> impl Strategy<Value = Vec<Lines>> {
    let line = (
        0..replacement::ALL.len(),
        0..prefetch::ALL.len(),
        0..coordinator::ALL.len(),
        1_u64..40,
    );
    prop::collection::vec(line, 1..4)
}

/// Runs a stack, and checks it against what was asked for.
struct Run {
    stack: Stack,
    /// The requests without an answer. Of a single level: each with its blocks that were absent and that no
    /// fetch has brought. (In a stack bytes may be on their way up when the lower level has evicted them.)
    waiting: BTreeMap<u64, BTreeSet<u64>>,
    under_way: Vec<Fetch>,
    answers: BTreeMap<u64, Ending>,
    has_failed: bool,
}

impl Run {
    fn new(lines: &[Lines]) -> Self {
        let level = |&(replacement, prefetch, coordinator, capacity): &Lines| {
            let of = Composition {
                capacity,
                replacement: replacement::ALL[replacement].name,
                prefetch: prefetch::ALL[prefetch].name,
                coordinator: coordinator::ALL[coordinator].name,
                requests: 1 << 16,
            };
            Level::new(&of).expect("lines of the tables")
        };
        Self {
            stack: Stack::new(lines.iter().map(level).collect()),
            waiting: BTreeMap::new(),
            under_way: Vec::new(),
            answers: BTreeMap::new(),
            has_failed: false,
        }
    }

    fn drain(&mut self) -> Result<(), TestCaseError> {
        self.under_way
            .extend(std::iter::from_fn(|| self.stack.poll()));
        while let Some(answered) = self.stack.poll_finished() {
            let missing = self.waiting.remove(&answered.id.0);
            prop_assert!(missing.is_some(), "answered twice");
            self.answers.insert(answered.id.0, answered.ending);
            match answered.ending {
                Ending::Done => prop_assert_eq!(missing, Some(BTreeSet::new())),
                Ending::Failed => prop_assert!(self.has_failed),
            }
        }
        for level in self.stack.levels() {
            let contents = level.residency();
            prop_assert!(contents.resident() <= contents.capacity());
            let counts = level.counts();
            let ahead = counts.prefetched + counts.readmore;
            prop_assert!(counts.ahead_used + counts.ahead_evicted_unused <= ahead);
        }
        Ok(())
    }

    fn ask(&mut self, id: u64, asked: UpperRequest) -> Result<(), TestCaseError> {
        let missing = match self.stack.levels() {
            [level] => {
                let absent = |&block: &u64| level.residency().state(block) != BlockState::Valid;
                asked.blocks.blocks().filter(absent).collect()
            }
            _ => BTreeSet::new(),
        };
        self.waiting.insert(id, missing);
        let submitted = self.stack.submit(Instant::ZERO, RequestId(id), asked);
        prop_assert_eq!(submitted, Ok(()));
        self.drain()
    }

    fn end(&mut self, at: usize, ending: Ending) -> Result<(), TestCaseError> {
        let fetch = self.under_way.swap_remove(at);
        let blocks = fetch.asked.blocks;
        prop_assert!(!blocks.is_empty() && blocks.last <= DEVICE.last);
        self.has_failed |= ending == Ending::Failed;
        if ending == Ending::Done {
            let missing = self.waiting.values_mut();
            missing.for_each(|missing| missing.retain(|&block| !blocks.contains(block)));
        }
        self.stack.complete(Instant::ZERO, fetch.id, ending);
        self.drain()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Requests of one block, each served before the next: a cache and nothing else.
    #[test]
    fn without_prefetcher_and_coordinator_a_level_is_its_cache(
        which in 0..replacement::ALL.len(),
        capacity in 1_u64..30,
        blocks in prop::collection::vec(0_u64..60, 1..200),
    ) {
        // What is sent upwards is nothing to a cache: so it is here, with `none`.
        let name = replacement::ALL[which].name;
        let of = Composition {
            capacity,
            replacement: name,
            prefetch: "none",
            coordinator: "none",
            requests: 1,
        };
        let mut level = Level::new(&of).expect("a composition");
        for &block in &blocks {
            fetched(&mut level, block, block);
        }
        let mut cache = Cache::named(name, capacity, FirstTouch::default()).expect("a cache");
        prop_assert_eq!(Ok(level.counts().hits), cache.replay(&blocks));
    }

    #[test]
    fn every_request_of_every_stack_is_answered_once_when_its_blocks_are_there(
        lines in lines(),
        steps in prop::collection::vec(step(), 1..150),
    ) {
        let mut run = Run::new(&lines);
        let mut next = 0;
        for (id, step) in (0..).zip(&steps) {
            match *step {
                Step::Ask(first, count, file) => {
                    let first = first.unwrap_or(next);
                    next = first + count;
                    let asked = UpperRequest { file, ..asked(first, first + count - 1) };
                    run.ask(id, asked)?;
                }
                Step::End(at, fails) if !run.under_way.is_empty() => {
                    let ending = if fails { Ending::Failed } else { Ending::Done };
                    run.end(at % run.under_way.len(), ending)?;
                }
                Step::End(..) => {}
            }
        }
        while !run.under_way.is_empty() {
            run.end(0, Ending::Done)?;
        }
        prop_assert!(run.waiting.is_empty(), "not answered: {:?}", run.waiting);
        for level in run.stack.levels() {
            prop_assert_eq!(level.pending(), 0);
            prop_assert_eq!(level.residency().in_flight(), 0);
        }
    }
}
