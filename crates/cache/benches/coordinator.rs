//! What a coordinator costs for a request, and a prefetcher.
//!
//! `cargo bench -p cache --bench coordinator`. Requests of four blocks, seven of eight continue one of
//! eight streams; the lower cache is full, and has the blocks of the last requests.

use block::Interval;
use block::{Direction, Duration, Instant};
use cache::coordinator::{self, LowerCache, Purpose, UpperRequest};
use cache::prefetch::{self, Advice, LookupResult, Seen, Site};
use cache::{Cache, FetchOrigin, FirstTouch, Pattern, Verdict};
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};

const REQUESTS: u64 = 100_000;

/// The last block that may be asked for.
const LAST: u64 = 2_000_000;

fn main() {
    divan::main();
}

fn requests() -> Vec<Interval> {
    let mut dice = 1u64;
    let mut streams = [0u64; 8];
    let each = (0..REQUESTS).map(|_| {
        dice = dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let roll = dice >> 33;
        let stream = (roll % 8) as usize;
        if (roll >> 8).is_multiple_of(8) {
            streams[stream] = (roll >> 11) % 1_000_000;
        }
        streams[stream] += 4;
        Interval::of(streams[stream], 4)
    });
    each.collect()
}

/// A full cache that holds some of what is asked for: a coordinator does other things below one that has
/// free frames.
fn lower(frames: u64, requests: &[Interval]) -> Cache {
    let mut cache = Cache::named("lru", frames, FirstTouch::default()).expect("lru");
    let others = Interval::of(LAST + 1, frames).blocks();
    let asked = requests.iter().step_by(3).flat_map(|run| run.blocks());
    for block in others.chain(asked) {
        let admitted = cache.admit(block, FetchOrigin::Demand, Pattern::Random, |_, _| {
            Verdict::Evict
        });
        if admitted.is_ok() {
            cache.complete(block);
        }
    }
    assert!(cache.residency().is_full(), "{frames} frames");
    cache
}

#[divan::bench(args = [("none", 6_750), ("pfc", 6_750), ("adaptive", 6_750), ("pfc", 262_144), ("adaptive", 262_144)])]
fn plan(bencher: Bencher, (name, frames): (&str, u64)) {
    let requests = requests();
    let cache = lower(frames, &requests);
    let below = LowerCache {
        frames: frames as u32,
    };
    let mut coordinator = coordinator::make(name, &below).expect("a line of the table");
    bencher.counter(ItemsCount::new(REQUESTS)).bench_local(|| {
        for (&blocks, at) in requests.iter().zip(1..) {
            let now = Instant::from_nanos(at);
            let asked = UpperRequest {
                client: 0,
                file: blocks.first % 8,
                blocks,
                within: Interval::new(0, LAST),
                purpose: Purpose::Demand,
                direction: Direction::Read,
            };
            let plan = coordinator.plan(now, &asked, cache.residency());
            coordinator.on_answered(&asked, black_box(plan), Duration::from_nanos(1));
        }
    });
}

#[divan::bench(args = ["none", "obl", "ra", "linux-2.4", "linux-2.6", "linux-6", "sarc", "amp"])]
fn prefetch(bencher: Bencher, name: &str) {
    let requests = requests();
    let cache = lower(6_750, &requests);
    let mut prefetcher = prefetch::make(name, &Site { frames: 6_750 }).expect("a line");
    let mut advice = Advice::default();
    bencher.counter(ItemsCount::new(REQUESTS)).bench_local(|| {
        for &blocks in &requests {
            let seen = Seen {
                client: 0,
                file: blocks.first % 8,
                blocks,
                within: Interval::new(0, LAST),
                found: LookupResult::NotAll,
            };
            advice.clear();
            prefetcher.on_request(&seen, cache.residency(), &mut advice);
            black_box(&advice);
        }
    });
}
