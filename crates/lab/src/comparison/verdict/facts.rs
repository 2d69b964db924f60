//! The figures of a run from which its verdict is found.

use simulator::ledger::{AccountMeans, BatchMeans, RunReport};
use simulator::replay::ReplayPace;
use simulator::workload::Arrivals;

use crate::comparison::load::LoadSource;

/// The figures of one policy's run.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// The policy's name.
    pub name: String,
    /// Number of requests.
    pub requests: u64,
    /// The mean response time.
    pub mean_ms: f64,
    /// Half the width of its confidence interval, if there were enough requests.
    pub margin_ms: Option<f64>,
    /// The means of batches of requests, in order of arrival.
    pub batches: BatchMeans,
    /// The 99.9th percentile of the response times.
    pub p999_ms: f64,
    /// The account of the mean, largest part first.
    pub parts: Vec<(Part, f64)>,
    /// The fraction of the time without requests.
    pub idle: f64,
    /// The fraction of the head's busy time in which blocks passed under it.
    pub transfer: f64,
    /// The fraction of requests that the drive's buffer answered.
    pub buffered: f64,
    /// The mean head time of a command.
    pub head_ms: f64,
    /// The mean rest of a command that an arrival at a busy drive finds.
    pub residual_ms: f64,
    /// From the first arrival to the last one.
    pub arrivals_ms: f64,
    /// From the first arrival to the last end.
    pub span_ms: f64,
}

/// A part of a request's account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// In the scheduler and in the drive's queue.
    Waiting,
    /// Arm movement.
    Seek,
    /// Rotational latency.
    Rotation,
    /// Media transfer.
    Transfer,
    /// The drive's electronics.
    Electronics,
    /// The bus.
    Bus,
    /// Time that no phase accounts for.
    Unaccounted,
}

/// The law of the arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Pace {
    /// Requests arrive whether or not earlier ones were answered.
    Open(OpenLoad),
    /// Clients of a synthetic load wait for answers: at most so many requests are outstanding.
    ClosedLoad(u32),
    /// A trace with so many requests outstanding.
    ClosedTrace(u32),
    /// Several loads, or a system.
    Several,
}

/// The source of open arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum OpenLoad {
    /// A trace at its own times.
    Trace,
    /// A synthetic load of so many requests a second.
    Synthetic(f64),
}

impl Facts {
    /// The figures of a run; `None` if no request ended.
    pub fn of(name: &str, report: &RunReport) -> Option<Facts> {
        let response = report.all.response.as_ref()?;
        let commands = report.commands.as_ref();
        let requests = report.all.requests;
        let busy = 1.0 - report.head.idle;
        Some(Facts {
            name: name.to_owned(),
            requests,
            mean_ms: response.mean_ms,
            margin_ms: report.mean_margin_ms,
            batches: report.batch_means.clone(),
            p999_ms: response.p999_ms,
            parts: parts(report.all.account.as_ref()?),
            idle: report.head.idle,
            transfer: match busy > 0.0 {
                true => report.head.transfer / busy,
                false => 0.0,
            },
            buffered: report.all.hits.full as f64 / requests as f64,
            head_ms: commands.map_or(0.0, |commands| commands.mean_ms),
            residual_ms: commands.map_or(0.0, |commands| commands.expected_wait_if_busy_ms),
            arrivals_ms: report.arrivals_ms,
            span_ms: report.span_ms,
        })
    }

    /// Half the width of the 95 % confidence interval of the difference of two means, if there were enough requests.
    /// Runs with the same requests are compared batch by batch: what is hard for both is no noise.
    pub fn noise_beside(&self, other: &Facts, pace: Pace) -> Option<f64> {
        let paired = match pace {
            Pace::Open(_) | Pace::ClosedTrace(_) => self.batches.paired_margin_ms(&other.batches),
            Pace::ClosedLoad(_) | Pace::Several => None,
        };
        let alone = || Some(self.margin_ms?.hypot(other.margin_ms?));
        paired.or_else(alone)
    }

    /// The fraction of the mean response time in a part.
    pub fn share(&self, part: Part) -> f64 {
        let found = self.parts.iter().find(|(of, _)| *of == part);
        match self.mean_ms > 0.0 {
            true => found.map_or(0.0, |(_, ms)| ms / self.mean_ms),
            false => 0.0,
        }
    }

    /// The mean number of requests that are served between the arrival of a request and its own service.
    pub fn ahead(&self) -> f64 {
        match self.head_ms > 0.0 {
            true => self.share(Part::Waiting) * self.mean_ms / self.head_ms,
            false => 0.0,
        }
    }

    /// The mean wait of the same requests in order of arrival if they came independently of each other (Poisson):
    /// the formula of Pollaczek and Khinchine, residual × busy / idle.
    pub fn independent_wait_ms(&self) -> f64 {
        self.residual_ms * (1.0 - self.idle) / self.idle.max(f64::MIN_POSITIVE)
    }

    /// The rate of arrivals over that of ends. Above 1, the queue grew until the last arrival.
    pub fn pressure(&self) -> f64 {
        self.span_ms / self.arrivals_ms.max(f64::MIN_POSITIVE)
    }
}

impl Part {
    /// The part as the subject of a sentence.
    pub fn subject(self) -> &'static str {
        match self {
            Part::Waiting => "waiting for other requests",
            Part::Seek => "seek",
            Part::Rotation => "rotation",
            Part::Transfer => "transfer",
            Part::Electronics => "the drive's electronics",
            Part::Bus => "the bus",
            Part::Unaccounted => "time that no phase accounts for",
        }
    }

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Part::Waiting => "waiting",
            Part::Seek => "seek",
            Part::Rotation => "rotation",
            Part::Transfer => "transfer",
            Part::Electronics => "electronics",
            Part::Bus => "bus",
            Part::Unaccounted => "unaccounted",
        }
    }
}

/// The account, largest part first.
fn parts(account: &AccountMeans) -> Vec<(Part, f64)> {
    let mut parts = vec![
        (Part::Waiting, account.waited_ms + account.queue_ms),
        (Part::Seek, account.seek_ms),
        (Part::Rotation, account.rotation_ms),
        (Part::Transfer, account.transfer_ms),
        (Part::Electronics, account.overhead_ms),
        (Part::Bus, account.bus_ms),
        (Part::Unaccounted, account.unclaimed_ms),
    ];
    parts.sort_by(|one, other| other.1.total_cmp(&one.1));
    parts
}

impl Pace {
    /// The law of a load's arrivals.
    pub fn of(source: &LoadSource) -> Pace {
        match source {
            LoadSource::Trace(plan) => match plan.pace {
                ReplayPace::Timed { .. } => Pace::Open(OpenLoad::Trace),
                ReplayPace::Closed { depth } => Pace::ClosedTrace(depth),
            },
            LoadSource::Synthetic(workload) => match workload.arrivals {
                Arrivals::Open { per_second, .. } => Pace::Open(OpenLoad::Synthetic(per_second)),
                Arrivals::Closed { tasks, .. } => Pace::ClosedLoad(tasks),
            },
            LoadSource::Mixture(_) | LoadSource::Placed(_) => Pace::Several,
        }
    }
}
