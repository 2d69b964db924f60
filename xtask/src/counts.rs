//! `cargo xtask counts`: the instructions of the hot paths, beside golden numbers.
//!
//! ```text
//!   hot_paths --> valgrind --tool=callgrind --> (instructions of 2n units - of n units) / n
//!                                                  beside the golden number: at most 3 % off
//! ```
//!
//! Instructions do not depend on the load of the machine. They do on the compiler, so the golden file names
//! its toolchain. The paths are built as tests are, because `cargo test` needs that build anyway: a change
//! that only the optimiser of a release build would notice is not seen here.
//!
//! Callgrind is called without a harness crate. Those that are kept well (gungraun) need a second program of
//! the same version, and compare with the last run on the same machine or with an upper bound.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use crate::Failure;
use crate::repository;

/// The golden numbers: a line that names the toolchain, then a name and the instructions of a unit in each.
const GOLDEN: &str = "crates/simulator/counts.tsv";

/// The largest deviation, in percent. A choice: issue 24 asks for it. Libraries of the system and the linker
/// move a count by tenths of a percent.
const TOLERANCE: u64 = 3;

/// The example that executes the paths, and where cargo puts it.
const PATHS: &str = "hot_paths";
const BUILT: &str = "target/debug/examples/hot_paths";

/// Instructions of a unit, by path.
type Counts = BTreeMap<String, u64>;

/// `cargo xtask counts [--bless]`: compares with the golden numbers, or writes them.
///
/// # Errors
/// If a path does not build or run, or its count is off.
pub fn run(words: &[String]) -> Result<(), Failure> {
    let is_blessed = match words {
        [] => false,
        [word] if word == "--bless" => true,
        _ => {
            let message = "usage: cargo xtask counts [--bless]";
            return Err(Failure::Usage(message.to_string()));
        }
    };
    if std::env::consts::ARCH != "x86_64" {
        println!("skipped: counts (the golden numbers are of x86_64)");
        return Ok(());
    }
    let root = repository::root();
    let toolchain = toolchain().map_err(Failure::Usage)?;
    let counts = count(&root).map_err(Failure::Usage)?;
    let golden = root.join(GOLDEN);
    if is_blessed {
        let text = written(&toolchain, &counts);
        return std::fs::write(&golden, text)
            .map_err(|error| Failure::Usage(format!("{GOLDEN}: {error}")));
    }
    let text = std::fs::read_to_string(&golden)
        .map_err(|error| Failure::Usage(format!("{GOLDEN}: {error}")))?;
    compare(&text, &toolchain, &counts).map_err(Failure::Found)
}

/// The compiler as the golden file names it.
fn toolchain() -> Result<String, String> {
    let version = output(Command::new("rustc").arg("--version"))?;
    Ok(String::from_utf8_lossy(&version.stdout).trim().to_string())
}

/// Builds the paths and counts the instructions of all of them.
fn count(root: &Path) -> Result<Counts, String> {
    // The whole workspace, so that features are those of the tests and nothing is built twice.
    let mut build = Command::new(repository::cargo());
    build.args([
        "build",
        "--quiet",
        "--workspace",
        "--locked",
        "--example",
        PATHS,
    ]);
    output(build.current_dir(root))?;
    let listed = output(&mut Command::new(root.join(BUILT)))?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let mut counts = Counts::new();
    for line in listed.lines() {
        let path = line.split_once(' ');
        let path = path.and_then(|(name, units)| Some((name, units.parse::<u64>().ok()?)));
        let (name, units) = path.ok_or_else(|| format!("{PATHS}: not a path: {line}"))?;
        let short = instructions(root, name, units)?;
        let long = instructions(root, name, 2 * units)?;
        let each = long.saturating_sub(short) / units.max(1);
        println!("counts: {name}: {each} instructions a unit");
        counts.insert(name.to_string(), each);
    }
    Ok(counts)
}

/// The instructions of a run.
fn instructions(root: &Path, name: &str, units: u64) -> Result<u64, String> {
    let mut run = Command::new("valgrind");
    run.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    run.arg(root.join(BUILT)).args([name, &units.to_string()]);
    let said = output(&mut run)?;
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    collected(&said).ok_or_else(|| format!("valgrind does not tell what it collected: {said}"))
}

/// The number in Callgrind's line `==17== Collected : 31099718`.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

/// What a program says.
///
/// # Errors
/// If it cannot be started, or fails.
fn output(command: &mut Command) -> Result<Output, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let said = command
        .output()
        .map_err(|error| format!("{program}: {error} (`make counts` installs valgrind)"))?;
    match said.status.success() {
        true => Ok(said),
        false => Err(format!(
            "{program}: {}: {}",
            said.status,
            String::from_utf8_lossy(&said.stderr)
        )),
    }
}

/// The text of a golden file.
fn written(toolchain: &str, counts: &Counts) -> String {
    let lines = counts
        .iter()
        .map(|(name, each)| format!("{name}\t{each}\n"));
    format!("{toolchain}\n{}", lines.collect::<String>())
}

/// Compares counts with a golden file.
///
/// # Errors
/// All paths that are missing on one side, or that are off.
fn compare(golden: &str, toolchain: &str, counts: &Counts) -> Result<(), String> {
    let mut lines = golden.lines();
    let named = lines.next().unwrap_or_default();
    if named != toolchain {
        return Err(format!(
            "counts: {GOLDEN} is of {named}, and this is {toolchain}; {BLESS}"
        ));
    }
    let mut expected = Counts::new();
    for line in lines {
        let entry = line.split_once('\t');
        let entry = entry.and_then(|(name, each)| Some((name, each.parse().ok()?)));
        let (name, each) = entry.ok_or_else(|| format!("{GOLDEN}: not a count: {line}"))?;
        expected.insert(name.to_string(), each);
    }
    let names = expected.keys().chain(counts.keys());
    let mut names: Vec<&String> = names.collect();
    names.sort_unstable();
    names.dedup();
    let off = names.into_iter().filter_map(|name| {
        let (expected, found) = (expected.get(name), counts.get(name));
        let is_near = matches!((expected, found), (Some(&e), Some(&f)) if is_near(e, f));
        let told = |each: Option<&u64>| each.map_or("none".to_string(), u64::to_string);
        (!is_near).then(|| format!("  {name}: {} (golden: {})\n", told(found), told(expected)))
    });
    let off: String = off.collect();
    match off.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "counts: instructions a unit are more than {TOLERANCE} % off:\n{off}{BLESS}"
        )),
    }
}

/// What to do about a count that is off.
const BLESS: &str =
    "if that is meant, `cargo xtask counts --bless`, and the commit message says why";

fn is_near(expected: u64, found: u64) -> bool {
    expected.abs_diff(found) * 100 <= expected * TOLERANCE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(of: &[(&str, u64)]) -> Counts {
        of.iter()
            .map(|&(name, each)| (name.to_string(), each))
            .collect()
    }

    #[test]
    fn a_count_may_be_three_percent_off_in_either_direction() {
        let golden = written("rustc 1", &counts(&[("a", 1_000), ("b", 50)]));
        assert_eq!(golden, "rustc 1\na\t1000\nb\t50\n");
        for each in [970, 1_000, 1_030] {
            let found = counts(&[("a", each), ("b", 50)]);
            assert_eq!(compare(&golden, "rustc 1", &found), Ok(()));
        }
        for each in [969, 1_031, 0] {
            let found = counts(&[("a", each), ("b", 50)]);
            let error = compare(&golden, "rustc 1", &found).expect_err("too far off");
            assert!(
                error.contains(&format!("a: {each} (golden: 1000)")),
                "{error}"
            );
            assert!(!error.contains("b:"), "{error}");
        }
    }

    #[test]
    fn every_path_has_a_number_of_this_toolchain() {
        let golden = written("rustc 1", &counts(&[("a", 10)]));
        let fails = |toolchain, found: &[(&str, u64)]| {
            compare(&golden, toolchain, &counts(found)).expect_err("not the same")
        };
        assert!(fails("rustc 2", &[("a", 10)]).contains("rustc 2"));
        assert!(fails("rustc 1", &[]).contains("a: none"));
        assert!(fails("rustc 1", &[("a", 10), ("b", 1)]).contains("b: 1 (golden: none)"));
    }

    #[test]
    fn the_count_is_read_from_what_callgrind_says() {
        let said = "==17== Events    : Ir\n==17== Collected : 31099718\n==17== \n";
        assert_eq!(collected(said), Some(31_099_718));
        assert_eq!(collected("==17== \n"), None);
    }
}
