//! `headtime simulate`: a load on a drive under one policy or several, in virtual time.

mod belief;
mod figures;
mod help;
pub mod preempt;
mod progress;
pub mod scan;
mod terminal;
pub mod truth;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use block::Instant;
use clap::{Args, ValueEnum};
use drive::{Profile, catalog};
use engine::Limits;
use lab::plot;
use scheduler::ordering::Phases;
use scheduler::policy::UnknownPolicy;
use scheduler::{NamedPolicy, Preemption};
use simulator::replay::Fit;
use simulator::run::{Options, PastEnd, RunError, Watch};
use simulator::scenario::{Played, Scenario, ScenarioError};

use crate::output::{Failure, NewFile, print, read_file, unknown};
use crate::workload::{LoadArguments, Source, TraceCounts};

pub use figures::{PolicyRun, panels};
use preempt::PreemptArguments;
pub use progress::Progress;
use scan::{ScanArguments, ScanFigures, ScanPlan};
pub use terminal::{report, short};
use truth::{OnOff, Truth, TruthArguments};

/// How to call it.
#[derive(Clone, Debug, Default, Args)]
#[command(after_help = help::examples(), allow_negative_numbers = true)]
pub struct Arguments {
    /// The drive: a name from `headtime drives`, or a profile file
    #[arg(long, value_name = "NAME|FILE")]
    pub drive: String,
    /// What the scheduler believes of it instead: a file of `headtime profile`
    #[arg(long, value_name = "FILE")]
    pub belief: Option<PathBuf>,
    #[command(flatten)]
    pub load: LoadArguments,
    #[command(flatten)]
    pub truth: TruthArguments,
    #[command(flatten)]
    pub scan: ScanArguments,
    #[command(flatten)]
    pub preempt: PreemptArguments,
    /// The policies to compare, from the list below
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "sptf"
    )]
    pub policy: Vec<String>,
    /// Reads and writes in the same queues, or in turns: reads for 2 s, writes for 30 ms
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "mixed|alternate"
    )]
    pub phases: Option<PhasesName>,
    /// Commands at the drive at once; otherwise 2, or what the drive holds for its own queue
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: Option<u32>,
    /// Stop after so many requests; without a bound, a synthetic load stops after 10,000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
    /// Stop taking requests after so many virtual seconds
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,
    /// Write every request's account: CSV, or JSON lines if the name ends in .jsonl; see below
    #[arg(long, value_name = "FILE")]
    pub requests_out: Option<PathBuf>,
    /// Say of so many requests, the slowest, where their time went
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub why: Option<u8>,
    /// Draw response times and head time
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Print the figures as JSON
    #[arg(long)]
    pub json: bool,
}

/// Names for [`Phases`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PhasesName {
    /// The policy chooses among both
    Mixed,
    /// They take turns
    Alternate,
}

/// Everything that a comparison needs.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The drive, as it is believed to be if nothing else is.
    pub drive: Arc<Profile>,
    /// What is believed of it instead.
    pub belief: Option<Arc<Profile>>,
    /// How it differs from that.
    pub truth: Truth,
    /// What is asked of it.
    pub source: Source,
    /// Under which policies, one after the other.
    pub policies: Vec<NamedPolicy>,
    /// How reads and writes share the drive.
    pub phases: Phases,
    /// Commands at the drive, if not as many as suit the policy.
    pub depth: Option<u32>,
    /// At most so many requests.
    pub requests: Option<u64>,
    /// No requests after this moment.
    pub until: Option<Instant>,
    /// What becomes of requests past the end of the drive.
    pub past_end: PastEnd,
    /// What is read in the background.
    pub scan: Option<ScanPlan>,
    /// How large requests step aside.
    pub preemption: Option<Preemption>,
    /// Of how many requests, the slowest, it is told why.
    pub slowest: usize,
}

/// Runs the command.
///
/// # Errors
/// If the input is wrong or the output cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let setup = arguments.setup()?;
    arguments.check_files(&setup)?;
    let svg = arguments.svg.as_deref().map(NewFile::begin).transpose()?;
    let mut runs = Vec::new();
    for &policy in &setup.policies {
        let mut progress = Progress::new(&policy.name(), &setup);
        if let Some(path) = &arguments.requests_out {
            progress = progress.writing(path)?;
        }
        let mut run = setup.run(policy, &mut progress)?;
        run.slow = progress.slow(setup.drive.block_bytes);
        runs.push(run);
        progress.finish()?;
    }
    if let Some(file) = svg {
        file.write(&plot::page(&panels(&setup, &runs)))?;
    }
    match arguments.json {
        true => print(&figures::json(&setup, &runs)?),
        false => print(&report(&setup, &runs)),
    }
}

impl Arguments {
    /// What the flags mean; nothing is run yet.
    ///
    /// # Errors
    /// The flag that makes no sense, or the name that nothing has.
    pub fn setup(&self) -> Result<Setup, Failure> {
        self.check_seed()?;
        let source = self.load.source()?;
        let until = match self.seconds {
            None => None,
            Some(seconds) if seconds > 0.0 && seconds <= LONGEST_SECONDS => {
                Some(Instant::from_nanos((seconds * 1e9) as u64))
            }
            Some(seconds) => {
                let problem =
                    format!("--seconds {seconds}: expected more than 0, at most {LONGEST_SECONDS}");
                return Err(Failure::input(problem));
            }
        };
        let seed = self.load.seed_of(&source);
        let mut truth = self.as_scanned().truth(seed).map_err(truth::refused)?;
        let drive = Arc::new(truth.belief(&profile(&self.drive)?));
        let belief = match &self.belief {
            Some(path) => Some(truth.believing(path, &drive)?),
            None => None,
        };
        let believed = belief.as_ref().unwrap_or(&drive);
        let scan = self.scan.plan(believed)?;
        let preemption = self.preempt.rules(believed)?;
        let requests = match (&source, self.requests, until) {
            (Source::Synthetic(_) | Source::Mixture(_), None, None) if scan.is_none() => {
                Some(DEFAULT_REQUESTS)
            }
            (_, requests, _) => requests,
        };
        let policies = self.policy.iter().map(|name| policy(name));
        let policies = policies.collect::<Result<Vec<_>, _>>()?;
        for (place, policy) in policies.iter().enumerate() {
            if policies[..place].contains(policy) {
                let name = policy.name();
                let problem = format!("--policy: {name} is there twice: expected each once");
                return Err(Failure::input(problem));
            }
        }
        let setup = Setup {
            drive,
            belief,
            truth,
            source,
            policies,
            phases: match self.phases {
                Some(PhasesName::Alternate) => Phases::ABISS,
                Some(PhasesName::Mixed) | None => Phases::Mixed,
            },
            depth: self.depth,
            requests,
            until,
            past_end: self.load.past_end(),
            scan,
            preemption,
            slowest: self.why.map_or(0, usize::from),
        };
        for policy in &setup.policies {
            setup.limits(*policy)?;
        }
        Ok(setup)
    }

    /// The drive as it is; a scan's host switches the write cache off, if nothing else is said: it
    /// hides where the head is after a write.
    fn as_scanned(&self) -> TruthArguments {
        let off = self.scan.is_given().then_some(OnOff::Off);
        TruthArguments {
            write_cache: self.truth.write_cache.or(off),
            ..self.truth
        }
    }

    /// Whether there is something that a seed decides.
    fn check_seed(&self) -> Result<(), Failure> {
        match self.load.is_seeded_trace() && !self.truth.is_chance() {
            true => Err(Failure::input(
                "--seed with --trace: nothing happens by chance: expected --seek-noise-us or \
                 --late-seeks",
            )),
            false => Ok(()),
        }
    }

    /// Whether what is written leaves alone what is read, and what is read again can be.
    fn check_files(&self, setup: &Setup) -> Result<(), Failure> {
        let single = [
            ("--requests-out", self.requests_out.is_some()),
            ("--scan-left", self.scan.scan_left.is_some()),
        ];
        if let Some((flag, _)) = single.iter().find(|(_, is_given)| *is_given)
            && setup.policies.len() > 1
        {
            let problem = format!("{flag} writes one file: expected one policy");
            return Err(Failure::input(problem));
        }
        let written = [
            ("--requests-out", self.requests_out.as_deref()),
            ("--svg", self.svg.as_deref()),
            ("--scan-left", setup.scan.as_ref().and_then(ScanPlan::file)),
        ];
        let drive = is_file_name(&self.drive).then(|| Path::new(&self.drive));
        let mut taken: Vec<PathBuf> = self
            .load
            .file()
            .into_iter()
            .chain(drive)
            .chain(self.scan.scan_from.as_deref())
            .chain(self.belief.as_deref())
            .map(same)
            .collect();
        for (flag, path) in written {
            let Some(path) = path else { continue };
            if taken.contains(&same(path)) {
                let path = path.display();
                let problem = format!(
                    "{flag} {path}: used for something else, too: expected a file of its own"
                );
                return Err(Failure::input(problem));
            }
            taken.push(same(path));
        }
        match &setup.source {
            Source::Trace(plan)
                if (setup.policies.len() > 1 || plan.fit == Fit::Scale)
                    && plan
                        .path
                        .metadata()
                        .is_ok_and(|found| !found.is_file() && !found.is_dir()) =>
            {
                Err(Failure::input(format!(
                    "{}: no regular file, and can be read only once: expected one policy, and no \
                     --fit scale",
                    plan.path.display()
                )))
            }
            _ => Ok(()),
        }
    }
}

/// A path by which one file is known, whatever it is called.
fn same(path: &Path) -> PathBuf {
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    path.canonicalize().unwrap_or_else(|_| {
        let name = path.file_name().unwrap_or_default();
        parent
            .canonicalize()
            .unwrap_or_else(|_| parent.to_owned())
            .join(name)
    })
}

impl Setup {
    /// Runs the load under one policy, from the beginning.
    ///
    /// # Errors
    /// If the load is bad or does not fit the drive, or what happens cannot be written down.
    pub fn run(&self, policy: NamedPolicy, watch: &mut dyn Watch) -> Result<PolicyRun, Failure> {
        let scenario = self.scenario(policy)?;
        let left = self.scan.as_ref().map(ScanPlan::begin).transpose()?;
        let options = Options {
            requests: self.requests,
            until: self.until,
            past_end: self.past_end,
            slowest: self.slowest,
            ..Options::default()
        };
        let (played, counts) = self.play(&scenario, &options, watch)?;
        let Played { ran, ledger, .. } = &played;
        let mut run = PolicyRun::new(policy, scenario.limits, ledger, ran, counts);
        run.tracking = played
            .told
            .map(|told| figures::Tracking::new(played.mode, &told));
        run.preempted = self
            .preemption
            .map(|_| preempt::Stepped::new(&played.preempted, &self.drive));
        if let (Some(plan), Some(scanned)) = (&self.scan, &played.scan) {
            let options = Options {
                until: Some(self.until.map_or(ran.end, |until| until.min(ran.end))),
                ..options
            };
            let (without, _) = self.play(&scenario.baseline(), &options, &mut ())?;
            let bytes = self.drive.block_bytes;
            let figures = ScanFigures::new(plan, bytes, &run.report, scanned, &without);
            if let Some(file) = left.flatten() {
                file.write(scanned)?;
            }
            run.scan = Some(figures);
        }
        Ok(run)
    }

    /// The run of one policy.
    ///
    /// # Errors
    /// If the drive does not hold as many commands as it should be given.
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
        })
    }

    /// Plays the load, from its beginning.
    fn play(
        &self,
        scenario: &Scenario,
        options: &Options,
        watch: &mut dyn Watch,
    ) -> Result<(Played, Option<TraceCounts>), Failure> {
        let capacity = self.drive.geometry.sectors().0;
        let mut load = self.source.begin(self.drive.block_bytes, capacity)?;
        let played = scenario.play(&mut load, options, watch);
        let played = played.map_err(|error| match error {
            ScenarioError::Run(error) => self.failure(&error),
            ScenarioError::Task(refused) => Failure::input(refused),
        })?;
        match played.ran.requests {
            0 => Err(self.nothing_served(played.ran.skipped)),
            _ => Ok((played, load.counts())),
        }
    }

    /// The engine's bounds under a policy.
    ///
    /// # Errors
    /// If the drive does not hold as many commands as it should be given, or a scan needs more.
    pub fn limits(&self, policy: NamedPolicy) -> Result<Limits, Failure> {
        let name = &self.drive.name;
        let mut limits = Limits {
            phases: self.phases,
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
            (RunError::PastEnd { .. }, Source::Trace(_)) => Failure::input(format!(
                "{error}; --fit wrap or --fit scale bring such requests onto the drive, \
                 --skip-bad leaves them out"
            )),
            (RunError::Drive(_) | RunError::Record(_), _) => Failure::failed(error),
            _ => Failure::input(error),
        }
    }
}

/// The built-in drive of this name, or that of a file.
pub fn profile(name: &str) -> Result<Profile, Failure> {
    let text = profile_text(name)?;
    Profile::parse(&text, name).map_err(Failure::input)
}

/// Its text.
pub fn profile_text(name: &str) -> Result<String, Failure> {
    if is_file_name(name) {
        return read_file(name.as_ref());
    }
    let entry = catalog::find(name).map_err(Failure::input)?;
    Ok(entry.text.to_owned())
}

fn is_file_name(drive: &str) -> bool {
    drive.contains('/') || drive.ends_with(".toml")
}

/// The policy of this name.
pub fn policy(name: &str) -> Result<NamedPolicy, Failure> {
    scheduler::policy::find(name).map_err(|error| match error {
        UnknownPolicy::Name { name } => {
            let usages = scheduler::policy::usages();
            let usages: Vec<&str> = usages.iter().map(String::as_str).collect();
            unknown("policy", &name, &usages)
        }
        UnknownPolicy::Parameter { .. } => Failure::input(format!("--policy {error}")),
    })
}

/// Requests of a synthetic load that nobody bounded: the mean is then good to about a percent.
const DEFAULT_REQUESTS: u64 = 10_000;

/// The longest run, a century: far below where nanoseconds overflow.
const LONGEST_SECONDS: f64 = 3.2e9;
