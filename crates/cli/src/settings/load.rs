//! The flags that say what is asked of a drive: a synthetic load or a trace.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lab::comparison::load::LoadSettings;
use simulator::replay::Fit;

/// What is asked of the drive.
#[derive(Clone, Debug, Default, Args)]
pub struct LoadArguments {
    /// A synthetic load: a built-in name, or a TOML file
    #[arg(long, value_name = "NAME|FILE", required_unless_present = "trace")]
    pub workload: Option<String>,
    /// A trace, in any of the formats that `headtime trace` reads
    #[arg(long, value_name = "FILE", conflicts_with = "workload")]
    pub trace: Option<PathBuf>,
    /// The seed of a synthetic load, and of what happens to the drive by chance
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// The share of requests that read, 0 to 1
    #[arg(long, value_name = "SHARE", conflicts_with = "trace")]
    pub read_fraction: Option<f64>,
    /// Requests always asked for or thought about; makes the load closed
    #[arg(long, value_name = "N", conflicts_with = "trace")]
    pub tasks: Option<u32>,
    /// The mean time from an answer to the next request
    #[arg(long, value_name = "MS", conflicts_with = "trace")]
    pub think_ms: Option<f64>,
    /// One size for all requests
    #[arg(long, value_name = "KIB", conflicts_with = "trace")]
    pub size_kib: Option<f64>,
    /// Requests per second, whether or not they are answered; makes the load open
    #[arg(long, value_name = "PER_SECOND", conflicts_with = "trace")]
    pub rate: Option<f64>,
    /// Replay the requests of this device of the trace, or of "all" as if they were one
    #[arg(long, value_name = "NAME", conflicts_with = "workload")]
    pub device: Option<String>,
    /// The trace's format, if its first lines do not tell
    #[arg(long, value_name = "FORMAT", conflicts_with = "workload")]
    pub format: Option<String>,
    /// Replay the trace not at its own times but with N requests always asked for
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "10",
        conflicts_with = "workload",
        value_parser = clap::value_parser!(u32).range(1..=65_536)
    )]
    pub closed: Option<u32>,
    /// Multiply the trace's times: 0.5 is twice as fast
    #[arg(long, value_name = "F", conflicts_with_all = ["workload", "closed"])]
    pub scale_time: Option<f64>,
    /// How addresses past the end of the drive are brought onto it
    #[arg(long, value_enum, conflicts_with = "workload")]
    pub fit: Option<FitWord>,
    /// Leave out bad lines and requests past the end of the drive, and count them
    #[arg(long, conflicts_with = "workload")]
    pub skip_bad: bool,
}

/// Names for [`Fit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FitWord {
    /// Modulo the drive's capacity
    Wrap,
    /// Shrunk in proportion, if the trace needs more than the drive has
    Scale,
}

impl From<FitWord> for Fit {
    fn from(word: FitWord) -> Self {
        match word {
            FitWord::Wrap => Fit::Wrap,
            FitWord::Scale => Fit::Scale,
        }
    }
}

impl LoadArguments {
    /// The settings that the flags mean.
    pub fn settings(&self) -> LoadSettings {
        LoadSettings {
            workload: self.workload.clone(),
            trace: self.trace.clone(),
            seed: self.seed,
            read_fraction: self.read_fraction,
            tasks: self.tasks,
            think_ms: self.think_ms,
            size_kib: self.size_kib,
            rate: self.rate,
            device: self.device.clone(),
            format: self.format.clone(),
            closed: self.closed,
            scale_time: self.scale_time,
            fit: self.fit.map(Into::into),
            skip_bad: self.skip_bad,
        }
    }
}
