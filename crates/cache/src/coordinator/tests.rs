//! What must hold for every coordinator.

use block::{Direction, Duration, Instant};
use proptest::prelude::*;

use super::{ALL, Coordinator, LowerCache, Purpose, RequestPlan, UpperRequest, make};
use crate::cache::{Cache, Evicted};
use crate::replacement::Pattern;
use crate::replacement::{FirstTouch, Verdict};
use crate::residency::{FetchOrigin, MAX_BLOCK, Residency};
use crate::settings::Values;
use block::Interval;

/// A lower level of the simplest kind: no prefetching of its own, reads are complete at once.
pub(super) struct Lower {
    pub(super) cache: Cache,
    pub(super) coordinator: Box<dyn Coordinator>,
}

pub(super) fn asked(first: u64, last: u64) -> UpperRequest {
    UpperRequest {
        client: 0,
        file: 0,
        blocks: Interval::new(first, last),
        within: Interval::new(0, MAX_BLOCK),
        purpose: Purpose::Demand,
        direction: Direction::Read,
    }
}

impl Lower {
    pub(super) fn new(text: &str, frames: u32) -> Self {
        Lower {
            cache: Cache::named("lru", frames.into(), FirstTouch::default()).expect("lru"),
            coordinator: make(text, &LowerCache { frames }).expect("a line of the table"),
        }
    }

    pub(super) fn hold(&mut self, block: u64, origin: FetchOrigin) {
        if self.cache.residency().is_resident(block) {
            return;
        }
        let ask = |_: &Residency, _| Verdict::Evict;
        let admitted = self.cache.admit(block, origin, Pattern::Random, ask);
        if let Some(evicted) = admitted.expect("a frame, because nothing is in flight") {
            self.coordinator.on_evicted(&evicted);
        }
        self.cache.complete(block);
    }

    /// A request; the plan, and what it read from below.
    pub(super) fn serve(&mut self, asked: &UpperRequest) -> (RequestPlan, Vec<u64>) {
        let now = Instant::ZERO;
        let plan = self.coordinator.plan(now, asked, self.cache.residency());
        let mut read = Vec::new();
        for block in plan.direct(asked).blocks() {
            if !self.cache.residency().is_resident(block) {
                read.push(block);
            }
            self.cache.demand_silently(block);
        }
        for block in plan.native(asked).blocks() {
            self.cache.demand(block, Pattern::Random);
            if !self.cache.residency().is_resident(block) {
                read.push(block);
            }
            let origin = match asked.blocks.contains(block) {
                true => FetchOrigin::Demand,
                false => FetchOrigin::Readmore,
            };
            self.hold(block, origin);
        }
        let waited = Duration::from_nanos(6_000_000);
        self.coordinator.on_answered(asked, plan, waited);
        (plan, read)
    }
}

/// Every coordinator with its defaults, and with each of its words and the ends of each range.
pub(super) fn all_settings() -> Vec<String> {
    let mut all = Vec::new();
    for entry in ALL {
        all.push(entry.name.to_owned());
        for parameter in entry.parameters {
            let values: Vec<String> = match &parameter.values {
                Values::Number { range, .. } => {
                    vec![range.start().to_string(), range.end().to_string()]
                }
                Values::Words(words) => words.iter().map(|word| (*word).to_owned()).collect(),
            };
            for value in values {
                all.push(format!("{}({}={value})", entry.name, parameter.key));
            }
        }
    }
    all
}

#[test]
fn names_differ_and_an_unknown_one_is_an_error() {
    for (place, entry) in ALL.iter().enumerate() {
        assert!(ALL[..place].iter().all(|other| other.name != entry.name));
    }
    let below = LowerCache { frames: 10 };
    let error = make("pfcc", &below).err().expect("no such coordinator");
    let expected = "coordinator \"pfcc\": expected one of none, du, pfc, adaptive";
    assert_eq!(error.to_string(), expected);
    let error = make("pfc(queue=101)", &below)
        .err()
        .expect("a queue larger than the cache");
    let expected = "pfc: queue = \"101\": expected a whole number, 1 to 100";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn du_changes_nothing_but_the_marks() {
    let mut lower = Lower::new("du", 10);
    assert_eq!(lower.coordinator.rules().sent, super::Retention::Marked);
    assert_eq!(lower.serve(&asked(3, 5)).0, RequestPlan::default());
}

#[test]
fn hostile_requests_are_survived() {
    for text in all_settings() {
        for frames in [1, 2, 64] {
            let mut lower = Lower::new(&text, frames);
            let within = Interval::new(0, u64::MAX);
            let ends = [
                (u64::MAX, u64::MAX),
                (0, u64::MAX),
                (u64::MAX - 70_000, u64::MAX),
                (u64::MAX - 99, u64::MAX),
                (0, 0),
                (MAX_BLOCK - 2, MAX_BLOCK + 2),
                (5, 4000),
            ];
            for (first, last) in ends.into_iter().chain(ends) {
                let asked = UpperRequest {
                    within,
                    ..asked(first, last)
                };
                let residency = lower.cache.residency();
                let plan = lower.coordinator.plan(Instant::ZERO, &asked, residency);
                let (direct, native) = (plan.direct(&asked), plan.native(&asked));
                assert!(
                    native.is_empty() || native.last >= asked.blocks.last,
                    "{text}"
                );
                assert!(direct.is_empty() || direct.first == first, "{text}");
                let waited = Duration::from_nanos(u64::MAX);
                lower.coordinator.on_answered(&asked, plan, waited);
                lower.coordinator.on_evicted(&Evicted {
                    block: first,
                    origin: FetchOrigin::Readmore,
                    was_used: false,
                });
            }
        }
    }
}

#[test]
fn memory_is_at_most_half_a_thousandth_of_the_cache() {
    for (text, percent) in [("pfc", 10), ("adaptive", 4)] {
        for frames in [1 << 14, 1 << 17, 1_000_000, 1 << 24] {
            let footprint = Lower::new(text, frames).coordinator.footprint();
            let cache = frames as usize * 4096;
            // A part of the blocks in each queue, eight bytes each.
            let rule = frames as usize * percent / 100 * 2 * 8;
            assert_eq!(footprint.rule, rule, "{text} {frames}");
            let bytes = footprint.rule + footprint.beyond;
            let parts = bytes * 1_000_000 / cache;
            assert!(parts <= 500, "{text} {frames}: {parts} millionths");
        }
    }
}

proptest! {
    #[test]
    fn both_parts_together_are_what_was_asked_and_more(
        which in 0..1000usize,
        requests in prop::collection::vec((0u64..300, 1u64..20, 0u8..3), 1..80),
        frames in 1u32..100,
    ) {
        let all = all_settings();
        let text = &all[which % all.len()];
        let mut lower = Lower::new(text, frames);
        let mut at = 0;
        for (place, count, kind) in requests {
            at = if kind == 0 { place } else { at };
            let asked = UpperRequest {
                within: Interval::new(0, 400),
                ..asked(at, (at + count - 1).min(400))
            };
            let (plan, _) = lower.serve(&asked);
            let (direct, native) = (plan.direct(&asked), plan.native(&asked));
            let parts: Vec<u64> = direct.blocks().chain(native.blocks()).collect();
            let whole = Interval::new(asked.blocks.first, asked.blocks.last.max(if native.is_empty() { 0 } else { native.last }));
            prop_assert_eq!(parts, whole.blocks().collect::<Vec<_>>(), "{}", text);
            prop_assert!(whole.last <= 400, "{}", text);
            at = (asked.blocks.last + 1).min(400);
        }
    }
}
