//! Profiles simulated drives with noise.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use block::{Duration, Extent, Instant};
use drive::{HostJitter, Imperfections, Profile, VirtualDrive};
use profiler::rehearsal::{RangeDrive, Rehearsed, rehearse};
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission, procedure};
use rayon::prelude::*;

use super::ProfilingObserver;
use super::found::{FoundDrive, ProfilingEnd, range_name};
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

/// Profiles drives separately, on all cores. The drive says how its actuators share the blocks, as real ones
/// do (SBC-5: concurrent positioning ranges). The range of each actuator is profiled as a drive of its own,
/// with a budget of its own.
///
/// # Errors
/// If there is no such drive, or the observer's flag ends it.
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
    let ranges: Vec<AccessRange> = truths.iter().flat_map(ranges).collect();
    if let [range] = &ranges[..] {
        progress.begin(&range.name);
        return Ok(vec![profile(
            range, noise, path, budget, resumed, progress,
        )?]);
    }
    let stop = progress.stop();
    let each = ranges.par_iter().map(|range| {
        let stopping = StopFlag(stop.clone());
        profile(range, noise, path, budget, resumed, &stopping)
    });
    each.collect()
}

/// Shows nothing, and passes the flag on.
struct StopFlag(Option<Arc<AtomicBool>>);

impl ProfilingObserver for StopFlag {
    fn stop(&self) -> Option<Arc<AtomicBool>> {
        self.0.clone()
    }
}

/// Profiles a drive of one actuator.
///
/// # Errors
/// If `resumed` is not of this drive.
pub fn of_drive(
    truth: &Arc<Profile>,
    noise: RehearsalNoise,
    path: RehearsalPath,
    budget: Duration,
    resumed: &Findings,
) -> Result<FoundDrive, Failure> {
    let range = AccessRange {
        name: truth.name.clone(),
        blocks: truth.share_of(0),
        drive: Arc::clone(truth),
        truth: Arc::clone(truth),
    };
    profile(&range, noise, path, budget, resumed, &())
}

/// The blocks of one actuator of a simulated drive.
struct AccessRange {
    /// The name of the drive, with the number of the actuator if it has several.
    name: String,
    blocks: Extent,
    drive: Arc<Profile>,
    /// The truth about the actuator.
    truth: Arc<Profile>,
}

fn ranges(drive: &Arc<Profile>) -> Vec<AccessRange> {
    if drive.actuators <= 1 {
        return vec![AccessRange {
            name: drive.name.clone(),
            blocks: drive.share_of(0),
            drive: Arc::clone(drive),
            truth: Arc::clone(drive),
        }];
    }
    let range = |actuator| AccessRange {
        name: range_name(&drive.name, actuator),
        blocks: drive.share_of(actuator),
        drive: Arc::clone(drive),
        truth: Arc::new(drive.of_actuator(actuator)),
    };
    (0..usize::from(drive.actuators)).map(range).collect()
}

fn profile(
    range: &AccessRange,
    noise: RehearsalNoise,
    path: RehearsalPath,
    budget: Duration,
    resumed: &Findings,
    progress: &dyn ProfilingObserver,
) -> Result<FoundDrive, Failure> {
    let imperfections = Imperfections {
        host: path.jitter,
        ..noise.imperfections()
    };
    let drive = VirtualDrive::imperfect(Arc::clone(&range.drive), imperfections, noise.seed);
    let writes = match path.offers {
        // Writes to a simulated drive destroy nothing.
        Offers::CacheControl => WritePermission::Allowed,
        Offers::Nothing => WritePermission::Forbidden,
    };
    let whole = DriveIdentity::of(&drive, path.offers, writes);
    let blocks = range.blocks.length().0;
    let device = DriveIdentity { blocks, ..whole };
    fits(resumed, &device, &range.name)?;
    let mut drive = RangeDrive::new(drive, range.blocks);
    let whole = move |prober| procedure::complete(prober, budget);
    let mut profiler = Profiler::new(device, resumed.clone(), whole);
    let (mut now, end) = (Instant::ZERO, Instant::ZERO + budget);
    let stop = progress.stop();
    let (at, ended) = loop {
        if stop
            .as_ref()
            .is_some_and(|stop| stop.load(Ordering::Relaxed))
        {
            return Err(Failure::failed("interrupted"));
        }
        let slice = SLICE.min(end.since(now));
        match rehearse(&mut profiler, &mut drive, now, slice) {
            Rehearsed::Finished(at) => break (at, ProfilingEnd::Finished),
            Rehearsed::OutOfTime(at) if at >= end => break (at, ProfilingEnd::OutOfTime),
            Rehearsed::OutOfTime(at) => now = at,
        }
        progress.show(now, &device, &profiler.findings());
    };
    Ok(FoundDrive {
        name: range.name.clone(),
        device,
        findings: profiler.findings(),
        truth: Some(Arc::clone(&range.truth)),
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
