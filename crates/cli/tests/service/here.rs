//! What a machine has for tests that need more than a build: root, devices, programs.

use std::fs::File;

/// Whether this is root with these files, which can be opened, and these programs on the PATH. Where one is missing, that
/// is said.
///
/// # Panics
/// One is missing in CI (`CI=true`).
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
pub fn are_here(files: &[&str], programs: &[&str]) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let is_program = |name: &&str| {
        let mut folders = std::env::split_paths(&folders);
        folders.any(|folder| folder.join(name).is_file())
    };
    let is_here = rustix::process::geteuid().is_root()
        && files.iter().all(|path| File::open(path).is_ok())
        && programs.iter().all(is_program);
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(
        is_here || !is_ci,
        "CI needs root, {files:?} and {programs:?}"
    );
    if !is_here {
        eprintln!("skipped: no root, or one of {files:?} or {programs:?} is missing");
    }
    is_here
}
