//! The same in virtual time.

use std::sync::Arc;

use block::{Class, Duration, Interval};
use drive::Profile;
use indicatif::ProgressBar;
use scheduler::policy::{self, Depth};
use server::config;
use server::volume::cached::PAGE;
use simulator::caching::{
    Level, Link, Lower, Pace, Readmore, Scheduled, Scheduler, Setup, System, run,
};

use super::readers::{Both, Reader};
use super::told::Figures;
use super::{Arguments, SimulatedDisk};
use crate::output::Exit;

/// What the system model says.
///
/// # Errors
/// If a setting cannot be.
pub(super) fn simulated(
    arguments: &Arguments,
    coordinator: &str,
    bar: &ProgressBar,
) -> Result<Figures, Exit> {
    let (upper, lower) = arguments.sizes();
    let level = |frames| Level::new(frames, &arguments.replacement, &arguments.prefetch);
    let entry = drive::catalog::find(&arguments.drive).map_err(Exit::input)?;
    let profile = entry.profile().map_err(Exit::input)?;
    let blocks = profile.capacity_bytes() / PAGE;
    let scheduler = scheduler(arguments, &profile)?;
    let setup = Setup {
        clients: vec![level(upper); 2],
        lower: vec![Lower {
            level: level(lower),
            coordinator: coordinator.to_owned(),
            link: Link {
                start: Duration::ZERO,
                page: Duration::ZERO,
            },
        }],
        drive: Arc::new(profile),
        scheduler,
    };
    let mut system = System::new(&setup).map_err(Exit::input)?;
    let mut load = Both {
        readers: Reader::both(arguments),
        within: Interval::of(0, blocks),
        bar,
    };
    let report = run(&mut system, &mut load, Pace::Closed).map_err(Exit::input)?;
    let lower = &report.levels[1];
    let mb = |blocks: u64| (blocks * PAGE) as f64 / 1e6;
    Ok(Figures {
        mean_ms: report.response.mean_ms(),
        lower_hits_percent: lower.hit_ratio() * 100.0,
        lower_ahead_mb: mb(lower.fetched_ahead()),
        lower_bypassed_mb: mb(lower.bypassed),
        lower_wished_mb: mb(lower.wished),
        lower_granted_mb: mb(lower.granted),
    })
}

/// What stands before the disk: the paper's elevator, or our engine as the service makes it, but that nobody
/// corrects where it believes the head to be: it is there.
fn scheduler(arguments: &Arguments, profile: &Profile) -> Result<Scheduler, Exit> {
    if arguments.simulated_disk == SimulatedDisk::Elevator {
        return Ok(Scheduler::Elevator);
    }
    let policy = policy::find(arguments.policy()).map_err(Exit::input)?;
    let has_gaps = policy.depth() == Depth::JustInTime && profile.queue.depth > 1;
    Ok(Scheduler::Engine(Scheduled {
        policy: arguments.policy().to_owned(),
        background: has_gaps.then(|| config::background(config::IMPACT_PPM)),
        prefetches: Class::default(),
        readmore: match arguments.readmore {
            server::volume::cached::Readmore::Ordinary => Readmore::Fetched,
            server::volume::cached::Readmore::Free => Readmore::WishedWhileGranted,
        },
        outside: None,
    }))
}
