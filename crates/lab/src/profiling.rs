//! Profiles of drives from block numbers and completion times alone: of simulated drives in virtual time, of
//! devices in real time, and behind a load.

pub mod behind;
pub mod check;
pub mod device;
pub mod found;
pub mod rehearsal;
pub mod report;

use block::Instant;
use profiler::{DriveIdentity, Findings};

/// Follows the profiler.
pub trait ProfilingObserver {
    /// A drive of this name is profiled.
    fn begin(&self, drive: &str) {
        let _ = drive;
    }

    /// At this moment of the drive's time so much is known.
    fn show(&self, at: Instant, device: &DriveIdentity, findings: &Findings) {
        let _ = (at, device, findings);
    }
}

/// Ignores all.
impl ProfilingObserver for () {}
