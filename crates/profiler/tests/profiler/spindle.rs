//! The period of every drive that we ship, of spindles that are off and that drift.

use std::sync::Arc;

use block::{Duration, Instant, Lba};
use drive::imperfection::Chance;
use drive::{Imperfections, VirtualDrive, catalog};
use profiler::rehearsal::{Rehearsed, rehearse};
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission, spindle};

use crate::harness::{noisy, shipped};

/// What is found of a drive's spindle, and the drive's time that it took.
fn found(name: &str, truth: &Imperfections, offers: Offers) -> (Findings, u64, f64) {
    let profile = shipped(name);
    let period = profile.spindle.period_ps();
    let mut drive = VirtualDrive::imperfect(Arc::new(profile), truth.clone(), 7);
    let device = DriveIdentity::of(&drive, offers, WritePermission::Forbidden);
    let lba = Lba(device.blocks / 3);
    let mut profiler = Profiler::new(device, Findings::default(), move |prober| async move {
        spindle::find(&prober, lba)
            .await
            .unwrap_or_else(|e| panic!("{e:?}"));
    });
    let ended = rehearse(
        &mut profiler,
        &mut drive,
        Instant::ZERO,
        Duration::from_secs(90),
    );
    assert!(matches!(ended, Rehearsed::Finished(_)), "{name}: {ended:?}");
    (profiler.findings(), period, ended.at().as_secs_f64())
}

#[test]
fn every_drive() {
    for entry in catalog::ALL {
        let name = entry.name;
        for (offers, most) in [(Offers::CacheControl, 25.0), (Offers::Nothing, 70.0)] {
            // A buffer of 2,048 segments takes minutes to be emptied by reading elsewhere.
            if offers == Offers::Nothing && name == "maxtor-atlas-10k5-300" {
                continue;
            }
            let (findings, truth, seconds) = found(name, &noisy(), offers);
            let ppm = (findings.spindle.period_ps as f64 / truth as f64 - 1.0) * 1e6;
            assert!(ppm.abs() < 5.0, "{name}, {offers:?}: {ppm} ppm off");
            assert!(seconds < most, "{name}, {offers:?}: {seconds} s");
            assert!(
                findings.spindle.confidence.ppm() > 800_000,
                "{name}, {offers:?}"
            );
        }
    }
}

#[test]
fn a_spindle_that_is_off_and_drifts() {
    let truth = Imperfections {
        spindle_ppm: 3000,
        spindle_drift_ppm: 40,
        media_retry: Chance {
            per_million: 20_000,
            costs: Duration::from_micros(300),
        },
        ..noisy()
    };
    for entry in catalog::ALL {
        let (findings, nominal, _) = found(entry.name, &truth, Offers::CacheControl);
        let ppm = (findings.spindle.period_ps as f64 / nominal as f64 - 1.0) * 1e6;
        assert!((ppm - 3000.0).abs() < 40.0, "{}: {ppm} ppm", entry.name);
        assert!(findings.spindle.wander_ppm > 1.0, "{}", entry.name);
    }
}
