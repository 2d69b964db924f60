//! The folder of lent measurements and traces, which no clone contains.

use std::env;
use std::fs;
use std::path::PathBuf;

use drive::Profile;

use crate::Failure;

/// The folder of the lent files: `HEADTIME_SHARED`, or `../shared`.
pub fn folder() -> PathBuf {
    env::var_os("HEADTIME_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from)
}

/// The message about a missing file.
///
/// # Errors
/// With `CI=true`, where the file must exist.
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

/// The error of a command that has nothing to compare without measured traces.
pub fn no_measured_traces() -> Failure {
    Failure::failed(format!(
        "no measured traces in {} (HEADTIME_SHARED names the folder of the lent files): nothing was compared; \
         DiskSim 4.0 has such traces (github.com/westerndigitalcorporation/DiskSim, valid/), and \
         --drive NAME --trace FILE takes one of them or your own",
        folder().display()
    ))
}

/// The measured trace of a drive, if there is one.
pub fn trace_of(profile: &Profile) -> Option<PathBuf> {
    let entries = fs::read_dir(directory_of(profile)?).ok()?;
    let mut traces: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "trace"))
        .collect();
    traces.sort();
    traces.into_iter().next()
}

/// The folder of a drive's traces and results, if the profile names its source.
pub fn directory_of(profile: &Profile) -> Option<PathBuf> {
    Some(folder().join("drives").join(profile.source.as_ref()?))
}
