//! Large transfers that step aside, on drives as they are: what it brings and what it costs.

use std::sync::Arc;

use block::{
    Class, Command, Direction, Durability, Duration, Extent, Instant, Lba, Request, RequestId,
    Sectors, Switch,
};
use drive::{Imperfections, Profile, VirtualDrive, catalog};
use engine::{Engine, Limits, Preempted};
use scheduler::Preemption;
use scheduler::preemption::{Aside, LastChunk, When};

/// A greedy client, and one that asks for 8 blocks now and then.
struct Load {
    direction: Direction,
    /// Blocks of a greedy request.
    blocks: u64,
    /// How many of them are always there.
    depth: u64,
    /// Urgent requests a second.
    rate: f64,
    seconds: u64,
}

/// What came of it.
#[derive(Debug)]
struct Came {
    /// Greedy bytes, in MB/s.
    rate: f64,
    /// The mean and the longest response of urgent requests, in ms.
    mean: f64,
    most: f64,
    /// Half the sum of the squares of the times for which commands held the drive, by all time, in ms.
    expected_wait: f64,
    preempted: Preempted,
}

fn throw(dice: &mut u64, sides: u64) -> u64 {
    *dice = dice
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*dice >> 33) % sides
}

fn run(truth: &Arc<Profile>, rules: Option<Preemption>, load: &Load) -> Came {
    let belief = Arc::clone(truth);
    let policy = scheduler::policy::find("fcfs").expect("a policy");
    let mut limits = Limits::default();
    if rules.is_none() {
        limits.commands_at_drive = 1;
    }
    let mut engine = Engine::new(belief, &|| policy.make(), limits);
    if let Some(rules) = rules {
        engine = engine.with_preemption(rules);
    }
    let noise = Imperfections {
        seek_noise: Duration::from_micros(60),
        ..Imperfections::default()
    };
    let mut drive = VirtualDrive::imperfect(Arc::clone(truth), noise, 7);
    let capacity = truth.geometry.sectors().0;
    let (mut dice, mut urgent_dice) = (1, 2);
    let mut now = Instant::ZERO;
    let mut next_urgent = match load.rate > 0.0 {
        true => Instant::ZERO + Duration::from_millis(100),
        false => Instant::from_nanos(u64::MAX),
    };
    let end = Instant::ZERO + Duration::from_secs(load.seconds);
    let (mut number, mut greedy, mut moved) = (0, 0, 0);
    let mut responses = Vec::new();
    let (mut squares, mut last_end) = (0.0, Instant::ZERO);
    let mut given: Vec<(Command, Instant)> = Vec::new();
    let mut submit = |engine: &mut Engine, now, direction, class, length, dice: &mut u64| {
        let start = throw(dice, (capacity - length) / 8) * 8;
        let request = Request {
            id: RequestId(number),
            direction,
            extent: Extent::new(Lba(start), Sectors(length)).expect("on the drive"),
            class,
            durability: Durability::Volatile,
        };
        number += 1;
        engine.submit(now, request).expect("room");
    };
    loop {
        while let Some(outcome) = drive.poll(now) {
            let place = given
                .iter()
                .position(|(command, _)| command.id == outcome.id);
            let (_, at) = given.swap_remove(place.expect("it was given"));
            let held = outcome.at.since(at.max(last_end)).as_secs_f64() * 1e3;
            squares += held * held;
            last_end = outcome.at;
            engine.complete(now, outcome.id, outcome);
        }
        while let Some(finished) = engine.poll_finished() {
            match finished.request.class {
                Class::BestEffort(0) => responses.push(finished.response().as_secs_f64() * 1e3),
                _ => {
                    greedy -= 1;
                    moved += finished.request.extent.length().0;
                }
            }
        }
        if now < end {
            while greedy < load.depth {
                greedy += 1;
                submit(
                    &mut engine,
                    now,
                    load.direction,
                    Class::BestEffort(3),
                    load.blocks,
                    &mut dice,
                );
            }
            while next_urgent <= now {
                next_urgent += Duration::from_nanos((1e9 / load.rate) as u64);
                submit(
                    &mut engine,
                    now,
                    Direction::Read,
                    Class::BestEffort(0),
                    8,
                    &mut urgent_dice,
                );
            }
        }
        while let Some(command) = engine.poll(now) {
            given.push((command, now));
            drive.submit(now, command).expect("room at the drive");
        }
        let urgent = Some(next_urgent).filter(|&then| then < end);
        let next = [drive.next_wakeup(), engine.next_wakeup(), urgent];
        match next.into_iter().flatten().min() {
            Some(then) => now = then,
            None => break,
        }
    }
    responses.sort_by(f64::total_cmp);
    let elapsed = last_end.as_secs_f64();
    Came {
        rate: moved as f64 * f64::from(truth.block_bytes) / 1e6 / elapsed,
        mean: responses.iter().sum::<f64>() / responses.len().max(1) as f64,
        most: responses.last().copied().unwrap_or_default(),
        expected_wait: squares / 2.0 / (elapsed * 1e3),
        preempted: engine.preempted(),
    }
}

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
