//! A load on a drive under one policy or several, in virtual time: the comparison of `headtime
//! simulate`.
//!
//! ```text
//!   Settings --setup--> Setup --run, for each policy--> PolicyRun --> Comparison (JSON), panels (plots)
//! ```

pub mod belief;
pub mod figures;
pub mod host_delays;
pub mod load;
mod own;
pub mod preempt;
pub mod scan;
pub mod streams;
pub mod truth;
pub mod verdict;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use block::{Finished, Instant};
use drive::Profile;
use engine::explanation::Explanation;
use engine::{Engine, Limits, ReadRule};
use scheduler::ordering::{Grace, Phases};
use scheduler::{NamedPolicy, Preemption};
use server::config::GracePeriod;
use server::why::Slow;
use simulator::run::{self, Audience, EndedCommand, Options, PastEnd, RunError, ScanPoint, Watch};
use simulator::scenario::{Scenario, ScenarioError, ScenarioResult};

use crate::{Failure, named};
use figures::{PolicyRun, Tracking};
use load::{LoadSettings, LoadSource, TraceCounts};
use preempt::{PreemptSettings, Stepped};
use scan::{ScanFigures, ScanPlan, ScanSettings};
use streams::{StreamsBeside, StreamsFigures};
use truth::{OnOff, Truth, TruthSettings};

pub use own::OwnPolicy;

/// The settings of a comparison, in users' words.
#[derive(Clone, Debug, Default)]
pub struct ComparisonSettings {
    /// The file that describes a system, in place of drive, belief, load, truth, scan, preemption, phases and mirror:
    /// [`crate::system::setup`] reads it.
    pub system: Option<PathBuf>,
    /// The drive: a name from `headtime drives`, or a profile file.
    pub drive: String,
    /// The scheduler's belief: a file from `headtime profile`.
    pub belief: Option<PathBuf>,
    /// The load.
    pub load: LoadSettings,
    /// The drive's differences from its profile.
    pub truth: TruthSettings,
    /// The background scan.
    pub scan: ScanSettings,
    /// The preemption of large requests.
    pub preempt: PreemptSettings,
    /// The policies.
    pub policies: Vec<String>,
    /// Whether reads and writes alternate. Default: mixed.
    pub phases: Option<Phases>,
    /// Commands at the drive. Default: 2, or as many as the drive's own queue holds.
    pub depth: Option<u32>,
    /// Limit of requests. Default for a synthetic load: 10,000.
    pub requests: Option<u64>,
    /// Virtual seconds after which no request is accepted.
    pub seconds: Option<f64>,
    /// The number of slowest requests that are explained.
    pub slowest: usize,
    /// Two such drives are a mirror, whose reads are served under this rule.
    pub mirror: Option<ReadRule>,
}

/// The parts of a comparison.
#[derive(Clone, Debug)]
pub struct ComparisonSetup {
    /// The drive's profile, which is the belief by default.
    pub drive: Arc<Profile>,
    /// The belief, if it is another profile.
    pub belief: Option<Arc<Profile>>,
    /// The drive's differences from its profile.
    pub truth: Truth,
    /// The load.
    pub source: LoadSource,
    /// The policies, in order.
    pub policies: Vec<NamedPolicy>,
    /// How reads and writes share the drive.
    pub phases: Phases,
    /// When background requests begin; `None`: as soon as no other request waits.
    pub grace: Option<Grace>,
    /// Commands at the drive. Default: as many as suit the policy.
    pub depth: Option<u32>,
    /// Limit of requests.
    pub requests: Option<u64>,
    /// The moment after which no request is accepted.
    pub until: Option<Instant>,
    /// The treatment of requests past the end of the drive.
    pub past_end: PastEnd,
    /// The background scan.
    pub scan: Option<ScanPlan>,
    /// The rules of preemption.
    pub preemption: Option<Preemption>,
    /// The number of slowest requests that are explained.
    pub slowest: usize,
    /// Two such drives are a mirror, whose reads are served under this rule.
    pub mirror: Option<ReadRule>,
    /// The players and recorders beside the load.
    pub streams: Option<Arc<StreamsBeside>>,
}

impl ComparisonSettings {
    /// Requests of a synthetic load without a limit: the mean is then exact to about a percent.
    pub(crate) const USUAL_REQUESTS: u64 = 10_000;

    /// The moment after which no request is accepted.
    ///
    /// # Errors
    /// If it is not above zero, or above a century.
    pub(crate) fn end(&self) -> Result<Option<Instant>, Failure> {
        match self.seconds {
            None => Ok(None),
            Some(seconds) if seconds > 0.0 && seconds <= LONGEST_SECONDS => {
                Ok(Some(Instant::from_nanos((seconds * 1e9) as u64)))
            }
            Some(seconds) => {
                let problem =
                    format!("--seconds {seconds}: expected more than 0, at most {LONGEST_SECONDS}");
                Err(Failure::input(problem))
            }
        }
    }

    /// The policies, each once.
    ///
    /// # Errors
    /// If a name is unknown, or is there twice.
    pub(crate) fn named_policies(&self) -> Result<Vec<NamedPolicy>, Failure> {
        let policies = self.policies.iter().map(|name| named::policy(name));
        let policies = policies.collect::<Result<Vec<_>, _>>()?;
        for (place, policy) in policies.iter().enumerate() {
            if policies[..place].contains(policy) {
                let name = policy.name();
                let problem = format!("--policy: {name} is there twice: expected each once");
                return Err(Failure::input(problem));
            }
        }
        Ok(policies)
    }

    /// Resolves the settings. Nothing runs yet.
    ///
    /// # Errors
    /// If a setting is invalid, or a name is unknown.
    pub fn setup(&self) -> Result<ComparisonSetup, Failure> {
        self.check_seed()?;
        let source = self.load.source()?;
        let until = self.end()?;
        let seed = self.load.seed_of(&source);
        let mut truth = self.as_scanned().truth(seed).map_err(truth::refused)?;
        let drive = Arc::new(truth.belief(&named::drive(&self.drive)?));
        let belief = match &self.belief {
            Some(path) => Some(truth.believing(path, &drive)?),
            None => None,
        };
        let believed = belief.as_ref().unwrap_or(&drive);
        let scan = self.scan.plan(believed)?;
        let preemption = self.preempt.rules(believed)?;
        let requests = match (&source, self.requests, until) {
            (LoadSource::Synthetic(_) | LoadSource::Mixture(_), None, None) if scan.is_none() => {
                Some(Self::USUAL_REQUESTS)
            }
            (_, requests, _) => requests,
        };
        let policies = self.named_policies()?;
        let setup = ComparisonSetup {
            drive,
            belief,
            truth,
            source,
            policies,
            phases: self.phases.unwrap_or(Phases::Mixed),
            // That of a service, whose drive has a belief.
            grace: GracePeriod::default().with_belief(),
            depth: self.depth,
            requests,
            until,
            past_end: self.load.past_end(),
            scan,
            preemption,
            slowest: self.slowest,
            mirror: self.mirror,
            streams: None,
        };
        if setup.mirror.is_some() && setup.drive.actuators > 1 {
            return Err(Failure::input(format!(
                "--mirror: {} has {} actuators: expected a drive of one",
                setup.drive.name, setup.drive.actuators
            )));
        }
        for policy in &setup.policies {
            setup.limits(*policy)?;
        }
        Ok(setup)
    }

    /// The drive's truth. The host of a scan disables the write cache by default: it hides the
    /// head's position after a write.
    fn as_scanned(&self) -> TruthSettings {
        let off = self.scan.is_given().then_some(OnOff::Off);
        TruthSettings {
            write_cache: self.truth.write_cache.or(off),
            ..self.truth
        }
    }

    /// Checks that a given seed affects something.
    fn check_seed(&self) -> Result<(), Failure> {
        match self.load.is_seeded_trace() && !self.truth.is_chance() {
            true => Err(Failure::input(
                "--seed with --trace: nothing happens by chance: expected --seek-noise-us or \
                 --late-seeks",
            )),
            false => Ok(()),
        }
    }
}

impl ComparisonSetup {
    /// Runs the load under one policy from the beginning.
    ///
    /// # Errors
    /// If the load is invalid or does not fit the drive, or `watch` cannot write.
    pub fn run(&self, policy: NamedPolicy, watch: &mut dyn Watch) -> Result<PolicyRun, Failure> {
        let mut watch = Explained {
            watch,
            slow: Vec::new(),
        };
        let scenario = self.scenario(policy)?;
        let options = self.options();
        let (played, counts, streams) = self.play(&scenario, &options, &mut watch)?;
        let ScenarioResult { ran, ledger, .. } = &played;
        let mut run = PolicyRun::new(policy, scenario.limits, ledger, ran, counts);
        run.tracking = played
            .tallies
            .map(|tallies| Tracking::new(played.mode, &tallies, played.host_delay));
        run.preempted = self
            .preemption
            .map(|_| Stepped::new(&played.preempted, &self.drive));
        if let (Some(plan), Some(scanned)) = (&self.scan, &played.scan) {
            let options = Options {
                until: Some(self.until.map_or(ran.end, |until| until.min(ran.end))),
                ..options
            };
            let (without, ..) = self.play(&scenario.baseline(), &options, &mut ())?;
            let figures = ScanFigures::new(plan, &self.drive, &run.report, scanned, &without);
            run.left = plan.keeps_left().then(|| scanned.left.clone());
            run.scan = Some(figures);
        }
        run.streams = streams;
        run.slow = watch.slow;
        for slow in &mut run.slow {
            slow.block_bytes = self.drive.block_bytes;
        }
        Ok(run)
    }

    fn options(&self) -> Options {
        Options {
            requests: self.requests,
            until: self.until,
            past_end: self.past_end,
            slowest: self.slowest,
            ..Options::default()
        }
    }

    /// The scenario of one policy.
    ///
    /// # Errors
    /// If the drive's queue is shorter than the requested depth.
    pub fn scenario(&self, policy: NamedPolicy) -> Result<Scenario, Failure> {
        Ok(Scenario {
            belief: Arc::clone(self.belief.as_ref().unwrap_or(&self.drive)),
            truth: Arc::clone(&self.drive),
            imperfections: self.truth.imperfections().clone(),
            seed: self.truth.seed(),
            policy,
            limits: self.limits(policy)?,
            preemption: self.preemption,
            background: self.scan.as_ref().map(|scan| scan.background().clone()),
            mirror: self.mirror,
        })
    }

    /// Plays the load from its beginning, beside the streams.
    fn play(
        &self,
        scenario: &Scenario,
        options: &Options,
        watch: &mut dyn Watch,
    ) -> Result<(ScenarioResult, Option<TraceCounts>, Option<StreamsFigures>), Failure> {
        let engine = scenario.engine(options);
        let Some(streams) = &self.streams else {
            let (played, counts) = self.play_on(engine, scenario, options, watch, None)?;
            return Ok((played, counts, None));
        };
        let mut engine = streams.promise(engine)?;
        let (mut applications, figures) = streams.attach(&mut engine)?;
        let (played, counts) =
            self.play_on(engine, scenario, options, watch, Some(&mut applications))?;
        Ok((played, counts, Some(figures.with(applications.kept()))))
    }

    /// Plays the load from its beginning on an engine.
    fn play_on(
        &self,
        engine: Engine,
        scenario: &Scenario,
        options: &Options,
        watch: &mut dyn Watch,
        audience: Option<&mut dyn Audience>,
    ) -> Result<(ScenarioResult, Option<TraceCounts>), Failure> {
        let capacity = self.drive.geometry.sectors().0;
        let mut load = self.source.begin(self.drive.block_bytes, capacity)?;
        let played = scenario.play_on(engine, &mut load, options, watch, audience);
        let played = played.map_err(|error| match error {
            ScenarioError::Run(error) => self.failure(&error),
            ScenarioError::Task(refused) => Failure::input(refused),
        })?;
        match played.ran.requests {
            0 if self.streams.is_none() => Err(self.nothing_served(played.ran.skipped)),
            _ => Ok((played, load.counts())),
        }
    }

    /// The engine's limits under a policy.
    ///
    /// # Errors
    /// If the drive's queue is shorter than the requested depth, or a scan needs a longer one.
    pub fn limits(&self, policy: NamedPolicy) -> Result<Limits, Failure> {
        let name = &self.drive.name;
        let mut limits = Limits {
            phases: self.phases,
            grace: self.grace,
            ..Limits::suited_to(policy, &self.drive)
        };
        if let Some(depth) = self.depth {
            let most = self.drive.queue.depth.max(1);
            if depth > most {
                return Err(Failure::input(format!(
                    "--depth {depth}: expected at most {most}, which {name} holds"
                )));
            }
            limits.commands_at_drive = depth as usize;
        }
        if let Some(scan) = &self.scan {
            scan.check(policy, &self.drive, limits.commands_at_drive)?;
        }
        Ok(limits)
    }

    fn nothing_served(&self, skipped: u64) -> Failure {
        let name = self.source.name();
        let why = match skipped {
            0 => "none comes before the end that --seconds sets".to_owned(),
            _ => format!("{skipped} end past the last block of the drive"),
        };
        Failure::input(format!("{name}: no request to serve: {why}"))
    }

    fn failure(&self, error: &RunError) -> Failure {
        match (error, &self.source) {
            (RunError::PastEnd { .. }, LoadSource::Trace(_)) => Failure::input(format!(
                "{error}; --fit wrap or --fit scale bring such requests onto the drive, \
                 --skip-bad leaves them out"
            )),
            (RunError::Drive(_) | RunError::Record(_), _) => Failure::failed(error),
            _ => Failure::input(error),
        }
    }
}

/// Keeps the explanations of the slowest requests, and forwards all events.
struct Explained<'a> {
    watch: &'a mut dyn Watch,
    slow: Vec<Slow>,
}

impl Watch for Explained<'_> {
    fn finished(&mut self, finished: &Finished) -> io::Result<()> {
        self.watch.finished(finished)
    }

    fn wants_commands(&self) -> bool {
        self.watch.wants_commands()
    }

    fn command(&mut self, ended: &EndedCommand) {
        self.watch.command(ended);
    }

    fn progress(&mut self, progress: run::RunProgress) {
        self.watch.progress(progress);
    }

    fn slow(&mut self, number: u64, explanation: &Explanation) {
        self.slow.push(Slow::new(number, explanation, |_| None));
    }

    fn scanned(&mut self, point: &ScanPoint) {
        self.watch.scanned(point);
    }
}

/// Longest run: a century, far below the overflow of nanoseconds.
const LONGEST_SECONDS: f64 = 3.2e9;
