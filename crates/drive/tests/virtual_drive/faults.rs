//! What a belief does not know: noise, stalls, bad sectors, a wandering spindle.

use block::{Action, Duration, Extent, Lba, Sectors, Status};
use drive::firmware::LookAhead;
use drive::imperfection::{Chance, Later, Periodic};
use drive::{Imperfections, Profile, VirtualDrive, ZoneAction, ZoneCondition};

use crate::play::Play;
use crate::small::*;

fn imperfect(profile: Profile, imperfections: Imperfections) -> Play {
    Play::new(VirtualDrive::imperfect(arc(profile), imperfections, 42))
}

#[test]
fn seeks_are_noisy_and_transfers_are_not() {
    let noisy = Imperfections {
        seek_noise: micros(100),
        ..Imperfections::default()
    };
    let mut play = imperfect(bare(), noisy);
    let mut seeks = Vec::new();
    for turn in 0..40 {
        let account = play.then(read(turn % 2 * 1_000, 4)).account();
        seeks.push(account.seek);
        assert!(account.transfer.as_nanos().abs_diff(4 * SECTOR) <= 16);
    }
    seeks.sort();
    seeks.dedup();
    assert!(seeks.len() > 30, "all different");
}

#[test]
fn the_electronics_are_noisy_on_hits_too() {
    let noisy = Imperfections {
        overhead_noise: micros(20),
        ..Imperfections::default()
    };
    let mut play = imperfect(buffered(|_| ()), noisy);
    play.then(read(0, 8));
    let took: Vec<u64> = (0..400)
        .map(|_| play.then(read(2, 2)).took().as_nanos())
        .collect();
    let mean = took.iter().sum::<u64>() / 400;
    assert!(
        mean.abs_diff(350_000) < 3_000,
        "a mean of {mean} ns, without noise 350,000"
    );
    assert!(took.iter().any(|&t| t < 345_000) && took.iter().any(|&t| t > 355_000));
}

#[test]
fn a_hung_command_holds_the_drive_even_if_the_buffer_has_it() {
    let hung = Imperfections {
        hang: Some((1, Duration::from_secs(2))),
        ..Imperfections::default()
    };
    let mut play = imperfect(buffered(|_| ()), hung);
    assert!(play.then(read(0, 8)).took() < micros(30_000));
    let now = play.now;
    let hangs = play.submit(now, read(2, 2));
    let behind = play.submit(now, read(4, 2));
    play.drain();
    // Its overhead is hidden.
    assert_eq!(play.of(hangs).took(), Duration::from_secs(2) + micros(250));
    let queue = play.of(hangs).account().queue;
    assert_eq!(queue, Duration::from_secs(2).saturating_sub(micros(100)));
    assert!(play.of(behind).took() > Duration::from_secs(2));
    assert_eq!(play.then(read(2, 2)).took(), micros(350));
}

#[test]
fn a_recalibration_hits_who_comes_meanwhile_and_nobody_else() {
    let hot = Imperfections {
        recalibration: Periodic {
            every: Duration::from_secs(1),
            costs: micros(20_000),
        },
        ..Imperfections::default()
    };
    let mut play = imperfect(buffered(|_| ()), hot);
    play.serve(at(0), read(0, 8));
    let took = |play: &mut Play, now| play.serve(at(now), read(2, 2)).took();
    assert_eq!(took(&mut play, 500_000), micros(350));
    // 5 ms into it; its overhead is hidden.
    assert_eq!(took(&mut play, 1_005_000), micros(15_000 + 250));
    assert_eq!(took(&mut play, 1_500_000), micros(350));
    // The third was done while nobody asked.
    assert_eq!(took(&mut play, 3_900_000), micros(350));
}

#[test]
fn an_unreadable_block_is_reported_until_it_is_written() {
    let bad = Imperfections {
        unreadable: vec![extent(10, 3)],
        ..Imperfections::default()
    };
    let profile = buffered(|rules| rules.look_ahead = LookAhead::Track);
    let mut play = imperfect(profile, bad);
    let error = |lba| Status::MediumError { at: Lba(lba) };
    // The look-ahead after the first read passes over it and must not make it readable.
    assert_eq!(play.then(read(5, 2)).status(), Status::Good);
    play.run_until(play.now + micros(100_000));
    let failed = play.then(read(8, 8));
    assert_eq!(failed.status(), error(10));
    let retries = failed.account().transfer;
    assert!(
        retries >= Duration::from_nanos(8 * REVOLUTION),
        "tried again and again"
    );
    assert_eq!(
        play.then(read(8, 8)).status(),
        error(10),
        "and a failed read neither"
    );
    assert_eq!(play.then(read(8, 2)).status(), Status::Good);
    assert_eq!(play.then(read(11, 1)).status(), error(11));
    play.then(write(10, 2));
    assert_eq!(play.then(read(10, 2)).status(), Status::Good);
    assert_eq!(play.then(read_medium(8, 8)).status(), error(12));
    play.then(write(12, 1));
    assert_eq!(play.then(read_medium(8, 8)).status(), Status::Good);
}

#[test]
fn an_unreadable_block_is_found_by_who_waits_for_the_look_ahead() {
    let bad = Imperfections {
        unreadable: vec![extent(10, 1)],
        ..Imperfections::default()
    };
    let profile = buffered(|rules| rules.look_ahead = LookAhead::Segment);
    let mut play = imperfect(profile, bad);
    play.then(read(0, 4));
    assert_eq!(
        play.then(read(4, 10)).status(),
        Status::MediumError { at: Lba(10) }
    );
    assert_eq!(play.then(read(12, 4)).status(), Status::Good);
}

#[test]
fn a_retry_costs_reads_a_revolution_and_writes_nothing() {
    let weak = Imperfections {
        media_retry: Chance {
            per_million: 1_000_000,
            costs: Duration::ZERO,
        },
        ..Imperfections::default()
    };
    for (action, lost) in [(read(0, 4), REVOLUTION), (write(0, 4), 0)] {
        let perfect = Play::new(VirtualDrive::new(arc(bare())))
            .then(action)
            .took();
        let took = imperfect(bare(), weak.clone()).then(action).took();
        let off = took.as_nanos() - perfect.as_nanos();
        assert!(off.abs_diff(lost) <= 16, "{action:?}: {off}");
    }
}

#[test]
fn a_grown_defect_takes_its_detour() {
    let grown = Imperfections {
        grown_defects: vec![Lba(7)],
        ..Imperfections::default()
    };
    let mut play = imperfect(bare(), grown);
    let hurt = play.serve(at(0), read(6, 4)).account();
    let spared = play.serve(at(100_000), read(8, 4)).account();
    assert!(hurt.transfer > spared.transfer + Duration::from_nanos(2 * REVOLUTION));
}

#[test]
fn a_zone_is_written_from_its_write_pointer() {
    let shingled = Imperfections {
        sequential_zone: Some(100),
        ..Imperfections::default()
    };
    let mut play = imperfect(bare(), shingled);
    let expects = |lba| Status::WritePointer { expected: Lba(lba) };
    assert_eq!(play.then(write(100, 10)).status(), Status::Good);
    assert_eq!(play.then(write(120, 10)).status(), expects(110));
    assert_eq!(play.then(write(110, 10)).status(), Status::Good);
    assert_eq!(
        play.then(write(190, 20)).status(),
        expects(120),
        "over the end of the zone"
    );
    assert_eq!(play.then(write(5, 1)).status(), expects(0));
    assert_eq!(play.then(write(100, 3)).status(), expects(120));
    let reset = play.drive.change_zone(Lba(100), ZoneAction::Reset);
    assert_eq!(reset, Ok(()));
    assert_eq!(play.then(write(100, 3)).status(), Status::Good);
    assert_eq!(play.then(write(103, 97)).status(), Status::Good);
    let all = Extent::new(Lba(0), Sectors(300)).expect("blocks");
    let zones: Vec<ZoneCondition> = play.drive.zones(all).map(|zone| zone.condition).collect();
    let empty = ZoneCondition::Empty;
    assert_eq!(zones, [empty, ZoneCondition::Full, empty]);
    assert_eq!(play.then(read(0, 300)).status(), Status::Good);
}

#[test]
fn a_wandering_spindle_is_not_a_new_profile_each_time() {
    let drifting = Imperfections {
        spindle_ppm: 50,
        spindle_drift_ppm: 20,
        ..Imperfections::default()
    };
    let mut play = imperfect(bare(), drifting);
    let first: *const Profile = play.drive.truth();
    let mut periods = Vec::new();
    for second in 1..40 {
        play.serve(at(second * 1_000_000), read(second * 20, 4));
        assert!(
            std::ptr::eq(first, play.drive.truth()),
            "the profile was copied"
        );
        periods.push(play.drive.truth().spindle.period_ps());
    }
    let nominal = REVOLUTION * 1_000;
    let slowest = nominal + nominal / 1_000_000 * 70;
    let fastest = nominal + nominal / 1_000_000 * 30;
    assert!(
        periods
            .iter()
            .all(|period| (fastest..=slowest).contains(period))
    );
    periods.dedup();
    assert!(periods.len() > 20, "it wanders");
}

#[test]
fn the_spindle_wanders_slowly() {
    let drifting = Imperfections {
        spindle_drift_ppm: 100,
        ..Imperfections::default()
    };
    let mut play = imperfect(bare(), drifting);
    play.serve(at(2_000_000), read(0, 1));
    let before = play.drive.truth().spindle.period_ps();
    for _ in 0..10 {
        play.then(read(3, 1));
    }
    assert!(play.now < at(2_300_000));
    assert_eq!(play.drive.truth().spindle.period_ps(), before);
}

#[test]
fn drift_does_not_make_the_look_ahead_miss_a_sector() {
    let drifting = Imperfections {
        spindle_drift_ppm: 200,
        ..Imperfections::default()
    };
    let profile = buffered(|rules| rules.look_ahead = LookAhead::Segment);
    let mut play = imperfect(profile, drifting);
    play.keep(
        1,
        (0..5).flat_map(|_| (0..BLOCKS / 8).map(|n| read(n * 8, 8))),
    );
    let medium = 5 * (80 * REVOLUTION + (40 * 3 + 39 * 5) * SECTOR);
    let took = play.now.as_nanos();
    assert!(
        took < medium + medium / 40,
        "{took}, the medium takes {medium}"
    );
    play.then(Action::Flush);
}

#[test]
fn a_drive_changes_from_some_moment_on_without_a_jump() {
    let slower = Imperfections {
        spindle_ppm: 1_000,
        ..Imperfections::default()
    };
    let changing = Imperfections {
        later: Some(Later {
            from: at(1_000_000),
            imperfections: Box::new(slower),
        }),
        ..Imperfections::default()
    };
    let mut play = imperfect(bare(), changing);
    play.serve(at(900_000), read(0, 1));
    let before = play.drive.truth().spindle;
    assert_eq!(before.period_ps(), REVOLUTION * 1_000);
    play.serve(at(1_000_000), read(3, 1));
    let after = play.drive.truth().spindle;
    assert_eq!(after.period_ps(), REVOLUTION * 1_001);
    assert_eq!(
        after.angle_at(at(1_000_000)),
        before.angle_at(at(1_000_000))
    );
}
