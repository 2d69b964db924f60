//! Wishes against a list, and a level with them against one whose coordinator reads nothing more.

use block::{Instant, RequestId};
use proptest::prelude::*;

use super::{asked, composed, fetched};
use crate::cache::Cache;
use crate::coordinator::{Coordinator, Purpose, RequestPlan, UpperRequest};
use crate::level::{Ending, FetchId, Level, LevelCounters, Stored, Wish};
use crate::prefetch;
use crate::replacement::FirstTouch;
use crate::residency::{BlockState, Residency};
use crate::settings::AlgorithmSettings;
use block::Interval;

/// Lets half of what is asked past, and reads as much more as the first block's number says.
struct Scripted {
    most: u64,
}

impl Coordinator for Scripted {
    fn plan(&mut self, _now: Instant, asked: &UpperRequest, _lower: &Residency) -> RequestPlan {
        RequestPlan {
            bypass: asked.blocks.first % 2 * (asked.blocks.len() / 2),
            readmore: (asked.blocks.first % 13).min(self.most),
            ..RequestPlan::default()
        }
    }
}

fn scripted(capacity: u64, most: u64) -> Level {
    let cache = Cache::named("lru", capacity, FirstTouch::default()).expect("a cache");
    let entry = prefetch::ALL.iter().find(|entry| entry.name == "ra");
    let entry = entry.expect("a line of the table");
    let site = prefetch::Site { frames: capacity };
    let prefetcher = (entry.make)(&AlgorithmSettings::of(entry.parameters), &site);
    Level::of(cache, prefetcher, Box::new(Scripted { most }), 1 << 16)
}

/// What is wished, the oldest first, as whoever is told knows it.
#[derive(Default)]
struct ReportedWishes(Vec<u64>);

impl ReportedWishes {
    fn hear(&mut self, level: &mut Level) -> Result<(), TestCaseError> {
        while let Some(wish) = level.next_wish() {
            match wish {
                Wish::Want(blocks) => {
                    for block in blocks.blocks() {
                        prop_assert!(!self.0.contains(&block), "{} is wished twice", block);
                        self.0.push(block);
                    }
                }
                Wish::Unwant(blocks) => {
                    for block in blocks.blocks() {
                        let place = self.0.iter().position(|&other| other == block);
                        prop_assert!(place.is_some(), "{} was not wished", block);
                        self.0.remove(place.unwrap_or_default());
                    }
                }
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Step {
    Ask(u64, u64),
    /// A fetch under way ends.
    End(usize, Ending),
    /// A block is offered: one that is wished, or any.
    Offer(Option<usize>, u64),
    Store(u64),
    Withdraw(u64),
    Unwish(u64, u64),
}

fn step() -> impl Strategy<Value = Step> {
    let block = 0_u64..120;
    let ending = prop_oneof![4 => Just(Ending::Done), 1 => Just(Ending::Failed)];
    prop_oneof![
        6 => (block.clone(), 1_u64..9).prop_map(|(first, count)| Step::Ask(first, count)),
        4 => (any::<usize>(), ending).prop_map(|(at, ending)| Step::End(at, ending)),
        4 => (prop::option::of(any::<usize>()), block.clone())
            .prop_map(|(wished, block)| Step::Offer(wished, block)),
        1 => block.clone().prop_map(Step::Store),
        1 => block.clone().prop_map(Step::Withdraw),
        1 => (block, 1_u64..200).prop_map(|(first, count)| Step::Unwish(first, count)),
    ]
}

/// A level and the naive list of its wishes, the oldest first.
struct Twins {
    level: Level,
    naive: Vec<u64>,
    most: usize,
    under_way: Vec<FetchId>,
    told: ReportedWishes,
    expired: u64,
}

impl Twins {
    fn new(capacity: u64) -> Self {
        Twins {
            level: scripted(capacity, 13).with_wishes(),
            naive: Vec::new(),
            most: capacity.min(64) as usize,
            under_way: Vec::new(),
            told: ReportedWishes::default(),
            expired: 0,
        }
    }

    fn take_step(&mut self, id: u64, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Ask(first, count) => {
                let asked = asked(first, first + count - 1);
                let submitted = self.level.submit(Instant::ZERO, RequestId(id), asked);
                prop_assert_eq!(submitted, Ok(()));
                self.naive.retain(|&block| !asked.blocks.contains(block));
                self.forget_resident();
                // No more of a run than can be wished at all: the nearest.
                let more = (first % 13).min(self.most as u64);
                for block in asked.blocks.last + 1..=asked.blocks.last + more {
                    self.wish(block);
                }
            }
            Step::End(..) if self.under_way.is_empty() => {}
            Step::End(at, ending) => {
                let id = self.under_way.swap_remove(at % self.under_way.len());
                self.level.complete(Instant::ZERO, id, ending);
            }
            Step::Offer(wished, any) => {
                let block = match wished {
                    Some(at) if !self.naive.is_empty() => self.naive[at % self.naive.len()],
                    _ => any,
                };
                let was_wished = self.naive.contains(&block);
                let residency = self.level.residency();
                let has_frame = residency.in_flight() < residency.capacity();
                let frame = self.level.offer(block);
                prop_assert_eq!(frame.is_some(), was_wished && has_frame);
                if frame.is_some() {
                    prop_assert_eq!(self.level.residency().frame(block), frame);
                    prop_assert_eq!(self.level.residency().state(block), BlockState::Valid);
                }
                self.naive.retain(|&other| other != block);
            }
            Step::Store(block) => {
                let stored = self.level.store(block);
                prop_assert!(
                    stored == Stored::NoFrame || self.level.residency().is_resident(block)
                );
                self.forget_resident();
            }
            Step::Withdraw(block) => {
                self.level.withdraw(block);
                self.naive.retain(|&other| other != block);
            }
            Step::Unwish(first, count) => {
                let blocks = Interval::of(first, count);
                self.level.unwish(blocks);
                self.naive.retain(|&block| !blocks.contains(block));
            }
        }
        while let Some(fetch) = self.level.poll() {
            self.under_way.push(fetch.id);
        }
        while self.level.poll_finished().is_some() {}
        self.check()
    }

    fn forget_resident(&mut self) {
        let residency = self.level.residency();
        self.naive.retain(|&block| !residency.is_resident(block));
    }

    fn wish(&mut self, block: u64) {
        if self.level.residency().is_resident(block) {
            return;
        }
        let before = self.naive.len();
        self.naive.retain(|&other| other != block);
        if before == self.most && self.naive.len() == before {
            self.naive.remove(0);
            self.expired += 1;
        }
        self.naive.push(block);
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        self.told.hear(&mut self.level)?;
        let sorted = |blocks: &[u64]| {
            let mut blocks = blocks.to_vec();
            blocks.sort_unstable();
            blocks
        };
        prop_assert_eq!(sorted(&self.told.0), sorted(&self.naive));
        prop_assert!(self.naive.len() <= self.most);
        let residency = self.level.residency();
        for &block in &self.naive {
            prop_assert!(!residency.is_resident(block), "{} is resident", block);
        }
        let counts = self.level.counts();
        let ended = counts.wishes_granted + counts.wishes_withdrawn + counts.wishes_expired;
        prop_assert_eq!(counts.wished, ended + self.level.wished());
        prop_assert_eq!(self.level.wished(), self.naive.len() as u64);
        prop_assert_eq!(counts.wishes_expired, self.expired);
        prop_assert_eq!(counts.readmore, counts.wishes_granted);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn wishes_are_a_naive_list_and_only_what_is_wished_is_granted(
        capacity in 1_u64..80,
        steps in prop::collection::vec(step(), 1..150),
    ) {
        let mut twins = Twins::new(capacity);
        for (id, step) in (0..).zip(&steps) {
            twins.take_step(id, step)?;
        }
    }

    #[test]
    fn as_long_as_no_wish_is_granted_it_is_as_if_nothing_more_were_read(
        capacity in 1_u64..40,
        requests in prop::collection::vec((0_u64..120, 1_u64..9), 1..100),
    ) {
        let mut wishing = scripted(capacity, 13).with_wishes();
        let mut plain = scripted(capacity, 0);
        for (first, count) in requests {
            let last = first + count - 1;
            let fetches = fetched(&mut wishing, first, last);
            prop_assert_eq!(fetches, fetched(&mut plain, first, last));
        }
        let wished = wishing.counts();
        let counts = plain.counts();
        prop_assert_eq!(counts, LevelCounters {
            wished: 0,
            wishes_granted: 0,
            wishes_withdrawn: 0,
            wishes_expired: 0,
            ..wished
        });
    }
}

#[test]
fn where_wishes_come_too_late_more_is_fetched_and_they_are_tried_again() {
    // A reader who is back before anything was granted, and one who finds it there.
    for is_granted in [false, true] {
        let mut level = composed("none", "pfc").with_wishes_while_granted();
        for turn in 0..400 {
            fetched(&mut level, 4 * turn, 4 * turn + 3);
            while let Some(wish) = level.next_wish() {
                if let (Wish::Want(blocks), true) = (wish, is_granted) {
                    for block in blocks.blocks() {
                        level.offer(block);
                    }
                }
            }
        }
        let counts = level.counts();
        if is_granted {
            assert!(counts.wishes_granted > 1_000, "{counts:?}");
            assert_eq!(counts.readmore, counts.wishes_granted);
        } else {
            assert_eq!(counts.wishes_granted, 0);
            assert!(counts.readmore > 2 * counts.wished, "{counts:?}");
            // The first few, and then one time in eight.
            assert!(counts.wished > counts.readmore / 20, "{counts:?}");
        }
        assert!(counts.readmore_used > counts.readmore / 2, "{counts:?}");
        assert!(counts.readmore_used <= counts.ahead_used, "{counts:?}");
    }
}

#[test]
fn a_request_without_readmore_is_no_try_of_wishes() {
    let wished = |others: u64| {
        let mut level = scripted(1000, 13).with_wishes_while_granted();
        for turn in 0..200 {
            // Twelve blocks more: readahead fetches four, the reader comes for the rest at once.
            let first = 26 * turn + 12;
            fetched(&mut level, first, first + 1);
            fetched(&mut level, first + 6, first + 13);
            (0..others).for_each(|_| {
                fetched(&mut level, 0, 0);
            });
        }
        level.counts().wished
    };
    for others in 1..8 {
        assert_eq!(wished(others), wished(0), "{others} between two tries");
    }
}

#[test]
fn what_pfc_reads_more_is_wished_and_found_when_it_was_granted() {
    let mut level = composed("none", "pfc").with_wishes();
    let demand = |first, last| (Interval::new(first, last), Purpose::Demand);
    assert_eq!(fetched(&mut level, 0, 3), [demand(0, 0), demand(1, 3)]);
    assert_eq!(level.next_wish(), None);
    // Without wishes 8 to 11 are fetched, too.
    assert_eq!(fetched(&mut level, 4, 7), [demand(4, 5), demand(6, 7)]);
    let wished = Interval::new(8, 11);
    assert_eq!(level.next_wish(), Some(Wish::Want(wished)));
    assert_eq!((level.next_wish(), level.wished()), (None, 4));
    for block in [9, 10] {
        assert!(level.offer(block).is_some());
    }
    assert_eq!(level.offer(10), None);
    let granted = Interval::new(9, 10);
    assert_eq!(level.next_wish(), Some(Wish::Unwant(granted)));
    assert_eq!(fetched(&mut level, 8, 11), [demand(8, 8), demand(11, 11)]);
    let counts = level.counts();
    assert_eq!((counts.hits, counts.ahead_used, counts.readmore), (2, 2, 2));
    assert_eq!((counts.wishes_granted, counts.wishes_withdrawn), (2, 2));
}

#[test]
fn nothing_is_wished_beyond_the_file() {
    let wished_within = |last| {
        let mut level = scripted(100, 13).with_wishes();
        let asked = UpperRequest {
            within: Interval::new(0, last),
            ..asked(25, 27)
        };
        let submitted = level.submit(Instant::ZERO, RequestId(0), asked);
        assert_eq!(submitted, Ok(()));
        level.next_wish()
    };
    // Readahead fetches 28 to 31, as far as they are there.
    assert_eq!(wished_within(29), None);
    assert_eq!(wished_within(33), Some(Wish::Want(Interval::new(32, 33))));
    assert_eq!(wished_within(99), Some(Wish::Want(Interval::new(32, 39))));
}

#[test]
fn what_the_owner_read_ahead_is_found_and_what_is_resident_stays() {
    let mut level = scripted(4, 0);
    for block in 7..11 {
        assert!(level.offer_ahead(block).is_some());
        assert!(level.offer_ahead(block).is_none(), "it is here");
    }
    assert!(level.residency().is_full());
    assert!(level.offer_ahead(11).is_some());
    assert_eq!(level.residency().state(7), BlockState::Absent);
    let counts = level.counts();
    assert_eq!((counts.prefetched, counts.ahead_evicted_unused), (5, 1));
}
