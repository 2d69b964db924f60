//! Every policy of the table against a naive one, written anew from its description: the same block
//! goes, at every miss, whatever was in flight, fetched ahead, withdrawn or given another chance.

mod conformance;
mod oracle;
mod vectors;

use std::collections::BTreeSet;

use cache::replacement::ALL;
use cache::{BlockState, Cache, FetchOrigin, FirstTouch, Pattern, Refusal, Verdict};
use oracle::{Naive, Policy};
use proptest::prelude::*;

/// What happens to a cache.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A demand: a touch, or the block comes and its read is complete at once.
    Demand(u64, Pattern),
    /// The block comes, and stays in flight.
    Start(u64, FetchOrigin, Pattern),
    Complete(u64),
    Withdraw(u64),
    Sent(u64),
    Refresh(u64, Pattern),
    SequentialMiss,
}

/// How many blocks there are: more than are known at a time, so that some are forgotten.
const BLOCKS: u64 = 40;

fn step() -> impl Strategy<Value = Step> {
    let pattern = prop_oneof![Just(Pattern::Random), Just(Pattern::Sequential)];
    let origin = prop_oneof![
        Just(FetchOrigin::Demand),
        Just(FetchOrigin::Prefetch),
        Just(FetchOrigin::Readmore)
    ];
    // Low numbers are asked for more often than high ones.
    let block = prop_oneof![0..BLOCKS / 8, 0..BLOCKS / 3, 0..BLOCKS];
    (0_u32..20, block, pattern, origin).prop_map(|(what, block, pattern, origin)| match what {
        0..10 => Step::Demand(block, pattern),
        10..13 => Step::Start(block, origin, pattern),
        13..16 => Step::Complete(block),
        16 => Step::Withdraw(block),
        17 => Step::Sent(block),
        18 => Step::Refresh(block, pattern),
        _ => Step::SequentialMiss,
    })
}

/// The cache under test beside the naive one.
struct Pair {
    cache: Cache,
    naive: Naive,
    /// Blocks that get a second chance: of each once, until they come again.
    chances: BTreeSet<u64>,
}

impl Pair {
    fn new(name: &str, capacity: u32, naive: Box<dyn Policy>, first: FirstTouch) -> Self {
        let cache = Cache::named(name, u64::from(capacity), first);
        Self {
            cache: cache.expect("a policy of the table"),
            naive: Naive::new(capacity as usize, naive, first),
            chances: BTreeSet::new(),
        }
    }

    fn start(
        &mut self,
        block: u64,
        origin: FetchOrigin,
        pattern: Pattern,
    ) -> Result<(), TestCaseError> {
        let mut chances = self.chances.clone();
        let naive = self.naive.start(block, origin, pattern, &mut chances);
        let chances = &mut self.chances;
        let ours = self.cache.admit(block, origin, pattern, |contents, frame| {
            match chances.remove(&contents.block(frame)) {
                true => Verdict::SecondChance,
                false => Verdict::Evict,
            }
        });
        match naive {
            Some(gone) => prop_assert_eq!(ours.map(|went| went.map(|went| went.block)), Ok(gone)),
            None => prop_assert_eq!(ours, Err(Refusal::AllInFlight)),
        }
        // Every third block is kept once.
        if block.is_multiple_of(3) {
            self.chances.insert(block);
        }
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Demand(block, pattern) => {
                let is_hit = self.cache.demand(block, pattern) != BlockState::Absent;
                prop_assert_eq!(is_hit, self.naive.demand(block, pattern));
                if !is_hit {
                    self.start(block, FetchOrigin::Demand, pattern)?;
                    self.cache.complete(block);
                    self.naive.complete(block);
                }
            }
            Step::Start(block, origin, pattern) => {
                if !self.cache.residency().is_resident(block) {
                    self.start(block, origin, pattern)?;
                }
            }
            Step::Complete(block) => {
                self.cache.complete(block);
                self.naive.complete(block);
            }
            Step::Withdraw(block) => {
                self.cache.withdraw(block);
                self.naive.withdraw(block);
            }
            Step::Sent(block) => {
                self.cache.sent(block);
                self.naive.sent(block);
            }
            Step::Refresh(block, pattern) => {
                self.cache.refresh(block, pattern);
                self.naive.refresh(block, pattern);
            }
            Step::SequentialMiss => {
                self.cache.sequential_miss();
                self.naive.sequential_miss();
            }
        }
        for block in 0..BLOCKS {
            let state = self.cache.residency().state(block);
            prop_assert_eq!(state, self.naive.state(block), "block {}", block);
        }
        Ok(())
    }
}

fn first_touch() -> impl Strategy<Value = FirstTouch> {
    prop_oneof![
        Just(FirstTouch::Insertion),
        Just(FirstTouch::Reference),
        Just(FirstTouch::Unnoticed)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn the_same_block_goes_as_in_the_naive_policy(
        which in 0..oracle::CASES.len(),
        capacity in 1_u32..14,
        first in first_touch(),
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let case = &oracle::CASES[which];
        let mut pair = Pair::new(case.name, capacity, (case.make)(capacity as usize), first);
        for step in steps {
            pair.step(step).map_err(|error| TestCaseError::fail(format!("{}: {error}", case.name)))?;
        }
    }
}

#[test]
fn every_policy_of_the_table_has_an_oracle() {
    for entry in ALL {
        let is_case = |name: &str| name.split('(').next() == Some(entry.name);
        assert!(
            oracle::CASES.iter().any(|case| is_case(case.name)),
            "{}",
            entry.name
        );
    }
}
