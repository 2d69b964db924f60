//! How late a CPU may wake up: a bound that the kernel keeps as long as somebody asks for it.
//!
//! An idle CPU sleeps, the deeper the longer, and a sleeping one takes up to milliseconds until it runs the program that
//! waits for a disk: in a virtual machine the host has to give it a CPU first. The kernel takes the least bound of all
//! programs (Linux, `Documentation/power/pm_qos_interface.rst`). All CPUs wait actively for a bound of 0, which costs power.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use block::{Duration, Instant};
use tracing::warn;

/// The device of the kernel that takes bounds: a signed 32-bit number of microseconds each, valid until it is closed.
const DEVICE: &str = "/dev/cpu_dma_latency";

/// A bound for all CPUs of this machine. It ends with this value, or with the process.
#[derive(Debug)]
pub struct CpuLatency {
    _open: File,
}

impl CpuLatency {
    /// Lets no CPU take longer than so many microseconds to wake up.
    ///
    /// # Errors
    /// If the kernel has no such device, or this user may not write it: only root may, usually.
    pub fn at_most(micros: u32) -> io::Result<Self> {
        CpuLatency::on(Path::new(DEVICE), micros)
    }

    fn on(device: &Path, micros: u32) -> io::Result<Self> {
        let told = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", device.display()))
        };
        let micros = i32::try_from(micros).unwrap_or(i32::MAX);
        let mut open = OpenOptions::new().write(true).open(device).map_err(told)?;
        open.write_all(&micros.to_ne_bytes()).map_err(told)?;
        Ok(CpuLatency { _open: open })
    }
}

/// The bound of a drive, asked for while its gaps are filled.
#[derive(Debug)]
pub(crate) struct LatencyInGaps {
    device: PathBuf,
    micros: Option<u32>,
    held: Option<CpuLatency>,
}

impl LatencyInGaps {
    /// So many microseconds; without a number nothing is ever asked for.
    pub(crate) fn at_most(micros: Option<u32>) -> Self {
        LatencyInGaps {
            device: PathBuf::from(DEVICE),
            micros,
            held: None,
        }
    }

    /// The next look whether the bound is still needed, while it is held: an idle loop would hold it for ever.
    pub(crate) fn next_wakeup(&self, now: Instant) -> Option<Instant> {
        self.held.as_ref().map(|_| now + Duration::from_secs(1))
    }

    /// Asks for the bound while `is_filling`. What the kernel refuses is logged once, and not asked for again.
    pub(crate) fn follow(&mut self, is_filling: bool) {
        match (self.micros, is_filling) {
            (Some(micros), true) if self.held.is_none() => {
                match CpuLatency::on(&self.device, micros) {
                    Ok(held) => self.held = Some(held),
                    Err(error) => {
                        warn!(%error, "the CPUs may sleep as long as they do without cpu_latency_us");
                        self.micros = None;
                    }
                }
            }
            (_, false) => self.held = None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_written_as_the_kernel_reads_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let device = folder.path().join("latency");
        let missing = CpuLatency::on(&device, 0).expect_err("no device");
        assert!(missing.to_string().contains("latency: "), "{missing}");
        for (micros, written) in [(0, 0), (20, 20), (u32::MAX, i32::MAX)] {
            std::fs::write(&device, "").expect("an empty file");
            let _held = CpuLatency::on(&device, micros).expect("a bound");
            let bytes = std::fs::read(&device).expect("a number");
            assert_eq!(bytes, written.to_ne_bytes());
        }
    }
    #[test]
    fn a_bound_is_asked_for_while_gaps_are_filled_and_not_again_once_it_was_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let device = folder.path().join("latency");
        let of = |micros| LatencyInGaps {
            device: device.clone(),
            ..LatencyInGaps::at_most(micros)
        };
        let asked = || std::fs::read(&device).expect("what was asked for");
        let mut refused = of(Some(7));
        refused.follow(true);
        std::fs::write(&device, "").expect("a device");
        refused.follow(true);
        let mut none = of(None);
        none.follow(true);
        assert!(asked().is_empty() && none.held.is_none());
        let mut bound = of(Some(7));
        bound.follow(false);
        assert!(asked().is_empty());
        bound.follow(true);
        bound.follow(true);
        assert_eq!(asked(), 7_i32.to_ne_bytes());
        let now = Instant::ZERO;
        assert_eq!(bound.next_wakeup(now), Some(now + Duration::from_secs(1)));
        bound.follow(false);
        assert!(bound.held.is_none() && bound.next_wakeup(now).is_none());
    }
}
