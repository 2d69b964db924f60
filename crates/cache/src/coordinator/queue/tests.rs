//! The queue beside a naive list.

use proptest::prelude::*;

use super::parts::{GOLDEN, GROUP, HASH_BITS, MARKS, marks};
use super::{GroupQueue, Keep, OnHit};
use crate::residency::MAX_BLOCK;
use block::Interval;

/// The numbers, oldest first. Where a place's group is said by its bucket, all that a test uses are
/// tried.
fn held(queue: &GroupQueue) -> Vec<u64> {
    let mut places = vec![None; queue.ring.len()];
    let last = MAX_BLOCK / GROUP;
    for number in (0..8).chain(last - 7..=last) {
        let part = queue.layout.part(number, MARKS);
        let mut without = queue.clone();
        without.take(part);
        for (place, words) in queue.ring.iter().zip(&without.ring).enumerate() {
            let (before, after) = (words.0, words.1);
            if marks(*before) != marks(*after) {
                places[place] = Some(number);
            }
        }
    }
    let in_order = (0..queue.taken).map(|step| queue.place(step));
    let numbers = in_order.flat_map(|place| {
        let marks = marks(queue.ring[place]);
        let group = places[place].unwrap_or_default();
        assert!(
            marks == 0 || places[place].is_some(),
            "a place that none leads to"
        );
        (0..GROUP)
            .filter(move |at| marks & (1 << at) != 0)
            .map(move |at| group * GROUP + at)
    });
    numbers.collect()
}

/// What undoes the multiplication of the hash, by Newton's steps: each doubles the bits that are right.
fn inverse() -> u64 {
    (0..6).fold(GOLDEN, |inverse, _| {
        inverse.wrapping_mul(2_u64.wrapping_sub(GOLDEN.wrapping_mul(inverse)))
    })
}

#[derive(Clone, Debug)]
enum Step {
    Add(Interval, Keep),
    Meet(Interval, OnHit),
    Forget,
}

fn step() -> impl Strategy<Value = Step> {
    let first = prop_oneof![0u64..30, MAX_BLOCK - 3..=MAX_BLOCK];
    let run = (first, 1u64..12).prop_map(|(first, count)| Interval::of(first, count));
    let keep = prop_oneof![Just(Keep::Lowest), Just(Keep::Highest)];
    let hit = prop_oneof![Just(OnHit::Refresh), Just(OnHit::Stay), Just(OnHit::Remove)];
    prop_oneof![
        4 => (run.clone(), keep).prop_map(|(run, keep)| Step::Add(run, keep)),
        4 => (run, hit).prop_map(|(run, hit)| Step::Meet(run, hit)),
        1 => Just(Step::Forget),
    ]
}

proptest! {
    #[test]
    fn it_is_a_naive_list_in_the_order_of_use(
        capacity in 0u32..20,
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let mut queue = GroupQueue::new(capacity);
        let capacity = capacity.max(1) as usize;
        let mut naive: Vec<u64> = Vec::new();
        for step in steps {
            match step {
                Step::Add(run, keep) => {
                    let run = Interval::new(run.first, run.last.min(MAX_BLOCK));
                    let mut blocks: Vec<u64> = run.blocks().collect();
                    match keep {
                        Keep::Lowest => blocks.truncate(capacity),
                        Keep::Highest => drop(blocks.drain(..blocks.len().saturating_sub(capacity))),
                    }
                    let mut forgotten = 0;
                    for block in blocks {
                        let before = naive.len();
                        naive.retain(|&other| other != block);
                        if naive.len() == before && before == capacity {
                            naive.remove(0);
                            forgotten += 1;
                        }
                        naive.push(block);
                    }
                    let ours = match queue.meets(run, OnHit::Stay) {
                        true => queue.add(run, keep),
                        false => queue.add_absent(run, keep),
                    };
                    prop_assert_eq!(ours, forgotten);
                }
                Step::Meet(run, hit) => {
                    let mut found = false;
                    for block in run.blocks() {
                        if let Some(place) = naive.iter().position(|&other| other == block) {
                            found = true;
                            if hit != OnHit::Stay {
                                naive.remove(place);
                            }
                            if hit == OnHit::Refresh {
                                naive.push(block);
                            }
                        }
                    }
                    prop_assert_eq!(queue.meets(run, hit), found);
                }
                Step::Forget => {
                    queue.forget_oldest();
                    if !naive.is_empty() {
                        naive.remove(0);
                    }
                }
            }
            prop_assert_eq!(held(&queue), naive.clone());
            prop_assert_eq!(queue.len, naive.len());
        }
    }
}

/// What a place keeps of a hash is alike for these, and for each bucket's first and last one beside them.
#[test]
fn groups_of_which_the_same_is_kept_are_told_apart() {
    for capacity in [5_u32, 21, 300, 4000, 70_000] {
        let mut queue = GroupQueue::new(capacity);
        let rest = queue.layout.kept.count_ones();
        let kept = [0, 1, (1 << rest) - 1];
        let hashes = kept
            .iter()
            .flat_map(|kept| (0..1_u64 << (HASH_BITS - rest)).map(move |at| at << rest | kept));
        let group = |hash: u64| hash.wrapping_mul(inverse()) & ((1 << HASH_BITS) - 1);
        let blocks: Vec<u64> = hashes.map(|hash| group(hash) * GROUP).collect();
        let mut naive: Vec<u64> = Vec::new();
        for &block in &blocks {
            assert!(
                !queue.finds(block, OnHit::Stay),
                "{capacity}: {block} was never added"
            );
            queue.add(Interval::new(block, block), Keep::Lowest);
            naive.push(block);
        }
        let forgotten = naive.len().saturating_sub(capacity as usize);
        for (at, &block) in naive.iter().enumerate() {
            assert_eq!(
                queue.finds(block, OnHit::Stay),
                at >= forgotten,
                "{capacity}: {block}"
            );
        }
        // Each is used again several times: gaps are cleared amid them.
        for &block in naive
            .iter()
            .skip(forgotten)
            .cycle()
            .take(5 * capacity as usize)
        {
            assert!(queue.finds(block, OnHit::Refresh), "{capacity}: {block}");
        }
    }
}

/// Buckets are empty and used again, while the ring goes round and gaps are cleared.
#[test]
fn buckets_that_were_empty_lead_to_no_place_of_another() {
    for capacity in [5_u32, 21, 60] {
        let mut queue = GroupQueue::new(capacity);
        let rest = queue.layout.kept.count_ones();
        let group = |at: u64| (at << rest).wrapping_mul(inverse()) & ((1 << HASH_BITS) - 1);
        let blocks: Vec<u64> = (0..1_u64 << (HASH_BITS - rest))
            .flat_map(|at| (0..12).map(move |next| (at, next)))
            .map(|(at, next)| (group(at) + next * 977) % (1 << HASH_BITS) * GROUP + next % GROUP)
            .collect();
        let mut naive: Vec<u64> = Vec::new();
        let mut dice = 1_u64;
        for _ in 0..20_000 {
            dice = dice
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let block = blocks[(dice >> 33) as usize % blocks.len()];
            let place = naive.iter().position(|other| *other == block);
            let is_held = queue.finds(block, OnHit::Refresh);
            assert_eq!(is_held, place.is_some(), "{capacity}: {block}");
            match place {
                Some(place) => drop(naive.remove(place)),
                None => {
                    queue.add(Interval::new(block, block), Keep::Lowest);
                    naive.drain(..(naive.len() + 1).saturating_sub(capacity as usize));
                }
            }
            naive.push(block);
        }
    }
}

#[test]
fn hostile_runs_are_cut_to_what_exists() {
    for capacity in [0, 1, 3] {
        let mut queue = GroupQueue::new(capacity);
        queue.add(Interval::new(0, u64::MAX), Keep::Lowest);
        queue.add(Interval::new(0, u64::MAX), Keep::Highest);
        assert!(queue.finds(MAX_BLOCK, OnHit::Stay));
        queue.add(Interval::new(u64::MAX, u64::MAX), Keep::Lowest);
        // Gaps are no number.
        queue.finds(MAX_BLOCK, OnHit::Refresh);
        let beyond = Interval::new(MAX_BLOCK + 1, MAX_BLOCK + 5000);
        assert!(!queue.meets(beyond, OnHit::Refresh));
        let last = Interval::new(u64::MAX - 5000, u64::MAX);
        assert!(!queue.meets(last, OnHit::Refresh));
        queue.add(Interval::EMPTY, Keep::Highest);
        assert_eq!(queue.len, capacity.max(1) as usize);
    }
}
