//! A scrub of a whole disk of 20 TB in virtual time, beside a load that is never idle.
//!
//! A scrub reads what a scan reads. Reading damaged places again is not simulated.

use std::sync::Arc;

use scheduler::freeblock::{SameTrack, SameTrackRule};
use serde::Serialize;

use crate::bench::care::CareBench;
use crate::comparison::ComparisonSettings;
use crate::comparison::load::LoadSettings;
use crate::comparison::scan::ScanSettings;
use crate::comparison::scan::figures::SECONDS_PER_DAY;
use crate::comparison::truth::{OnOff, TruthSettings};
use crate::{Failure, Label, Progress, named, profiled};

/// The figures of a whole disk.
#[derive(Clone, Debug, Serialize)]
pub struct WholeScrub {
    /// The drive.
    pub drive: String,
    /// The relation between belief and truth.
    pub mode: Label,
    /// Per cent of the disk, and the days after which they were read.
    pub days: Vec<(u32, f64)>,
    /// Megabytes of free blocks a second over the first hundredth.
    pub free_mb_s_start: f64,
    /// The same over the whole disk.
    pub free_mb_s_whole: f64,
    /// How much longer the foreground's mean response time is than alone, over the whole scrub, in per cent.
    pub foreground_loss_percent: f64,
    /// The same of the 99th percentile.
    pub foreground_p99_loss_percent: f64,
}

/// The drive, the load and its requests in flight: issue 22.
const DRIVE: &str = "modern-20tb";
const LOAD: &str = "modern";
const PENDING: u32 = 16;

/// The standard deviation of seek times, which no belief has: ../shared/specs/scheduling.md, 7.
const SEEK_NOISE_US: f64 = 60.0;

/// The hundredths of the tail.
const SHOWN: [u32; 6] = [50, 80, 90, 95, 99, 100];

/// Measures a scrub of the whole disk with a profiled belief, or with the truth as belief.
///
/// # Errors
/// If profiling or the run fails.
pub fn measure(bench: &CareBench, progress: &dyn Progress) -> Result<WholeScrub, Failure> {
    let mut setup = settings(bench).setup()?;
    let imperfections = setup.truth.imperfections().clone();
    if bench.belief == crate::bench::busy::BeliefSource::Profiled {
        progress.begin(&format!("scrub: profiling {DRIVE}"));
        let belief = profiled::belief(&setup.drive, &imperfections, !bench.seed)?;
        setup.belief = Some(Arc::new(belief));
    }
    progress.begin(&format!("scrub: the whole {DRIVE} in virtual time"));
    let run = setup.run(named::policy(&bench.policy)?, &mut ())?;
    let scan = run
        .scan
        .ok_or_else(|| Failure::failed("a run without its scan"))?;
    let of_belief = setup.belief.as_ref().map(|belief| belief.provenance);
    let shown = scan
        .progress
        .iter()
        .filter(|moment| SHOWN.contains(&moment.percent));
    Ok(WholeScrub {
        drive: setup.drive.name.clone(),
        mode: Label::of(of_belief).with_noise(),
        days: shown
            .map(|moment| (moment.percent, moment.seconds / SECONDS_PER_DAY))
            .collect(),
        free_mb_s_start: scan.free_mb_s_by_part.start.unwrap_or(0.0),
        free_mb_s_whole: scan.free_mb_s_by_part.whole.unwrap_or(0.0),
        foreground_loss_percent: scan.foreground_loss_percent,
        foreground_p99_loss_percent: scan.foreground_p99_loss_percent,
    })
}

fn settings(bench: &CareBench) -> ComparisonSettings {
    ComparisonSettings {
        drive: DRIVE.to_owned(),
        policies: vec![bench.policy.clone()],
        load: LoadSettings {
            workload: Some(LOAD.to_owned()),
            tasks: Some(PENDING),
            seed: Some(bench.seed),
            ..LoadSettings::default()
        },
        truth: TruthSettings {
            seek_noise_us: Some(SEEK_NOISE_US),
            write_cache: Some(OnOff::Off),
            look_ahead: Some(OnOff::Off),
            ..TruthSettings::default()
        },
        scan: ScanSettings {
            scan: Some("all".to_owned()),
            impact_percent: Some(f64::from(bench.impact_ppm) / 1e4),
            same_track: Some(SameTrackRule::Stated(SameTrack::Allowed)),
            idle_ms: Some("never".to_owned()),
            ..ScanSettings::default()
        },
        ..ComparisonSettings::default()
    }
}
