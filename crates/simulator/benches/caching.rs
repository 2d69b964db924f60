//! What a request costs in the system model: two levels with prefetching, a coordinator and the disk.
//!
//! `cargo bench -p simulator --bench caching`. The loads are synthetic, and only there to be served; caches
//! are empty at first, and what it takes to build a system is not measured.

use std::sync::Arc;

use block::{Direction, Instant, Interval};
use divan::Bencher;
use divan::counter::ItemsCount;
use simulator::caching::{
    ArrivalTiming, CacheArrival, CacheSpec, CachingSetup, FileEnds, Link, LowerLevel, Scheduler,
    System, Writes, run,
};

/// Requests in one iteration.
const REQUESTS: u64 = 200_000;

/// Blocks of the load: 529 MB, the footprint of the OLTP trace of Zhang et al., 2008.
const FOOTPRINT: u64 = 135_000;

/// Blocks of each level: a twentieth of the footprint, as L1 has in the larger setting there.
const FRAMES: u64 = FOOTPRINT / 20;

fn main() {
    divan::main();
}

/// Knuth's MMIX generator: any would do.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn read(file: u64, blocks: Interval) -> CacheArrival {
    CacheArrival {
        at: Instant::ZERO,
        client: 0,
        file,
        blocks,
        within: Interval::new(0, FOOTPRINT),
        direction: Direction::Read,
    }
}

/// Most requests continue one of eight streams, one in nine jumps, and half of those go to a tenth of the
/// blocks: hardly a block is asked for twice before it goes.
fn mixed() -> Vec<CacheArrival> {
    let mut dice = Dice(1);
    let mut streams = [0u64; 8];
    let each = (0..REQUESTS).map(|_| {
        let stream = dice.roll(8) as usize;
        let count = 1 + dice.roll(4);
        let is_hot = dice.roll(2) == 0;
        let first = match dice.roll(9) {
            0 if is_hot => dice.roll(FOOTPRINT / 10),
            0 => dice.roll(FOOTPRINT - 8),
            _ => streams[stream] % (FOOTPRINT - 8),
        };
        streams[stream] = first + count;
        read(stream as u64, Interval::of(first, count))
    });
    each.collect()
}

/// One or two blocks by a Zipf law with exponent 1 over the footprint, a rank's place unrelated to it: two
/// thirds of them are found in L1.
fn oltp() -> Vec<CacheArrival> {
    let mut total = 0.0;
    let sums: Vec<f64> = (1..FOOTPRINT)
        .map(|rank| {
            total += 1.0 / rank as f64;
            total
        })
        .collect();
    let mut dice = Dice(1);
    let each = (0..REQUESTS).map(|_| {
        let at = dice.roll(1 << 31) as f64 / (1u64 << 31) as f64 * total;
        let rank = sums.partition_point(|sum| *sum <= at) as u64;
        // A multiplier without a common divisor with the footprint: every place once.
        let place = rank * 77_773 % (FOOTPRINT - 1);
        read(place / 1_000, Interval::of(place, 1 + dice.roll(2)))
    });
    each.collect()
}

/// One reader of four blocks at a time, from the first to the last, again and again.
fn sequential() -> Vec<CacheArrival> {
    let each = (0..REQUESTS).map(|at| read(0, Interval::of(at * 4 % (FOOTPRINT - 4), 4)));
    each.collect()
}

fn serve(bencher: Bencher, load: &[CacheArrival], prefetcher: &str, coordinator: &str) {
    let entry = drive::catalog::find("seagate-cheetah-9lp").expect("a shipped drive");
    let replacement = match prefetcher {
        "sarc" => "sarc",
        _ => "lru",
    };
    let setup = CachingSetup {
        clients: vec![CacheSpec::new(FRAMES, replacement, prefetcher)],
        lower: vec![LowerLevel {
            level: CacheSpec::new(FRAMES, replacement, prefetcher),
            coordinator: coordinator.to_owned(),
            link: Link::LAN,
        }],
        drive: Arc::new(entry.profile().expect("a valid profile")),
        scheduler: Scheduler::Elevator,
        file_ends: FileEnds::AllLevels,
        writes: Writes::AsReads,
    };
    bencher
        .counter(ItemsCount::new(REQUESTS))
        .with_inputs(|| System::new(&setup).expect("a system"))
        .bench_local_refs(|system| {
            let mut arrivals = load.iter().copied();
            let report = run(system, &mut arrivals, ArrivalTiming::Closed).expect("a run");
            assert_eq!(report.requests, REQUESTS);
            report.response.mean_ms()
        });
}

const PREFETCHERS: [&str; 6] = ["none", "ra", "linux-2.4", "linux-6", "sarc", "amp"];

#[divan::bench(args = PREFETCHERS, sample_count = 5, sample_size = 1)]
fn mixed_pfc(bencher: Bencher, prefetcher: &str) {
    serve(bencher, &mixed(), prefetcher, "pfc");
}

#[divan::bench(args = ["none", "pfc", "adaptive"], sample_count = 5, sample_size = 1)]
fn mixed_linux_2_4(bencher: Bencher, coordinator: &str) {
    serve(bencher, &mixed(), "linux-2.4", coordinator);
}

#[divan::bench(args = PREFETCHERS, sample_count = 5, sample_size = 1)]
fn oltp_pfc(bencher: Bencher, prefetcher: &str) {
    serve(bencher, &oltp(), prefetcher, "pfc");
}

#[divan::bench(args = PREFETCHERS, sample_count = 5, sample_size = 1)]
fn sequential_pfc(bencher: Bencher, prefetcher: &str) {
    serve(bencher, &sequential(), prefetcher, "pfc");
}
