//! What is asked of a drive: a synthetic load or a trace.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use block::{Finished, Instant};
use serde::Serialize;
use simulator::replay::{Counts, Devices, Fit, Pace, Plan, Replay, ReplayError};
use simulator::run::{Arrival, Load, LoadError, Part, PastEnd};
use simulator::trace::{Format, OnBad};
use simulator::workload::{
    self, BuiltIn, Described, Mixed, Mixture, Overrides, Synthetic, Workload,
};

use crate::{Failure, text_file};

/// What is asked of the drive.
#[derive(Clone, Debug, Default)]
pub struct LoadSettings {
    /// A synthetic load: a built-in name, or a TOML file.
    pub workload: Option<String>,
    /// A trace, in any of the formats that `headtime trace` reads.
    pub trace: Option<PathBuf>,
    /// The seed of a synthetic load, and of what happens to the drive by chance.
    pub seed: Option<u64>,
    /// The share of requests that read, 0 to 1.
    pub read_fraction: Option<f64>,
    /// Requests always asked for or thought about; makes the load closed.
    pub tasks: Option<u32>,
    /// The mean time from an answer to the next request.
    pub think_ms: Option<f64>,
    /// One size for all requests.
    pub size_kib: Option<f64>,
    /// Requests per second, whether or not they are answered; makes the load open.
    pub rate: Option<f64>,
    /// Replay the requests of this device of the trace, or of "all" as if they were one.
    pub device: Option<String>,
    /// The trace's format, if its first lines do not tell.
    pub format: Option<String>,
    /// Replay the trace not at its own times but with N requests always asked for.
    pub closed: Option<u32>,
    /// Multiply the trace's times: 0.5 is twice as fast.
    pub scale_time: Option<f64>,
    /// How addresses past the end of the drive are brought onto it.
    pub fit: Option<Fit>,
    /// Leave out bad lines and requests past the end of the drive, and count them.
    pub skip_bad: bool,
}

/// A load or a trace, not yet on a drive.
#[derive(Clone, Debug)]
pub enum Source {
    /// A synthetic load.
    Synthetic(Box<Workload>),
    /// Several loads at once.
    Mixture(Mixture),
    /// A trace.
    Trace(Plan),
}

/// A load under way on a drive.
pub enum UnderWay {
    /// A synthetic one.
    Synthetic(Box<Synthetic>),
    /// Several at once.
    Mixture(Mixed),
    /// A trace.
    Trace(Box<Replay>),
}

/// What became of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceCounts {
    /// What was done to its requests.
    #[serde(flatten)]
    pub replayed: Counts,
    /// Blocks that it needs, if it was shrunk to the drive's.
    pub scaled_from_blocks: Option<u64>,
    /// Bad lines that were left out.
    pub bad_lines: u64,
    /// The last line has no newline: if the file was cut there, its last number was longer once.
    pub unended: bool,
}

impl LoadSettings {
    /// The load or trace that the flags mean.
    ///
    /// # Errors
    /// If there is none of that name, or its file is no load.
    pub fn source(&self) -> Result<Source, Failure> {
        match (&self.trace, &self.workload) {
            (Some(path), _) => Ok(Source::Trace(self.plan(path.clone())?)),
            (None, Some(name)) => {
                let flags = self.overrides();
                let source = match described(name)? {
                    Described::Alone(load) => load
                        .with(&flags)
                        .map(|load| Source::Synthetic(Box::new(load))),
                    Described::Mixture(mixture) => mixture.with(&flags).map(Source::Mixture),
                };
                source.map_err(Failure::input)
            }
            (None, None) => Err(Failure::input("expected --workload or --trace")),
        }
    }

    /// The seed of what happens to the drive by chance.
    pub fn seed_of(&self, source: &Source) -> u64 {
        match (self.seed, source) {
            (Some(seed), _) => seed,
            (None, Source::Synthetic(workload)) => workload.seed,
            (None, Source::Mixture(mixture)) => mixture.seed,
            (None, Source::Trace(_)) => DEFAULT_SEED,
        }
    }

    /// Whether a seed was given to a trace, which itself has no use for one.
    pub fn is_seeded_trace(&self) -> bool {
        self.seed.is_some() && self.trace.is_some()
    }

    /// The file that is read, if it is one.
    pub fn file(&self) -> Option<&Path> {
        let workload = self.workload.as_deref();
        let workload = workload.filter(|name| is_file_name(name)).map(Path::new);
        self.trace.as_deref().or(workload)
    }

    /// What becomes of requests past the end of the drive.
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

    fn plan(&self, path: PathBuf) -> Result<Plan, Failure> {
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
        Ok(Plan {
            path,
            format,
            on_bad: match self.skip_bad {
                true => OnBad::Skip,
                false => OnBad::Refuse,
            },
            devices: match self.device.as_deref() {
                None => Devices::Only,
                Some("all") => Devices::All,
                Some(name) => Devices::Named(name.to_owned()),
            },
            pace: match self.closed {
                Some(depth) => Pace::Closed { depth },
                None => Pace::Timed { factor },
            },
            fit: self.fit.unwrap_or(Fit::AsTheyAre),
        })
    }
}

fn is_file_name(workload: &str) -> bool {
    workload.contains(['/', '.'])
}

/// The built-in load or mixture of this name, or that of a file.
fn described(name: &str) -> Result<Described, Failure> {
    if let Some(built_in) = BuiltIn::find(name).or_else(|| BuiltIn::find_mixture(name)) {
        return built_in.described().map_err(Failure::failed);
    }
    if !is_file_name(name) {
        let all = workload::ALL.iter().chain(workload::mixture::MIXTURES);
        let names: Vec<&str> = all.map(|load| load.name).collect();
        return Err(Failure::unknown("built-in load", name, &names));
    }
    let text = text_file::read(name.as_ref())?;
    Described::parse(name, &text).map_err(Failure::input)
}

impl Source {
    /// What it is called.
    pub fn name(&self) -> String {
        match self {
            Source::Synthetic(workload) => workload.name.clone(),
            Source::Mixture(mixture) => mixture.name.clone(),
            Source::Trace(plan) => match plan.path.file_name() {
                Some(name) => name.to_string_lossy().into_owned(),
                None => plan.path.display().to_string(),
            },
        }
    }

    /// The load at its beginning, on a drive of `capacity` blocks.
    ///
    /// # Errors
    /// If it does not fit on the drive, or cannot be read.
    pub fn begin(&self, block_bytes: u32, capacity: u64) -> Result<UnderWay, Failure> {
        match self {
            Source::Synthetic(workload) => Synthetic::new(workload, block_bytes, capacity)
                .map(|load| UnderWay::Synthetic(Box::new(load)))
                .map_err(Failure::input),
            Source::Mixture(mixture) => Mixed::new(mixture, block_bytes, capacity)
                .map(UnderWay::Mixture)
                .map_err(Failure::input),
            Source::Trace(plan) => {
                let block_bytes = NonZeroU64::new(u64::from(block_bytes))
                    .ok_or_else(|| Failure::input("a drive with blocks of zero bytes"))?;
                Replay::new(plan.clone(), block_bytes, capacity)
                    .map(|replay| UnderWay::Trace(Box::new(replay)))
                    .map_err(|error: ReplayError| Failure::input(error))
            }
        }
    }
}

impl UnderWay {
    /// What became of the trace, if it is one.
    pub fn counts(&self) -> Option<TraceCounts> {
        match self {
            UnderWay::Synthetic(_) | UnderWay::Mixture(_) => None,
            UnderWay::Trace(replay) => Some(TraceCounts {
                replayed: replay.counts(),
                scaled_from_blocks: replay.scaled_from(),
                bad_lines: replay.reader().skipped().total(),
                unended: replay.reader().is_unended(),
            }),
        }
    }

    fn load(&mut self) -> &mut dyn Load {
        match self {
            UnderWay::Synthetic(load) => &mut **load,
            UnderWay::Mixture(load) => load,
            UnderWay::Trace(replay) => &mut **replay,
        }
    }
}

impl Load for UnderWay {
    fn next_arrival(&mut self) -> Result<Option<Arrival>, LoadError> {
        self.load().next_arrival()
    }

    fn on_finished(
        &mut self,
        now: Instant,
        part: Part,
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
            UnderWay::Synthetic(load) => load.place(),
            UnderWay::Mixture(load) => load.place(),
            UnderWay::Trace(replay) => replay.place(),
        }
    }

    fn parts(&self) -> Vec<String> {
        match self {
            UnderWay::Synthetic(load) => load.parts(),
            UnderWay::Mixture(load) => load.parts(),
            UnderWay::Trace(replay) => replay.parts(),
        }
    }
}

/// The bound of `--scale-time` on either side. A choice: a week in less than a second.
const SLOWEST: f64 = 1e-6;

/// The seed of a drive under a trace. A choice, the same as that of loads.
const DEFAULT_SEED: u64 = 1;
