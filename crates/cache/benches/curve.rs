//! How many demands a second the stack distances of LRU take: a Zipf law over a million blocks, on one thread.

use cache::StackDistances;
use divan::Bencher;
use divan::counter::ItemsCount;

/// Different blocks: as in the benchmark of replacement policies.
const OBJECTS: u32 = 1_000_000;

/// Demands of a sample: those of issue 23's goal.
const DEMANDS: usize = 10_000_000;

fn main() {
    divan::main();
}

/// Demands by a Zipf law with exponent 1, numbered in order of their first ones.
fn zipf() -> Vec<u32> {
    let mut total = 0.0;
    let sums: Vec<f64> = (1..=OBJECTS)
        .map(|rank| {
            total += 1.0 / f64::from(rank);
            total
        })
        .collect();
    // Knuth's MMIX generator: any would do.
    let mut state = 8u64;
    let mut numbers = vec![u32::MAX; OBJECTS as usize];
    let mut next = 0;
    let demand = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let at = (state >> 11) as f64 / (1u64 << 53) as f64 * total;
        let rank = sums
            .partition_point(|sum| *sum <= at)
            .min(OBJECTS as usize - 1);
        if numbers[rank] == u32::MAX {
            numbers[rank] = next;
            next += 1;
        }
        numbers[rank]
    };
    (0..DEMANDS).map(demand).collect()
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn stack_distances(bencher: Bencher) {
    let demands = zipf();
    bencher.counter(ItemsCount::new(DEMANDS)).bench_local(|| {
        let mut distances = StackDistances::new();
        for &block in &demands {
            distances.demand(block);
        }
        distances.curve().hits(u64::from(OBJECTS) / 10)
    });
}
