//! The swarm: whole services in virtual time, each drawn from a seed, with faults.
//!
//! ```text
//!   seed --> plan: setting, steps --> world --operations, cuts--> event loop --> simulated kernel
//!                                       ^-------- answers ----------'   killed, and begun again
//!            checks: every byte, power cuts, scrubs, all ends once and in time, nothing is left
//! ```
//!
//! `cargo xtask swarm --seeds N | --minutes M | --seed S` runs it. A failure is shortened and printed.

mod client;
#[path = "../event_loop/conversation.rs"]
mod conversation;
mod failures;
#[path = "../event_loop/fickle.rs"]
#[allow(dead_code, reason = "shared with the tests of the loop")]
mod fickle;
mod films;
mod history;
mod kernel;
mod legs;
#[path = "../event_loop/model.rs"]
#[allow(dead_code, reason = "shared with the tests of the loop")]
mod model;
mod moments;
#[path = "../event_loop/offered.rs"]
mod offered;
mod plan;
#[path = "../event_loop/promised.rs"]
mod promised;
mod regions;
mod reload;
mod run;
mod scan;
mod scrub;
mod status;
mod straying;
mod streams;
mod unlucky;
mod volatile;
#[path = "../event_loop/whole.rs"]
mod whole;
mod world;

use crate::plan::Plan;
use crate::run::{Report, describe, run, shrink};

/// What `model` calls a station.
mod station {
    pub use crate::run::BLOCK;
}

/// Runs one seed, and shortens its plan if it fails.
#[allow(clippy::print_stderr, reason = "shortening may take minutes")]
fn try_seed(seed: u64) -> Result<Report, String> {
    let plan = Plan::of(seed);
    run(&plan, seed).map_err(|problem| {
        eprintln!("seed {seed} fails, and is shortened: {problem}");
        let shortest = shrink(&plan, seed);
        let problem = run(&shortest, seed).err().unwrap_or_default();
        describe(seed, &problem, &shortest)
    })
}

/// Seeds that find a defect, and the defect: of the past, or planted to try the swarm. Seeds mean other runs once the
/// drawing of plans changes.
const CORPUS: [(u64, &str); 15] = [
    (
        20,
        "a checkpoint that a power cut refuses keeps its volume from the next one",
    ),
    (1, "edges of partial writes are not held, planted"),
    (
        362,
        "a recorded write does not wait for a partial write of its blocks (852cedc), planted",
    ),
    (
        989,
        "a block keeps the page of a fetch that a trim has made void (f793564), planted",
    ),
    (
        471,
        "reads of the profiler that have failed are missing among the errors of a drive",
    ),
    (
        8318,
        "the part of a film's last track is left to a round that has no time for it",
    ),
    (
        9163,
        "a batch that waits for others' writes to its page is late, and nobody says why",
    ),
    (
        6806,
        "a scan finds what was there before a write that a client has found in the cache",
    ),
    (3, "pages stay in the cache after a trim, planted"),
    (
        105,
        "a flush does not wait for the pages of a cache, planted",
    ),
    (
        582,
        "a mirror that was killed copies nothing at its start, planted",
    ),
    (
        608,
        "a read beside a trim finds a part of a sector zeroed (8817740b)",
    ),
    (
        1301,
        "pages that could not be written are told to one client alone (3068105), planted",
    ),
    (
        1726,
        "a stream's read that has free blocks in front puts the wrong blocks into the buffer (38ab80f6)",
    ),
    (
        1749,
        "a read of what is being recorded queues copies again and again, and never begins (39d4b0d4)",
    ),
];

#[test]
fn seeds_of_the_corpus_pass() {
    for (seed, found) in CORPUS {
        if let Err(problem) = try_seed(seed) {
            panic!("{found}, again:\n{problem}");
        }
    }
}

/// A run depends on its seed alone.
#[test]
fn a_seed_ends_twice_in_the_same_way() {
    for seed in 0..10 {
        match try_seed(seed) {
            Ok(first) => assert_eq!(run(&Plan::of(seed), seed), Ok(first), "seed {seed}"),
            Err(problem) => panic!("{problem}"),
        }
    }
}

/// How many seeds `cargo xtask swarm` wants.
enum Wanted {
    Seeds(u64),
    Minutes(f64),
    /// This one alone.
    Seed(u64),
}

impl Wanted {
    /// From `HEADTIME_SWARM`: `seeds 100`, `minutes 5` or `seed 7`. Without it 60 seeds: a choice, some seconds.
    fn from_environment() -> Wanted {
        let text = std::env::var("HEADTIME_SWARM").unwrap_or_else(|_| "seeds 60".to_owned());
        let mut words = text.split_whitespace();
        let (what, number) = (words.next(), words.next().unwrap_or_default());
        let wanted = match what {
            Some("seeds") => number.parse().ok().map(Wanted::Seeds),
            Some("minutes") => number.parse().ok().map(Wanted::Minutes),
            Some("seed") => number.parse().ok().map(Wanted::Seed),
            _ => None,
        };
        wanted.unwrap_or_else(|| {
            panic!("HEADTIME_SWARM={text:?}: expected \"seeds N\", \"minutes M\" or \"seed S\"")
        })
    }
}

#[test]
#[allow(clippy::print_stderr, reason = "progress of long work")]
fn all_seeds_pass() {
    let wanted = Wanted::from_environment();
    let begun = std::time::Instant::now();
    let first = std::env::var("HEADTIME_SWARM_FROM").map_or(0, |from| {
        from.parse().expect("HEADTIME_SWARM_FROM is a number")
    });
    let (mut nanos, mut counts, mut told) = (0, world::Counts::default(), begun);
    let seeds = match wanted {
        Wanted::Seed(seed) => seed..seed + 1,
        Wanted::Seeds(count) => first..first + count,
        Wanted::Minutes(_) => first..u64::MAX,
    };
    let mut done = 0;
    for seed in seeds {
        if let Wanted::Seed(seed) = wanted {
            eprintln!("seed {seed}: {:?}", Plan::of(seed).setting);
        }
        match try_seed(seed) {
            Ok(report) => {
                nanos += report.nanos;
                counts.add(&report.counts);
            }
            Err(problem) => panic!("{problem}"),
        }
        done += 1;
        let is_over = match wanted {
            Wanted::Minutes(minutes) => begun.elapsed().as_secs_f64() > minutes * 60.0,
            Wanted::Seeds(_) | Wanted::Seed(_) => false,
        };
        if told.elapsed().as_secs() >= 10 || is_over {
            told = std::time::Instant::now();
            eprintln!("{done} seeds, up to {seed}");
        }
        if is_over {
            break;
        }
    }
    let (hours, cpu) = (nanos as f64 / 3.6e12, run::cpu_seconds());
    eprintln!(
        "{done} seeds passed: {hours:.2} hours of service in {cpu:.1} s of CPU time, {:.0} hours an hour; {counts:?}",
        hours * 3600.0 / cpu
    );
}
