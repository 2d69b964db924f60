//! Profiles of simulated drives, which differ from their profiles by chance.

use std::sync::Arc;

use block::{Duration, Instant};
use drive::{Imperfections, Profile, VirtualDrive};
use profiler::rehearsal::{Rehearsed, rehearse};
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission, procedure};
use rayon::prelude::*;

use super::found::{Ended, Found};
use super::progress::Progress;
use crate::output::Exit;

/// By how much commands of a simulated drive differ.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    /// The standard deviation of a seek.
    pub seek: Duration,
    /// The standard deviation of an overhead.
    pub electronics: Duration,
    /// What decides which does by how much.
    pub seed: u64,
}

impl Noise {
    /// What a simulated drive does besides what its profile says.
    pub fn imperfections(self) -> Imperfections {
        Imperfections {
            seek_noise: self.seek,
            overhead_noise: self.electronics,
            ..Imperfections::default()
        }
    }
}

/// The drive's time between two looks at what is known.
const SLICE: Duration = Duration::from_secs(1);

/// Profiles drives, each alone, on all cores.
///
/// # Errors
/// If there is no such drive.
pub fn profiles(
    names: &[String],
    noise: Noise,
    budget: Duration,
    resumed: &Findings,
) -> Result<Vec<Found>, Exit> {
    let truths = names.iter().map(|name| super::truth(name));
    let truths = truths.collect::<Result<Vec<_>, _>>()?;
    if let [truth] = &truths[..] {
        let progress = Progress::new(&truth.name, budget);
        let found = profile(truth, noise, budget, resumed, Some(&progress));
        progress.finish();
        return Ok(vec![found?]);
    }
    let each = truths.par_iter();
    each.map(|truth| profile(truth, noise, budget, resumed, None))
        .collect()
}

fn profile(
    truth: &Arc<Profile>,
    noise: Noise,
    budget: Duration,
    resumed: &Findings,
    progress: Option<&Progress>,
) -> Result<Found, Exit> {
    let imperfections = noise.imperfections();
    let mut drive = VirtualDrive::imperfect(Arc::clone(truth), imperfections, noise.seed);
    // Nothing is lost if a simulated drive is written.
    let device = DriveIdentity::of(&drive, Offers::CacheControl, WritePermission::Allowed);
    fits(resumed, &device, &truth.name)?;
    let whole = move |prober| procedure::complete(prober, budget);
    let mut profiler = Profiler::new(device, resumed.clone(), whole);
    let (mut now, end) = (Instant::ZERO, Instant::ZERO + budget);
    let (at, ended) = loop {
        let slice = SLICE.min(end.since(now));
        match rehearse(&mut profiler, &mut drive, now, slice) {
            Rehearsed::Finished(at) => break (at, Ended::Finished),
            Rehearsed::OutOfTime(at) if at >= end => break (at, Ended::OutOfTime),
            Rehearsed::OutOfTime(at) => now = at,
        }
        if let Some(progress) = progress {
            progress.show(now, &device, &profiler.findings());
        }
    };
    Ok(Found {
        name: truth.name.clone(),
        device,
        findings: profiler.findings(),
        truth: Some(Arc::clone(truth)),
        at,
        probes: profiler.probes(),
        ended,
    })
}

/// That the tracks of another run are on this drive.
///
/// # Errors
/// If they go past its end.
pub fn fits(resumed: &Findings, device: &DriveIdentity, name: &str) -> Result<(), Exit> {
    let last = resumed.map.pieces.last();
    match last.is_some_and(|last| last.end().0 > device.blocks) {
        true => {
            let problem = format!("--resume: tracks past the end of {name}");
            Err(Exit::input(problem))
        }
        false => Ok(()),
    }
}
