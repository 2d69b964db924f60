//! Profiles drives from block numbers and completion times alone: simulated drives in virtual time,
//! devices in real time, and drives behind a load.

pub mod behind;
pub mod check;
pub mod device;
pub mod found;
pub mod rehearsal;
pub mod report;

use block::Instant;
use profiler::{DriveIdentity, Findings};

/// An observer of profiling.
pub trait ProfilingObserver {
    /// Profiling of this drive starts.
    fn begin(&self, drive: &str) {
        let _ = drive;
    }

    /// The findings at this moment of the drive's time.
    fn show(&self, at: Instant, device: &DriveIdentity, findings: &Findings) {
        let _ = (at, device, findings);
    }
}

/// Ignores everything.
impl ProfilingObserver for () {}
