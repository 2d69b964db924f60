//! The seek tables of shipped drives, on layouts that are known.

use std::sync::Arc;

use block::{Duration, Instant, Lba};
use drive::catalog::CatalogEntry;
use drive::imperfection::{Chance, Periodic};
use drive::seek::SeekTable;
use drive::{Imperfections, Profile, VirtualDrive, catalog};
use profiler::arm::{Effort, measure};
use profiler::clock::PlatterClock;
use profiler::findings::ArmTimings;
use profiler::rehearsal::{Rehearsed, rehearse};
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission, spindle};

use crate::harness::noisy;

struct Measured {
    truth: Profile,
    arm: ArmTimings,
    probes: u64,
    seconds: f64,
}

/// Measures a drive whose layout is believed as it is.
fn measured(
    entry: &CatalogEntry,
    truth: &Imperfections,
    writes: WritePermission,
    effort: Effort,
) -> Measured {
    let profile = entry.profile().expect("a valid one");
    let geometry = Arc::clone(&profile.geometry);
    let mut drive = VirtualDrive::imperfect(Arc::new(profile.clone()), truth.clone(), 11);
    let device = DriveIdentity::of(&drive, Offers::CacheControl, writes);
    let known = Lba(device.blocks / 3);
    let place = geometry.locate(known).expect("a block");
    let (give, begun) = std::sync::mpsc::channel();
    let mut profiler = Profiler::new(device, Findings::default(), move |prober| async move {
        spindle::find(&prober, known).await.expect("a period");
        // From here on, angles are those of the truth.
        prober.findings(|findings| {
            let clock = findings.clock.expect("a clock");
            let at = clock.anchored_at();
            let angle = clock.angle_at(at) + place.angle + place.width;
            findings.clock = Some(PlatterClock::new(clock.spindle().period_ps(), angle, at));
        });
        let probes = prober.now();
        give.send(probes).expect("somebody waits");
        measure(&prober, &geometry, effort).await.expect("an arm");
    });
    let budget = Duration::from_secs(400);
    let ended = rehearse(&mut profiler, &mut drive, Instant::ZERO, budget);
    let name = entry.name;
    assert!(matches!(ended, Rehearsed::Finished(_)), "{name}: {ended:?}");
    let begun = begun.recv().expect("it has begun");
    Measured {
        truth: profile,
        arm: profiler.findings().arm.expect("an arm"),
        probes: profiler.probes(),
        seconds: ended.at().since(begun).as_secs_f64(),
    }
}

/// The mean error of a table over all distances alike, and over those of random seeks, in
/// microseconds. Distances up to 100 are all looked at, then one in 250.
fn error(found: &SeekTable, truth: impl Fn(u32) -> f64, cylinders: u32) -> (f64, f64) {
    let (mut sum, mut count) = (0.0, 0.0);
    let (mut random, mut weights) = (0.0, 0.0);
    let far = (100..cylinders).step_by((cylinders as usize / 250).max(1));
    for (step, distance) in (1..100)
        .zip(std::iter::repeat(1))
        .map(|(d, s)| (s, d))
        .chain(far.map(|distance| ((cylinders / 250).max(1), distance)))
    {
        let off = (found.time(distance).as_nanos() as f64 / 1e3 - truth(distance)).abs();
        sum += off;
        count += 1.0;
        let weight = f64::from(cylinders - distance) * f64::from(step);
        random += off * weight;
        weights += weight;
    }
    (sum / count, random / weights)
}

struct Errors {
    /// Over distances, and over random seeks.
    read: (f64, f64),
    /// At the measured points alone.
    points: f64,
    /// Of the whole repositioning.
    write: Option<(f64, f64)>,
    switch: f64,
}

fn errors(measured: &Measured) -> Errors {
    let Measured { truth, arm, .. } = measured;
    let cylinders = truth.geometry.cylinders();
    let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
    let read = |distance| micros(truth.seek.read().time(distance));
    let table = arm.read_table(cylinders).expect("a table");
    let off =
        |point: &profiler::findings::SeekPoint| (micros(point.mean) - read(point.distance)).abs();
    let points = arm.read.iter().map(off).sum::<f64>() / arm.read.len() as f64;
    let settle = truth.write_settle_nanos as f64 / 1e3;
    // What a write on one track waits for: its block.
    let data = truth.bus.write_block + truth.overheads.write_reselect;
    let arm = arm.clone().with_data(data);
    let shift = arm.write_settle_nanos as f64 / 1e3 - settle;
    let write = |distance| micros(truth.seek.write().time(distance)) - shift;
    let of_writes = |table: SeekTable| error(&table, write, cylinders);
    Errors {
        read: error(&table, read, cylinders),
        points,
        write: arm.write_table(cylinders).ok().map(of_writes),
        switch: micros(arm.head_switch) - micros(truth.head_switch),
    }
}

#[test]
fn reads_of_every_drive() {
    for entry in catalog::ALL {
        let name = entry.name;
        let measured = measured(entry, &noisy(), WritePermission::Forbidden, Effort::FULL);
        let errors = errors(&measured);
        println!(
            "{name:26} {:5} probes {:3.0} s, {:3} points {:4.1} us, all distances {:4.1} us, random {:4.1} us, switch {:5.1} us, confidence {:.2}",
            measured.probes,
            measured.seconds,
            measured.arm.read.len(),
            errors.points,
            errors.read.0,
            errors.read.1,
            errors.switch,
            measured.arm.confidence.share(),
        );
        assert!(errors.points < 35.0, "{name}: {} us", errors.points);
        assert!(errors.read.0 < 50.0, "{name}: {:?} us", errors.read);
        assert!(errors.read.1 < 45.0, "{name}: {:?} us", errors.read);
    }
}

#[test]
fn tables_of_reads_and_writes() {
    for name in [
        "quantum-atlas-10k",
        "dec-rz26",
        "modern-20tb",
        "seagate-cheetah-9lp",
    ] {
        let entry = catalog::find(name).expect("a shipped drive");
        let measured = measured(entry, &noisy(), WritePermission::Allowed, Effort::FULL);
        let errors = errors(&measured);
        assert!(errors.points < 35.0, "{name}: {} us", errors.points);
        assert!(errors.read.0 < 40.0, "{name}: {:?} us", errors.read);
        assert!(errors.read.1 < 40.0, "{name}: {:?} us", errors.read);
        let write = errors.write.expect("writes");
        assert!(write.1 < 60.0, "{name}: {write:?} us");
        assert!(errors.switch.abs() < 50.0, "{name}: {} us", errors.switch);
        let arm = &measured.arm;
        assert!(
            arm.confidence.ppm() > 900_000,
            "{name}: {:?}",
            arm.confidence
        );
        // What the truth scatters by: seek and overhead, 63 us.
        let deviation = arm.deviation.as_nanos() as f64 / 63.2e3;
        assert!((0.7..1.4).contains(&deviation), "{name}: {deviation}");
        assert!(measured.seconds < 100.0, "{name}: {} s", measured.seconds);
    }
}

#[test]
fn a_drive_that_must_not_be_written_is_only_read() {
    let entry = catalog::find("quantum-atlas-10k").expect("a shipped drive");
    let measured = measured(entry, &noisy(), WritePermission::Forbidden, Effort::QUICK);
    assert_eq!(measured.arm.write, []);
    assert!(measured.arm.write_table(10).is_err());
    assert!(measured.seconds < 20.0, "{} s", measured.seconds);
    let errors = errors(&measured);
    assert!(errors.read.1 < 90.0, "{:?} us", errors.read);
}

#[test]
fn retries_stalls_and_drift_do_not_bend_the_curve() {
    let truth = Imperfections {
        media_retry: Chance {
            per_million: 20_000,
            costs: Duration::from_micros(300),
        },
        recalibration: Periodic {
            every: Duration::from_millis(500),
            costs: Duration::from_millis(23),
        },
        spindle_ppm: 1000,
        spindle_drift_ppm: 40,
        ..noisy()
    };
    for name in ["seagate-cheetah-9lp", "hp-c3323a"] {
        let entry = catalog::find(name).expect("a shipped drive");
        let measured = measured(entry, &truth, WritePermission::Forbidden, Effort::FULL);
        let errors = errors(&measured);
        assert!(errors.read.1 < 50.0, "{name}: {:?} us", errors.read);
    }
}

#[test]
fn seeks_that_often_settle_twice_are_not_predicted_with_confidence() {
    let truth = Imperfections {
        settle_retry: Chance {
            per_million: 300_000,
            costs: Duration::from_millis(2),
        },
        ..noisy()
    };
    let entry = catalog::find("seagate-cheetah-9lp").expect("a shipped drive");
    let measured = measured(entry, &truth, WritePermission::Forbidden, Effort::FULL);
    assert!(measured.arm.confidence.ppm() < 900_000);
}

#[test]
fn few_answers_are_not_far_off() {
    let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
    for name in ["maxtor-atlas-10k5-300", "hitachi-travelstar-80gn"] {
        let entry = catalog::find(name).expect("a shipped drive");
        let Measured { truth, arm, .. } =
            measured(entry, &noisy(), WritePermission::Forbidden, Effort::QUICK);
        for point in arm.read {
            let off = micros(point.mean) - micros(truth.seek.read().time(point.distance));
            assert!(off.abs() < 300.0, "{name}: {off} us, {point:?}");
        }
    }
}
