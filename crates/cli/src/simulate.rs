//! `headtime simulate`: runs a load on a drive under one policy or several, in virtual time.

mod caches;
mod clients;
mod help;
mod histogram;
mod left;
pub mod progress;
mod scan;
mod terminal;

use std::path::{Path, PathBuf};

use clap::builder::ArgPredicate;
use clap::{Args, ValueEnum};
use document::quantity::Unit;
use engine::ReadRule;
use lab::comparison::figures::{Comparison, panels};
use lab::comparison::load::LoadSource;
use lab::comparison::{ComparisonSettings, ComparisonSetup};
use lab::experiment::{self, RunRow};
use lab::system::SystemFile;
use lab::{named, plot, system};
use scheduler::ordering::Phases;
use simulator::replay::AddressFit;

use crate::output::{DrawingFile, Exit, NewTable, json, print, warn, width};
use crate::settings::load::LoadArguments;
use crate::settings::preempt::PreemptArguments;
use crate::settings::scan::ScanArguments;
use crate::settings::truth::TruthArguments;
use crate::settings::units::in_unit;
use crate::trace::REMEDY;
use left::LeftFile;
use progress::RunBar;

pub use terminal::report;

/// The arguments of `headtime simulate`.
#[derive(Clone, Debug, Default, Args)]
#[command(after_help = help::examples(), allow_negative_numbers = true)]
pub struct SimulateArgs {
    /// A system: drives and volumes as for `headtime serve`, and their clients. It replaces the flags of drive, load,
    /// caches, belief, scan and preemption
    #[arg(value_name = "SYSTEM.toml", conflicts_with_all = OF_SYSTEM)]
    pub system: Option<PathBuf>,
    /// The drive: a name from `headtime drives`, or a profile file [default with --cache:
    /// modern-20tb]
    #[arg(
        long,
        value_name = "NAME|FILE",
        required = false,
        required_unless_present_any = ["cache", "system"],
        default_value_if("cache", ArgPredicate::IsPresent, "modern-20tb"),
        default_value_if("system", ArgPredicate::IsPresent, ""),
        hide_default_value = true
    )]
    pub drive: String,
    /// A cache above the drive: SIZE,REPLACEMENT,PREFETCHER,COORDINATOR; repeat it for each one below
    #[arg(long, value_name = "CACHE", requires = "trace", conflicts_with_all = caches::FLAGS)]
    pub cache: Vec<String>,
    /// What a reply between caches costs: none, or lan (6 ms, and 0.03 ms a page)
    #[arg(long, value_name = "LINK", requires = "cache", default_value = "none")]
    pub link: String,
    /// Use this profile as the scheduler's belief: a file from `headtime profile`
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
    /// The policies, separated by commas, from the list below [default: sptf, or that of the system]
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "sptf",
        default_value_if("system", ArgPredicate::IsPresent, None),
        hide_default_value = true
    )]
    pub policy: Vec<String>,
    /// Queue reads and writes together, or alternate: reads for 2 s, writes for 30 ms
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "mixed|alternate"
    )]
    pub phases: Option<PhasesWord>,
    /// Two such drives hold the same blocks; reads go to the nearer head, or to each drive in turn
    #[arg(
        long,
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "nearest",
        hide_possible_values = true,
        value_name = "nearest|round-robin"
    )]
    pub mirror: Option<MirrorWord>,
    /// Commands at the drive [default: 2; for the drive's own queue as many as it holds]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub depth: Option<u32>,
    /// Stop after this many requests [default for a synthetic load: 10,000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub requests: Option<u64>,
    /// Stop taking requests after this many virtual seconds
    #[arg(long, value_name = "S", value_parser = in_unit(Unit::Seconds))]
    pub seconds: Option<f64>,
    /// Write the account of each request: .parquet, .arrow, .jsonl, or else CSV; see below
    #[arg(long, value_name = "FILE")]
    pub requests_out: Option<PathBuf>,
    /// Write the account of each command of the drive: .parquet or .arrow
    #[arg(long, value_name = "FILE")]
    pub commands_out: Option<PathBuf>,
    /// Write head, plans and requests on a time line, for Perfetto (ui.perfetto.dev): JSON, at most 50 MB
    #[arg(long, value_name = "FILE")]
    pub trace_events: Option<PathBuf>,
    /// Write the rows to this file: .parquet or .arrow; docs/reference/file-formats.md has the columns
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Explain where the time of the N slowest requests went
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub why: Option<u8>,
    /// Draw response times and head time to this file: .svg, or .png
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Print the figures as JSON
    #[arg(long)]
    pub json: bool,
}

/// What a description of a system replaces.
const OF_SYSTEM: [&str; 24] = [
    "drive",
    "cache",
    "link",
    "belief",
    "workload",
    "trace",
    "seed",
    "read_fraction",
    "tasks",
    "think_ms",
    "size_kib",
    "rate",
    "device",
    "format",
    "closed",
    "scale_time",
    "fit",
    "skip_bad",
    "ColumnArguments",
    "ScanArguments",
    "TruthArguments",
    "PreemptArguments",
    "phases",
    "mirror",
];

/// The names of [`Phases`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PhasesWord {
    /// The policy chooses among reads and writes
    Mixed,
    /// Phases of reads and phases of writes alternate
    Alternate,
}

impl From<PhasesWord> for Phases {
    fn from(word: PhasesWord) -> Self {
        match word {
            PhasesWord::Mixed => Phases::Mixed,
            PhasesWord::Alternate => Phases::ABISS,
        }
    }
}

/// The names of [`ReadRule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MirrorWord {
    /// The drive whose head is nearer serves a read
    Nearest,
    /// The drives serve reads in turn
    RoundRobin,
}

impl From<MirrorWord> for ReadRule {
    fn from(word: MirrorWord) -> Self {
        match word {
            MirrorWord::Nearest => ReadRule::Nearest,
            MirrorWord::RoundRobin => ReadRule::RoundRobin,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// If the input is invalid, or the output cannot be written.
pub fn run(arguments: &mut SimulateArgs) -> Result<(), Exit> {
    let _kept = arguments.load.keep_standard_input()?;
    for doubt in arguments.load.settings().doubts() {
        warn(&format!("{doubt}: {REMEDY}"));
    }
    if !arguments.cache.is_empty() {
        return caches::run(arguments);
    }
    let settings = arguments.settings();
    if let Some(path) = &arguments.system {
        let system = SystemFile::read(path)?;
        if !system.served_only.is_empty() {
            warn(&format!(
                "{}: not simulated: {}",
                system.file,
                system.served_only.join(", ")
            ));
        }
        if system.has_caches()? {
            return caches::run_system(arguments, &system);
        }
    }
    let setup = system::setup(&settings)?;
    arguments.check_files(&setup)?;
    let out = NewTable::begin(arguments.out.as_deref())?;
    let svg = arguments
        .svg
        .as_deref()
        .map(DrawingFile::begin)
        .transpose()?;
    let mut runs = Vec::new();
    for &policy in &setup.policies {
        let mut progress = RunBar::new(&policy.name(), &setup);
        if let Some(path) = &arguments.requests_out {
            progress = progress.writing(path)?;
        }
        if let Some(path) = &arguments.trace_events {
            progress = progress.tracing(path)?;
        }
        if let Some(path) = &arguments.commands_out {
            progress = progress.listing(path)?;
        }
        let left = arguments.scan.scan_left.as_deref();
        let left = left.map(LeftFile::begin).transpose()?;
        let mut run = setup.run(policy, &mut progress)?;
        if let (Some(file), Some(wanted)) = (left, run.left.take()) {
            file.write(&wanted)?;
        }
        runs.push(run);
        progress.finish()?;
    }
    if let Some(file) = svg {
        file.write(&plot::page(&panels(&setup, &runs)))?;
    }
    if let Some(file) = out {
        let rows = runs.iter();
        let rows: Vec<RunRow> = rows
            .map(|run| RunRow::simulated(&settings, &setup, run))
            .collect();
        file.write(&experiment::runs(&rows))?;
    }
    match arguments.json {
        true => print(&json(&Comparison::new(&setup, &runs))?),
        false => print(&report(&setup, &runs, width::of_terminal())),
    }
}

impl SimulateArgs {
    /// The settings of the flags.
    pub fn settings(&self) -> ComparisonSettings {
        ComparisonSettings {
            drive: self.drive.clone(),
            belief: self.belief.clone(),
            load: self.load.settings(),
            truth: self.truth.settings(),
            scan: self.scan.settings(),
            preempt: self.preempt.settings(),
            policies: self.policy.clone(),
            phases: self.phases.map(Into::into),
            depth: self.depth,
            requests: self.requests,
            seconds: self.seconds,
            slowest: self.why.map_or(0, usize::from),
            mirror: self.mirror.map(Into::into),
            system: self.system.clone(),
        }
    }

    /// Checks that no output overwrites an input, and that a file that is read twice can be.
    fn check_files(&self, setup: &ComparisonSetup) -> Result<(), Exit> {
        let single = [
            ("--requests-out", self.requests_out.is_some()),
            ("--commands-out", self.commands_out.is_some()),
            ("--trace-events", self.trace_events.is_some()),
            ("--scan-left", self.scan.scan_left.is_some()),
        ];
        if let Some((flag, _)) = single.iter().find(|(_, is_given)| *is_given)
            && setup.policies.len() > 1
        {
            let problem = format!("{flag} writes one file: expected one policy");
            return Err(Exit::input(problem));
        }
        let written = [
            ("--requests-out", self.requests_out.as_deref()),
            ("--svg", self.svg.as_deref()),
            ("--out", self.out.as_deref()),
            ("--trace-events", self.trace_events.as_deref()),
            ("--commands-out", self.commands_out.as_deref()),
            ("--scan-left", self.scan.scan_left.as_deref()),
        ];
        let drive = named::is_drive_file(&self.drive).then(|| Path::new(&self.drive));
        let mut taken: Vec<PathBuf> = self
            .load
            .settings()
            .file()
            .map(Path::to_owned)
            .into_iter()
            .chain(drive.map(Path::to_owned))
            .chain(self.scan.scan_from.clone())
            .chain(self.belief.clone())
            .chain(self.system.clone())
            .map(|path| same(&path))
            .collect();
        for (flag, path) in written {
            let Some(path) = path else { continue };
            if taken.contains(&same(path)) {
                let path = path.display();
                let problem = format!(
                    "{flag} {path}: used for something else, too: expected a file of its own"
                );
                return Err(Exit::input(problem));
            }
            taken.push(same(path));
        }
        match &setup.source {
            LoadSource::Trace(plan)
                if (setup.policies.len() > 1 || plan.fit == AddressFit::Scale)
                    && plan
                        .path
                        .metadata()
                        .is_ok_and(|found| !found.is_file() && !found.is_dir()) =>
            {
                Err(Exit::input(format!(
                    "{}: no regular file, and can be read only once: expected one policy, and no \
                     --fit scale",
                    plan.path.display()
                )))
            }
            _ => Ok(()),
        }
    }
}

/// The canonical path of a file.
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
