//! Where the lent measurements and traces are, which no clone has.

use std::env;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use crate::validate::Sample;
use crate::validate::measurement::{self, Measurements};
use block::Duration;
use drive::Profile;
use simulator::trace::{Format, OnBad, Reader};

use crate::Failure;

/// The folder of the lent files: `HEADTIME_SHARED`, or `../shared`.
pub fn folder() -> PathBuf {
    env::var_os("HEADTIME_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from)
}

/// What to do about a file that is not there: say so, or fail where `CI=true` promises it.
///
/// # Errors
/// With `CI=true`.
pub fn missing(what: &str) -> Result<String, Failure> {
    let folder = folder();
    let message = format!(
        "no {what} in {} (HEADTIME_SHARED names the folder of the lent files)",
        folder.display()
    );
    match env::var("CI").as_deref() {
        Ok("true") => Err(Failure::failed(message)),
        _ => Ok(format!("skipped: {message}")),
    }
}

/// The trace that was measured on a drive, if there is one.
pub fn trace_of(profile: &Profile) -> Option<PathBuf> {
    let entries = fs::read_dir(directory_of(profile)?).ok()?;
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
/// If there are some and they are not those of `samples`.
pub fn disksim_of(profile: &Profile, samples: &[Sample]) -> Result<Option<Vec<Duration>>, Failure> {
    let Some(directory) = directory_of(profile) else {
        return Ok(None);
    };
    let path = directory.join("disksim_per_request.csv");
    let name = path.display().to_string();
    match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::input(format!("{name}: {error}"))),
        Ok(file) => measurement::disksim(&name, BufReader::new(file), samples)
            .map(Some)
            .map_err(Failure::input),
    }
}

/// A trace in the `validate` format, for a drive.
///
/// # Errors
/// If it is not one, or not of this drive.
pub fn measurements(
    file: &Path,
    profile: &Profile,
    on_bad: OnBad,
) -> Result<Measurements, Failure> {
    let format = Format::named("validate");
    let reader = Reader::open(file, format, on_bad).map_err(Failure::input)?;
    measurement::samples(reader, profile, on_bad).map_err(Failure::input)
}

fn directory_of(profile: &Profile) -> Option<PathBuf> {
    Some(folder().join("drives").join(profile.source.as_ref()?))
}
