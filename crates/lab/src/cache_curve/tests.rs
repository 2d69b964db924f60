//! Curves of small traces whose answers are known.

use std::io::Write as _;

use super::*;

/// A trace in our format, with one read of one block a line.
fn trace(blocks: impl IntoIterator<Item = u64>) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new();
    let mut file = file.suffix(".csv").tempfile().expect("a folder for files");
    for (at, block) in blocks.into_iter().enumerate() {
        let offset = block * BLOCK_BYTES;
        writeln!(file, "{at},disk,R,{offset},4096").expect("room");
    }
    file
}

fn settings(trace: &tempfile::NamedTempFile) -> CurveSettings {
    CurveSettings {
        trace: trace.path().to_owned(),
        format: None,
        columns: None,
        skip_bad: false,
        replacement: Vec::new(),
        prefetch: Vec::new(),
        sizes: Vec::new(),
        sampling: Sampling::WHOLE,
    }
}

/// A multiplicative generator (Lehmer; Park, Miller, CACM 1988): any would do.
fn skewed(count: usize, blocks: u64) -> impl Iterator<Item = u64> {
    let mut state = 1u64;
    (0..count).map(move |_| {
        state = state * 48_271 % 0x7FFF_FFFF;
        let share = state as f64 / f64::from(0x7FFF_FFFF);
        (share * share * share * blocks as f64) as u64
    })
}

#[test]
fn a_loop_needs_all_of_its_blocks_under_lru_and_fewer_under_others() {
    let trace = trace((0..4_000).map(|at| at % 100));
    let curves = settings(&trace).run(&()).expect("a good trace");
    assert_eq!((curves.demands, curves.distinct), (4_000, 100));
    assert_eq!(
        curves.ratios.len(),
        curves.replacements.len() * curves.sizes.len()
    );
    assert_eq!(curves.sizes.last(), Some(&100));
    let of = |name: &str, blocks: u64| {
        let mut points = curves.ratios.iter();
        let point = points.find(|point| point.replacement == name && point.blocks == blocks);
        point.expect("a point of the curve").miss_ratio
    };
    assert_eq!(of("lru", 50), 1.0);
    for name in &curves.replacements {
        assert_eq!(of(name, 100), 100.0 / 4_000.0, "{name}");
    }
    let worth = curves.worth();
    assert_eq!(worth.first_demands, 0.025);
    assert!(worth.memory.iter().all(|worth| worth.blocks == 100));
    let better = worth.better.expect("a loop is lru's worst case");
    assert_eq!(better.lru_blocks, 100);
    assert!(better.best.miss_ratio < 0.6, "{better:?}");
}

#[test]
fn lru_in_one_pass_is_lru_replayed() {
    let trace = trace(skewed(20_000, 3_000));
    let curves = settings(&trace).run(&()).expect("a good trace");
    let demands: Vec<u64> = skewed(20_000, 3_000).collect();
    let points = curves
        .ratios
        .iter()
        .filter(|point| point.replacement == LRU);
    for point in points {
        let cache = cache::Cache::named(LRU, point.blocks, cache::FirstTouch::default());
        let mut cache = cache.expect("a policy");
        let hits = cache.replay(&demands).expect("blocks that exist");
        let misses = (demands.len() as u64 - hits) as f64;
        assert_eq!(point.miss_ratio, misses / demands.len() as f64, "{point:?}");
    }
}

#[test]
fn a_sample_is_near_the_whole() {
    let trace = trace(skewed(60_000, 20_000));
    let mut settings = settings(&trace);
    settings.replacement = vec!["lru".to_owned(), "s3-fifo".to_owned()];
    settings.sizes = vec![1_000, 4_000, 10_000];
    let whole = settings.run(&()).expect("a good trace");
    settings.sampling = Sampling::of(0.25).expect("a share");
    let sampled = settings.run(&()).expect("a good trace");
    assert_eq!(sampled.demands, whole.demands);
    for (sampled, whole) in sampled.ratios.iter().zip(&whole.ratios) {
        let off = (sampled.miss_ratio - whole.miss_ratio).abs();
        // A quarter of 20,000 blocks: a few thousand demands of chance.
        assert!(off < 0.04, "{sampled:?} {whole:?}");
    }
}

/// Zipf's law with alpha 1: the rank is the exponential of an even share of the logarithm of all blocks. The blocks of
/// the ranks are unrelated to them (Steele, Lea, Flood's constant).
fn zipf(count: usize, blocks: u64, seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    (0..count).map(move |_| {
        state = state * 48_271 % 0x7FFF_FFFF;
        let share = state as f64 / f64::from(0x7FFF_FFFF);
        let rank = ((blocks as f64).ln() * share).exp() as u64;
        (rank + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24
    })
}

/// The error as the paper of the method has it (Waldspurger et al., FAST 2015, section 4.2): the mean over sizes that
/// are evenly spaced.
#[test]
fn the_mean_error_of_a_sample_is_below_a_hundredth() {
    for seed in [1, 12_345, 777_777] {
        let trace = trace(zipf(200_000, 100_000, seed));
        let mut settings = settings(&trace);
        settings.replacement = vec![LRU.to_owned()];
        settings.sizes = (1..=50).map(|part| part * 1_000).collect();
        let whole = settings.run(&()).expect("a good trace");
        assert_eq!(whole.coarse_below(), None);
        settings.sampling = Sampling::of(0.1).expect("a share");
        let sampled = settings.run(&()).expect("a good trace");
        let pairs = sampled.ratios.iter().zip(&whole.ratios);
        let off = pairs.map(|(sampled, whole)| (sampled.miss_ratio - whole.miss_ratio).abs());
        let mean = off.sum::<f64>() / 50.0;
        assert!(mean > 0.0 && mean < 0.01, "{seed}: {mean}");
        assert_eq!(sampled.coarse_below(), Some(10_000));
    }
}

#[test]
fn a_reader_is_served_ahead_and_what_jumps_is_fetched_for_in_vain() {
    let figures = |blocks: &[u64]| {
        let trace = trace(blocks.iter().copied());
        let mut settings = settings(&trace);
        settings.prefetch = vec!["none".to_owned(), "ra(p=8)".to_owned()];
        settings.sizes = vec![64];
        settings.run(&()).expect("a good trace").prefetched
    };
    let forward: Vec<u64> = (0..400).collect();
    let [none, ahead] = &figures(&forward)[..] else {
        panic!("a line for each prefetcher");
    };
    assert_eq!((none.miss_ratio, none.prefetched, none.unused), (1.0, 0, 0));
    assert_eq!(ahead.miss_ratio, 1.0 / 400.0);
    // The last eight are past the reader's end, and within the region of the volume.
    assert_eq!((ahead.prefetched, ahead.unused), (407, 8));
    // Every hundredth block: what is fetched ahead is never demanded.
    let jumping: Vec<u64> = (0..400).map(|at| at * 100).collect();
    let [_, ahead] = &figures(&jumping)[..] else {
        panic!("a line for each prefetcher");
    };
    assert_eq!(
        (ahead.miss_ratio, ahead.prefetched, ahead.unused),
        (1.0, 3_200, 3_200)
    );
}

#[test]
fn what_is_wrong_is_said() {
    let trace = trace([1, 2, 3]);
    let wrong = |change: &dyn Fn(&mut CurveSettings)| {
        let mut settings = settings(&trace);
        change(&mut settings);
        settings.run(&()).expect_err("it is wrong").to_string()
    };
    let problem = wrong(&|settings| settings.replacement = vec!["lrx".to_owned()]);
    assert!(problem.contains("expected one of"), "{problem}");
    let problem = wrong(&|settings| settings.format = Some("spx".to_owned()));
    assert!(problem.contains("oracle-general"), "{problem}");
    let problem = wrong(&|settings| settings.format = Some("csv".to_owned()));
    assert!(problem.contains("--columns"), "{problem}");
    let problem = wrong(&|settings| settings.columns = Some("obj-id-col=0".to_owned()));
    assert!(problem.contains("1 to 1000"), "{problem}");
    let problem = wrong(&|settings| settings.prefetch = vec!["linux-7".to_owned()]);
    assert!(problem.contains("expected one of"), "{problem}");
    let problem = wrong(&|settings| {
        settings.prefetch = vec!["ra".to_owned()];
        settings.sampling = Sampling::of(0.9).expect("a share");
    });
    assert!(problem.contains("neighbours"), "{problem}");
    let problem = wrong(&|settings| settings.trace = "/nowhere/trace.csv".into());
    assert!(problem.contains("/nowhere/trace.csv"), "{problem}");
    for share in [0.0, -1.0, 1.5, f64::NAN, 1e-12] {
        assert!(Sampling::of(share).is_err(), "{share}");
    }
}
