//! Profiles drives from block numbers and completion times alone: simulated drives in virtual time,
//! and drives behind a load.

pub mod access_ranges;
pub mod behind;
pub mod check;
pub mod control;
pub mod found;
pub mod probe_path;
pub mod rehearsal;
pub mod report;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

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

    /// A sentence about the drive or its switches.
    fn say(&self, sentence: &str) {
        let _ = sentence;
    }

    /// The flag that stops it.
    fn stop(&self) -> Option<Arc<AtomicBool>> {
        None
    }
}

/// Ignores everything.
impl ProfilingObserver for () {}
