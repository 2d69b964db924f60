//! Synthetic loads: arrival times, directions, sizes and positions of requests.
//!
//! A load is *closed* (a number of tasks, each of which sends a request some time after its
//! previous one ended) or *open* (requests arrive at their own times). The same load, seed and
//! drive give the same requests on every machine.
//!
//! ```toml
//! name = "example"
//! read_fraction = 0.67
//! class = "best-effort-3"       # how urgent; or: foreground, best-effort-1 to -6, background
//! [arrivals]                    # or: model = "open", per_second = 90, gaps = "exponential"
//! model = "closed"
//! tasks = 10
//! think_ms = 30                 # think = "constant" or "exponential"
//! [size]                        # or: kind = "fixed", kib = 4
//! kind = "exponential"          # or: kind = "choice", choices = [{ kib = 4, weight = 3 }, ...]
//! mean_kib = 8                  # or: kind = "uniform", from_kib = 4, to_kib = 64
//! multiple_kib = 4
//! [placement]                   # uniform, zipf, sequential, streams, local, small-files
//! kind = "uniform"
//! ```
//!
//! Several concurrent loads are a [`Mixture`].

pub mod class;
pub mod dice;
pub mod generator;
pub mod mixture;
mod origins;
mod parse;
pub mod placement;
pub mod size;
pub mod small_files;
pub mod synthetic;

use std::fmt;

use block::Class;
use document::DocumentError;
use serde::Serialize;

pub use generator::Generator;
pub use mixture::{LoadDescription, MixedLoad, Mixture};
pub use placement::Placement;
pub use size::{SizeOption, Sizes};
pub use small_files::SmallFiles;
pub use synthetic::Synthetic;

use origins::ValueOrigins;

/// A load, independent of a drive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Workload {
    /// The name of the load.
    pub name: String,
    /// A description in one sentence; not in reports, where flags may have changed the described
    /// values.
    #[serde(skip)]
    pub summary: String,
    /// The default seed.
    pub seed: u64,
    /// The priority class of the requests.
    #[serde(serialize_with = "class::serialize")]
    pub class: Class,
    /// The fraction of requests that read.
    pub read_fraction: f64,
    /// The arrival times.
    pub arrivals: Arrivals,
    /// The sizes of requests.
    pub sizes: Sizes,
    /// The positions of requests.
    pub placement: Placement,
    /// Alignment of random positions in bytes; by default the drive's block size.
    pub align_bytes: Option<u64>,
    #[serde(skip)]
    origins: ValueOrigins,
}

/// The arrival times of requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "model", rename_all = "kebab-case")]
pub enum Arrivals {
    /// Each task sends a request, waits for its end, thinks, and sends the next one.
    Closed {
        /// Number of tasks.
        tasks: u32,
        /// The mean think time.
        think_ms: f64,
        /// The distribution of think times.
        think: Spread,
    },
    /// Requests arrive independently of earlier requests.
    Open {
        /// The mean rate.
        per_second: f64,
        /// The distribution of the gaps.
        gaps: Spread,
    },
}

/// The distribution of a time around its mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Constant.
    Constant,
    /// Exponential, as the gaps of a Poisson process.
    Exponential,
}

/// Values from command-line flags that replace those of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overrides {
    /// The seed.
    pub seed: Option<u64>,
    /// The fraction of requests that read.
    pub read_fraction: Option<f64>,
    /// Number of tasks; makes an open load closed.
    pub tasks: Option<u32>,
    /// Think time in milliseconds; makes an open load closed, with one task.
    pub think_ms: Option<f64>,
    /// The size of all requests.
    pub size_kib: Option<f64>,
    /// Requests per second; makes a closed load open, with Poisson arrivals.
    pub rate: Option<f64>,
}

/// A built-in load.
#[derive(Clone, Copy, Debug)]
pub struct BuiltInWorkload {
    /// The name of the load.
    pub name: &'static str,
    /// The text of its file.
    pub text: &'static str,
}

/// The built-in loads: one file each in `workloads/`, one line each here.
pub const ALL: &[BuiltInWorkload] = &[
    built_in("oltp", include_str!("../../../workloads/oltp.toml")),
    built_in("random", include_str!("../../../workloads/random.toml")),
    built_in(
        "uniform-4k",
        include_str!("../../../workloads/uniform-4k.toml"),
    ),
    built_in("zipf", include_str!("../../../workloads/zipf.toml")),
    built_in(
        "sequential",
        include_str!("../../../workloads/sequential.toml"),
    ),
    built_in("streams", include_str!("../../../workloads/streams.toml")),
    built_in("mixed", include_str!("../../../workloads/mixed.toml")),
    built_in("modern", include_str!("../../../workloads/modern.toml")),
    built_in(
        "small-files",
        include_str!("../../../workloads/small-files.toml"),
    ),
    built_in(
        "random-256k",
        include_str!("../../../workloads/random-256k.toml"),
    ),
    built_in(
        "local-small",
        include_str!("../../../workloads/local-small.toml"),
    ),
];

const fn built_in(name: &'static str, text: &'static str) -> BuiltInWorkload {
    BuiltInWorkload { name, text }
}

impl BuiltInWorkload {
    /// The built-in load of this name, if there is one.
    pub fn find(name: &str) -> Option<&'static BuiltInWorkload> {
        ALL.iter().find(|load| load.name == name)
    }

    /// Parses the load.
    ///
    /// # Errors
    /// Never for a load of [`ALL`]: a test reads them all.
    pub fn workload(&self) -> Result<Workload, DocumentError> {
        Workload::parse(&format!("workloads/{}.toml", self.name), self.text)
    }
}

impl Overrides {
    /// The first flag that applies to a single load only: any but the seed.
    fn of_one_load(&self) -> Option<&'static str> {
        let given = [
            ("--read-fraction", self.read_fraction.is_some()),
            ("--tasks", self.tasks.is_some()),
            ("--think-ms", self.think_ms.is_some()),
            ("--size-kib", self.size_kib.is_some()),
            ("--rate", self.rate.is_some()),
        ];
        let mut given = given.into_iter().filter(|(_, is_given)| *is_given);
        given.next().map(|(flag, _)| flag)
    }
}

impl Workload {
    /// The load with the values of flags.
    ///
    /// # Errors
    /// If a value is invalid, or `rate` is combined with `tasks` or `think_ms`.
    pub fn with(mut self, flags: &Overrides) -> Result<Workload, DocumentError> {
        if let Some(seed) = flags.seed {
            self.seed = seed;
        }
        if let Some(read_fraction) = flags.read_fraction {
            self.read_fraction = read_fraction;
            self.origins
                .replace_by_flag("read_fraction", "--read-fraction");
        }
        if let Some(kib) = flags.size_kib {
            self.origins.replace_by_flag("size", "--size-kib");
            let bytes = parse::kib_to_bytes(kib)
                .map_err(|problem| self.origins.error("size.kib", problem))?;
            self.sizes = Sizes::Fixed { bytes };
        }
        self.arrivals = self.arrivals_with(flags)?;
        self.check()?;
        Ok(self)
    }

    fn arrivals_with(&mut self, flags: &Overrides) -> Result<Arrivals, DocumentError> {
        let closed = flags.tasks.is_some() || flags.think_ms.is_some();
        if let Some(per_second) = flags.rate {
            self.origins.replace_by_flag("arrivals", "--rate");
            if closed {
                let problem = "a load is open (--rate) or closed (--tasks, --think-ms), not both";
                return Err(self.origins.error("arrivals", problem));
            }
            let gaps = match self.arrivals {
                Arrivals::Open { gaps, .. } => gaps,
                Arrivals::Closed { .. } => Spread::Exponential,
            };
            return Ok(Arrivals::Open { per_second, gaps });
        }
        if !closed {
            return Ok(self.arrivals);
        }
        let (tasks, think_ms, think) = match self.arrivals {
            Arrivals::Closed {
                tasks,
                think_ms,
                think,
            } => (tasks, think_ms, think),
            Arrivals::Open { .. } => (1, 0.0, Spread::Constant),
        };
        self.origins.replace_by_flag("arrivals.tasks", "--tasks");
        self.origins
            .replace_by_flag("arrivals.think_ms", "--think-ms");
        Ok(Arrivals::Closed {
            tasks: flags.tasks.unwrap_or(tasks),
            think_ms: flags.think_ms.unwrap_or(think_ms),
            think,
        })
    }

    /// Whether the values are valid independently of a drive.
    fn check(&self) -> Result<(), DocumentError> {
        self.range("read_fraction", self.read_fraction, 0.0, 1.0)?;
        match self.arrivals {
            Arrivals::Closed {
                tasks, think_ms, ..
            } => {
                self.range(
                    "arrivals.tasks",
                    f64::from(tasks),
                    1.0,
                    LARGEST_COUNT.into(),
                )?;
                self.range("arrivals.think_ms", think_ms, 0.0, LONGEST_THINK_MS)?;
            }
            Arrivals::Open { per_second, .. } => {
                self.range("arrivals.per_second", per_second, LOWEST_RATE, HIGHEST_RATE)?;
            }
        }
        self.check_sizes()?;
        match self.placement {
            Placement::Zipf { theta, .. } => self.range("placement.theta", theta, 0.0, 10.0),
            Placement::Sequential { mean_run } => {
                self.range("placement.mean_run", mean_run, 1.0, 1e9)
            }
            Placement::Local { share, .. } => self.range("placement.share", share, 0.0, 1.0),
            Placement::SmallFiles(_) => self.check_files(),
            Placement::Uniform | Placement::Streams { .. } => Ok(()),
        }
    }

    fn check_sizes(&self) -> Result<(), DocumentError> {
        let kib = |bytes: u64| bytes as f64 / 1024.0;
        match self.sizes {
            Sizes::Exponential {
                mean_bytes,
                multiple_bytes,
            } if mean_bytes < multiple_bytes => {
                let (mean, multiple) = (kib(mean_bytes), kib(multiple_bytes));
                let problem = format!("{mean} KiB: expected at least multiple_kib, {multiple} KiB");
                Err(self.origins.error("size.mean_kib", problem))
            }
            Sizes::Uniform {
                from_bytes,
                to_bytes,
                multiple_bytes,
            } => {
                let whole = |bytes: u64| bytes.is_multiple_of(multiple_bytes);
                let (key, bytes, least) = match (whole(from_bytes), whole(to_bytes)) {
                    (false, _) => ("size.from_kib", from_bytes, multiple_bytes),
                    (_, whole) if !whole || to_bytes < from_bytes => {
                        ("size.to_kib", to_bytes, from_bytes)
                    }
                    _ => return Ok(()),
                };
                let (bytes, multiple, least) = (kib(bytes), kib(multiple_bytes), kib(least));
                let problem =
                    format!("{bytes} KiB: expected a multiple of {multiple} KiB, at least {least}");
                Err(self.origins.error(key, problem))
            }
            _ => Ok(()),
        }
    }

    /// Whether the values are valid for a load of files.
    fn check_files(&self) -> Result<(), DocumentError> {
        if !matches!(self.sizes, Sizes::Fixed { .. }) {
            let problem = "expected \"fixed\", the size of every file, with placement small-files";
            return Err(self.origins.error("size.kind", problem));
        }
        if self.align_bytes.is_some() {
            let problem = "expected none with small-files, which keep to fs_block_kib";
            return Err(self.origins.error("placement.align_kib", problem));
        }
        Ok(())
    }

    fn range(&self, key: &str, value: f64, low: f64, high: f64) -> Result<(), DocumentError> {
        if value >= low && value <= high {
            return Ok(());
        }
        let problem = format!("{value}: expected a number from {low} to {high}");
        Err(self.origins.error(key, problem))
    }
}

impl fmt::Display for Workload {
    /// What it is, with all its numbers, in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reads = (self.read_fraction * 1e6).round() / 1e4;
        let (arrivals, sizes, placement) = (&self.arrivals, &self.sizes, &self.placement);
        write!(f, "{arrivals}; {reads} % reads; {sizes}; {placement}")?;
        match self.class == Class::default() {
            true => Ok(()),
            false => write!(f, "; {}", class::name(self.class)),
        }
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Arrivals::Closed {
                tasks,
                think_ms: 0.0,
                ..
            } => write!(f, "{tasks} always outstanding"),
            Arrivals::Closed {
                tasks,
                think_ms,
                think,
            } => match think {
                Spread::Constant => write!(f, "{tasks} tasks thinking {think_ms} ms"),
                Spread::Exponential => {
                    write!(f, "{tasks} tasks thinking {think_ms} ms on average")
                }
            },
            Arrivals::Open { per_second, gaps } => match gaps {
                Spread::Constant => write!(f, "{per_second} a second, evenly"),
                Spread::Exponential => write!(f, "{per_second} a second, Poisson"),
            },
        }
    }
}

/// Maximum number of tasks, streams and regions, and the maximum weight. Each task is an
/// outstanding request and each region a table entry; drives support fewer of either.
pub const LARGEST_COUNT: u32 = 65_536;

/// Maximum size of requests and groups, 1 TiB: far above any request, far below overflow.
pub const LARGEST_BYTES: u64 = 1 << 40;

/// Maximum mean think time: a day.
pub const LONGEST_THINK_MS: f64 = 86_400_000.0;

/// Minimum rate: one request in about twelve days.
pub const LOWEST_RATE: f64 = 1e-6;

/// Maximum rate: a thousand times the rate of the fastest disk.
pub const HIGHEST_RATE: f64 = 1e6;

#[cfg(test)]
mod tests;
