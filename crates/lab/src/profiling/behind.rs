//! Profiles a drive while it serves a load.

use std::sync::Arc;

use crate::comparison::load::{LoadSettings, LoadSource};
use block::{Duration, Instant};
use drive::{Profile, VirtualDrive};
use engine::{Engine, Limits};
use profiler::behind::{ProbeSchedule, ProfilerBehindLoad};
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission, procedure};
use scheduler::policy::find;
use serde::Serialize;
use simulator::driver::{Driver, SimulatedDrive};
use simulator::ledger::{Ledger, RunReport};
use simulator::run::{self, Options, ProfiledDrive, ProfilingProgress};

use super::found::{FoundDrive, ProfilingEnd};
use super::rehearsal::{RehearsalNoise, fits};
use crate::Failure;

/// The load, and the times for probes.
#[derive(Clone, Debug)]
pub struct BehindPlan {
    source: LoadSource,
    name: String,
    percent: f64,
    budget: Duration,
}

/// The result.
#[derive(Debug)]
pub struct Behind {
    /// The drive as it was found.
    pub found: FoundDrive,
    /// The printed figures.
    pub figures: BehindFigures,
}

/// The figures of a run behind a load.
#[derive(Clone, Debug, Serialize)]
pub struct BehindFigures {
    /// The drive.
    pub drive: String,
    /// The load.
    pub behind: String,
    /// The share of time that was granted to probes between requests.
    pub percent: f64,
    /// The drive's time, at most the budget.
    pub drive_seconds: f64,
    /// Whether no question was left.
    pub finished: bool,
    /// Revolutions per minute; null if they were not found.
    pub rpm: Option<f64>,
    /// The share of blocks whose tracks are known.
    pub known: f64,
    /// Whether a service would use the profile.
    pub usable: bool,
    /// Completed commands of the profiler.
    pub probes: u64,
    /// Their share of the drive's time.
    pub probing: f64,
    /// The load's requests beside probes.
    pub foreground: ForegroundFigures,
    /// The same requests without probes.
    pub alone: ForegroundFigures,
    /// The increase of the mean response, in percent; null without requests.
    pub mean_percent: Option<f64>,
    /// The increase of the 99th percentile, in percent.
    pub p99_percent: Option<f64>,
    /// The progress of the findings.
    pub progress: Vec<KnownAt>,
}

/// The response times of a load.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ForegroundFigures {
    /// Completed requests.
    pub requests: u64,
    /// Their mean response time.
    pub mean_ms: Option<f64>,
    /// Their 99th percentile.
    pub p99_ms: Option<f64>,
}

/// The findings at a moment.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct KnownAt {
    /// The time.
    pub seconds: f64,
    /// The share of blocks whose tracks were known.
    pub known: f64,
    /// Completed commands of the profiler.
    pub probes: u64,
}

/// Idle time before probes. A choice: as for background reads, longer than the pauses of one busy
/// client.
const CALM: Duration = Duration::from_millis(10);

/// Number of progress entries in a budget. A choice.
const NOTES: u64 = 20;

/// Largest share of time for probes. Half of the time is no background any more.
const MOST_PERCENT: f64 = 50.0;

impl BehindPlan {
    /// Plans probes behind a load, with this share of time besides its pauses.
    ///
    /// # Errors
    /// If there is no such load, or the share is invalid.
    pub fn new(load: &str, percent: f64, budget: Duration) -> Result<BehindPlan, Failure> {
        if !(0.0..=MOST_PERCENT).contains(&percent) {
            return Err(Failure::input(format!(
                "--behind-percent {percent}: expected a number from 0 to {MOST_PERCENT}"
            )));
        }
        let arguments = LoadSettings {
            workload: Some(load.to_owned()),
            ..LoadSettings::default()
        };
        let source = arguments.source()?;
        Ok(BehindPlan {
            name: source.name(),
            source,
            percent,
            budget,
        })
    }

    /// The end of the run.
    fn end(&self) -> Instant {
        Instant::ZERO + self.budget
    }

    /// Serves the load on a device until the end; answers the requests' figures.
    fn serve<D: SimulatedDrive>(
        &self,
        truth: &Arc<Profile>,
        drive: D,
    ) -> Result<(RunReport, Instant), Failure> {
        // A drive that is being profiled is unknown: c-look needs the order of blocks only.
        let policy = find("c-look").map_err(Failure::failed)?;
        let limits = Limits::suited_to(policy, truth);
        let engine = Engine::new(Arc::clone(truth), &|| policy.make(), limits);
        let mut ledger = Ledger::new(truth.block_bytes, truth.actuators);
        let capacity = truth.geometry.sectors().0;
        let mut load = self.source.begin(truth.block_bytes, capacity)?;
        let options = Options {
            until: Some(self.end()),
            ..Options::default()
        };
        let ran = run::run(
            &mut Driver::new(engine, drive),
            &mut load,
            &options,
            &mut ledger,
            &mut (),
        );
        let ran = ran.map_err(Failure::input)?;
        Ok((ledger.report(&ran), ran.over))
    }
}

/// Profiles a simulated drive behind a load. The drive has these means to bypass its buffer, and is not
/// written.
///
/// # Errors
/// If the load does not fit on the drive, or tracks of another run do not.
pub fn profile(
    truth: &Arc<Profile>,
    noise: RehearsalNoise,
    offers: Offers,
    plan: &BehindPlan,
    resumed: &Findings,
) -> Result<Behind, Failure> {
    let drive = || {
        let imperfections = noise.imperfections();
        VirtualDrive::imperfect(Arc::clone(truth), imperfections, noise.seed)
    };
    let (alone, _) = plan.serve(truth, drive())?;
    let drive = drive();
    let device = DriveIdentity::of(&drive, offers, WritePermission::Forbidden);
    fits(resumed, &device, &truth.name)?;
    let end = plan.end();
    let budget = plan.budget;
    let whole = move |prober| procedure::complete(prober, budget);
    let profiler = Profiler::new(device, resumed.clone(), whole);
    let schedule = ProbeSchedule {
        calm: CALM,
        granted_ppm: (plan.percent * 1e4).round() as u32,
        from: Instant::ZERO,
        until: end,
    };
    let note_every = Duration::from_nanos(plan.budget.as_nanos() / NOTES);
    let profiler = ProfilerBehindLoad::new(profiler, schedule);
    let mut shared = ProfiledDrive::new(drive, profiler, note_every);
    let (beside, over) = plan.serve(truth, &mut shared)?;
    let finished = shared.finished();
    let found = found(truth, device, &shared, over.min(end));
    let last = shared.known_at(over);
    let share = |known: &ProfilingProgress| known.blocks as f64 / device.blocks as f64;
    let seconds = found.at.as_secs_f64();
    let more =
        |of: fn(&ForegroundFigures) -> Option<f64>,
         beside: &ForegroundFigures,
         alone: &ForegroundFigures| { Some((of(beside)? / of(alone)? - 1.0) * 100.0) };
    let (foreground, alone) = (
        ForegroundFigures::of(&beside),
        ForegroundFigures::of(&alone),
    );
    let figures = BehindFigures {
        drive: truth.name.clone(),
        behind: plan.name.clone(),
        percent: plan.percent,
        drive_seconds: seconds,
        finished: finished.is_some(),
        rpm: found
            .findings
            .clock
            .as_ref()
            .map(|clock| 60e12 / clock.spindle().period_ps() as f64),
        known: share(&last),
        usable: found.needs_belief().is_ok(),
        probes: last.probes,
        probing: last.took.as_secs_f64() / seconds.max(f64::MIN_POSITIVE),
        foreground,
        alone,
        mean_percent: more(|side| side.mean_ms, &foreground, &alone),
        p99_percent: more(|side| side.p99_ms, &foreground, &alone),
        progress: shared
            .known()
            .iter()
            .map(|k| KnownAt::of(k, share(k)))
            .collect(),
    };
    Ok(Behind { found, figures })
}

/// The drive as it was found by `end`, or before.
fn found(
    truth: &Arc<Profile>,
    device: DriveIdentity,
    shared: &ProfiledDrive,
    end: Instant,
) -> FoundDrive {
    let finished = shared.finished();
    FoundDrive {
        name: truth.name.clone(),
        device,
        findings: shared.findings(),
        truth: Some(Arc::clone(truth)),
        at: finished.unwrap_or(end),
        probes: shared.known_at(end).probes,
        ended: match finished {
            Some(_) => ProfilingEnd::Finished,
            None => ProfilingEnd::OutOfTime,
        },
    }
}

impl ForegroundFigures {
    fn of(report: &RunReport) -> Self {
        let response = report.all.response;
        ForegroundFigures {
            requests: report.all.requests,
            mean_ms: response.map(|response| response.mean_ms),
            p99_ms: response.map(|response| response.p99_ms),
        }
    }
}

impl KnownAt {
    fn of(known: &ProfilingProgress, share: f64) -> Self {
        KnownAt {
            seconds: known.at.as_secs_f64(),
            known: share,
            probes: known.probes,
        }
    }
}
