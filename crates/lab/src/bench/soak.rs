//! Memory and descriptors of a service under a mixed load of hours: whether they grow.
//!
//! ```text
//!   verify load over NBD, connected again and again --.
//!   scans, one after another -------------------------+-> headtime serve --> write-back cache --> emulated drive
//!   status, every second -----------------------------'        |
//!                                        resident memory, descriptors, threads: a line through the samples
//! ```

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use server::control::Scan;
use server::control::protocol::Ask;
use server::status::TaskState;

use super::care::verify::{Book, PARTS, UNIT, VerifyCounts};
use super::rig::ServeProcess;
use crate::dice::SplitMix;
use crate::{Failure, Progress};

/// The settings of the benchmark.
#[derive(Clone, Debug)]
pub struct SoakBench {
    /// The length of the load, in seconds.
    pub seconds: u64,
    /// The emulated drive: a name from `headtime drives`.
    pub drive: String,
    /// How much slower than the drive the emulation runs.
    pub time_scale: f64,
    /// The seed of the load.
    pub seed: u64,
}

/// What the load came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SoakFigures {
    /// The length of the load, in seconds.
    pub seconds: u64,
    /// Requests of the verify load.
    pub requests: u64,
    /// Connections of the verify load.
    pub connections: u64,
    /// Scans that have ended.
    pub scans: u64,
    /// Bytes that were read and are wrong.
    pub wrong_bytes: u64,
    /// Reads that failed.
    pub failed_reads: u64,
    /// Resident memory, in KiB.
    pub memory_kib: GrowthFigures,
    /// Open descriptors.
    pub descriptors: GrowthFigures,
    /// Threads.
    pub threads: GrowthFigures,
}

/// A quantity over the second half of the load: what begins with the service has been there by then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct GrowthFigures {
    /// The first sample of all.
    pub first: f64,
    /// The mean of the second half.
    pub mean: f64,
    /// The largest sample of all.
    pub most: f64,
    /// The slope of the least-squares line through the second half, in units per hour.
    pub per_hour: f64,
}

/// A moment of the process.
#[derive(Clone, Copy, Debug)]
struct Sample {
    hours: f64,
    memory_kib: f64,
    descriptors: f64,
    threads: f64,
}

/// What the loads count together.
#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    connections: AtomicU64,
    scans: AtomicU64,
    is_over: AtomicBool,
}

impl SoakBench {
    /// Runs the load.
    ///
    /// # Errors
    /// If the service does not begin, ends, or does not answer.
    pub fn run(&self, progress: &dyn Progress) -> Result<SoakFigures, Failure> {
        if self.seconds < LEAST_SECONDS {
            return Err(Failure::input(format!(
                "a load of {} s: expected at least {LEAST_SECONDS} s",
                self.seconds
            )));
        }
        let folder = tempfile::tempdir().map_err(Failure::failed)?;
        let config = self.configuration();
        let service = ServeProcess::start(NAME, &config, folder.path())?;
        let counts = Counts::default();
        let (samples, verified) = thread::scope(|scope| {
            let load = scope.spawn(|| self.verify(folder.path(), &counts));
            let scans = scope.spawn(|| scan_again_and_again(&service, &counts));
            let samples = self.watch(&service, progress);
            counts.is_over.store(true, Ordering::Relaxed);
            let verified = load.join().map_err(|_| Failure::failed("the load"));
            let scanned = scans.join().map_err(|_| Failure::failed("the scans"));
            let verified = scanned.and_then(|scanned| scanned.and(verified?));
            samples.and_then(|samples| Ok((samples, verified?)))
        })?;
        let growth = |of: fn(&Sample) -> f64| GrowthFigures::of(&samples, of);
        Ok(SoakFigures {
            seconds: self.seconds,
            requests: counts.requests.into_inner(),
            connections: counts.connections.into_inner(),
            scans: counts.scans.into_inner(),
            wrong_bytes: verified.wrong_bytes,
            failed_reads: verified.failed_reads,
            memory_kib: growth(|sample| sample.memory_kib),
            descriptors: growth(|sample| sample.descriptors),
            threads: growth(|sample| sample.threads),
        })
    }

    fn configuration(&self) -> String {
        let SoakBench {
            drive, time_scale, ..
        } = self;
        format!(
            "[[drive]]\nname = \"disk\"\npolicy = \"sptf-sw60\"\nbelief = \"emulated\"\n\
             [drive.back_end]\nkind = \"emulated\"\ndrive = \"{drive}\"\nimage = \"disk.img\"\n\
             time_scale = {time_scale}\n\
             [[drive.volume]]\nname = \"{VOLUME}\"\nsize = \"4 MiB\"\n\
             cache = {{ size = \"512 KiB\", write = \"back\" }}\n\
             [[drive.export]]\nname = \"{VOLUME}\"\nvolume = \"{VOLUME}\"\n\
             [[nbd]]\nunix = \"{NAME}.nbd\"\n[control]\nsocket = \"{NAME}.control\"\n"
        )
    }

    /// Writes, reads and compares, with a new connection every so many requests.
    fn verify(&self, folder: &Path, counts: &Counts) -> Result<VerifyCounts, Failure> {
        let mut book = Book::new(self.seed, VOLUME_BYTES / UNIT);
        let mut dice = SplitMix::new(self.seed);
        let socket = folder.join(format!("{NAME}.nbd"));
        let mut verified = VerifyCounts::default();
        while !counts.is_over.load(Ordering::Relaxed) {
            let connection = counts.connections.fetch_add(1, Ordering::Relaxed);
            verified.add(&socket, (&mut book, &mut dice), |load| {
                load.exercise(CONNECTED_FOR, connection % PARTS)?;
                load.flush()?;
                load.settle()
            })?;
            counts.requests.fetch_add(CONNECTED_FOR, Ordering::Relaxed);
        }
        Ok(verified)
    }

    /// Samples the process until the end, and asks for its status as a monitor does.
    fn watch(
        &self,
        service: &ServeProcess,
        progress: &dyn Progress,
    ) -> Result<Vec<Sample>, Failure> {
        let begun = Instant::now();
        let mut samples = Vec::new();
        progress.begin("soak");
        progress.expect(self.seconds);
        while begun.elapsed().as_secs() < self.seconds {
            thread::sleep(SAMPLE_EVERY);
            service.status()?;
            progress.advance(1);
            let hours = begun.elapsed().as_secs_f64() / 3600.0;
            samples.push(sample(service.server.id(), hours)?);
        }
        Ok(samples)
    }
}

/// Begins a scan whenever none is there.
fn scan_again_and_again(service: &ServeProcess, counts: &Counts) -> Result<(), Failure> {
    while !counts.is_over.load(Ordering::Relaxed) {
        let begun = service.ask(&Ask::Scan(Scan::whole(VOLUME)))?;
        let task = begun["task"].as_u64();
        loop {
            thread::sleep(SAMPLE_EVERY);
            let status = service.status()?;
            let mut tasks = status.drives.iter().flat_map(|drive| &drive.tasks);
            let is_there = tasks.any(|one| Some(one.id) == task && one.state == TaskState::Active);
            if !is_there {
                counts.scans.fetch_add(1, Ordering::Relaxed);
                break;
            }
            if counts.is_over.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// What the kernel says of a process (proc(5)).
fn sample(process: u32, hours: f64) -> Result<Sample, Failure> {
    let path = format!("/proc/{process}/status");
    let text =
        fs::read_to_string(&path).map_err(|error| Failure::failed(format!("{path}: {error}")))?;
    let field = |name: &str| {
        let number = field(&text, name);
        number.ok_or_else(|| Failure::failed(format!("{path}: expected {name} (proc(5))")))
    };
    let descriptors = format!("/proc/{process}/fd");
    let descriptors = fs::read_dir(descriptors).map_err(Failure::failed)?.count();
    Ok(Sample {
        hours,
        memory_kib: field("VmRSS:")?,
        descriptors: descriptors as f64,
        threads: field("Threads:")?,
    })
}

/// The number behind a name in `/proc/PID/status`.
fn field(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

impl GrowthFigures {
    fn of(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> GrowthFigures {
        let half = &samples[samples.len() / 2..];
        let count = half.len().max(1) as f64;
        let mean = |of: &dyn Fn(&Sample) -> f64| half.iter().map(of).sum::<f64>() / count;
        let (hours, value) = (mean(&|sample| sample.hours), mean(&|sample| of(sample)));
        let spread: f64 = half.iter().map(|s| (s.hours - hours).powi(2)).sum();
        let rise: f64 = half
            .iter()
            .map(|s| (s.hours - hours) * (of(s) - value))
            .sum();
        GrowthFigures {
            first: samples.first().map_or(0.0, &of),
            mean: value,
            most: samples.iter().map(of).fold(0.0, f64::max),
            per_hour: if spread > 0.0 { rise / spread } else { 0.0 },
        }
    }
}

const NAME: &str = "soak";
const VOLUME: &str = "soaked";

/// Bytes of the volume: eight times the cache, so that pages come and go. A choice.
const VOLUME_BYTES: u64 = 4 << 20;

/// Requests of a connection. A choice: many connections in an hour.
const CONNECTED_FOR: u64 = 500;

/// The time between two samples, and between two questions for the status: that of a monitor. A choice.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// A line through fewer samples says nothing. A choice.
const LEAST_SECONDS: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_is_that_of_the_second_half() {
        let sample = |at: u32| Sample {
            hours: f64::from(at) / 10.0,
            // It rises steeply, then by 30 an hour.
            memory_kib: if at < 5 {
                900.0 * f64::from(at)
            } else {
                5_000.0 + 3.0 * f64::from(at)
            },
            descriptors: 7.0,
            threads: 2.0,
        };
        let samples: Vec<Sample> = (0..10).map(sample).collect();
        let memory = GrowthFigures::of(&samples, |sample| sample.memory_kib);
        assert!((memory.per_hour - 30.0).abs() < 1e-6, "{memory:?}");
        assert_eq!((memory.first, memory.most), (0.0, 5_027.0));
        let descriptors = GrowthFigures::of(&samples, |sample| sample.descriptors);
        assert_eq!((descriptors.per_hour, descriptors.mean), (0.0, 7.0));
        assert_eq!(
            GrowthFigures::of(&[], |sample| sample.threads),
            GrowthFigures::default()
        );
    }

    #[test]
    fn numbers_of_a_process_are_read() {
        let text = "Name:\theadtime\nVmRSS:\t  123456 kB\nThreads:\t9\n";
        assert_eq!(field(text, "VmRSS:"), Some(123_456.0));
        assert_eq!(field(text, "Threads:"), Some(9.0));
        assert_eq!(field(text, "VmSwap:"), None);
    }
}
