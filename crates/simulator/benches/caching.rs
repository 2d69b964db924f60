//! What a request costs in the system model: two levels with prefetching, a coordinator and the disk.
//!
//! `cargo bench -p simulator --bench caching`. The load is a synthetic one, and only there to be served:
//! a share of the requests continues one of eight streams, the others jump.

use std::sync::Arc;

use cache::Interval;
use divan::Bencher;
use divan::counter::ItemsCount;
use simulator::caching::{Arrival, Level, Link, Lower, Pace, Setup, System, run};

/// Requests in one iteration.
const REQUESTS: u64 = 200_000;

/// Blocks of the load: 529 MB, the footprint of the OLTP trace of Zhang et al., 2008.
const FOOTPRINT: u64 = 135_000;

fn main() {
    divan::main();
}

/// One in `jumps` requests jumps, and half of those go to a tenth of the blocks.
fn load(jumps: u64) -> Vec<Arrival> {
    let mut dice = 1u64;
    let mut roll = |bound: u64| {
        dice = dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % bound
    };
    let mut streams = [0u64; 8];
    let each = (0..REQUESTS).map(|_| {
        let stream = roll(8) as usize;
        let count = 1 + roll(4);
        let is_hot = roll(2) == 0;
        let first = match roll(jumps) {
            0 if is_hot => roll(FOOTPRINT / 10),
            0 => roll(FOOTPRINT - 8),
            _ => streams[stream] % (FOOTPRINT - 8),
        };
        streams[stream] = first + count;
        Arrival {
            at: 0,
            client: 0,
            file: stream as u64,
            blocks: Interval::of(first, count),
            within: Interval::new(0, FOOTPRINT),
        }
    });
    each.collect()
}

fn serve(bencher: Bencher, prefetcher: &str, coordinator: &str, jumps: u64, l1: u64) {
    let entry = drive::catalog::find("seagate-cheetah-9lp").expect("a shipped drive");
    let replacement = match prefetcher {
        "sarc" => "sarc",
        _ => "lru",
    };
    let setup = Setup {
        clients: vec![Level::new(l1, replacement, prefetcher)],
        lower: vec![Lower {
            level: Level::new(l1, replacement, prefetcher),
            coordinator: coordinator.to_owned(),
            link: Link::LAN,
        }],
        drive: Arc::new(entry.profile().expect("a valid profile")),
    };
    let load = load(jumps);
    bencher.counter(ItemsCount::new(REQUESTS)).bench_local(|| {
        let mut system = System::new(&setup).expect("a system");
        let mut arrivals = load.iter().copied();
        let report = run(&mut system, &mut arrivals, Pace::Closed).expect("a run");
        assert_eq!(report.requests, REQUESTS);
        report.response.mean_ms()
    });
}

/// L1 has a twentieth of the footprint, L2 as much, a tenth of the requests jump.
#[divan::bench(args = ["none", "ra", "linux-2.4", "linux-6", "sarc", "amp"], sample_count = 3)]
fn pfc(bencher: Bencher, prefetcher: &str) {
    serve(bencher, prefetcher, "pfc", 9, FOOTPRINT / 20);
}

/// The same without coordination, and with ours.
#[divan::bench(args = ["none", "pfc", "ours"], sample_count = 3)]
fn linux_2_4(bencher: Bencher, coordinator: &str) {
    serve(bencher, "linux-2.4", coordinator, 9, FOOTPRINT / 20);
}

/// L1 has all of it after a while: what a hit costs.
#[divan::bench(args = ["none", "ra", "linux-2.4", "linux-6", "sarc", "amp"], sample_count = 3)]
fn hits(bencher: Bencher, prefetcher: &str) {
    serve(bencher, prefetcher, "pfc", 9, 2 * FOOTPRINT);
}
