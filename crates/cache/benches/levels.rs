//! How many requests a second two levels serve, with prefetcher and coordinator, without messages
//! and a disk: every fetch below the second level is complete at once.
//!
//! Two thirds of the requests go on where one of 32 sequential readers was, one third is random;
//! four blocks each, of a million. L1 has 50,000 blocks, L2 as many.

use block::Interval;
use block::{Direction, Instant, RequestId};
use cache::coordinator::{Purpose, UpperRequest};
use cache::level::{Composition, Ending};
use cache::{Level, Stack};
use divan::Bencher;
use divan::counter::ItemsCount;

/// Blocks of the device.
const BLOCKS: u64 = 1_000_000;

/// Blocks of each level: a twentieth, as L1 has in PFC's larger setting.
const CAPACITY: u64 = BLOCKS / 20;

/// Blocks of a request.
const LENGTH: u64 = 4;

/// Sequential readers.
const READERS: u64 = 32;

/// Requests of a sample.
const REQUESTS: usize = 100_000;

fn main() {
    divan::main();
}

/// Where requests begin.
fn starts() -> Vec<u64> {
    let slots = BLOCKS / LENGTH;
    let mut readers: Vec<u64> = (0..READERS)
        .map(|reader| reader * slots / READERS)
        .collect();
    // A Weyl sequence with the golden ratio: every number once, in no order to speak of.
    let mut mixed = 1_u64;
    let mut start = |at: usize| {
        mixed = mixed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let random = mixed >> 32;
        if at.is_multiple_of(3) {
            return random % slots * LENGTH;
        }
        let reader = &mut readers[(random % READERS) as usize];
        *reader = (*reader + 1) % slots;
        *reader * LENGTH
    };
    (0..REQUESTS).map(&mut start).collect()
}

fn serve(stack: &mut Stack, starts: &[u64]) {
    let now = Instant::ZERO;
    for &start in starts {
        let asked = UpperRequest {
            client: 0,
            file: 0,
            blocks: Interval::of(start, LENGTH),
            within: Interval::new(0, BLOCKS - 1),
            purpose: Purpose::Demand,
            direction: Direction::Read,
        };
        let submitted = stack.submit(now, RequestId(0), asked);
        submitted.expect("one request at a time");
        while let Some(fetch) = stack.poll() {
            stack.complete(now, fetch.id, Ending::Done);
        }
        stack.poll_finished().expect("an answer");
    }
}

fn measure(bencher: Bencher, prefetch: &str, coordinator: &str) {
    let level = |coordinator| {
        let of = Composition {
            capacity: CAPACITY,
            replacement: "lru",
            prefetch,
            coordinator,
            requests: 1 << 10,
        };
        Level::new(&of).expect("lines of the tables")
    };
    let mut stack = Stack::new(vec![level("none"), level(coordinator)]);
    let starts = starts();
    serve(&mut stack, &starts);
    bencher
        .counter(ItemsCount::new(REQUESTS))
        .bench_local(|| serve(&mut stack, divan::black_box(&starts)));
}

#[divan::bench(args = ["none", "pfc", "adaptive"], sample_count = 20, sample_size = 1)]
fn ra(bencher: Bencher, coordinator: &str) {
    measure(bencher, "ra", coordinator);
}

#[divan::bench(args = ["none", "pfc", "adaptive"], sample_count = 20, sample_size = 1)]
fn linux_6(bencher: Bencher, coordinator: &str) {
    measure(bencher, "linux-6", coordinator);
}
