//! `headtime simulate`: a load on a drive under one policy or several, in virtual time.

mod figures;
mod progress;
mod terminal;

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use block::Instant;
use clap::Args;
use drive::{Profile, VirtualDrive, catalog};
use engine::{Engine, Limits};
use scheduler::PolicyEntry;
use simulator::ledger::Ledger;
use simulator::plot;
use simulator::run::{self, Options, PastEnd, RunError};
use simulator::workload;

use crate::output::{Failure, print, read_file, unknown, write_file};
use crate::workload::{LoadArguments, Source};

pub use figures::{PolicyRun, panels};
pub use progress::Progress;
pub use terminal::report;

/// How to call it.
#[derive(Debug, Args)]
#[command(after_help = examples(), allow_negative_numbers = true)]
pub struct Arguments {
    /// The drive: a name from `headtime drives`, or a profile file
    #[arg(long, value_name = "NAME|FILE")]
    drive: String,
    #[command(flatten)]
    load: LoadArguments,
    /// The policies to compare, from the list below
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "sptf"
    )]
    policy: Vec<String>,
    /// Commands at the drive at once; otherwise 2, or what the drive holds for its own queue
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,
    /// Stop after so many requests; without a bound, a synthetic load stops after 10,000
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Stop taking requests after so many virtual seconds
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Write every request's account: CSV, or JSON lines if the name ends in .jsonl
    #[arg(long, value_name = "FILE")]
    requests_out: Option<PathBuf>,
    /// Draw response times and head time
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// What stands under the help, made from the tables.
fn examples() -> String {
    let mut text = String::from(
        "Examples:
  headtime simulate --drive seagate-cheetah-9lp --workload oltp --policy fcfs,c-look,sptf
  headtime simulate --drive quantum-atlas-10k --workload random --tasks 32 --policy sptf,drive
  headtime simulate --drive seagate-cheetah-15k5 --trace websearch.csv.zst --device 0 --svg out.svg

Built-in loads:\n",
    );
    for load in workload::ALL {
        let summary = load.workload().map(|load| load.summary).unwrap_or_default();
        let _ = writeln!(text, "  {:12}{summary}", load.name);
    }
    text.push_str("\nPolicies:\n");
    for policy in scheduler::policy::ALL {
        let _ = writeln!(text, "  {:12}{}", policy.name, policy.what);
    }
    text.push_str("\nThe scheduler knows the drive exactly: belief = truth (in-firmware).");
    text
}

/// Everything that a comparison needs.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The drive: belief and truth.
    pub drive: Arc<Profile>,
    /// What is asked of it.
    pub source: Source,
    /// Under which policies, one after the other.
    pub policies: Vec<&'static PolicyEntry>,
    /// Commands at the drive, if not as many as suit the policy.
    pub depth: Option<u32>,
    /// At most so many requests.
    pub requests: Option<u64>,
    /// No requests after this moment.
    pub until: Option<Instant>,
    /// What becomes of requests past the end of the drive.
    pub past_end: PastEnd,
}

/// Runs the command.
///
/// # Errors
/// If the input is wrong or the output cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let setup = arguments.setup()?;
    if arguments.requests_out.is_some() && setup.policies.len() > 1 {
        let problem = "--requests-out writes one file: expected one policy";
        return Err(Failure::input(problem));
    }
    let mut runs = Vec::new();
    for policy in &setup.policies {
        let mut progress = Progress::new(policy.name, setup.requests);
        if let Some(path) = &arguments.requests_out {
            progress = progress.writing(path)?;
        }
        runs.push(setup.run(policy, &mut progress)?);
        progress.finish()?;
    }
    if let Some(path) = &arguments.svg {
        write_file(path, &plot::page(&panels(&setup, &runs)))?;
    }
    match arguments.json {
        true => print(&figures::json(&setup, &runs)?),
        false => print(&report(&setup, &runs)),
    }
}

impl Arguments {
    fn setup(&self) -> Result<Setup, Failure> {
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
        let requests = match (&source, self.requests, until) {
            (Source::Synthetic(_), None, None) => Some(DEFAULT_REQUESTS),
            (_, requests, _) => requests,
        };
        let policies = self.policy.iter().map(|name| policy(name));
        Ok(Setup {
            drive: Arc::new(profile(&self.drive)?),
            source,
            policies: policies.collect::<Result<_, _>>()?,
            depth: self.depth,
            requests,
            until,
            past_end: self.load.past_end(),
        })
    }
}

impl Setup {
    /// Runs the load under one policy, from the beginning.
    ///
    /// # Errors
    /// If the load is bad or does not fit the drive, or what happens cannot be written down.
    pub fn run(
        &self,
        policy: &'static PolicyEntry,
        progress: &mut Progress,
    ) -> Result<PolicyRun, Failure> {
        let limits = self.limits(policy)?;
        let capacity = self.drive.geometry.sectors().0;
        let mut load = self.source.begin(self.drive.block_bytes, capacity)?;
        let mut engine = Engine::new(Arc::clone(&self.drive), (policy.new)(), limits);
        let mut drive = VirtualDrive::new(Arc::clone(&self.drive));
        let mut ledger = Ledger::new(self.drive.block_bytes, self.drive.actuators);
        let options = Options {
            requests: self.requests,
            until: self.until,
            past_end: self.past_end,
            ..Options::default()
        };
        let ran = run::run(
            &mut engine,
            &mut drive,
            &mut load,
            &options,
            &mut ledger,
            progress,
        )
        .map_err(|error| self.failure(&error))?;
        Ok(PolicyRun::new(policy, limits, &ledger, &ran, load.counts()))
    }

    fn limits(&self, policy: &PolicyEntry) -> Result<Limits, Failure> {
        let suited = Limits::suited_to(policy, &self.drive);
        let Some(depth) = self.depth else {
            return Ok(suited);
        };
        let most = self.drive.queue.depth.max(1);
        if depth > most {
            let name = &self.drive.name;
            let problem = format!("--depth {depth}: expected at most {most}, which {name} holds");
            return Err(Failure::input(problem));
        }
        Ok(Limits {
            commands_at_drive: depth as usize,
            ..suited
        })
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
    if name.contains('/') || name.ends_with(".toml") {
        let text = read_file(name.as_ref())?;
        return Profile::parse(&text, name).map_err(Failure::input);
    }
    let entry = catalog::find(name).map_err(Failure::input)?;
    entry.profile().map_err(Failure::failed)
}

/// The policy of this name.
pub fn policy(name: &str) -> Result<&'static PolicyEntry, Failure> {
    scheduler::policy::find(name).map_err(|_| {
        let names: Vec<&str> = scheduler::policy::ALL.iter().map(|p| p.name).collect();
        unknown("policy", name, &names)
    })
}

/// Requests of a synthetic load that nobody bounded: the mean is then good to about a percent.
const DEFAULT_REQUESTS: u64 = 10_000;

/// The longest run, a century: far below where nanoseconds overflow.
const LONGEST_SECONDS: f64 = 3.2e9;
