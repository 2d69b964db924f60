//! The worked trace of the specification, a naive PFC, and that every reading makes a difference.

use std::collections::{BTreeMap, BTreeSet};

use block::Instant;
use proptest::prelude::*;

use crate::coordinator::tests::{Lower, asked};
use crate::coordinator::{
    ALL, Coordinator, CoordinatorRules, LowerCache, Purpose, RequestPlan, UpperRequest, make,
};
use crate::residency::FetchOrigin;
use crate::settings::{AlgorithmSettings, Values};
use block::Interval;

use super::{Pfc, Queues, Readings, Rule};

fn literal() -> Readings {
    Readings::of(&AlgorithmSettings::of(super::PARAMETERS))
}

#[test]
fn the_worked_trace() {
    let mut lower = Lower::new("none", 1000);
    let below = LowerCache { frames: 1000 };
    let (mut rule, mut queues) = (Rule::NEW, Queues::new(&below, 10));
    let readings = literal();
    // bypass_len and readmore_len after the step, DIRECT, NATIVE, the readmore queue's newest run.
    let steps = [
        ((0, 3), (1, 0), (0, 0), (1, 3), (4, 7)),
        ((4, 7), (2, 4), (4, 5), (6, 11), (12, 15)),
        ((8, 11), (3, 4), (8, 10), (11, 15), (16, 19)),
        ((12, 15), (4, 4), (12, 15), (16, 19), (20, 23)),
        ((16, 19), (5, 4), (16, 19), (20, 23), (24, 27)),
        ((20, 23), (6, 4), (20, 23), (24, 27), (28, 31)),
    ];
    for (request, lengths, direct, native, behind) in steps {
        let asked = asked(request.0, request.1);
        let plan = rule.step(&asked, lower.cache.residency(), &readings, &mut queues);
        assert_eq!(rule.lengths(), lengths, "{request:?}");
        let run = |(first, last)| Interval::new(first, last);
        assert_eq!(plan.direct(&asked), run(direct), "{request:?}");
        assert_eq!(plan.native(&asked), run(native), "{request:?}");
        let mut newest = queues.behind.clone();
        assert!(
            run(behind)
                .blocks()
                .all(|block| newest.finds(block, super::super::queue::OnHit::Stay))
        );
        let outside = Interval::new(behind.1 + 1, behind.1 + 9);
        assert!(
            !newest.meets(outside, super::super::queue::OnHit::Stay),
            "{request:?}"
        );
        let missing = plan
            .direct(&asked)
            .blocks()
            .filter(|&block| !lower.cache.residency().is_resident(block));
        let silent_hits = plan.direct(&asked).len() - missing.count() as u64;
        if request.0 >= 12 {
            assert_eq!(silent_hits, 4, "all of them are silent hits");
        }
        for block in plan.native(&asked).blocks() {
            lower.hold(block, FetchOrigin::Demand);
        }
    }
}

/// The pseudo-code with sets and lists.
#[derive(Default)]
struct Naive {
    bypass: u64,
    readmore: u64,
    lengths: Vec<u64>,
    bypassed: Vec<u64>,
    behind: Vec<u64>,
    capacity: usize,
}

impl Naive {
    fn found(queue: &mut Vec<u64>, blocks: &[u64]) -> bool {
        let mut is_found = false;
        for block in blocks {
            if let Some(place) = queue.iter().position(|other| other == block) {
                queue.remove(place);
                queue.push(*block);
                is_found = true;
            }
        }
        is_found
    }

    fn add(queue: &mut Vec<u64>, mut blocks: Vec<u64>, capacity: usize) {
        blocks.truncate(capacity);
        for block in blocks {
            queue.retain(|&other| other != block);
            queue.push(block);
            if queue.len() > capacity {
                queue.remove(0);
            }
        }
    }

    fn plan(
        &mut self,
        first: u64,
        last: u64,
        end: u64,
        cached: &BTreeSet<u64>,
        is_full: bool,
    ) -> (u64, u64) {
        let n = last - first + 1;
        let mean = |lengths: &[u64]| lengths.iter().sum::<u64>() as f64 / lengths.len() as f64;
        if self.lengths.is_empty() || n as f64 <= 2.0 * mean(&self.lengths) {
            self.lengths.push(n);
        }
        let average = mean(&self.lengths);
        let rm = (n as f64).max(average).ceil() as u64;
        if n as f64 > average && is_full {
            self.readmore = 0;
        }
        let ahead: Vec<u64> = (last + 1..=last + n)
            .filter(|&block| block <= end)
            .collect();
        let blocks: Vec<u64> = (first..=last).collect();
        if !ahead.is_empty() && ahead.iter().all(|block| cached.contains(block)) {
            self.bypass = n;
            self.readmore = 0;
        } else {
            let hc = blocks.iter().any(|block| cached.contains(block));
            let hb = Self::found(&mut self.bypassed, &blocks);
            let hr = Self::found(&mut self.behind, &blocks);
            if !hb {
                self.bypass += 1;
            }
            if !hc {
                if hb {
                    self.bypass = self.bypass.saturating_sub(1);
                }
                self.readmore = if hr { rm } else { 0 };
            }
        }
        let k = self.bypass.min(n);
        Self::add(
            &mut self.bypassed,
            (first..first + k).collect(),
            self.capacity,
        );
        let ep = (last + self.readmore).min(end);
        let behind = (ep + 1..=ep + rm).filter(|&block| block <= end).collect();
        Self::add(&mut self.behind, behind, self.capacity);
        (k, self.readmore)
    }
}

/// Sequential runs that begin anew now and then, of lengths that vary.
fn requests() -> impl Strategy<Value = Vec<(u64, u64, bool)>> {
    let one = (0u64..300, 1u64..12, 0u8..6);
    prop::collection::vec(one, 1..120).prop_map(|steps| {
        let mut at = 0;
        let step = |(place, count, kind): (u64, u64, u8)| {
            at = if kind == 0 { place } else { at };
            let first = at.min(390);
            at = first + count;
            (first, first + count - 1, kind == 1)
        };
        steps.into_iter().map(step).collect()
    })
}

proptest! {
    #[test]
    fn it_is_the_naive_one(requests in requests(), frames in 1u32..120) {
        let mut lower = Lower::new("pfc", frames);
        let mut naive = Naive {
            capacity: (frames as usize / 10).max(1),
            ..Naive::default()
        };
        for (first, last, _) in requests {
            let asked = UpperRequest {
                within: Interval::new(0, 420),
                ..asked(first, last)
            };
            let residency = lower.cache.residency();
            let cached = (0..=420).filter(|&block| residency.is_resident(block)).collect();
            let expected = naive.plan(first, last, 420, &cached, residency.is_full());
            let (plan, _) = lower.serve(&asked);
            prop_assert_eq!((plan.bypass, plan.readmore), expected);
        }
    }
}

/// Plans for the same requests, which differ in kind, at a lower cache in which some blocks are in flight.
fn plans(text: &str) -> (Vec<RequestPlan>, CoordinatorRules) {
    let mut plans = run(text, 1, 6000);
    // Means change most at the beginning.
    (2..40).for_each(|seed| plans.extend(run(text, seed, 100)));
    (plans, Lower::new(text, 60).coordinator.rules())
}

fn run(text: &str, seed: u64, requests: u64) -> Vec<RequestPlan> {
    let mut lower = Lower::new(text, 60);
    let mut plans = Vec::new();
    let mut dice = seed;
    let mut at = 0;
    if seed == 2 {
        // What was let past is asked for again and again.
        for block in [5, 100, 200, 5, 100, 200, 5, 100, 300, 301, 302] {
            plans.push(lower.serve(&asked(block, block)).0);
        }
    }
    for step in 0..requests {
        dice = dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let roll = dice >> 40;
        at = if roll.is_multiple_of(5) {
            roll % 211
        } else {
            at
        };
        // A long-lasting shift to lengths that are far from the mean.
        let length = if step > 3000 && step < 5000 {
            9
        } else {
            1 + roll / 7 % 4
        };
        let asked = UpperRequest {
            purpose: match roll / 64 % 3 {
                0 => Purpose::Prefetch,
                _ => Purpose::Demand,
            },
            direction: match roll / 512 % 4 {
                0 => block::Direction::Write,
                _ => block::Direction::Read,
            },
            ..asked(at, at + length - 1)
        };
        plans.push(lower.serve(&asked).0);
        if roll.is_multiple_of(3) {
            // A block that is not complete yet.
            let block = (at + length + 3) % 230;
            if !lower.cache.residency().is_resident(block)
                && lower.cache.residency().in_flight() < 20
            {
                let ask = |_: &crate::Residency, _| crate::Verdict::Evict;
                let admitted =
                    lower
                        .cache
                        .admit(block, FetchOrigin::Prefetch, crate::Pattern::Random, ask);
                admitted.expect("a frame, because few are in flight");
            }
        }
        if roll.is_multiple_of(11) {
            (0..230).for_each(|block| lower.cache.complete(block));
        }
        at += length;
    }
    plans
}

#[test]
fn every_reading_makes_a_difference() {
    let literal = plans("pfc");
    let entry = ALL
        .iter()
        .find(|entry| entry.name == "pfc")
        .expect("a line");
    let mut seen = BTreeMap::new();
    for parameter in entry.parameters {
        let Values::Words(words) = parameter.values else {
            continue;
        };
        for word in &words[1..] {
            let text = format!("pfc({}={word})", parameter.key);
            let (plans, rules) = plans(&text);
            assert!(
                plans != literal.0 || rules != literal.1,
                "{text} changes nothing"
            );
            seen.insert(text, ());
        }
        let text = format!("pfc({}={})", parameter.key, words[0]);
        assert_eq!(plans(&text), literal, "{text} is the default");
    }
    // Nineteen ambiguities, some with two alternatives, the fetch of readmore, and the two halves of Figure 7.
    assert_eq!(seen.len(), 31);
}

/// A8: part of a request in the lower cache makes a hit, or does not.
#[test]
fn all_blocks_make_a_hit_or_any_does() {
    let readmore = |text: &str| {
        let mut lower = Lower::new(text, 1000);
        // 0 to 3 come to the readmore queue's window 4 to 7, of which one block is there.
        lower.serve(&asked(0, 3));
        if !lower.cache.residency().is_resident(5) {
            lower.hold(5, FetchOrigin::Demand);
        }
        lower.serve(&asked(4, 7)).0.readmore
    };
    assert_eq!(readmore("pfc"), 0);
    assert_eq!(readmore("pfc(a8=all)"), 4);
}

#[test]
fn only_one_action_where_only_one_is_wanted() {
    let (bypass, _) = plans("pfc(actions=bypass)");
    assert!(bypass.iter().all(|plan| plan.readmore == 0));
    assert!(bypass.iter().any(|plan| plan.bypass > 0));
    let (readmore, _) = plans("pfc(actions=readmore)");
    assert!(readmore.iter().all(|plan| plan.bypass == 0));
    assert!(readmore.iter().any(|plan| plan.readmore > 0));
}

#[test]
fn a_queue_of_one_and_a_request_longer_than_the_queue() {
    let mut lower = Lower::new("pfc", 5);
    for first in [0, 100, 200, 0, 100] {
        let (plan, _) = lower.serve(&asked(first, first + 49));
        assert!(plan.bypass >= 1 && plan.bypass <= 50);
    }
    let mut pfc = Pfc::new(
        &AlgorithmSettings::of(super::PARAMETERS),
        &LowerCache { frames: 0 },
    );
    pfc.plan(Instant::ZERO, &asked(0, 9), lower.cache.residency());
    assert!(
        pfc.queues
            .bypassed
            .finds(0, super::super::queue::OnHit::Stay)
    );
}

#[test]
fn levels_in_a_row_each_have_their_own() {
    // What the second level reads is asked of the third: DIRECT and NATIVE are requests there.
    let levels = 4;
    let mut chain: Vec<Lower> = (1..levels).map(|_| Lower::new("pfc", 40)).collect();
    let mut read_at_the_end = BTreeSet::new();
    for request in 0..200u64 {
        let first = request * 4;
        let mut wanted = vec![Interval::new(first, first + 3)];
        for lower in &mut chain {
            let mut next: Vec<Interval> = Vec::new();
            for blocks in wanted {
                let (plan, read) = lower.serve(&asked(blocks.first, blocks.last));
                assert!(plan.bypass <= blocks.len());
                for block in read {
                    match next.last_mut() {
                        Some(run) if run.last + 1 == block => run.last = block,
                        _ => next.push(Interval::new(block, block)),
                    }
                }
            }
            wanted = next;
        }
        let blocks = wanted.into_iter().flat_map(Interval::blocks);
        read_at_the_end.extend(blocks);
    }
    // Every block came from the end, and the levels ran ahead.
    assert!((0..800).all(|block| read_at_the_end.contains(&block)));
    assert!(read_at_the_end.contains(&800));
}

#[test]
fn nothing_is_learned_from_what_is_passed() {
    let below = LowerCache { frames: 100 };
    let mut pfc = make("pfc(a18=passed,a19=passed)", &below).expect("a line of the table");
    let lower = Lower::new("none", 100);
    let prefetch = UpperRequest {
        purpose: Purpose::Prefetch,
        ..asked(0, 3)
    };
    let write = UpperRequest {
        direction: block::Direction::Write,
        ..asked(4, 7)
    };
    for one in [prefetch, write] {
        assert_eq!(
            pfc.plan(Instant::ZERO, &one, lower.cache.residency()),
            RequestPlan::default()
        );
    }
    // The first that counts: one block is let past.
    let plan = pfc.plan(Instant::ZERO, &asked(8, 11), lower.cache.residency());
    assert_eq!((plan.bypass, plan.readmore), (1, 0));
}
