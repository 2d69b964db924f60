//! Drives that nobody has looked at: random truths, each profiled by the whole procedure, and what
//! was found judged as `headtime profile --check` does.
//!
//! `PROPTEST_CASES` says how many, a few without it. To see what is found of each of many:
//! `PROPTEST_CASES=100 cargo test -p profiler --test profiler no_random -- --nocapture`.

mod judge;
pub(crate) mod named;
mod plan;

use block::Duration;
use drive::HostJitter;
use drive::random::RandomDrive;
use judge::Judged;
use plan::plans;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};

/// How many random drives are profiled unless `PROPTEST_CASES` says otherwise. A choice: some
/// seconds.
const CASES: u32 = 24;

/// The same drives in every run: a failure is somebody's work, not luck. `PROPTEST_RNG_SEED` is for
/// others.
fn config() -> ProptestConfig {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    ProptestConfig {
        cases: number("PROPTEST_CASES").map_or(CASES, |cases: u64| cases as u32),
        rng_seed: RngSeed::Fixed(number("PROPTEST_RNG_SEED").unwrap_or(1)),
        // Each step is a drive to be profiled.
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_random_drive_gets_a_wrong_profile_with_confidence(plan in plans()) {
        let judged = Judged::of(&plan);
        println!("{judged:?}");
        prop_assert!(judged.complaints().is_empty(), "{:?} {judged:?}", judged.complaints());
    }
}

/// How many of the same drives are profiled by reads alone, unless `PROPTEST_CASES` says otherwise. A
/// choice: some seconds.
const BY_READS: usize = 6;

/// How many behind a host: these take longer. A choice.
const BEHIND_A_HOST: usize = 3;

/// By reads alone, behind a host that delays by `HOST_JITTER_US` in the mean.
#[test]
fn reads_alone_give_no_random_drive_a_wrong_profile_with_confidence() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let drives = number("PROPTEST_CASES").map_or(BY_READS, |cases| cases as usize);
    let mut wrong = 0;
    let judged = judged_by_reads(drives, number("HOST_JITTER_US").unwrap_or(0));
    for (drive, (plan, judged)) in judged.enumerate() {
        println!("{drive}: {judged:?}\n{plan:?}");
        println!("   {:?}", judged.complaints());
        wrong += usize::from(!judged.complaints().is_empty());
    }
    assert_eq!(wrong, 0);
}

/// The same with a delay of 30 us in the mean, which hides sectors.
#[test]
fn reads_behind_a_host_give_no_random_drive_a_wrong_profile_with_confidence() {
    for (plan, judged) in judged_by_reads(BEHIND_A_HOST, 30) {
        assert!(judged.complaints().is_empty(), "{judged:?}\n{plan:?}");
    }
}

/// Some drives, profiled by reads alone behind a host that delays by `mean` microseconds in the mean.
fn judged_by_reads(drives: usize, mean: u64) -> impl Iterator<Item = (RandomDrive, Judged)> {
    let jitter = match mean {
        0 => HostJitter::default(),
        _ => HostJitter {
            mean: Duration::from_micros(mean),
            stalls_ppm: 5_000,
            longest_stall: Duration::from_millis(4),
            ..HostJitter::default()
        },
    };
    let mut runner = TestRunner::new(config());
    (0..drives).map(move |_| {
        let plan = plans().new_tree(&mut runner).expect("a plan").current();
        let judged = Judged::by_reads(&plan, jitter);
        (plan, judged)
    })
}

/// Of most random drives nearly everything is found: were it not so, the property above would say
/// little.
#[test]
fn most_random_drives_are_known() {
    const DRIVES: usize = 12;
    let mut runner = TestRunner::new(config());
    let mut known = 0;
    for _ in 0..DRIVES {
        let plan = plans().new_tree(&mut runner).expect("a plan").current();
        let judged = Judged::of(&plan);
        known += usize::from(judged.is_known());
    }
    assert!(known * 3 > DRIVES * 2, "{known} of {DRIVES}");
}
