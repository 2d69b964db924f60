//! What matters outside of a drive's firmware: a look-ahead that delays the next command, sectors that
//! are read before parts of them are written, a scan of the drive's own at irregular moments, and a host that
//! delays.

use block::{Account, Action, Duration, Instant};
use drive::firmware::LookAhead;
use drive::host::{DelayShifts, MeasuredPath};
use drive::imperfection::{AheadTrigger, HeldLookAhead, Periodic, UnalignedWrites};
use drive::{HostJitter, Imperfections, Profile, VirtualDrive};

use crate::play::Play;
use crate::small::*;

fn imperfect(profile: Profile, imperfections: Imperfections) -> Play {
    Play::new(VirtualDrive::imperfect(arc(profile), imperfections, 7))
}

fn held(blocks: u32, after: AheadTrigger) -> Imperfections {
    Imperfections {
        held_look_ahead: HeldLookAhead { blocks, after },
        ..Imperfections::default()
    }
}

fn ahead() -> Profile {
    buffered(|rules| rules.look_ahead = LookAhead::Track)
}

/// How long the last of three reads, which comes with the second, waits for the arm.
fn wait_for_arm(imperfections: Imperfections, second: Action) -> Duration {
    let mut play = imperfect(ahead(), imperfections);
    play.then(read(210, 2));
    // What is held after the first is over.
    let now = play.now + micros(100_000);
    play.submit(now, second);
    let far = play.submit(now, read(1_000, 2));
    play.drain();
    play.of(far).account().queue
}

#[test]
fn a_held_look_ahead_delays_the_next_command_by_its_blocks() {
    let [none, some, more] =
        [0, 4, 8].map(|blocks| wait_for_arm(held(blocks, AheadTrigger::EveryRead), read(60, 2)));
    let sectors = |blocks: u64| Duration::from_nanos(SECTOR * blocks);
    assert!(
        some.saturating_sub(none)
            .as_nanos()
            .abs_diff(sectors(4).as_nanos())
            < 1_000
    );
    assert!(
        more.saturating_sub(none)
            .as_nanos()
            .abs_diff(sectors(8).as_nanos())
            < 1_000
    );
}

#[test]
fn it_ends_with_its_track() {
    let [some, most] =
        [4, 1_000].map(|blocks| wait_for_arm(held(blocks, AheadTrigger::EveryRead), read(74, 2)));
    assert_eq!(some, most, "four blocks are left of the track");
}

#[test]
fn a_read_on_another_track_triggers_none_that_waits_for_sequential_ones() {
    let far = read(60, 2);
    let held = |blocks| wait_for_arm(held(blocks, AheadTrigger::SameTrack), far);
    assert_eq!(held(8), held(0));
    // On the track of the first, before what its look-ahead has read.
    let near = |blocks| wait_for_arm(self::held(blocks, AheadTrigger::SameTrack), read(202, 2));
    let more = near(8).saturating_sub(near(0));
    assert!(more.as_nanos().abs_diff(8 * SECTOR) < 1_000, "{more:?}");
}

#[test]
fn a_write_of_a_part_of_a_sector_costs_a_revolution_and_a_whole_one_nothing() {
    let of_4096 = with_lines(&[("physical_block_bytes = 512", "physical_block_bytes = 4096")]);
    let took = |unaligned_writes, action| {
        let imperfections = Imperfections {
            unaligned_writes,
            ..Imperfections::default()
        };
        imperfect(of_4096.clone(), imperfections)
            .serve(at(0), action)
            .took()
    };
    let more = |action| {
        let free = took(UnalignedWrites::Free, action);
        took(UnalignedWrites::ReadFirst, action).saturating_sub(free)
    };
    let revolution = Duration::from_nanos(REVOLUTION);
    assert_eq!(more(write(8, 8)), Duration::ZERO);
    assert_eq!(more(write(9, 8)), revolution);
    assert_eq!(more(write(8, 1)), revolution);
    assert_eq!(more(read(9, 3)), Duration::ZERO);
}

#[test]
fn a_scan_of_the_drives_own_delays_commands_at_irregular_moments() {
    let scanning = Imperfections {
        irregular_scan: Periodic {
            every: Duration::from_millis(400),
            costs: Duration::from_millis(30),
        },
        ..Imperfections::default()
    };
    let delayed = |imperfections: Imperfections| -> Vec<u64> {
        let mut play = imperfect(bare(), imperfections);
        let took = (0..2_000).map(|turn| (turn, play.then(read(turn % 2 * 400, 2)).took()));
        let slow = took.filter(|(_, took)| *took > Duration::from_nanos(2 * REVOLUTION));
        slow.map(|(turn, _)| turn).collect()
    };
    assert!(delayed(Imperfections::default()).is_empty());
    let slow = delayed(scanning.clone());
    assert!((25..200).contains(&slow.len()), "{}", slow.len());
    let mut apart: Vec<u64> = slow.windows(2).map(|pair| pair[1] - pair[0]).collect();
    apart.sort_unstable();
    apart.dedup();
    assert!(apart.len() > 10, "{apart:?}");
    assert_eq!(slow, delayed(scanning), "the same seed gives the same scan");
}

fn behind(host: HostJitter) -> Imperfections {
    Imperfections {
        host,
        ..Imperfections::default()
    }
}

/// Twenty reads, each given when the one before has ended.
fn reads() -> impl Iterator<Item = Action> {
    (0..20).map(|number| read(number * 7919 % 1_000, 2))
}

/// The oracle: the same drive without a host gets each command later, and each outcome is later.
#[test]
fn a_host_with_a_constant_delay_delays_commands_and_outcomes_by_it() {
    let floor = micros(230);
    let mut behind = imperfect(
        ahead(),
        behind(HostJitter {
            floor,
            ..HostJitter::default()
        }),
    );
    let mut plain = imperfect(ahead(), Imperfections::default());
    for action in reads() {
        let given = behind.now;
        let done = behind.then(action);
        let expected = plain.serve(given + floor, action);
        assert_eq!(done.outcome.at, expected.outcome.at + floor);
        let account = Account {
            queue: expected.account().queue + floor + floor,
            ..expected.account()
        };
        assert_eq!(done.account(), account);
    }
}

/// Measured delays are those of the table: the oracle counts how many are within each quantile.
#[test]
fn a_measured_host_delays_as_it_was_measured() {
    for (_, path) in MeasuredPath::ALL {
        let apart = Duration::from_nanos(3 * REVOLUTION);
        let mut plain = imperfect(bare(), Imperfections::default());
        let end = plain.serve(Instant::ZERO, read(0, 2)).outcome.at;
        let mut play = imperfect(bare(), behind(HostJitter::measured(path)));
        let late: Vec<u64> = (0..10_000)
            .map(|turn| {
                let at = Instant::ZERO + apart * turn;
                let done = play.serve(at, read(0, 2)).outcome.at;
                // A command that arrives too late waits for a revolution.
                done.since(end + apart * turn).as_nanos() % REVOLUTION
            })
            .collect();
        for (share, percent) in [(0.25, 25.0), (0.5, 50.0), (0.9, 90.0), (0.99, 99.0)] {
            let within = path.to_program(share);
            let found = late.iter().filter(|late| **late <= within).count() as f64 / 100.0;
            assert!(
                (found - percent).abs() < 1.5,
                "{path:?}: {found} of {percent} %"
            );
        }
    }
}

/// With two commands at the drive, too, a host only delays, and keeps every command.
#[test]
fn a_host_only_delays_by_as_much_as_it_is_told_and_loses_nothing() {
    let mean = micros(200);
    let took = |host| -> Vec<u64> {
        let mut play = imperfect(bare(), behind(host));
        // One read of a revolution after the other: none waits for the one before.
        let apart = Duration::from_nanos(3 * REVOLUTION);
        let ids: Vec<_> = (0..2_000)
            .map(|turn| play.submit(Instant::ZERO + apart * turn, read(0, 2)))
            .collect();
        play.drain();
        let ends = ids.iter().zip(0..).map(|(id, turn)| {
            let end = play.of(*id).outcome.at;
            end.since(Instant::ZERO + apart * turn).as_nanos()
        });
        ends.collect()
    };
    let exponential = HostJitter {
        mean,
        ..HostJitter::default()
    };
    let plain = took(HostJitter::default());
    let late: Vec<u64> = took(exponential)
        .iter()
        .zip(&plain)
        // A command that arrives late may miss its sector, and waits for it.
        .map(|(late, plain)| (late - plain) % REVOLUTION)
        .collect();
    let mean_of = late.iter().sum::<u64>() as f64 / late.len() as f64;
    let expected = mean.as_nanos() as f64;
    // The end of a read follows its sector: only the outcome's delay is left.
    assert!((mean_of / expected - 1.0).abs() < 0.1, "{mean_of}");
    assert_eq!(took(exponential), took(exponential), "the same seed");
}

/// Each delay lasts for its time, and they are spread evenly up to the longest.
#[test]
fn a_host_whose_usual_delay_changes_delays_all_outcomes_of_a_time_alike() {
    let (most, apart) = (micros(80), Duration::from_nanos(3 * REVOLUTION));
    let shifts = DelayShifts {
        most,
        every: apart * 5,
    };
    let host = HostJitter {
        shifts,
        ..HostJitter::default()
    };
    let mut plain = imperfect(bare(), Imperfections::default());
    let end = plain.serve(Instant::ZERO, read(0, 2)).outcome.at;
    let mut play = imperfect(bare(), behind(host));
    let mut levels: Vec<(u64, u64)> = Vec::new();
    for turn in 0..2_000 {
        let at = Instant::ZERO + apart * turn;
        let late = play
            .serve(at, read(0, 2))
            .outcome
            .at
            .since(end + apart * turn);
        let during = (end + apart * turn).as_nanos() / shifts.every.as_nanos();
        match levels.last() {
            Some((level, before)) if *level == during => assert_eq!(late.as_nanos(), *before),
            _ => levels.push((during, late.as_nanos())),
        }
    }
    let mean = levels.iter().map(|level| level.1).sum::<u64>() / levels.len() as u64;
    assert!(levels.iter().all(|level| level.1 <= most.as_nanos()));
    assert!((35_000..45_000).contains(&mean), "{mean}");
}
