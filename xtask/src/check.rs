//! `cargo xtask check`: everything that CI runs, in one command.
//!
//! All steps run, also after one that failed, so that one run tells everything. The tests come
//! last: their results stand at the end of the log.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::Failure;
use crate::repository;

/// One step.
struct Step {
    /// What is looked at.
    name: &'static str,
    /// The program and its arguments; `cargo` is the one that runs this.
    words: &'static [&'static str],
    /// Variables that it gets, too.
    variables: &'static [(&'static str, &'static str)],
    /// The file without which there is nothing to look at; empty if there always is.
    needs: &'static str,
}

/// The crate of fuzz targets is outside of the workspace, because it needs a nightly compiler to
/// run. That it still builds is seen here, in the workspace's folder for what is built: dependencies
/// that lints have checked are not checked again.
const FUZZ: &str = "fuzz/Cargo.toml";

/// The Python package: a crate outside of the workspace, which needs Python. Its tests compare it with the command,
/// which is built before, with the programs of the tests: a build of the package alone has other features of its
/// dependencies, and compiled everything once more. That the package has the features it needs is only checked.
const PYTHON: &str = "bindings/python/Cargo.toml";

/// Every step, in order.
const ALL: &[Step] = &[
    Step {
        name: "format",
        words: &["cargo", "fmt", "--all", "--check"],
        variables: &[],
        needs: "",
    },
    Step {
        name: "licences, sources and duplicates",
        words: &[
            "cargo-deny",
            "--locked",
            "check",
            "bans",
            "licenses",
            "sources",
        ],
        variables: &[],
        needs: "deny.toml",
    },
    Step {
        name: "lints",
        words: &[
            "cargo",
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
        variables: &[],
        needs: "",
    },
    Step {
        name: "documentation",
        words: &[
            "cargo",
            "doc",
            "--workspace",
            "--no-deps",
            "--locked",
            "--document-private-items",
        ],
        variables: &[("RUSTDOCFLAGS", "-D warnings")],
        needs: "",
    },
    Step {
        name: "format of the fuzz targets",
        words: &["cargo", "fmt", "--manifest-path", FUZZ, "--check"],
        variables: &[],
        needs: FUZZ,
    },
    Step {
        name: "fuzz targets",
        words: &[
            "cargo",
            "check",
            "--locked",
            "--manifest-path",
            FUZZ,
            "--target-dir",
            "target",
        ],
        variables: &[],
        needs: FUZZ,
    },
    Step {
        name: "the command alone",
        words: &["cargo", "check", "--locked", "--package", "headtime"],
        variables: &[],
        needs: "",
    },
    Step {
        name: "programs of the tests",
        words: &["cargo", "test", "--workspace", "--locked", "--no-run"],
        variables: &[],
        needs: "",
    },
    Step {
        name: "licences and sources of the Python package",
        words: &[
            "cargo-deny",
            "--manifest-path",
            PYTHON,
            "--config",
            "deny.toml",
            "--locked",
            "check",
            "licenses",
            "sources",
        ],
        variables: &[],
        needs: PYTHON,
    },
    Step {
        name: "Python package",
        words: &["bash", ".ci/python"],
        variables: &[("HEADTIME", "target/debug/headtime")],
        needs: PYTHON,
    },
    Step {
        name: "tests",
        words: &["cargo", "test", "--workspace", "--locked"],
        variables: &[],
        needs: "",
    },
];

/// `cargo xtask check`: tidy, the drives and every step.
///
/// # Errors
/// If one of them failed.
pub fn run(words: &[String]) -> Result<(), Failure> {
    if !words.is_empty() {
        return Err(Failure::Usage("usage: cargo xtask check".to_string()));
    }
    let mut failed = Vec::new();
    let begin = Instant::now();
    println!("check: tidy");
    if let Err(Failure::Found(message) | Failure::Usage(message)) = crate::tidy::run(&[]) {
        eprintln!("{message}");
        failed.push("tidy");
    }
    if let Err(reason) = drives(&repository::shared(&repository::root())) {
        eprintln!("check: {DRIVES}: {reason}");
        failed.push(DRIVES);
    }
    if let Err(reason) = counts() {
        eprintln!("check: {COUNTS}: {reason}");
        failed.push(COUNTS);
    }
    for step in ALL {
        match step.run() {
            Ok(()) => {}
            Err(reason) => {
                eprintln!("check: {}: {reason}", step.name);
                failed.push(step.name);
            }
        }
    }
    let seconds = begin.elapsed().as_secs();
    if failed.is_empty() {
        println!("check: all green after {seconds} s");
        Ok(())
    } else {
        let failed = failed.join("; ");
        Err(Failure::Found(format!(
            "check: failed after {seconds} s: {failed}"
        )))
    }
}

/// What [`drives`] looks at.
const DRIVES: &str = "drives as published";

/// Whether `drives/*.toml` are what `import-drives` makes of the lent parameters.
fn drives(shared: &Path) -> Result<(), String> {
    if shared.join("drives").is_dir() {
        println!("check: {DRIVES}: cargo xtask import-drives --check");
        let report = crate::import_drives::run(&["--check".to_string()])?;
        println!("check: {DRIVES}: {report}");
        return Ok(());
    }
    let message = format!("no lent parameters in {}", shared.display());
    if is_ci() {
        return Err(message);
    }
    println!("skipped: {DRIVES} ({message})");
    Ok(())
}

/// What [`counts`] looks at.
const COUNTS: &str = "instructions of the hot paths";

/// Whether the hot paths take as many instructions as they did: by hand one may go on without valgrind.
fn counts() -> Result<(), String> {
    if program("valgrind").is_none() && !is_ci() {
        println!("skipped: {COUNTS} (valgrind is not installed; `make counts` does it)");
        return Ok(());
    }
    println!("check: {COUNTS}: cargo xtask counts");
    let begin = Instant::now();
    if let Err(Failure::Found(reason) | Failure::Usage(reason)) = crate::counts::run(&[]) {
        return Err(reason);
    }
    println!("check: {COUNTS}: {} s", begin.elapsed().as_secs());
    Ok(())
}

/// Whether nothing may be skipped.
fn is_ci() -> bool {
    std::env::var("CI").as_deref() == Ok("true")
}

impl Step {
    /// Runs the step in the root of the workspace.
    fn run(&self) -> Result<(), String> {
        let root = repository::root();
        if !self.needs.is_empty() && !root.join(self.needs).exists() {
            println!("skipped: {} (there is no {} yet)", self.name, self.needs);
            return Ok(());
        }
        let Some(program) = program(self.words[0]) else {
            return self.missing();
        };
        println!("check: {}: {}", self.name, self.words.join(" "));
        let begin = Instant::now();
        let status = Command::new(program)
            .args(&self.words[1..])
            .envs(self.variables.iter().copied())
            .current_dir(root)
            .status()
            .map_err(|error| format!("{}: {error}", self.words[0]))?;
        if status.success() {
            println!("check: {}: {} s", self.name, begin.elapsed().as_secs());
            Ok(())
        } else {
            Err(status.to_string())
        }
    }

    /// What it means that the step's program is not there: by hand one may go on without.
    fn missing(&self) -> Result<(), String> {
        let program = self.words[0];
        if is_ci() {
            return Err(format!("{program} is not installed (`make tools` does it)"));
        }
        println!(
            "skipped: {} ({program} is not installed; `make tools` does it)",
            self.name
        );
        Ok(())
    }
}

/// Where the program is: cargo is the one that runs us, others are in `target/tools` or the path.
fn program(name: &str) -> Option<std::path::PathBuf> {
    if name == "cargo" {
        return Some(repository::cargo());
    }
    let tools = repository::root().join("target/tools/bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::iter::once(tools)
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(name))
        .find(|place| place.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_come_last_so_that_their_results_end_the_log() {
        let last = ALL.last().expect("there are steps");
        assert_eq!(last.words[..2], ["cargo", "test"]);
    }

    #[test]
    fn without_lent_parameters_drives_are_skipped_but_not_in_ci() {
        let nowhere = Path::new("/no/such/folder");
        assert_eq!(drives(nowhere).is_err(), is_ci());
    }

    #[test]
    fn a_program_that_is_nowhere_is_not_found() {
        assert_eq!(program("no-such-program-anywhere"), None);
    }
}
