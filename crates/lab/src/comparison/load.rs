//! The load of a drive: synthetic, or a trace.

mod placed;

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use block::{Finished, Instant};
use serde::Serialize;
use simulator::replay::{
    AddressFit, DeviceChoice, Replay, ReplayCounts, ReplayError, ReplayPace, ReplayPlan,
};
use simulator::run::{Arrival, Load, LoadError, LoadPart, PastEnd};
use simulator::trace::{ColumnOptions, Format, OnBad, TraceForm, TraceReader, doubts_of_first};
use simulator::workload::{
    self, BuiltInWorkload, LoadDescription, MixedLoad, Mixture, Overrides, Synthetic, Workload,
};

use crate::{Failure, text_file};

pub use placed::{PlacedLoad, PlacedLoads};

/// The settings of a load.
#[derive(Clone, Debug, Default)]
pub struct LoadSettings {
    /// A synthetic load: a built-in name, or a TOML file.
    pub workload: Option<String>,
    /// A trace, in any of the formats that `headtime trace` reads.
    pub trace: Option<PathBuf>,
    /// The seed of a synthetic load, and of the drive's random events.
    pub seed: Option<u64>,
    /// The share of reads, 0 to 1.
    pub read_fraction: Option<f64>,
    /// The number of clients of a closed load.
    pub tasks: Option<u32>,
    /// The mean think time.
    pub think_ms: Option<f64>,
    /// The size of all requests.
    pub size_kib: Option<f64>,
    /// The rate of an open load, in requests per second.
    pub rate: Option<f64>,
    /// The device of the trace whose requests are replayed, or "all" as if they were one.
    pub device: Option<String>,
    /// The trace's format. Default: detected from its first lines.
    pub format: Option<String>,
    /// The number of outstanding requests that replaces the trace's times.
    pub closed: Option<u32>,
    /// The factor of the trace's times: 0.5 is twice as fast.
    pub scale_time: Option<f64>,
    /// The mapping of addresses past the end of the drive.
    pub fit: Option<AddressFit>,
    /// Whether bad lines and requests past the end of the drive are skipped and counted.
    pub skip_bad: bool,
    /// The columns and units of the trace, if it is text that does not state them.
    pub columns: ColumnOptions,
}

/// A load or a trace, before its start on a drive.
#[derive(Clone, Debug)]
pub enum LoadSource {
    /// A synthetic load.
    Synthetic(Box<Workload>),
    /// Several simultaneous loads.
    Mixture(Mixture),
    /// A trace.
    Trace(ReplayPlan),
    /// The clients of a description of a system, each with its place and class.
    Placed(Vec<PlacedLoad>),
}

/// A load that runs on a drive.
pub enum RunningLoad {
    /// A synthetic load.
    Synthetic(Box<Synthetic>),
    /// Several simultaneous loads.
    Mixture(MixedLoad),
    /// A trace.
    Trace(Box<Replay>),
    /// Clients of a system.
    Placed(PlacedLoads),
}

/// The counts of a replayed trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceCounts {
    /// The counts of its requests.
    #[serde(flatten)]
    pub replayed: ReplayCounts,
    /// The blocks that the trace needs, if it was scaled to the drive.
    pub scaled_from_blocks: Option<u64>,
    /// Skipped bad lines.
    pub bad_lines: u64,
    /// Whether the last line has no newline. If the file was cut there, its last number is wrong.
    pub unended: bool,
}

impl LoadSettings {
    /// Resolves the load or trace.
    ///
    /// # Errors
    /// If the name is unknown, or the file is not a load.
    pub fn source(&self) -> Result<LoadSource, Failure> {
        match (&self.trace, &self.workload) {
            (Some(path), _) => Ok(LoadSource::Trace(self.plan(path.clone())?)),
            (None, Some(name)) => {
                let flags = self.overrides();
                let source = match described(name)? {
                    LoadDescription::Alone(load) => load
                        .with(&flags)
                        .map(|load| LoadSource::Synthetic(Box::new(load))),
                    LoadDescription::Mixture(mixture) => {
                        mixture.with(&flags).map(LoadSource::Mixture)
                    }
                };
                source.map_err(Failure::input)
            }
            (None, None) => Err(Failure::input("expected --workload or --trace")),
        }
    }

    /// The seed of the drive's random events.
    pub fn seed_of(&self, source: &LoadSource) -> u64 {
        match (self.seed, source) {
            (Some(seed), _) => seed,
            (None, LoadSource::Synthetic(workload)) => workload.seed,
            (None, LoadSource::Mixture(mixture)) => mixture.seed,
            (None, LoadSource::Trace(_) | LoadSource::Placed(_)) => DEFAULT_SEED,
        }
    }

    /// Whether a seed was given for a trace, which has no use for it.
    pub fn is_seeded_trace(&self) -> bool {
        self.seed.is_some() && self.trace.is_some()
    }

    /// The input file, if any.
    pub fn file(&self) -> Option<&Path> {
        let workload = self.workload.as_deref();
        let workload = workload.filter(|name| is_file_name(name)).map(Path::new);
        self.trace.as_deref().or(workload)
    }

    /// Why the units of the trace look wrong. Nothing is said of what can be read only once, or not at all.
    pub fn doubts(&self) -> Vec<String> {
        let regular = self.trace.clone().filter(|path| path.is_file());
        let plan = regular.and_then(|path| self.plan(path).ok());
        let reader =
            plan.and_then(|plan| TraceReader::open(&plan.path, plan.form, plan.on_bad).ok());
        reader.map_or_else(Vec::new, |mut reader| doubts_of_first(&mut reader))
    }

    /// The treatment of requests past the end of the drive.
    pub fn past_end(&self) -> PastEnd {
        match self.skip_bad {
            true => PastEnd::Skip,
            false => PastEnd::Stop,
        }
    }

    fn overrides(&self) -> Overrides {
        Overrides {
            seed: self.seed,
            read_fraction: self.read_fraction,
            tasks: self.tasks,
            think_ms: self.think_ms,
            size_kib: self.size_kib,
            rate: self.rate,
        }
    }

    fn plan(&self, path: PathBuf) -> Result<ReplayPlan, Failure> {
        let format = match &self.format {
            None => None,
            Some(name) => Some(Format::named(name).ok_or_else(|| {
                let names: Vec<&str> = simulator::trace::ALL.iter().map(|f| f.name).collect();
                Failure::unknown("trace format", name, &names)
            })?),
        };
        let factor = self.scale_time.unwrap_or(1.0);
        if !(SLOWEST..=1.0 / SLOWEST).contains(&factor) {
            let most = 1.0 / SLOWEST;
            let problem =
                format!("--scale-time {factor}: expected a number from {SLOWEST} to {most}");
            return Err(Failure::input(problem));
        }
        Ok(ReplayPlan {
            path,
            form: TraceForm::new(format, &self.columns).map_err(Failure::input)?,
            on_bad: match self.skip_bad {
                true => OnBad::Skip,
                false => OnBad::Refuse,
            },
            devices: match self.device.as_deref() {
                None => DeviceChoice::Only,
                Some("all") => DeviceChoice::All,
                Some(name) => DeviceChoice::Named(name.to_owned()),
            },
            pace: match self.closed {
                Some(depth) => ReplayPace::Closed { depth },
                None => ReplayPace::Timed { factor },
            },
            fit: self.fit.unwrap_or(AddressFit::AsTheyAre),
        })
    }
}

fn is_file_name(workload: &str) -> bool {
    workload.contains(['/', '.'])
}

/// The built-in load or mixture of this name, or that of a file.
fn described(name: &str) -> Result<LoadDescription, Failure> {
    if let Some(built_in) =
        BuiltInWorkload::find(name).or_else(|| BuiltInWorkload::find_mixture(name))
    {
        return built_in.described().map_err(Failure::failed);
    }
    if !is_file_name(name) {
        let all = workload::ALL.iter().chain(workload::mixture::MIXTURES);
        let names: Vec<&str> = all.map(|load| load.name).collect();
        return Err(Failure::unknown("built-in load", name, &names));
    }
    let text = text_file::read(name.as_ref())?;
    LoadDescription::parse(name, &text).map_err(Failure::input)
}

impl LoadSource {
    /// The name.
    pub fn name(&self) -> String {
        match self {
            LoadSource::Synthetic(workload) => workload.name.clone(),
            LoadSource::Mixture(mixture) => mixture.name.clone(),
            LoadSource::Trace(plan) => match plan.path.file_name() {
                Some(name) => name.to_string_lossy().into_owned(),
                None => plan.path.display().to_string(),
            },
            LoadSource::Placed(loads) => {
                let names: Vec<&str> = loads.iter().map(|load| load.name.as_str()).collect();
                names.join(" + ")
            }
        }
    }

    /// Starts the load on a drive of `capacity` blocks.
    ///
    /// # Errors
    /// If the load does not fit on the drive, or cannot be read.
    pub fn begin(&self, block_bytes: u32, capacity: u64) -> Result<RunningLoad, Failure> {
        match self {
            LoadSource::Synthetic(workload) => Synthetic::new(workload, block_bytes, capacity)
                .map(|load| RunningLoad::Synthetic(Box::new(load)))
                .map_err(Failure::input),
            LoadSource::Mixture(mixture) => MixedLoad::new(mixture, block_bytes, capacity)
                .map(RunningLoad::Mixture)
                .map_err(Failure::input),
            LoadSource::Trace(plan) => {
                let block_bytes = NonZeroU64::new(u64::from(block_bytes))
                    .ok_or_else(|| Failure::input("a drive with blocks of zero bytes"))?;
                Replay::new(plan.clone(), block_bytes, capacity)
                    .map(|replay| RunningLoad::Trace(Box::new(replay)))
                    .map_err(|error: ReplayError| Failure::input(error))
            }
            LoadSource::Placed(loads) => {
                PlacedLoads::begin(loads, block_bytes).map(RunningLoad::Placed)
            }
        }
    }
}

impl RunningLoad {
    /// The counts of the trace, if the load is one.
    pub fn counts(&self) -> Option<TraceCounts> {
        match self {
            RunningLoad::Synthetic(_) | RunningLoad::Mixture(_) | RunningLoad::Placed(_) => None,
            RunningLoad::Trace(replay) => Some(TraceCounts {
                replayed: replay.counts(),
                scaled_from_blocks: replay.scaled_from(),
                bad_lines: replay.reader().skipped().total(),
                unended: replay.reader().is_unended(),
            }),
        }
    }

    fn load(&mut self) -> &mut dyn Load {
        match self {
            RunningLoad::Synthetic(load) => &mut **load,
            RunningLoad::Mixture(load) => load,
            RunningLoad::Trace(replay) => &mut **replay,
            RunningLoad::Placed(loads) => loads,
        }
    }
}

impl Load for RunningLoad {
    fn next_arrival(&mut self) -> Result<Option<Arrival>, LoadError> {
        self.load().next_arrival()
    }

    fn on_finished(
        &mut self,
        now: Instant,
        part: LoadPart,
        finished: &Finished,
    ) -> Result<Option<Arrival>, LoadError> {
        self.load().on_finished(now, part, finished)
    }

    fn on_skipped(
        &mut self,
        now: Instant,
        arrival: &Arrival,
    ) -> Result<Option<Arrival>, LoadError> {
        self.load().on_skipped(now, arrival)
    }

    fn place(&self) -> Option<String> {
        match self {
            RunningLoad::Synthetic(load) => load.place(),
            RunningLoad::Mixture(load) => load.place(),
            RunningLoad::Trace(replay) => replay.place(),
            RunningLoad::Placed(loads) => loads.place(),
        }
    }

    fn parts(&self) -> Vec<String> {
        match self {
            RunningLoad::Synthetic(load) => load.parts(),
            RunningLoad::Mixture(load) => load.parts(),
            RunningLoad::Trace(replay) => replay.parts(),
            RunningLoad::Placed(loads) => loads.parts(),
        }
    }
}

/// The bound of `--scale-time`, and its inverse. A choice: a week in less than a second.
const SLOWEST: f64 = 1e-6;

/// The seed of a drive under a trace. A choice, the same as that of loads.
const DEFAULT_SEED: u64 = 1;
