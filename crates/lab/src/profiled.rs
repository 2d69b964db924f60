//! Profiled beliefs, for *external* results.

use std::sync::Arc;

use block::{Duration, Instant};
use drive::{Imperfections, Profile, VirtualDrive};
use profiler::rehearsal::{Rehearsed, rehearse};
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission, belief, procedure};

use crate::Failure;

/// Limit of the drive's time for profiling: "usable in at most ten minutes".
const BUDGET: Duration = Duration::from_secs(600);

/// Profiles a virtual drive, and returns the belief with the platter's phase at the beginning of
/// time. `seed` determines the drive's random events; later runs should use another.
///
/// # Errors
/// If profiling fails, or the findings are no profile.
pub fn belief(
    truth: &Arc<Profile>,
    imperfections: &Imperfections,
    seed: u64,
) -> Result<Profile, Failure> {
    let (findings, device) = findings(truth, imperfections, seed)?;
    let found = belief::profile(&findings, &device, &truth.name).map_err(Failure::failed)?;
    let clock = findings.clock;
    let clock = clock.ok_or_else(|| Failure::failed("a profile without a clock"))?;
    Ok(belief::live(&found, &clock))
}

/// Profiles a virtual drive, and returns the text of the profile as `headtime profile` writes it.
///
/// # Errors
/// If profiling fails.
pub fn text(
    truth: &Arc<Profile>,
    imperfections: &Imperfections,
    seed: u64,
) -> Result<String, Failure> {
    let (findings, device) = findings(truth, imperfections, seed)?;
    Ok(belief::text(&findings, &device, &truth.name))
}

/// What the profiler finds of a virtual drive.
fn findings(
    truth: &Arc<Profile>,
    imperfections: &Imperfections,
    seed: u64,
) -> Result<(Findings, DriveIdentity), Failure> {
    let mut drive = VirtualDrive::imperfect(Arc::clone(truth), imperfections.clone(), seed);
    let device = DriveIdentity::of(&drive, Offers::CacheControl, WritePermission::Allowed);
    let mut profiler = Profiler::new(device, Findings::default(), |prober| {
        procedure::complete(prober, BUDGET)
    });
    let ended = rehearse(&mut profiler, &mut drive, Instant::ZERO, BUDGET);
    let findings = profiler.findings();
    if let Rehearsed::OutOfTime(_) = ended {
        let step = findings.progress.step.name();
        return Err(Failure::failed(format!(
            "{}: ten minutes of the drive's time were not enough: it was at {step}",
            truth.name
        )));
    }
    if let Some((step, why)) = findings.progress.failed.first() {
        let step = step.name();
        return Err(Failure::failed(format!("{}: {step}: {why}", truth.name)));
    }
    Ok((findings, device))
}
