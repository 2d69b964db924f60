//! Misses on real traces, against libCacheSim (Yang et al.), commit aa0fc40 of 2024-10-07.
//!
//! How its figures were made stands in `docs/results/cache.md`. Each request is the blocks of 4 KiB
//! that it touches, reads and writes alike, one demand for each; devices are numbered in the order
//! in which they appear, and have 2^40 blocks each.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use cache::{Cache, FirstTouch};

/// Trace, demands, capacity, and the misses of libCacheSim's lru, arc, s3fifo, sieve. Capacities are
/// such that a tenth of them is a whole number: then the sizes of S3-FIFO's queues need no rounding.
#[rustfmt::skip]
const MISSES: &[(&str, usize, u64, [u64; 4])] = &[
    ("financial1_first10000", 22_511,    100,     [11_294,    11_135,    11_623,    12_187]),
    ("financial1_first10000", 22_511,    1_000,   [9_006,     8_995,     8_922,     8_949]),
    ("msr_web_3",             331_109,   2_000,   [301_821,   302_548,   302_550,   303_487]),
    ("msr_web_3",             331_109,   16_000,  [290_607,   282_476,   262_039,   292_056]),
    ("diskmon_sys1",          349_900,   2_000,   [332_009,   330_333,   331_634,   331_861]),
    ("diskmon_sys1",          349_900,   20_000,  [303_724,   299_828,   298_349,   302_936]),
    ("ms_dtrs_5min",          1_759_180, 10_000,  [1_758_696, 1_758_435, 1_758_614, 1_758_435]),
    ("ms_dtrs_5min",          1_759_180, 100_000, [1_757_942, 1_757_448, 1_757_880, 1_757_448]),
];

/// The policies of the columns.
const POLICIES: [&str; 4] = ["lru", "arc", "s3-fifo", "sieve"];

/// Bytes of a block.
const BLOCK: u64 = 4096;

/// Blocks of a device.
const DEVICE: u64 = 1 << 40;

/// The folder of the shared traces, or nothing if it is not there: then the test is skipped, except
/// in CI.
#[allow(clippy::print_stdout)] // Whoever reads the test's output should know that it was skipped.
fn traces() -> Option<PathBuf> {
    let shared = std::env::var_os("HEADTIME_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let traces = shared.join("traces");
    if traces.is_dir() {
        return Some(traces);
    }
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!is_ci, "CI needs the shared traces in {}", traces.display());
    println!("skipped: misses on traces (no shared data)");
    None
}

/// The demands of a trace: `seconds,device,R|W,byte_offset,byte_length`.
fn demands(path: PathBuf) -> Vec<u64> {
    let file = std::fs::File::open(&path).expect("a shared trace");
    let reader = zstd::Decoder::new(file).expect("zstd");
    let mut devices = BTreeMap::new();
    let mut demands = Vec::new();
    for line in BufReader::new(reader).lines() {
        let line = line.expect("a line");
        let [_, device, _, offset, length] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("{}: {line}", path.display());
        };
        let [offset, length]: [u64; 2] = [offset, length].map(|n| n.parse().expect("a number"));
        let next = devices.len() as u64;
        let device = *devices.entry(device.to_owned()).or_insert(next);
        let blocks = offset / BLOCK..=(offset + length - 1) / BLOCK;
        demands.extend(blocks.map(|block| device * DEVICE + block));
    }
    demands
}

/// What the choice costs that S3-FIFO's authors leave to their code: when the small queue's turn
/// ends. Two misses of 11,623.
#[test]
fn another_end_of_the_small_queues_turn_differs() {
    let Some(traces) = traces() else {
        return;
    };
    let demands = demands(traces.join("financial1_first10000.csv.zst"));
    let cache = Cache::named("s3-fifo(turn=short)", 100, FirstTouch::default());
    let hits = cache.expect("a policy of the table").replay(&demands);
    assert_eq!(hits.map(|hits| demands.len() as u64 - hits), Ok(11_625));
}

#[test]
fn misses_are_those_of_an_independent_implementation() {
    let Some(traces) = traces() else {
        return;
    };
    for (name, count, capacity, misses) in MISSES {
        let demands = demands(traces.join(format!("{name}.csv.zst")));
        assert_eq!(demands.len(), *count, "{name}");
        for (policy, expected) in POLICIES.iter().zip(misses) {
            let mut cache = Cache::named(policy, *capacity, FirstTouch::default()).expect(policy);
            let hits = cache.replay(&demands).expect("blocks that exist");
            let ours = *count as u64 - hits;
            assert_eq!(ours, *expected, "{name} {policy} {capacity}");
        }
    }
}
