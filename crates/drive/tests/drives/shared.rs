//! Where the shared data are, for the tests that need them.

use std::path::{Path, PathBuf};

/// The shared data, or nothing if they are not there: then the test is skipped, except in CI.
#[allow(clippy::print_stdout)] // Whoever reads the test's output should know that it was skipped.
pub fn directory(what: &str) -> Option<PathBuf> {
    let directory = match std::env::var_os("HEADTIME_SHARED") {
        Some(directory) => PathBuf::from(directory),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
    };
    if directory.join("drives").is_dir() {
        return Some(directory);
    }
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "no shared data at {}",
        directory.display()
    );
    println!("skipped: {what} (no shared data)");
    None
}
