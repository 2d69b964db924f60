//! As many streams as are granted, beside a greedy load and a scan of the
//! whole disk, in virtual time: what was late, and what others got.

use std::sync::Arc;

use block::{Duration, Instant};
use drive::Profile;
use scheduler::policy::{ALL, NamedPolicy};
use serde::Serialize;
use simulator::streaming::trial::{Asked, Laid, Scanning, Trial, Tried, Truth};

use crate::{Failure, named};

/// Which streams are played beside which load.
#[derive(Clone, Debug)]
pub struct StreamsBench {
    /// The drive: a name from `headtime drives`, or a profile file.
    pub drive: String,
    /// Virtual hours of each run.
    pub hours: f64,
    /// Virtual hours of the same load without streams, of which the responses stand beside.
    pub alone_hours: f64,
    /// The policies, or `all`.
    pub policy: Vec<String>,
    /// Memory of each stream beyond its application's own part, in megabytes.
    pub memory: Vec<f64>,
    /// Shares of head time that are promised to the load.
    pub promised: Vec<f64>,
    /// Megabytes a second of each stream.
    pub rate: f64,
    /// Recorders; the others are readers.
    pub recorders: usize,
    /// Readers, if not as many as are granted.
    pub readers: Option<usize>,
    /// Tasks of the load: each always has a request waiting.
    pub tasks: u32,
    /// Kilobytes of each of their requests.
    pub kib: u64,
    /// The share of them that read.
    pub read_fraction: f64,
    /// The share of its memory that an application does not have: to see what is late then.
    pub missing: f64,
    /// No noise but that of seeks within their skew, no recalibration, no retries.
    pub quiet: bool,
    /// Files lie over the whole zone where sweeps take the longest, and all are played at once.
    pub hostile: bool,
    /// The seed of the load, of the noise, and of where files begin.
    pub seed: u64,
}

/// The figures of one run.
#[derive(Debug, Serialize)]
pub struct StreamsFigures {
    /// The policy.
    pub policy: String,
    /// Memory of each stream.
    pub memory_mb: f64,
    /// The share of head time that was promised to the load.
    pub promised: f64,
    /// Virtual hours.
    pub hours: f64,
    /// Streams that were granted.
    pub streams: usize,
    /// Accesses of applications.
    pub accesses: u64,
    /// Those that did not find their memory.
    pub waited: u64,
    /// The longest wait of an access.
    pub longest_wait_ms: f64,
    /// Batches.
    pub batches: u64,
    /// Those that came after their deadline.
    pub late: u64,
    /// How late a batch was at most.
    pub latest_ms: f64,
    /// Guarantees that lapsed.
    pub lapsed: u64,
    /// Of the head's time, what streams took.
    pub head_share: f64,
    /// The load's requests in a second.
    pub load_per_second: f64,
    /// The 99th percentile of their responses.
    pub load_p99_ms: f64,
    /// The same without streams.
    pub alone_per_second: f64,
    /// The 99th percentile of their responses without streams.
    pub alone_p99_ms: f64,
    /// Of the scan, in gaps.
    pub scan_mb_per_second: f64,
}

impl StreamsBench {
    /// The drive.
    ///
    /// # Errors
    /// If there is no such drive.
    pub fn drive(&self) -> Result<Arc<Profile>, Failure> {
        named::drive(&self.drive).map(Arc::new)
    }

    /// Plays all runs, and passes each one's figures on as soon as it is over.
    ///
    /// # Errors
    /// If the settings make no sense, the streams that were asked for are refused, or `report` fails.
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

    /// The policies.
    ///
    /// # Errors
    /// If a name is in no table.
    pub fn policies(&self) -> Result<Vec<NamedPolicy>, Failure> {
        match self.policy.as_slice() {
            [all] if all == "all" => Ok(ALL.iter().map(NamedPolicy::from).collect()),
            names => names.iter().map(|name| named::policy(name)).collect(),
        }
    }

    /// Whether all values make sense.
    ///
    /// # Errors
    /// The first that does not.
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

    /// The load alone.
    fn alone(&self, policy: NamedPolicy, drive: &Arc<Profile>) -> Trial {
        Trial {
            belief: Arc::clone(drive),
            drive: Arc::clone(drive),
            truth: match self.quiet {
                true => Truth::quiet(),
                false => Truth::noisy(),
            },
            laid: match self.hostile {
                true => Laid::Hostile,
                false => Laid::Anywhere,
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
            streams: Some(Asked {
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

    fn line(&self, tried: &Tried, alone: &Tried, block_bytes: u32) -> StreamsFigures {
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

/// Requests in a second, and the 99th percentile of their responses.
fn figures(tried: &Tried) -> [f64; 2] {
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

/// So long nobody competes with the filling of buffers. A choice.
const FILLING: Duration = Duration::from_secs(60);

/// Two minutes: buffers have to be full before something is seen. A choice.
const LEAST_HOURS: f64 = 0.03;
const MOST_HOURS: f64 = 8_766.0;
