//! The measured traces of `shared/drives`, and what DiskSim computed for the same requests.

use std::fs;
use std::io::{BufRead, BufReader};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use block::{Duration, Extent};
use drive::Profile;

use super::Sample;
use crate::trace::{self, OnBad, Reader, TraceError};

/// Why a measured trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum MeasurementError {
    /// The trace is not one.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A request has no measured time.
    #[error(
        "{file}: request {request} has no measured time: expected the `validate` format, six columns with the measured service time and the think time"
    )]
    Unmeasured {
        /// The trace.
        file: PathBuf,
        /// Counted from 1.
        request: usize,
    },
    /// A request is not on the drive.
    #[error(
        "{file}: request {request}, {extent}, is past the end of {drive}, which has {capacity} blocks: is this a trace of another drive?"
    )]
    PastEnd {
        /// The trace.
        file: PathBuf,
        /// Counted from 1.
        request: usize,
        /// What it asked for.
        extent: Extent,
        /// The drive's name.
        drive: String,
        /// Its blocks.
        capacity: u64,
    },
    /// The file has no request.
    #[error("{file}: no requests: expected at least one")]
    Empty {
        /// The trace.
        file: PathBuf,
    },
    /// DiskSim's results do not belong to the trace.
    #[error("{file}: line {line}: {problem}")]
    Reference {
        /// The file.
        file: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What was found and what was expected.
        problem: String,
    },
    /// The file could not be read.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Reads a trace in the `validate` format for a drive.
///
/// # Errors
/// If it is not one, or has a request that is not on the drive.
pub fn samples(file: &Path, profile: &Profile) -> Result<Vec<Sample>, MeasurementError> {
    let format = trace::Format::named("validate");
    let reader = Reader::open(file, format, OnBad::Refuse)?;
    let block_bytes = NonZeroU64::new(u64::from(profile.block_bytes)).unwrap_or(NonZeroU64::MIN);
    let capacity = profile.geometry.sectors().0;
    let mut samples = Vec::new();
    for record in reader {
        let record = record?;
        let request = samples.len() + 1;
        let file = file.to_path_buf();
        let extent = record.bytes.blocks(block_bytes);
        let Some(measured) = record.measured else {
            return Err(MeasurementError::Unmeasured { file, request });
        };
        if extent.end().0 > capacity {
            let drive = profile.name.clone();
            return Err(MeasurementError::PastEnd {
                file,
                request,
                extent,
                drive,
                capacity,
            });
        }
        samples.push(Sample {
            direction: record.direction,
            extent,
            issued: record.at,
            service: measured.service,
            think: measured.think,
        });
    }
    if samples.is_empty() {
        return Err(MeasurementError::Empty {
            file: file.to_path_buf(),
        });
    }
    Ok(samples)
}

/// The trace of a drive in `shared/drives/DIRECTORY`, if there is one.
pub fn trace_of(shared: &Path, directory: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(shared.join("drives").join(directory)).ok()?;
    let mut traces: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "trace"))
        .collect();
    traces.sort();
    traces.into_iter().next()
}

/// What DiskSim computed for the requests of a drive's trace; `None` if it has no results.
///
/// # Errors
/// If there is a file and it is not what `samples` need.
pub fn disksim(
    shared: &Path,
    directory: &str,
    samples: &[Sample],
) -> Result<Option<Vec<Duration>>, MeasurementError> {
    let file = shared
        .join("drives")
        .join(directory)
        .join("disksim_per_request.csv");
    let Ok(opened) = fs::File::open(&file) else {
        return Ok(None);
    };
    let mut times = Vec::with_capacity(samples.len());
    for (number, line) in BufReader::new(opened).lines().enumerate().skip(1) {
        let line = line.map_err(|source| MeasurementError::Io {
            file: file.clone(),
            source,
        })?;
        let refuse = |problem| MeasurementError::Reference {
            file: file.clone(),
            line: number + 1,
            problem,
        };
        let fields: Vec<&str> = line.split(',').collect();
        let [_, _, lbn, _, _, _, disksim] = fields[..] else {
            return Err(refuse(format!("{} fields: expected 7", fields.len())));
        };
        let expected = samples.get(times.len()).map(|s| s.extent.start().0);
        if lbn.parse().ok() != expected {
            return Err(refuse(format!(
                "lbn {lbn}: expected {expected:?}, as in the trace"
            )));
        }
        let time = disksim.parse().ok().and_then(Duration::from_millis_f64);
        times.push(time.ok_or_else(|| {
            refuse(format!(
                "disksim_ms {disksim:?}: expected a time in milliseconds"
            ))
        })?);
    }
    if times.len() != samples.len() {
        let problem = format!("{} results: expected {}", times.len(), samples.len());
        return Err(MeasurementError::Reference {
            file,
            line: times.len() + 1,
            problem,
        });
    }
    Ok(Some(times))
}
