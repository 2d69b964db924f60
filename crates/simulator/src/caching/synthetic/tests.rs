//! Each built-in load is what its file says, and a file that makes no sense is told with its line.

use super::{
    ALL, BuiltInCacheLoad, CacheLoadSlice, MULTI_IN_32_KIB, OLTP_BY_VOLUME, OLTP_IN_A_LOOP,
    SyntheticCacheLoad,
};
use crate::caching::figures::LoadFigures;

/// Blocks of the Cheetah 9LP.
const DISK: u64 = 2_222_905;

fn load(name: &str) -> SyntheticCacheLoad {
    let found = ALL.iter().find(|built_in| built_in.name == name);
    found.expect("built in").load().expect("a good file")
}

fn extent(part: u64, clients: u32, seed: u64) -> CacheLoadSlice {
    CacheLoadSlice {
        part,
        clients,
        seed,
    }
}

#[test]
fn every_load_has_its_paper_s_figures_with_any_seed() {
    for built_in in ALL {
        let load = built_in.load().expect("a good file");
        assert_eq!(load.name, built_in.name);
        for seed in [1, 2] {
            let figures = LoadFigures::of(&load.arrivals(&extent(1, 1, seed), DISK));
            let name = &load.name;
            let random = 100.0 * figures.random / load.target.random_percent;
            assert!((0.85..1.15).contains(&random), "{name}: random {random}");
            let footprint = figures.footprint as f64 / load.footprint as f64;
            assert!((0.95..1.05).contains(&footprint), "{name}: {footprint}");
            if let Some(files) = load.target.files {
                let files = figures.files as f64 / files as f64;
                assert!((0.95..1.05).contains(&files), "{name}: files {files}");
            }
        }
    }
}

/// Zhang et al., 4.1: 10 GB of requests over 529 MB, 10.8 % of the 5,334,987 requests of the trace.
#[test]
fn oltp_by_volume_has_the_paper_s_volume() {
    let load = OLTP_BY_VOLUME.load().expect("a good file");
    assert_eq!(load.name, OLTP_BY_VOLUME.name);
    let share = load.requests as f64 / 5_334_987.0;
    assert!((0.107..0.109).contains(&share), "{share}");
    let arrivals = load.arrivals(&extent(1, 1, 2), DISK);
    let mut is_read = vec![false; DISK as usize];
    let (mut volume, mut footprint) = (0.0, 0.0);
    for block in arrivals.iter().flat_map(|arrival| arrival.blocks.blocks()) {
        volume += 4096.0;
        if !std::mem::replace(&mut is_read[block as usize], true) {
            footprint += 4096.0;
        }
    }
    let is_like = |ours: f64, theirs: f64| (0.95..1.05).contains(&(ours / theirs));
    assert!(is_like(volume, 10e9), "{volume}");
    assert!(is_like(footprint, 529e6), "{footprint}");
}

/// The figures of another reading, which has the paper's share of random requests and its footprint.
fn read_otherwise(built_in: &BuiltInCacheLoad) -> LoadFigures {
    let load = built_in.load().expect("a good file");
    assert_eq!(load.name, built_in.name);
    let figures = LoadFigures::of(&load.arrivals(&extent(1, 1, 2), DISK));
    let random = 100.0 * figures.random / load.target.random_percent;
    assert!((0.85..1.15).contains(&random), "random {random}");
    let footprint = figures.footprint_mb() / load.target.footprint_mb;
    assert!((0.95..1.05).contains(&footprint), "{footprint}");
    figures
}

/// 10.8 % of the trace's 5,334,987 requests, 8.1 ms apart.
#[test]
fn oltp_in_a_loop_has_the_rate_of_its_trace_and_is_read_ten_times() {
    let figures = read_otherwise(&OLTP_IN_A_LOOP);
    let share = figures.requests as f64 / 5_334_987.0;
    assert!((0.107..0.109).contains(&share), "{share}");
    assert!((8.0..8.2).contains(&figures.gap_ms), "{}", figures.gap_ms);
    assert!((0.09..0.11).contains(&figures.cold), "{}", figures.cold);
    // A cache of a twentieth, 6,450 blocks, finds hardly more than what a run reads twice.
    let later = figures.far_reuse - figures.near_reuse;
    assert!(later < 0.05, "{later}");
}

#[test]
fn multi_in_32_kib_asks_for_eight_blocks_where_a_file_has_them() {
    let figures = read_otherwise(&MULTI_IN_32_KIB);
    assert!((6.0..8.0).contains(&figures.blocks), "{}", figures.blocks);
    let load = MULTI_IN_32_KIB.load().expect("a good file");
    for arrival in load.arrivals(&extent(10, 1, 2), DISK) {
        let is_at_end = arrival.blocks.last == arrival.within.last;
        assert!(arrival.blocks.len() == 8 || is_at_end && arrival.blocks.len() < 8);
    }
}

#[test]
fn requests_lie_in_their_files_and_come_in_order() {
    for built_in in ALL {
        let load = built_in.load().expect("a good file");
        let arrivals = load.arrivals(&extent(50, 3, 7), DISK);
        assert_eq!(arrivals.len() as u64, load.requests / 50);
        for (before, arrival) in arrivals.iter().zip(&arrivals[1..]) {
            assert!(before.at <= arrival.at);
            assert!(!arrival.blocks.is_empty() && arrival.blocks.last < DISK);
            assert!(arrival.within.first <= arrival.blocks.first);
            assert!(arrival.blocks.last <= arrival.within.last);
            assert!(arrival.client < 3);
        }
        // The same again is the same, and another seed is another load.
        assert_eq!(arrivals, load.arrivals(&extent(50, 3, 7), DISK));
        assert_ne!(arrivals, load.arrivals(&extent(50, 3, 8), DISK));
    }
}

#[test]
fn what_was_read_is_read_again_only_when_the_footprint_is_ahead_of_its_due() {
    let load = load("multi-like");
    let arrivals = load.arrivals(&extent(10, 1, 1), DISK);
    let first_pass = (arrivals.len() as f64 * load.first_pass) as usize;
    let footprint = |upto: usize| LoadFigures::of(&arrivals[..upto]).footprint as f64;
    let share = footprint(first_pass) / footprint(arrivals.len());
    assert!(share > 0.9, "{share} of all blocks in the first pass");
}

#[test]
fn a_file_that_makes_no_sense_is_told_with_its_line() {
    let text = ALL[0].text;
    for (from, to, message) in [
        (
            "overlap = 0.95",
            "overlap = 1.5",
            "overlap: 1.5: expected a share from 0 to 1",
        ),
        (
            "readers = 32",
            "readers = 0",
            "readers: 0: expected 1 to 4294967296",
        ),
        (
            "skew = 3.0",
            "skew = 0.5",
            "skew: 0.5: expected a number from 1",
        ),
        (
            "{ weight = 58, from = 1, to = 1 }",
            "{ weight = 58, from = 4, to = 1 }",
            "runs[0]: 4 to 1: expected at most 65536, upwards",
        ),
        (
            "random_percent = 11",
            "random_percents = 11",
            "target.random_percents: unknown key: did you mean `random_percent`?",
        ),
    ] {
        let wrong = text.replace(from, to);
        assert_ne!(wrong, text, "{from}");
        let error = SyntheticCacheLoad::parse("x.toml", &wrong)
            .expect_err(to)
            .to_string();
        assert!(error.starts_with("x.toml:"), "{error}");
        assert!(error.ends_with(message), "{error}");
    }
}
