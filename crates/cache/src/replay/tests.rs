//! Replays beside caches with the same policy.

use proptest::prelude::*;

use super::*;
use crate::Numbers;

/// Policies of the table, with and without parameters.
const NAMES: &[&str] = &[
    "lru",
    "fifo",
    "sieve",
    "arc",
    "s3-fifo",
    "s3-fifo(turn=short)",
    "s3-fifo(fill=main)",
    "s3-fifo(small=400,remembered=500,again=1)",
    "s3-fifo(remembered=0,small=0)",
    "lirs",
    "lirs(high=300,remembered=50)",
    "lirs(high=1000,remembered=0)",
    "mq",
];

fn demand() -> impl Strategy<Value = u64> {
    // Low numbers are demanded more often than high ones, and neighbours follow each other.
    prop_oneof![0u64..8, 0u64..40, 0u64..300, 0u64..2_000]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn a_replay_hits_what_a_cache_hits(
        which in 0..NAMES.len(),
        capacity in prop_oneof![1u64..14, 1u64..400],
        blocks in prop::collection::vec(demand(), 1..1_500),
        piece in 1usize..700,
    ) {
        let name = NAMES[which];
        let mut cache = Cache::named(name, capacity, FirstTouch::default()).expect("a policy of the table");
        let mut replay = Replay::named(name, capacity).expect("a policy of the table");
        let mut numbers = Numbers::new();
        for (at, piece) in blocks.chunks(piece).enumerate() {
            let mut numbered = Vec::new();
            numbers.extend(piece, &mut numbered).expect("few blocks");
            let hits = replay.demand(&numbered, numbers.count());
            prop_assert_eq!(Ok(hits), cache.replay(piece), "{} {}: piece {}", name, capacity, at);
        }
    }
}

/// Long enough for logs and queues to be compacted several times.
#[test]
fn a_long_replay_hits_what_a_cache_hits() {
    let mut state = 1u64;
    // A multiplicative generator (Lehmer; Park, Miller, CACM 1988): any would do.
    let blocks = (0..60_000).map(|_| {
        state = state * 48_271 % 0x7FFF_FFFF;
        let share = state as f64 / f64::from(0x7FFF_FFFF);
        (share * share * share * 3_000.0) as u64
    });
    let blocks: Vec<u64> = blocks.collect();
    let mut numbers = Numbers::new();
    let mut numbered = Vec::new();
    numbers.extend(&blocks, &mut numbered).expect("few blocks");
    for name in NAMES {
        for capacity in [1, 37, 700] {
            let cache = Cache::named(name, capacity, FirstTouch::default());
            let hits = cache.expect("a policy of the table").replay(&blocks);
            let replay = Replay::named(name, capacity).expect("a policy of the table");
            let ours = { replay }.demand(&numbered, numbers.count());
            assert_eq!(Ok(ours), hits, "{name} {capacity}");
        }
    }
}

#[test]
fn numbered_policies_are_lines_of_the_table() {
    for (name, _) in NUMBERED {
        assert!(
            replacement::ALL.iter().any(|entry| entry.name == *name),
            "{name}"
        );
    }
}

#[test]
fn a_cache_too_large_for_logs_is_replayed_all_the_same() {
    let capacity = u64::from(MAX_NUMBERED) + 1;
    let numbered = numbered("fifo", capacity).expect("a size");
    assert!(numbered.is_none());
    let unknown = Replay::named("lrx", 4).map(|_| ());
    assert!(unknown.is_err());
    assert_eq!(
        Replay::named("lru", 0).map(|_| ()),
        Err(BadReplacement::Capacity(0))
    );
}
