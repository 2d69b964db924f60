//! A drive that is not quite as published, measured, and found again.

pub mod truths;

use block::{Duration, Lba};
use drive::firmware::LookAhead;
use drive::geometry::Turn;
use drive::{Angle, Spindle};
use proptest::prelude::*;
use std::sync::Arc;

use super::*;
use crate::validate::judgement::judge;
use truths::{Clockwork, measured, measured_within};

fn published(name: &str) -> Profile {
    let entry = drive::catalog::find(name).expect("a shipped drive");
    entry.profile().expect("a profile").published()
}

/// The same drive, its spindle so many parts per million slower.
fn slower(mut profile: Profile, ppm: i64) -> Profile {
    let period = profile.spindle.period_ps();
    let period = period.saturating_add_signed(period as i64 * ppm / 1_000_000);
    profile.spindle = Spindle::from_period_ps(period);
    profile
}

fn turn(group: u32, run: u32, start: f64, step: f64) -> Turn {
    let angle = |revolutions| Angle::from_revolutions(revolutions).expect("a number");
    Turn {
        group,
        run,
        start: angle(start),
        step: angle(step),
    }
}

/// The most by which the angles of blocks differ between two profiles, beyond what they all
/// differ by: where the platter stood is not a property of the drive.
fn angles_apart(one: &Profile, other: &Profile, blocks: impl Iterator<Item = u64>) -> f64 {
    let differences: Vec<f64> = blocks
        .map(|block| {
            let angle = |profile: &Profile| {
                let place = profile.geometry.locate(Lba(block));
                place.expect("a block of the drive").angle
            };
            (angle(one) - angle(other)).revolutions()
        })
        .collect();
    let common = differences[0];
    let beyond = differences.iter().map(|difference| {
        let way = (difference - common).rem_euclid(1.0);
        if way > 0.5 { way - 1.0 } else { way }
    });
    let (low, high) = beyond.fold((0.0, 0.0), |(low, high): (f64, f64), way| {
        (low.min(way), high.max(way))
    });
    high - low
}

fn ppm_apart(one: &Profile, other: &Profile) -> f64 {
    let (one, other) = (one.spindle.period_ps(), other.spindle.period_ps());
    (one as f64 / other as f64 - 1.0).abs() * 1e6
}

/// The median error per request on the half that the fit has not seen, in milliseconds.
fn held_out_error(profile: &Profile, samples: &[Sample]) -> f64 {
    let judged = judge(profile, samples, None).judgement;
    judged.held_out.median_error_ms.expect("a coherent clock")
}

#[test]
fn a_drive_of_zones_is_found_again() {
    let published = published("hp-c2247a");
    for ppm in [200, -200] {
        let mut truth = slower(published.clone(), ppm);
        let turns = [
            turn(0, 2, 0.03, 0.0),
            turn(0, 4, 0.45, 0.0),
            turn(0, 6, -0.07, 0.0),
        ];
        truth.geometry = Arc::new(truth.geometry.turned(&turns));
        let more = Duration::from_micros;
        truth.overheads.read_miss.read += more(180);
        truth.overheads.write_miss.read += more(90);
        truth.overheads.read_completion += more(60);
        truth.bus.read_block += more(8);
        truth.buffer.look_ahead = LookAhead::None;
        let samples = measured(&truth, 700, Clockwork::Steady);
        let found = fit(&published, &samples, || ()).profile;
        assert_eq!(found.buffer.look_ahead, LookAhead::None);
        assert!(
            ppm_apart(&found, &truth) < 5.0,
            "{}",
            ppm_apart(&found, &truth)
        );
        let capacity = truth.geometry.sectors().0;
        let apart = angles_apart(&found, &truth, (0..400).map(|i| capacity / 400 * i));
        assert!(apart < 0.003, "{ppm} ppm: angles {apart} revolutions apart");
        let (before, after) = (
            held_out_error(&truth, &samples),
            held_out_error(&found, &samples),
        );
        assert!(
            after < 0.05 && before < 0.01,
            "{ppm} ppm: {after} ms, the truth {before} ms"
        );
    }
}

#[test]
fn a_drive_of_nested_patterns_is_found_again() {
    let published = published("seagate-cheetah-15k5");
    let mut truth = slower(published.clone(), 200);
    // Two of the outermost pattern's runs, and the heads of the patterns inside them.
    let [one, other] = [2, 5].map(|run| run_of(&published, run));
    let inner = published.geometry.path_of(Lba(one.start)).expect("a block")[1].group;
    let turns = [
        turn(inner, 1, 0.02, 0.0),
        turn(inner, 2, -0.03, 0.0005),
        turn(published_root(&published), 5, 0.25, 0.0),
    ];
    truth.geometry = Arc::new(truth.geometry.turned(&turns));
    truth.overheads.write_miss.read += Duration::from_micros(100);
    let samples = measured_within(
        &truth,
        800,
        Clockwork::Steady,
        &[one.clone(), other.clone()],
    );
    let (train, _) = halves(&samples);
    let mut found = published.clone();
    angles::fit(&mut found, train, &mut || ());
    assert!(
        ppm_apart(&found, &truth) < 5.0,
        "{}",
        ppm_apart(&found, &truth)
    );
    let blocks = [one, other].into_iter().flat_map(|range| {
        let step = ((range.end - range.start) / 300).max(1);
        range.step_by(step as usize)
    });
    let apart = angles_apart(&found, &truth, blocks);
    assert!(apart < 0.003, "angles {apart} revolutions apart");
}

/// The number of the outermost pattern.
fn published_root(profile: &Profile) -> u32 {
    profile.geometry.path_of(Lba(0)).expect("a block")[0].group
}

/// The blocks of a run of the outermost pattern.
fn run_of(profile: &Profile, run: u32) -> std::ops::Range<u64> {
    let capacity = profile.geometry.sectors().0;
    let begins = |run: u32| {
        let blocks: Vec<u64> = (0..4096).map(|i| capacity / 4096 * i).collect();
        let first = blocks.partition_point(|&block| {
            profile.geometry.path_of(Lba(block)).expect("a block")[0].run < run
        });
        blocks[first]
    };
    begins(run)..begins(run + 1)
}

#[test]
fn without_a_phase_no_angle_is_turned() {
    for name in ["hp-c2247a", "quantum-atlas-10k", "seagate-cheetah-15k5"] {
        let published = published(name);
        let samples = measured(&published, 500, Clockwork::Jumping);
        let mut found = published.clone();
        angles::fit(&mut found, &samples, &mut || ());
        assert!(
            found.geometry.turns().is_empty(),
            "{name}: {:?}",
            found.geometry.turns()
        );
        assert_eq!(found.spindle, published.spindle, "{name}");
    }
}

#[test]
fn a_drive_as_published_keeps_its_rules_and_angles() {
    let published = published("hp-c2247a");
    let samples = measured(&published, 400, Clockwork::Steady);
    let found = fit(&published, &samples, || ());
    assert_eq!(found.profile.buffer, published.buffer);
    assert_eq!(found.angles, 0, "{:?}", found.profile.geometry.turns());
    assert!(held_out_error(&found.profile, &samples) < 0.01);
}

#[test]
fn the_second_half_has_no_part_in_the_fit() {
    let published = published("dec-rz26");
    let mut samples = measured(&published, 120, Clockwork::Steady);
    let before = fit(&published, &samples, || ());
    for sample in &mut samples[60..] {
        sample.service += Duration::from_millis(7);
    }
    let after = fit(&published, &samples, || ());
    assert_eq!(before.replays, after.replays);
    let table = |fit: &Fit| document::table(&published, &fit.profile, "");
    assert_eq!(table(&before), table(&after));
}

/// The profile's text with a table of what was fitted, read again.
fn read_again(name: &str, table: &str) -> Profile {
    let text = drive::catalog::find(name).expect("a shipped drive").text();
    let text = document::replaced(text, table);
    Profile::parse(&text, "fitted.toml").unwrap_or_else(|error| panic!("{error}\n{table}"))
}

#[test]
fn every_shipped_fit_is_written_as_it_was_read() {
    for entry in drive::catalog::ALL {
        let profile = entry.profile().expect("a profile");
        if !profile.is_fitted() {
            continue;
        }
        let origin = profile.origins.last().expect("an origin");
        assert_eq!(origin.table, "fitted", "{}", entry.name);
        let table = document::table(&profile.published(), &profile, &origin.text);
        assert_eq!(
            document::replaced(entry.text(), &table),
            entry.text(),
            "{}",
            entry.name
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_again(
        times in proptest::collection::vec(0u64..9_000_000, electronics::TIMES.len()),
        rules in proptest::collection::vec(any::<prop::sample::Index>(), electronics::RULES.len()),
        period in 4_000_000_000u64..20_000_000_000,
        start in -0.5..0.5,
        step in -0.5..0.5,
    ) {
        let published = published("hp-c2247a");
        let mut fitted = published.clone();
        for ((_, time), nanos) in electronics::TIMES.iter().zip(times) {
            *time(&mut fitted) = Duration::from_nanos(nanos);
        }
        for ((_, settings), chosen) in electronics::RULES.iter().zip(&rules) {
            (settings[chosen.index(settings.len())].1)(&mut fitted.buffer);
        }
        fitted.spindle = Spindle::from_period_ps(period);
        let turns = [turn(0, 1, start, step), turn(3, 0, step, 0.0), turn(4, 0, 1e-12, 0.0)];
        fitted.geometry = Arc::new(fitted.geometry.turned(&turns));
        let table = document::table(&published, &fitted, "a \"quoted\" origin\\");
        let read = read_again("hp-c2247a", &table);
        prop_assert_eq!(read.overheads, fitted.overheads);
        prop_assert_eq!(read.bus, fitted.bus);
        prop_assert_eq!(read.buffer, fitted.buffer);
        prop_assert_eq!(read.spindle.period_ps(), period);
        let capacity = fitted.geometry.sectors().0;
        for block in [0, capacity / 3, capacity - 1] {
            let angle = |profile: &Profile| profile.geometry.locate(Lba(block)).expect("a block").angle;
            let apart = (angle(&read) - angle(&fitted)).revolutions();
            prop_assert!(apart.min(1.0 - apart) < 2e-6);
        }
        prop_assert!(document::same_constants(&fitted, &read));
        prop_assert_eq!(document::table(&published, &read, "a \"quoted\" origin\\"), table);
    }
}
