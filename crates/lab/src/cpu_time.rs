//! The CPU time of this process.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The CPU time of all threads of this process so far.
pub fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}
