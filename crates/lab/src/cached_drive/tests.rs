//! Small traces on caches.

use std::io::Write as _;

use simulator::caching::CacheSpec;

use super::spec::SpecifiedCache;
use super::*;

/// Reads of one block, a millisecond apart, of these blocks.
fn trace(blocks: impl IntoIterator<Item = u64>) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new();
    let mut file = file.suffix(".csv").tempfile().expect("a folder for files");
    for (at, block) in blocks.into_iter().enumerate() {
        let offset = block * BLOCK_BYTES;
        writeln!(file, "{},disk,R,{offset},4096", at as f64 / 100.0).expect("room");
    }
    file
}

fn settings(trace: &tempfile::NamedTempFile, caches: &[&str]) -> CachedSettings {
    CachedSettings {
        drive: "seagate-cheetah-9lp".to_owned(),
        profile: None,
        load: LoadSettings {
            trace: Some(trace.path().to_owned()),
            ..LoadSettings::default()
        },
        caches: caches.iter().map(|&cache| cache.to_owned()).collect(),
        link: "none".to_owned(),
        policy: "sptf".to_owned(),
        requests: None,
    }
}

#[test]
fn hits_and_misses_of_a_loop_are_known() {
    let trace = trace((0..600).map(|at| at % 100 * 7));
    let figures = settings(&trace, &["100 KiB", "400 KiB"])
        .run(&())
        .expect("a good trace");
    let [upper, lower] = &figures.levels[..] else {
        panic!("two levels: {figures:?}");
    };
    // Neither a quarter of the loop nor its repetition is ever in the first; the second keeps all of it.
    assert_eq!((upper.hits, upper.misses, upper.hit_ratio), (0, 600, 0.0));
    assert_eq!((lower.hits, lower.misses), (500, 100));
    assert_eq!(figures.disk_blocks, 100);
    assert_eq!((figures.requests, figures.mode), (600, Label::InFirmware));
    assert!(
        figures.mean_ms > 0.0 && figures.mean_ms <= figures.p99_ms,
        "{figures:?}"
    );
    assert!(figures.p50_ms < figures.p99_ms, "{figures:?}");
}

#[test]
fn prefetching_turns_misses_of_a_reader_into_hits() {
    let trace = trace(0..400);
    let run = |cache: &str| settings(&trace, &[cache]).run(&()).expect("a good trace");
    let (without, with) = (run("1 MiB,lru,none"), run("1 MiB,lru,ra(p=8)"));
    assert_eq!(
        (without.levels[0].hits, without.levels[0].prefetched),
        (0, 0)
    );
    assert!(with.levels[0].hits > 350, "{with:?}");
    assert!(with.levels[0].prefetched >= 400 - with.levels[0].misses);
    assert!(with.mean_ms < without.mean_ms);
}

#[test]
fn a_link_costs_each_reply() {
    let trace = trace((0..50).map(|at| at * 100));
    let mut settings = settings(&trace, &["1 MiB", "1 MiB,lru,none,pfc"]);
    let free = settings.run(&()).expect("a good trace").mean_ms;
    settings.link = "lan".to_owned();
    let far = settings.run(&()).expect("a good trace").mean_ms;
    // 6 ms, and 0.03 ms for the page.
    assert!((far - free - 6.03).abs() < 0.5, "{free} {far}");
}

#[test]
fn a_cache_is_one_text() {
    let parsed = SpecifiedCache::parse(1, "256 MiB, arc, ra(p=8), pfc(a3=half,a4=veto)");
    let parsed = parsed.expect("a good cache");
    assert_eq!(parsed.cache, CacheSpec::new(65_536, "arc", "ra(p=8)"));
    assert_eq!(parsed.name(), "256 MiB,arc,ra(p=8),pfc(a3=half,a4=veto)");
    let short = SpecifiedCache::parse(0, "1GiB").expect("a good cache");
    assert_eq!(short.name(), "1024 MiB,lru,none,none");
    for (text, problem) in [
        ("", "expected at least 4 KiB"),
        ("arc,64 MiB", "expected at least 4 KiB"),
        ("64,lru", "expected at least 4 KiB"),
        ("1 KiB,lru", "expected at least 4 KiB"),
        ("64 MiB,lrx", "expected one of"),
        ("64 MiB,lru,linux-7", "expected one of"),
        ("64 MiB,lru,none,pfd", "expected one of"),
        ("64 MiB,lru,none,none,none", "expected SIZE"),
    ] {
        let error = SpecifiedCache::parse(1, text).expect_err(text);
        assert!(error.contains(problem), "{text}: {error}");
    }
    let first = SpecifiedCache::parse(0, "64 MiB,lru,none,pfc").expect_err("no cache above");
    assert!(first.contains("first cache"), "{first}");
}

#[test]
fn what_caches_do_not_do_is_refused() {
    let trace = trace([1, 2, 3]);
    let wrong = |change: &dyn Fn(&mut CachedSettings)| {
        let mut settings = settings(&trace, &["1 MiB"]);
        change(&mut settings);
        settings.run(&()).expect_err("it is wrong").to_string()
    };
    let problem = wrong(&|settings| settings.load.closed = Some(10));
    assert!(problem.contains("--closed=1"), "{problem}");
    let problem = wrong(&|settings| settings.link = "lam".to_owned());
    assert!(problem.contains("lan"), "{problem}");
    let problem = wrong(&|settings| settings.policy = "sptg".to_owned());
    assert!(problem.contains("sptf"), "{problem}");
    let problem = wrong(&|settings| settings.load.device = Some("other".to_owned()));
    assert!(problem.contains("disk"), "{problem}");
    let problem = wrong(&|settings| {
        settings.load.trace = None;
        settings.load.workload = Some("oltp".to_owned());
    });
    assert!(problem.contains("--trace"), "{problem}");
}
