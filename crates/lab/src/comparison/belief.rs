//! The scheduler's belief from a file: its profile, with the platter's phase from a few reads of
//! the drive, as a host would begin.

use std::path::Path;
use std::sync::Arc;

use block::{Duration, Instant};
use drive::{Imperfections, Profile, VirtualDrive};
use profiler::rehearsal::rehearse;
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission, belief};

use crate::{Failure, text_file};

/// Limit of the search for the phase: nine reads, each of which takes less than a second.
const WITHIN: Duration = Duration::from_secs(10);

/// Reads the belief about a drive.
///
/// # Errors
/// If the file is not a profile, the profile has another size, or the drive does not answer.
pub fn read(
    path: &Path,
    truth: &Arc<Profile>,
    imperfections: &Imperfections,
    seed: u64,
) -> Result<Arc<Profile>, Failure> {
    let name = path.display().to_string();
    let believed = Profile::parse(&text_file::read(path)?, &name).map_err(Failure::input)?;
    let size = |profile: &Profile| (profile.geometry.sectors().0, profile.block_bytes);
    if size(&believed) != size(truth) {
        let ((found, of), (is, bytes)) = (size(&believed), size(truth));
        return Err(Failure::input(format!(
            "--belief {name}: {found} blocks of {of} bytes: expected the {is} blocks of {bytes} \
             bytes that {} has",
            truth.name
        )));
    }
    // The same drive before the load, with other random events.
    let mut drive = VirtualDrive::imperfect(Arc::clone(truth), imperfections.clone(), !seed);
    let device = DriveIdentity::of(&drive, Offers::CacheControl, WritePermission::Forbidden);
    let known = believed.clone();
    let mut profiler = Profiler::new(device, Findings::default(), |prober| async move {
        let clock = belief::phase::find(&prober, &known).await;
        prober.findings(|findings| findings.clock = clock.ok());
    });
    rehearse(&mut profiler, &mut drive, Instant::ZERO, WITHIN);
    match profiler.findings().clock {
        Some(clock) => Ok(Arc::new(belief::live(&believed, &clock))),
        None => Err(Failure::input(format!(
            "--belief {name}: {} does not answer as this says",
            truth.name
        ))),
    }
}
