//! `headtime profile --behind LOAD`: the tracks of a drive, found while it serves somebody else.

use std::fmt::Write;
use std::sync::Arc;

use block::{Duration, Instant};
use drive::{Profile, VirtualDrive};
use engine::{Engine, Limits};
use lab::comparison::load::{LoadSettings, Source};
use profiler::{DriveIdentity, Findings, Offers, Profiler, WritePermission, procedure};
use scheduler::policy::find;
use serde::Serialize;
use simulator::driver::{Driver, SimulatedDrive};
use simulator::ledger::{Ledger, Report};
use simulator::run::{self, Options, ProfiledDrive, ProfilingProgress, Turns};

use super::rehearsal::{Noise, fits};
use crate::output::{Exit, grouped};

/// The load, and when probes may go.
#[derive(Clone, Debug)]
pub struct Plan {
    source: Source,
    name: String,
    percent: f64,
    budget: Duration,
}

/// What came of it.
#[derive(Debug)]
pub struct Behind {
    /// What was found.
    pub findings: Findings,
    /// What is printed.
    pub figures: Figures,
}

/// The figures of a run behind a load.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// The drive.
    drive: String,
    /// The load.
    behind: String,
    /// The share of the time that probes were granted between requests.
    percent: f64,
    /// The drive's time, at most the budget.
    drive_seconds: f64,
    /// Whether there was nothing more to ask.
    finished: bool,
    /// Revolutions per minute; null if they were not found.
    rpm: Option<f64>,
    /// The share of the blocks whose tracks are known.
    known: f64,
    /// Commands of the profiler that ended.
    probes: u64,
    /// The share of the drive's time that they took.
    probing: f64,
    /// The load's requests beside the probes.
    foreground: Foreground,
    /// The same requests without.
    alone: Foreground,
    /// By how many per cent the mean response was longer; null without requests.
    mean_percent: Option<f64>,
    /// The same of the time within which 99 % were answered.
    p99_percent: Option<f64>,
    /// What was known when.
    progress: Vec<Moment>,
}

/// What a load was like.
#[derive(Clone, Copy, Debug, Serialize)]
struct Foreground {
    requests: u64,
    mean_ms: Option<f64>,
    p99_ms: Option<f64>,
}

/// What was known at a moment.
#[derive(Clone, Copy, Debug, Serialize)]
struct Moment {
    seconds: f64,
    known: f64,
    probes: u64,
}

/// For how long no request must have been at the drive before probes go. A choice: as for background
/// reads, longer than the pauses between the requests of one busy client.
const CALM: Duration = Duration::from_millis(10);

/// How many times in a budget it is noted what is known. A choice.
const NOTES: u64 = 20;

/// More than half of the time is nothing that goes on behind a load.
const MOST_PERCENT: f64 = 50.0;

impl Plan {
    /// Probes behind a load, which may have so many per cent of its time besides its pauses.
    ///
    /// # Errors
    /// If there is no such load, or the share is none.
    pub fn new(load: &str, percent: f64, budget: Duration) -> Result<Plan, Exit> {
        if !(0.0..=MOST_PERCENT).contains(&percent) {
            return Err(Exit::input(format!(
                "--behind-percent {percent}: expected a number from 0 to {MOST_PERCENT}"
            )));
        }
        let arguments = LoadSettings {
            workload: Some(load.to_owned()),
            ..LoadSettings::default()
        };
        let source = arguments.source()?;
        Ok(Plan {
            name: source.name(),
            source,
            percent,
            budget,
        })
    }

    /// The moment at which it ends.
    fn end(&self) -> Instant {
        Instant::ZERO + self.budget
    }

    /// Serves the load on a device until the end; answers the requests' figures.
    fn serve<D: SimulatedDrive>(
        &self,
        truth: &Arc<Profile>,
        drive: D,
    ) -> Result<(Report, Instant), Exit> {
        // Of a drive that is being profiled nothing is known: the order of the blocks is all that is
        // used of it.
        let policy = find("c-look").map_err(Exit::failed)?;
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
        let ran = ran.map_err(Exit::input)?;
        Ok((ledger.report(&ran), ran.over))
    }
}

/// Finds the tracks of a simulated drive behind a load.
///
/// # Errors
/// If the load does not fit on the drive, or tracks of another run do not.
pub fn profile(
    truth: &Arc<Profile>,
    noise: Noise,
    plan: &Plan,
    resumed: &Findings,
) -> Result<Behind, Exit> {
    let drive = || {
        let imperfections = noise.imperfections();
        VirtualDrive::imperfect(Arc::clone(truth), imperfections, noise.seed)
    };
    let (alone, _) = plan.serve(truth, drive())?;
    let drive = drive();
    let device = DriveIdentity::of(&drive, Offers::CacheControl, WritePermission::Forbidden);
    fits(resumed, &device, &truth.name)?;
    let end = plan.end();
    let tracks = move |prober| procedure::tracks(prober, end);
    let profiler = Profiler::new(device, resumed.clone(), tracks);
    let turns = Turns {
        calm: CALM,
        granted_ppm: (plan.percent * 1e4).round() as u32,
        until: end,
        note_every: Duration::from_nanos(plan.budget.as_nanos() / NOTES),
    };
    let mut shared = ProfiledDrive::new(drive, profiler, turns);
    let (beside, over) = plan.serve(truth, &mut shared)?;
    let findings = shared.findings();
    let last = shared.known_at(over);
    let share = |known: &ProfilingProgress| known.blocks as f64 / device.blocks as f64;
    let seconds = shared.finished().unwrap_or(over.min(end)).as_secs_f64();
    let more = |of: fn(&Foreground) -> Option<f64>, beside: &Foreground, alone: &Foreground| {
        Some((of(beside)? / of(alone)? - 1.0) * 100.0)
    };
    let (foreground, alone) = (Foreground::of(&beside), Foreground::of(&alone));
    let figures = Figures {
        drive: truth.name.clone(),
        behind: plan.name.clone(),
        percent: plan.percent,
        drive_seconds: seconds,
        finished: shared.finished().is_some(),
        rpm: findings
            .clock
            .as_ref()
            .map(|clock| 60e12 / clock.spindle().period_ps() as f64),
        known: share(&last),
        probes: last.probes,
        probing: last.took.as_secs_f64() / seconds.max(f64::MIN_POSITIVE),
        foreground,
        alone,
        mean_percent: more(|side| side.mean_ms, &foreground, &alone),
        p99_percent: more(|side| side.p99_ms, &foreground, &alone),
        progress: shared
            .known()
            .iter()
            .map(|k| Moment::of(k, share(k)))
            .collect(),
    };
    Ok(Behind { findings, figures })
}

impl Foreground {
    fn of(report: &Report) -> Self {
        let response = report.all.response;
        Foreground {
            requests: report.all.requests,
            mean_ms: response.map(|response| response.mean_ms),
            p99_ms: response.map(|response| response.p99_ms),
        }
    }
}

impl Moment {
    fn of(known: &ProfilingProgress, share: f64) -> Self {
        Moment {
            seconds: known.at.as_secs_f64(),
            known: share,
            probes: known.probes,
        }
    }
}

/// The figures for people.
pub fn text(figures: &Figures) -> String {
    let mut text = String::new();
    let ended = match figures.finished {
        true => "nothing is left to ask",
        false => "the budget is spent",
    };
    let _ = writeln!(
        text,
        "{} behind {}: {:.1} s of the drive, {ended}\n",
        figures.drive, figures.behind, figures.drive_seconds
    );
    let _ = writeln!(text, "  after s   tracks known    probes");
    for moment in &figures.progress {
        let _ = writeln!(
            text,
            "{:9.1} {:12.2} % {:>9}",
            moment.seconds,
            moment.known * 100.0,
            grouped(moment.probes)
        );
    }
    let _ = writeln!(
        text,
        "\n{} probes took {:.1} % of the time; the tracks of {:.2} % of the blocks are known",
        grouped(figures.probes),
        figures.probing * 100.0,
        figures.known * 100.0
    );
    let _ = writeln!(text, "\n              requests   mean ms    p99 ms");
    for (name, side) in [("alone", &figures.alone), ("beside", &figures.foreground)] {
        let millis = |value: Option<f64>| value.map_or("-".to_owned(), |ms| format!("{ms:.2}"));
        let _ = writeln!(
            text,
            "{name:10} {:>11} {:>9} {:>9}",
            grouped(side.requests),
            millis(side.mean_ms),
            millis(side.p99_ms)
        );
    }
    if let (Some(mean), Some(p99)) = (figures.mean_percent, figures.p99_percent) {
        let _ = writeln!(text, "impact     {:>11} {mean:>+8.2}% {p99:>+8.2}%", "");
    }
    text
}
