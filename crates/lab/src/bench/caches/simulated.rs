//! The simulated run.

use std::sync::Arc;

use block::{Class, Duration, Interval};
use drive::Profile;
use scheduler::freeblock::SameTrackRule;
use scheduler::policy::{self, Depth};
use server::cache_setting::PAGE;
use server::config;
use simulator::caching::{
    ArrivalTiming, CacheSpec, CachingSetup, EngineScheduling, FileEnds, Link, LowerLevel, Readmore,
    Scheduler, System, Writes, run,
};

use super::gains::CacheFigures;
use super::readers::{BothReaders, CacheReader};
use super::{CachesBench, SimulatedDisk};
use crate::{Failure, Progress};

/// The figures of the system model.
///
/// # Errors
/// If a setting is invalid.
pub(super) fn simulated(
    settings: &CachesBench,
    coordinator: &str,
    progress: &dyn Progress,
) -> Result<CacheFigures, Failure> {
    let (upper, lower) = settings.sizes();
    let level = |frames| CacheSpec::new(frames, &settings.replacement, &settings.prefetch);
    let entry = drive::catalog::find(&settings.drive).map_err(Failure::input)?;
    let profile = entry.profile().map_err(Failure::input)?;
    let blocks = profile.capacity_bytes() / PAGE;
    let scheduler = scheduler(settings, &profile)?;
    let setup = CachingSetup {
        clients: vec![level(upper); 2],
        lower: vec![LowerLevel {
            level: level(lower),
            coordinator: coordinator.to_owned(),
            link: Link {
                start: Duration::ZERO,
                page: Duration::ZERO,
            },
        }],
        drive: Arc::new(profile),
        scheduler,
        file_ends: FileEnds::AllLevels,
        writes: Writes::AsReads,
    };
    let mut system = System::new(&setup).map_err(Failure::input)?;
    let mut load = BothReaders {
        readers: CacheReader::both(settings),
        within: Interval::of(0, blocks),
        progress,
    };
    let report = run(&mut system, &mut load, ArrivalTiming::Closed).map_err(Failure::input)?;
    let lower = &report.levels[1];
    let mb = |blocks: u64| (blocks * PAGE) as f64 / 1e6;
    Ok(CacheFigures {
        mean_ms: report.response.mean_ms(),
        lower_hits_percent: lower.hit_ratio() * 100.0,
        lower_ahead_mb: mb(lower.fetched_ahead()),
        lower_bypassed_mb: mb(lower.bypassed),
        lower_wished_mb: mb(lower.wished),
        lower_granted_mb: mb(lower.granted),
        upper_mb: None,
    })
}

/// The dispatcher to the disk: the paper's elevator, or the service's engine without tracking of
/// the head, whose position is exact here.
fn scheduler(settings: &CachesBench, profile: &Profile) -> Result<Scheduler, Failure> {
    if settings.simulated_disk == SimulatedDisk::Elevator {
        return Ok(Scheduler::Elevator);
    }
    let policy = policy::find(settings.policy()).map_err(Failure::input)?;
    let has_gaps = policy.depth() == Depth::JustInTime && profile.queue.depth > 1;
    Ok(Scheduler::Engine(EngineScheduling {
        policy: settings.policy().to_owned(),
        background: has_gaps
            .then(|| config::background(profile, config::IMPACT_PPM, SameTrackRule::default())),
        prefetches: Class::default(),
        readmore: match settings.readmore {
            server::cache_setting::Readmore::Ordinary => Readmore::Fetched,
            server::cache_setting::Readmore::Free => Readmore::WishedWhileGranted,
        },
        outside: None,
    }))
}
