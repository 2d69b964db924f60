//! Large transfers that step aside, on drives as they are: what it brings and what it costs.

use std::sync::Arc;

use block::{Direction, Duration, Sectors, Switch};
use drive::{Profile, catalog};
use engine::Preempted;
use scheduler::Preemption;
use scheduler::preemption::{Aside, Landing, LastChunk, When};

use trial::{Load, Scan, run, serve};

mod trial;

fn barracuda() -> Arc<Profile> {
    let entry = catalog::find("seagate-st318437lw").expect("a shipped drive");
    Arc::new(entry.profile().expect("a good profile"))
}

fn load(direction: Direction, kilobytes: u64, rate: f64) -> Load {
    Load {
        direction,
        blocks: kilobytes * 1000 / 512,
        depth: 2,
        rate,
        seconds: 40,
        noise: Duration::from_micros(60),
    }
}

/// Nothing but single commands, under which each rule can be switched on alone.
fn nothing(drive: &Profile) -> Preemption {
    Preemption {
        chunk: None,
        just_in_time: None,
        split: None,
        free_prefetch: Switch::Off,
        last_chunk: LastChunk::Buffered,
        aside: None,
        ..Preemption::suited_to(drive)
    }
}

#[test]
fn an_urgent_read_does_not_wait_for_two_megabytes() {
    let drive = barracuda();
    for direction in [Direction::Read, Direction::Write] {
        let load = load(direction, 2000, 5.0);
        let whole = run(&drive, None, &load);
        let parts = run(&drive, Some(Preemption::suited_to(&drive)), &load);
        assert!(parts.mean < whole.mean / 3.0, "{parts:?}\n{whole:?}");
        assert!(parts.most < whole.most / 2.0, "{parts:?}\n{whole:?}");
        assert!(parts.preempted.aside > 0);
    }
}

#[test]
fn chunks_and_just_in_time_seeks_cost_no_throughput() {
    let drive = barracuda();
    for kilobytes in [50, 500] {
        let load = load(Direction::Read, kilobytes, 0.0);
        let whole = run(&drive, None, &load);
        let parts = run(&drive, Some(Preemption::suited_to(&drive)), &load);
        assert!(
            parts.rate > 0.99 * whole.rate,
            "{} {}",
            parts.rate,
            whole.rate
        );
        assert!(parts.expected_wait < whole.expected_wait / 2.0, "{parts:?}");
    }
}

#[test]
fn each_rule_works_alone() {
    let drive = barracuda();
    let load = load(Direction::Read, 250, 0.0);
    let none = nothing(&drive);
    let suited = Preemption::suited_to(&drive);
    let single = run(&drive, Some(none), &load);
    assert_eq!(single.preempted, Preempted::default());
    let chunk = run(
        &drive,
        Some(Preemption {
            chunk: suited.chunk,
            ..none
        }),
        &load,
    );
    assert!(chunk.preempted.parts > 0 && chunk.preempted.held == 0);
    assert!(
        chunk.expected_wait < 0.8 * single.expected_wait,
        "{}",
        chunk.expected_wait
    );
    let just_in_time = Preemption {
        just_in_time: suited.just_in_time,
        ..none
    };
    let just_in_time = run(&drive, Some(just_in_time), &load);
    assert!(just_in_time.preempted.parts == 0 && just_in_time.preempted.held > 0);
    assert!(
        just_in_time.expected_wait < 0.9 * single.expected_wait,
        "{}",
        just_in_time.expected_wait
    );
    let split = Preemption {
        split: Preemption::as_in_paper(&drive).split,
        when: When::Always,
        ..none
    };
    let split = run(&drive, Some(split), &load);
    assert!(split.preempted.hops > 0 && split.rate < single.rate);
    let ahead = Preemption {
        free_prefetch: Switch::On,
        chunk: suited.chunk,
        ..none
    };
    let ahead = run(&drive, Some(ahead), &load);
    assert!(ahead.preempted.read_ahead > Sectors(0));
    assert!(
        ahead.rate > 0.97 * chunk.rate,
        "{} {}",
        ahead.rate,
        chunk.rate
    );
}

#[test]
fn what_goes_on_while_the_urgent_one_waits_for_its_sector_is_won() {
    let drive = barracuda();
    let load = load(Direction::Read, 2000, 20.0);
    let suited = Preemption::suited_to(&drive);
    let aside = |fill| {
        let aside = Aside {
            fill,
            most_permille: 1000,
        };
        run(
            &drive,
            Some(Preemption {
                aside: Some(aside),
                ..suited
            }),
            &load,
        )
    };
    let (with, without) = (aside(Switch::On), aside(Switch::Off));
    assert!(with.preempted.filled > 0 && without.preempted.filled == 0);
    assert!(
        with.rate > 1.02 * without.rate,
        "{} {}",
        with.rate,
        without.rate
    );
    assert!(
        with.mean < without.mean + 0.5,
        "{} {}",
        with.mean,
        without.mean
    );
}

#[test]
fn ways_back_take_no_more_than_they_may() {
    let drive = barracuda();
    let load = load(Direction::Read, 2000, 20.0);
    for most_permille in [0, 50] {
        let aside = Aside {
            fill: Switch::Off,
            most_permille,
        };
        let came = run(
            &drive,
            Some(Preemption {
                aside: Some(aside),
                ..Preemption::suited_to(&drive)
            }),
            &load,
        );
        // What was saved up in the beginning may be spent as well.
        let most = 0.25 + 40.0 * f64::from(most_permille) / 1000.0;
        assert!(
            came.preempted.back.as_secs_f64() <= most,
            "{:?}",
            came.preempted
        );
    }
}

#[test]
fn a_cache_full_of_writes_does_not_hold_up_an_urgent_read() {
    let drive = barracuda();
    let load = load(Direction::Write, 50, 10.0);
    let suited = Preemption::suited_to(&drive);
    let buffered = Preemption {
        last_chunk: LastChunk::Buffered,
        ..suited
    };
    let forced = run(&drive, Some(suited), &load);
    let buffered = run(&drive, Some(buffered), &load);
    assert!(
        forced.mean < buffered.mean / 2.0,
        "{} {}",
        forced.mean,
        buffered.mean
    );
}

#[test]
fn free_blocks_and_preemption_share_one_slack() {
    let drive = barracuda();
    let load = Load {
        seconds: 200,
        ..load(Direction::Read, 50, 5.0)
    };
    let rules = Some(Preemption::suited_to(&drive));
    let without = serve(&drive, rules, &load, Scan::None);
    let with = serve(&drive, rules, &load, Scan::All);
    // Megabytes a second are read in gaps, and large requests are served nearly as
    // fast: a way to a detour is lost when something urgent comes during it.
    let free = with.free.0 as f64 * f64::from(drive.block_bytes) / 1e6 / load.seconds as f64;
    assert!(free > 5.0, "{free}");
    assert!(
        with.rate > 0.95 * without.rate,
        "{} {}",
        with.rate,
        without.rate
    );
    // Whoever is urgent waits for little more than without free blocks, because it overtakes
    // between a detour and the request behind it.
    let whole = serve(&drive, Some(nothing(&drive)), &load, Scan::All);
    let (longer, saved) = (with.mean - without.mean, whole.mean - without.mean);
    assert!(longer < 0.35 * saved, "{longer} {saved}");
}

#[test]
fn free_blocks_are_left_where_urgent_requests_would_wait_for_them() {
    let drive = barracuda();
    let rules = Some(Preemption::suited_to(&drive));
    let free = [2.0, 20.0].map(|rate| {
        let load = Load {
            seconds: 200,
            ..load(Direction::Read, 50, rate)
        };
        serve(&drive, rules, &load, Scan::All).free.0
    });
    // Twenty a second cost more waiting than the impact budget has for all plans.
    assert!(free[1] * 10 < free[0] * 9, "{free:?}");
}

#[test]
fn on_a_drive_that_is_as_believed_no_seek_misses_its_sector_and_none_is_held_for_a_revolution() {
    let entry = catalog::find("modern-20tb").expect("a shipped drive");
    let drive = Arc::new(entry.profile().expect("a good profile"));
    let load = Load {
        direction: Direction::Read,
        blocks: 256,
        depth: 1,
        rate: 0.0,
        seconds: 100,
        noise: Duration::ZERO,
    };
    let rules = Preemption {
        just_in_time: Some(Landing::Fixed(Duration::from_micros(300))),
        when: When::Always,
        ..Preemption::suited_to(&drive)
    };
    let came = run(&drive, Some(rules), &load);
    assert!(came.preempted.held > 1000, "{:?}", came.preempted);
    assert_eq!(came.preempted.missed, 0);
    // Stops on the way of a long seek are not held back.
    assert!(came.turned < came.preempted.held / 500, "{}", came.turned);
}
