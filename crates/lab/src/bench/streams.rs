//! The largest number of granted streams beside a greedy load and a scan of the whole disk, in
//! virtual time: late batches, and the cost to the load.

use std::sync::Arc;

use block::{Duration, Instant};
use drive::Profile;
use scheduler::policy::{ALL, NamedPolicy};
use serde::Serialize;
use simulator::streaming::trial::{
    DriveTruth, FileLayout, Scanning, Trial, TrialResult, TrialStreams,
};

use crate::{Failure, named};

/// The settings of the benchmark.
#[derive(Clone, Debug)]
pub struct StreamsBench {
    /// The drive: a name from `headtime drives`, or a profile file.
    pub drive: String,
    /// Virtual hours of each run.
    pub hours: f64,
    /// Virtual hours of the baseline: the same load without streams.
    pub alone_hours: f64,
    /// The policies, or `all`.
    pub policy: Vec<String>,
    /// Memory of each stream beyond the application's own buffer, in megabytes.
    pub memory: Vec<f64>,
    /// Shares of head time that admission reserves for the load.
    pub promised: Vec<f64>,
    /// The rate of each stream, in megabytes per second.
    pub rate: f64,
    /// The number of recorders. All other streams are readers.
    pub recorders: usize,
    /// The number of readers. Default: as many as admission grants.
    pub readers: Option<usize>,
    /// The tasks of the load. Each always has one request outstanding.
    pub tasks: u32,
    /// The size of each of the load's requests, in KiB.
    pub kib: u64,
    /// The share of reads among the load's requests.
    pub read_fraction: f64,
    /// The share of each application's buffer that is withheld, to provoke late batches.
    pub missing: f64,
    /// Whether imperfections are limited to seek noise within the skew: no recalibration, no
    /// retries.
    pub quiet: bool,
    /// Whether the files lie over the zone with the longest sweeps, and are all played at once.
    pub hostile: bool,
    /// The seed of the load, of the noise and of the files' positions.
    pub seed: u64,
}

/// The figures of one run.
#[derive(Debug, Serialize)]
pub struct StreamsFigures {
    /// The policy.
    pub policy: String,
    /// Memory of each stream.
    pub memory_mb: f64,
    /// The share of head time that admission reserved for the load.
    pub promised: f64,
    /// Virtual hours.
    pub hours: f64,
    /// The number of granted streams.
    pub streams: usize,
    /// The number of the applications' accesses.
    pub accesses: u64,
    /// The number of accesses whose data was not in memory.
    pub waited: u64,
    /// The longest wait of an access.
    pub longest_wait_ms: f64,
    /// The number of batches.
    pub batches: u64,
    /// The number of batches that missed their deadline.
    pub late: u64,
    /// The largest lateness of a batch.
    pub latest_ms: f64,
    /// The number of lapsed guarantees.
    pub lapsed: u64,
    /// The streams' share of head time.
    pub head_share: f64,
    /// The load's requests per second.
    pub load_per_second: f64,
    /// The 99th percentile of the load's response times.
    pub load_p99_ms: f64,
    /// The load's requests per second without streams.
    pub alone_per_second: f64,
    /// The 99th percentile of the load's response times without streams.
    pub alone_p99_ms: f64,
    /// The rate of the scan in gaps.
    pub scan_mb_per_second: f64,
}

impl StreamsBench {
    /// Loads the drive.
    ///
    /// # Errors
    /// If there is no such drive.
    pub fn drive(&self) -> Result<Arc<Profile>, Failure> {
        named::drive(&self.drive).map(Arc::new)
    }

    /// Plays all runs, and reports each one's figures as soon as it ends.
    ///
    /// # Errors
    /// If the settings are invalid, admission refuses the requested streams, or `report` fails.
    pub fn run<E: From<Failure>>(
        &self,
        mut report: impl FnMut(&StreamsFigures) -> Result<(), E>,
    ) -> Result<(), E> {
        let drive = self.drive()?;
        for policy in self.policies()? {
            let alone = self.alone(policy, &drive).play();
            let alone = alone.map_err(Failure::failed)?;
            for &memory_mb in &self.memory {
                for &promised in &self.promised {
                    let trial = self.trial(policy, &drive, memory_mb, promised);
                    let tried = trial.play().map_err(Failure::input)?;
                    report(&StreamsFigures {
                        policy: policy.name(),
                        memory_mb,
                        promised,
                        ..self.line(&tried, &alone, drive.block_bytes)
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Looks up the policies.
    ///
    /// # Errors
    /// If a name is unknown.
    pub fn policies(&self) -> Result<Vec<NamedPolicy>, Failure> {
        match self.policy.as_slice() {
            [all] if all == "all" => Ok(ALL.iter().map(NamedPolicy::from).collect()),
            names => names.iter().map(|name| named::policy(name)).collect(),
        }
    }

    /// Checks all values.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn check(&self) -> Result<(), Failure> {
        let shares = self
            .promised
            .iter()
            .chain([&self.missing, &self.read_fraction]);
        for share in shares {
            if !(0.0..=1.0).contains(share) {
                let problem = format!("a share of {share}: expected 0 to 1");
                return Err(Failure::input(problem));
            }
        }
        let amounts = self.memory.iter().chain([&self.rate]);
        for amount in amounts {
            if !(1e-6..=1e6).contains(amount) {
                let problem = format!("{amount} MB: expected a millionth to a million");
                return Err(Failure::input(problem));
            }
        }
        for hours in [self.hours, self.alone_hours] {
            if !(LEAST_HOURS..=MOST_HOURS).contains(&hours) {
                let problem =
                    format!("{hours} hours: expected {LEAST_HOURS} to {MOST_HOURS}, a year");
                return Err(Failure::input(problem));
            }
        }
        Ok(())
    }

    /// Runs the load without streams.
    fn alone(&self, policy: NamedPolicy, drive: &Arc<Profile>) -> Trial {
        Trial {
            belief: Arc::clone(drive),
            drive: Arc::clone(drive),
            truth: match self.quiet {
                true => DriveTruth::quiet(),
                false => DriveTruth::noisy(),
            },
            laid: match self.hostile {
                true => FileLayout::Hostile,
                false => FileLayout::Anywhere,
            },
            policy,
            preemption: None,
            streams: None,
            tasks: self.tasks,
            read_fraction: self.read_fraction,
            bytes: self.kib * 1024,
            scan: Scanning::Whole,
            from: Instant::ZERO,
            until: after(self.alone_hours),
            seed: self.seed,
        }
    }

    fn trial(
        &self,
        policy: NamedPolicy,
        drive: &Arc<Profile>,
        memory_mb: f64,
        promised: f64,
    ) -> Trial {
        let memory = (memory_mb * 1e6) as u64;
        Trial {
            streams: Some(TrialStreams {
                rate: (self.rate * 1e6) as u64,
                memory,
                readers: self.readers,
                recorders: self.recorders,
                missing: (memory as f64 * self.missing) as u64,
                foreground_permille: (promised * 1e3).round() as u32,
            }),
            from: Instant::ZERO + FILLING,
            until: after(self.hours),
            ..self.alone(policy, drive)
        }
    }

    fn line(&self, tried: &TrialResult, alone: &TrialResult, block_bytes: u32) -> StreamsFigures {
        let kept = &tried.kept;
        let [load_per_second, load_p99_ms] = figures(tried);
        let [alone_per_second, alone_p99_ms] = figures(alone);
        let scan = tried.played.scan.as_ref();
        StreamsFigures {
            policy: String::new(),
            memory_mb: 0.0,
            promised: 0.0,
            hours: self.hours,
            streams: kept.streams,
            accesses: kept.accesses,
            waited: kept.waited + kept.refused + kept.failed + kept.elsewhere,
            longest_wait_ms: millis(kept.longest_wait),
            batches: kept.batches,
            late: kept.late,
            latest_ms: millis(kept.latest),
            lapsed: kept.lapsed,
            head_share: kept.head_share(),
            load_per_second,
            load_p99_ms,
            alone_per_second,
            alone_p99_ms,
            scan_mb_per_second: scan.map_or(0.0, |scan| scan.rates(100, block_bytes).iter().sum()),
        }
    }
}

/// Requests per second, and the 99th percentile of their response times.
fn figures(tried: &TrialResult) -> [f64; 2] {
    let report = tried.played.ledger.report(&tried.played.ran);
    let p99 = report.all.response.map_or(0.0, |response| response.p99_ms);
    [report.requests_per_second, p99]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn after(hours: f64) -> Instant {
    Instant::ZERO + Duration::from_nanos((hours * 3.6e12) as u64)
}

/// Time in which buffers fill without other load. A choice.
const FILLING: Duration = Duration::from_secs(60);

/// Shortest run: two minutes, so that buffers are full before the measurement. A choice.
const LEAST_HOURS: f64 = 0.03;
const MOST_HOURS: f64 = 8_766.0;
