//! What Headtime would bring on a disk, by simulating its found profile.
//!
//! The found profile is both drive and belief of the simulation: a prediction, no measurement. What the
//! profile gets wrong about the disk is not in it.

use std::sync::Arc;

use block::Instant;
use drive::Profile;
use scheduler::ordering::Phases;
use serde::Serialize;
use simulator::run::PastEnd;
use simulator::streaming::trial::{DriveTruth, FileLayout, Scanning, Trial, TrialStreams};

use crate::comparison::ComparisonSetup;
use crate::comparison::load::LoadSettings;
use crate::comparison::scan::ScanSettings;
use crate::comparison::truth::{self, TruthSettings};
use crate::{Failure, named};

/// The prediction for a disk. Without a part there is none; its reason is in `missing`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Forecast {
    /// The load.
    pub load: &'static str,
    /// The impact budget of the background reads, in percent.
    pub budget_percent: f64,
    /// Background reads in the gaps of that load, in MB/s.
    pub free_mb_s: Option<f64>,
    /// By how much they lengthen the load's requests, in percent.
    pub loss_percent: Option<f64>,
    /// The time for all blocks at that rate, in days.
    pub scrub_days: Option<f64>,
    /// Guaranteed readers of 1 MB/s with 4 MB of memory each, 30 % of the head time left to other requests.
    pub streams: Option<usize>,
    /// The share of blocks whose tracks are known.
    pub known_share: f64,
    /// The reasons for missing parts.
    pub missing: Vec<String>,
}

/// The load: that of the paper on free blocks.
const LOAD: &str = "oltp";

/// The policy of a service with a belief, by default.
const POLICY: &str = "sptf-sw60";

/// The default of a service.
const BUDGET_PERCENT: f64 = 2.0;

/// Virtual seconds of the load. A choice: 15,000 requests of a fast drive.
const SECONDS: u64 = 120;

/// The streams of the forecast: films, beside what a service reserves for others. A choice.
const STREAM_BYTES_S: u64 = 1_000_000;
const STREAM_MEMORY: u64 = 4_000_000;
const FOREGROUND_PERMILLE: u32 = 300;

impl Forecast {
    /// Simulates a found profile.
    pub fn of(found: &Arc<Profile>) -> Self {
        let known_share = known_share(found);
        let mut forecast = Forecast {
            load: LOAD,
            budget_percent: BUDGET_PERCENT,
            known_share,
            ..Forecast::default()
        };
        match scanned(found) {
            Ok((free_mb_s, loss)) => {
                // The simulated engine uses gaps between known blocks only.
                forecast.free_mb_s = Some(free_mb_s);
                forecast.loss_percent = Some(loss);
                let bytes = found.capacity_bytes() as f64 * known_share;
                forecast.scrub_days =
                    (free_mb_s > 0.0).then(|| bytes / (free_mb_s * 1e6) / 86_400.0);
            }
            Err(why) => forecast.missing.push(format!("free bandwidth: {why}")),
        }
        match streams(found) {
            Ok(count) => forecast.streams = Some(count),
            Err(why) => forecast.missing.push(format!("streams: {why}")),
        }
        forecast
    }
}

/// The share of blocks whose tracks are known: all of a profile that states none.
fn known_share(found: &Profile) -> f64 {
    let Some(confidence) = &found.confidence else {
        return 1.0;
    };
    let known = confidence.known().iter().map(|extent| extent.length().0);
    known.sum::<u64>() as f64 / found.geometry.sectors().0 as f64
}

/// The rate of free reads beside the load, and the load's loss in percent.
fn scanned(found: &Arc<Profile>) -> Result<(f64, f64), Failure> {
    let source = LoadSettings {
        workload: Some(LOAD.to_owned()),
        ..LoadSettings::default()
    }
    .source()?;
    let truth = TruthSettings {
        write_cache: Some(truth::OnOff::Off),
        ..TruthSettings::default()
    };
    let scan = ScanSettings {
        scan: Some(crate::comparison::scan::ALL.to_owned()),
        impact_percent: Some(BUDGET_PERCENT),
        ..ScanSettings::default()
    };
    let truth = truth.truth(1).map_err(truth::refused)?;
    let drive = Arc::new(truth.belief(found));
    let setup = ComparisonSetup {
        scan: scan.plan(&drive)?,
        drive,
        belief: None,
        truth,
        source,
        policies: Vec::new(),
        phases: Phases::Mixed,
        grace: None,
        depth: None,
        requests: None,
        until: Some(Instant::from_nanos(SECONDS * 1_000_000_000)),
        past_end: PastEnd::Stop,
        preemption: None,
        slowest: 0,
        mirror: None,
        streams: None,
    };
    let run = setup.run(named::policy(POLICY)?, &mut ())?;
    let scan = run
        .scan
        .ok_or_else(|| Failure::failed("nothing was scanned"))?;
    Ok((scan.free_mb_s, scan.foreground_loss_percent))
}

/// How many streams are granted.
fn streams(found: &Arc<Profile>) -> Result<usize, Failure> {
    let trial = Trial {
        belief: Arc::clone(found),
        drive: Arc::clone(found),
        truth: DriveTruth::noisy(),
        laid: FileLayout::Anywhere,
        policy: named::policy(POLICY)?,
        preemption: None,
        streams: Some(TrialStreams {
            rate: STREAM_BYTES_S,
            memory: STREAM_MEMORY,
            readers: None,
            recorders: 0,
            missing: 0,
            foreground_permille: FOREGROUND_PERMILLE,
        }),
        tasks: 1,
        read_fraction: 1.0,
        bytes: 4096,
        scan: Scanning::No,
        from: Instant::ZERO,
        until: Instant::ZERO,
        seed: 1,
    };
    trial.granted().map_err(Failure::failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::partial::{KnownPlaces, partly_known};
    use drive::catalog;

    fn atlas() -> Arc<Profile> {
        let drive = catalog::find("quantum-atlas-10k").expect("a drive");
        Arc::new(drive.profile().expect("a profile"))
    }

    #[test]
    fn a_known_drive_brings_what_its_simulation_does() {
        let known = Forecast::of(&atlas());
        let free = known.free_mb_s.expect("a rate");
        assert!(known.known_share == 1.0 && free > 0.2, "{known:?}");
        assert!(
            known
                .loss_percent
                .is_some_and(|loss| loss < BUDGET_PERCENT + 1.0),
            "{known:?}"
        );
        assert!(known.streams.is_some_and(|count| count > 0), "{known:?}");
        assert!(
            known.scrub_days.is_some_and(|days| days > 0.01),
            "{known:?}"
        );
    }

    /// Both ends of a gap have to be known: half of the tracks bring at least 0.7 of a quarter of what all
    /// bring (issue 20). Were the rate scaled by the share as well, it would be a sixteenth.
    #[test]
    fn a_partly_known_drive_brings_the_gaps_between_known_blocks() {
        let atlas = atlas();
        let whole = Forecast::of(&atlas).free_mb_s.expect("a rate");
        let belief = partly_known(&atlas, 500, KnownPlaces::Scattered, 1).expect("a belief");
        let half = Forecast::of(&belief);
        assert!((0.45..0.55).contains(&half.known_share), "{half:?}");
        let part = half.free_mb_s.expect("a rate") / whole;
        assert!((0.7 * 0.25..0.7).contains(&part), "{part}");
        let belief = partly_known(&atlas, 0, KnownPlaces::Scattered, 1).expect("a belief");
        let nothing_known = Forecast::of(&belief);
        assert_eq!(nothing_known.free_mb_s, Some(0.0), "{nothing_known:?}");
    }
}
