//! Where the lent measurements and traces are, which no clone has.

use std::env;
use std::path::PathBuf;

use crate::output::Failure;

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
