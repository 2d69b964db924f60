//! How many blocks a second each policy serves: demands for single blocks by a Zipf law, on one
//! thread, each read complete at once.
//!
//! `OBJECTS` blocks, alpha 1.0, a cache for a tenth and a hundredth of them: `args` is the divisor.

use cache::{Cache, FirstTouch};
use divan::Bencher;
use divan::counter::ItemsCount;

/// How many different blocks there are: a choice, as in many benchmarks of caches.
const OBJECTS: u64 = 1_000_000;

/// How many demands one sample has: several for each block, so that a sample has the law's tail.
const DEMANDS: usize = 4_000_000;

/// The exponent of the law.
const ALPHA: f64 = 1.0;

fn main() {
    divan::main();
}

/// Any seed does.
const SEED: u64 = 8;

/// Blake's, Steele's, Lea's splitmix64 (OOPSLA 2014).
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// The demands. The rank of a block says nothing of its number.
fn zipf() -> Vec<u64> {
    let mut total = 0.0;
    let mut sums = Vec::with_capacity(OBJECTS as usize);
    for rank in 1..=OBJECTS {
        total += (rank as f64).powf(-ALPHA);
        sums.push(total);
    }
    let mut state = SEED;
    let mut demand = || {
        let at = (splitmix(&mut state) >> 11) as f64 / (1_u64 << 53) as f64 * total;
        let rank = sums.partition_point(|sum| *sum <= at) as u64;
        rank.wrapping_mul(0x9E37_79B1) & 0xFFFF_FFFF
    };
    (0..DEMANDS).map(|_| demand()).collect()
}

fn serve(bencher: Bencher, policy: &str, divisor: u64) {
    let demands = zipf();
    let cache = Cache::named(policy, OBJECTS / divisor, FirstTouch::default());
    let mut cache = cache.expect("a policy of the table");
    cache.replay(&demands).expect("blocks that exist");
    bencher
        .counter(ItemsCount::new(DEMANDS))
        .bench_local(|| cache.replay(divan::black_box(&demands)));
}

#[divan::bench(args = [10, 100], sample_count = 5, sample_size = 1)]
fn lru(bencher: Bencher, divisor: u64) {
    serve(bencher, "lru", divisor);
}

#[divan::bench(args = [10, 100], sample_count = 5, sample_size = 1)]
fn du(bencher: Bencher, divisor: u64) {
    serve(bencher, "du", divisor);
}

#[divan::bench(args = [10, 100], sample_count = 5, sample_size = 1)]
fn sarc(bencher: Bencher, divisor: u64) {
    serve(bencher, "sarc", divisor);
}

#[divan::bench(args = [10, 100], sample_count = 5, sample_size = 1)]
fn arc(bencher: Bencher, divisor: u64) {
    serve(bencher, "arc", divisor);
}

#[divan::bench(args = [10, 100], sample_count = 5, sample_size = 1)]
fn lirs(bencher: Bencher, divisor: u64) {
    serve(bencher, "lirs", divisor);
}

#[divan::bench(args = [10, 100], sample_count = 5, sample_size = 1)]
fn mq(bencher: Bencher, divisor: u64) {
    serve(bencher, "mq", divisor);
}

#[divan::bench(args = [10, 100], sample_count = 5, sample_size = 1)]
fn s3_fifo(bencher: Bencher, divisor: u64) {
    serve(bencher, "s3-fifo", divisor);
}

#[divan::bench(args = [10, 100], sample_count = 5, sample_size = 1)]
fn sieve(bencher: Bencher, divisor: u64) {
    serve(bencher, "sieve", divisor);
}

#[divan::bench(args = [10, 100], sample_count = 5, sample_size = 1)]
fn w_tinylfu(bencher: Bencher, divisor: u64) {
    serve(bencher, "w-tinylfu", divisor);
}
