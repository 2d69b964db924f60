//! Profiles simulated drives with noise.

use std::sync::Arc;

use block::{Duration, Instant};
use drive::{Imperfections, Profile, VirtualDrive};
use profiler::rehearsal::{DelayedDrive, HostJitter, Rehearsed, rehearse};
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission, procedure};
use rayon::prelude::*;

use super::ProfilingObserver;
use super::found::{FoundDrive, ProfilingEnd};
use crate::{Failure, named};

/// How a simulated drive is reached.
#[derive(Clone, Copy, Debug)]
pub struct RehearsalPath {
    /// What the path passes on: cache control, or reads and writes alone.
    pub offers: Offers,
    /// By how much its host delays commands and outcomes.
    pub jitter: HostJitter,
}

/// The noise of a simulated drive.
#[derive(Clone, Copy, Debug)]
pub struct RehearsalNoise {
    /// The standard deviation of seek times.
    pub seek: Duration,
    /// The standard deviation of overheads.
    pub electronics: Duration,
    /// The seed of the noise.
    pub seed: u64,
}

impl RehearsalNoise {
    /// The imperfections of a simulated drive.
    pub fn imperfections(self) -> Imperfections {
        Imperfections {
            seek_noise: self.seek,
            overhead_noise: self.electronics,
            ..Imperfections::default()
        }
    }
}

/// Interval of progress reports, in the drive's time.
const SLICE: Duration = Duration::from_secs(1);

/// Profiles drives separately, on all cores.
///
/// # Errors
/// If there is no such drive.
pub fn profiles(
    names: &[String],
    noise: RehearsalNoise,
    path: RehearsalPath,
    budget: Duration,
    resumed: &Findings,
    progress: &dyn ProfilingObserver,
) -> Result<Vec<FoundDrive>, Failure> {
    let truths = names.iter().map(|name| named::drive(name).map(Arc::new));
    let truths = truths.collect::<Result<Vec<_>, _>>()?;
    if let [truth] = &truths[..] {
        progress.begin(&truth.name);
        return Ok(vec![profile(
            truth, noise, path, budget, resumed, progress,
        )?]);
    }
    let each = truths.par_iter();
    each.map(|truth| profile(truth, noise, path, budget, resumed, &()))
        .collect()
}

fn profile(
    truth: &Arc<Profile>,
    noise: RehearsalNoise,
    path: RehearsalPath,
    budget: Duration,
    resumed: &Findings,
    progress: &dyn ProfilingObserver,
) -> Result<FoundDrive, Failure> {
    let imperfections = noise.imperfections();
    let drive = VirtualDrive::imperfect(Arc::clone(truth), imperfections, noise.seed);
    let writes = match path.offers {
        // Writes to a simulated drive destroy nothing.
        Offers::CacheControl => WritePermission::Allowed,
        Offers::Nothing => WritePermission::Forbidden,
    };
    let device = DriveIdentity::of(&drive, path.offers, writes);
    let mut drive = DelayedDrive::new(drive, path.jitter, noise.seed);
    fits(resumed, &device, &truth.name)?;
    let whole = move |prober| procedure::complete(prober, budget);
    let mut profiler = Profiler::new(device, resumed.clone(), whole);
    let (mut now, end) = (Instant::ZERO, Instant::ZERO + budget);
    let (at, ended) = loop {
        let slice = SLICE.min(end.since(now));
        match rehearse(&mut profiler, &mut drive, now, slice) {
            Rehearsed::Finished(at) => break (at, ProfilingEnd::Finished),
            Rehearsed::OutOfTime(at) if at >= end => break (at, ProfilingEnd::OutOfTime),
            Rehearsed::OutOfTime(at) => now = at,
        }
        progress.show(now, &device, &profiler.findings());
    };
    Ok(FoundDrive {
        name: truth.name.clone(),
        device,
        findings: profiler.findings(),
        truth: Some(Arc::clone(truth)),
        at,
        probes: profiler.probes(),
        ended,
    })
}

/// Checks that the tracks of an earlier run fit on this drive.
///
/// # Errors
/// If they extend past its end.
pub fn fits(resumed: &Findings, device: &DriveIdentity, name: &str) -> Result<(), Failure> {
    let last = resumed.map.pieces.last();
    match last.is_some_and(|last| last.end().0 > device.blocks) {
        true => {
            let problem = format!("--resume: tracks past the end of {name}");
            Err(Failure::input(problem))
        }
        false => Ok(()),
    }
}
