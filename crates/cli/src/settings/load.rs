//! The flags of a load: synthetic, or a trace.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use document::quantity::Unit;
use lab::comparison::load::LoadSettings;
use simulator::replay::AddressFit;
use simulator::trace::STANDARD_INPUT;
use tempfile::NamedTempFile;

use super::columns::ColumnArguments;
use super::units::{in_unit, part};
use crate::output::Exit;

/// The load of a drive.
#[derive(Clone, Debug, Default, Args)]
pub struct LoadArguments {
    /// A synthetic load: a built-in name, or a TOML file
    #[arg(long, value_name = "NAME|FILE", required_unless_present_any = ["trace", "system"])]
    pub workload: Option<String>,
    /// A trace, in any of the formats that `headtime trace` reads; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "workload")]
    pub trace: Option<PathBuf>,
    /// The seed of a synthetic load, and of the drive's random events
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Share of reads, 0 to 1
    #[arg(long, value_name = "SHARE", conflicts_with = "trace", value_parser = part)]
    pub read_fraction: Option<f64>,
    /// Number of clients of a closed load. Each thinks, then waits for one request
    #[arg(long, value_name = "N", conflicts_with = "trace")]
    pub tasks: Option<u32>,
    /// Mean think time between an answer and the next request
    #[arg(long, value_name = "MS", conflicts_with = "trace", value_parser = in_unit(Unit::Milliseconds))]
    pub think_ms: Option<f64>,
    /// Size of all requests
    #[arg(long, value_name = "KIB", conflicts_with = "trace", value_parser = in_unit(Unit::Kibibytes))]
    pub size_kib: Option<f64>,
    /// Requests per second of an open load, whether or not they are answered
    #[arg(long, value_name = "PER_SECOND", conflicts_with = "trace")]
    pub rate: Option<f64>,
    /// Replay the requests of one device of the trace, or of "all" as if they were one
    #[arg(long, value_name = "NAME", conflicts_with = "workload")]
    pub device: Option<String>,
    /// The trace's format [default: detected from the first lines]
    #[arg(long, value_name = "FORMAT", conflicts_with = "workload")]
    pub format: Option<String>,
    /// Replay the trace with N requests outstanding instead of at its own times
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
    /// How addresses past the end of the drive are mapped onto it
    #[arg(long, value_enum, conflicts_with = "workload")]
    pub fit: Option<FitWord>,
    /// Skip and count bad lines and requests past the end of the drive
    #[arg(long, conflicts_with = "workload")]
    pub skip_bad: bool,
    #[command(flatten)]
    pub columns: ColumnArguments,
}

/// The names of [`AddressFit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FitWord {
    /// Modulo the drive's capacity
    Wrap,
    /// Scaled down in proportion, if the trace is larger than the drive
    Scale,
}

impl From<FitWord> for AddressFit {
    fn from(word: FitWord) -> Self {
        match word {
            FitWord::Wrap => AddressFit::Wrap,
            FitWord::Scale => AddressFit::Scale,
        }
    }
}

impl LoadArguments {
    /// The settings of the flags.
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
            columns: self.columns.stated(),
        }
    }

    /// Replaces standard input as the trace by a file with its bytes, because each policy reads the trace from its
    /// beginning. The file ends with the result.
    ///
    /// # Errors
    /// If standard input cannot be read, or the temporary folder is full.
    pub fn keep_standard_input(&mut self) -> Result<Option<NamedTempFile>, Exit> {
        if self.trace.as_deref() != Some(Path::new(STANDARD_INPUT)) {
            return Ok(None);
        }
        let failed = |error| Exit::failed(format!("standard input: {error}"));
        let mut file = NamedTempFile::with_prefix("headtime-standard-input-").map_err(failed)?;
        io::copy(&mut io::stdin().lock(), &mut file).map_err(failed)?;
        self.trace = Some(file.path().to_owned());
        Ok(Some(file))
    }
}
