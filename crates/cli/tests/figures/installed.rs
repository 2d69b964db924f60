//! What an installation has beside the binary: completions, manual pages, systemd's units.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::scene::Scene;

/// The commands that `headtime --help` lists, by the pages of the reference.
fn commands() -> Vec<String> {
    let folder = repository().join("docs/reference/commands");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the reference")
        .filter_map(|page| page.ok()?.file_name().into_string().ok())
        .filter(|page| page != "README.md")
        .map(|page| page.trim_end_matches(".md").to_owned())
        .collect();
    names.sort();
    assert!(names.len() > 20, "{names:?}");
    names
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_shell_completes_every_command() {
    let scene = Scene::with(&[]);
    for shell in ["bash", "zsh", "fish"] {
        let script = scene.prints(&format!("completions {shell}"));
        for name in commands() {
            assert!(script.contains(&name), "{shell}: {name}");
        }
    }
    // bash is here, as for building. The others may be: each parses without running.
    for (shell, flag) in [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")] {
        let script = scene.path(&format!("completions.{shell}"));
        std::fs::write(&script, scene.prints(&format!("completions {shell}"))).expect("written");
        match Command::new(shell).arg(flag).arg(&script).output() {
            Ok(parsed) => assert!(parsed.status.success(), "{shell}: {parsed:?}"),
            Err(error) => assert!(
                shell != "bash" && error.kind() == std::io::ErrorKind::NotFound,
                "{shell}: {error}"
            ),
        }
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let scene = Scene::with(&[]);
    let said = scene.prints("man-pages man");
    let pages = std::fs::read_dir(scene.path("man"))
        .expect("the folder")
        .count();
    assert_eq!(said, format!("{pages} pages in man\n"));
    for name in commands() {
        let page = scene.path(&format!("man/headtime-{name}.1"));
        let page = std::fs::read_to_string(page).expect("a page");
        let escaped = format!("headtime {name}").replace('-', "\\-");
        assert!(page.contains(".SH SYNOPSIS"), "{name}: {page}");
        assert!(page.contains(&escaped), "{name}: {page}");
    }
    let ctl = std::fs::read_to_string(scene.path("man/headtime-ctl-impact.1")).expect("a page");
    assert!(ctl.contains(".SH EXAMPLES"), "{ctl}");
}

#[test]
fn the_version_has_the_commit() {
    let told = Scene::with(&[]).prints("--version");
    let version = env!("CARGO_PKG_VERSION");
    let commit = told
        .trim_end()
        .strip_prefix(&format!("headtime {version} ("))
        .and_then(|rest| rest.strip_suffix(')'));
    let commit = commit.unwrap_or_else(|| panic!("a commit: {told}"));
    assert_eq!(commit.len(), 10);
    assert!(
        commit.bytes().all(|letter| letter.is_ascii_hexdigit()),
        "{told}"
    );
    assert_eq!(
        Scene::with(&[]).prints("-V"),
        format!("headtime {version}\n")
    );
}

/// The greatest exposure of the service, by `systemd-analyze security` (0 to 10, the less the better):
/// the goal of the issue "Ease".
const EXPOSURE: f64 = 3.5;

#[test]
fn the_unit_is_exposed_as_little_as_promised() {
    let unit = repository().join("packaging/headtime@.service");
    let output = Command::new("systemd-analyze")
        .args(["security", "--offline=true"])
        .arg(&unit)
        .env("SYSTEMD_COLORS", "0")
        .output()
        .expect("systemd-analyze: `make test` installs systemd");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let level = said
        .lines()
        .find_map(|line| {
            line.split_once("Overall exposure level for ")?
                .1
                .split_once(": ")
        })
        .and_then(|(_, level)| level.split_whitespace().next()?.parse::<f64>().ok());
    let level = level.unwrap_or_else(|| panic!("a level: {said}"));
    assert!(level <= EXPOSURE, "{level}: {said}");
}

/// The units of the package: their names and kinds.
const UNITS: [(&str, &str); 4] = [
    ("headtime", "service"),
    ("headtime", "socket"),
    ("headtime-scrub", "service"),
    ("headtime-scrub", "timer"),
];

#[test]
fn systemd_understands_the_units() {
    let folder = tempfile::tempdir().expect("a folder");
    let packaging = repository().join("packaging");
    // An instance, and a binary that exists: the package's is not installed here.
    let binary = assert_cmd::cargo::cargo_bin!("headtime");
    for (name, kind) in UNITS {
        let text = std::fs::read_to_string(packaging.join(format!("{name}@.{kind}")));
        let text = text
            .expect("a unit")
            .replace("/usr/bin/headtime", &binary.display().to_string());
        let pages = |line: &&str| !line.starts_with("Documentation=");
        let text: Vec<&str> = text.lines().filter(pages).collect();
        std::fs::write(
            folder.path().join(format!("{name}@.{kind}")),
            text.join("\n"),
        )
        .expect("written");
    }
    for (name, kind) in UNITS {
        let output = Command::new("systemd-analyze")
            .args(["verify", "--man=no", "--recursive-errors=no"])
            .arg(folder.path().join(format!("{name}@sdb.{kind}")))
            .output()
            .expect("systemd-analyze");
        let problems = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{name}, {kind}: {problems}");
        assert!(!problems.contains("Unknown"), "{name}, {kind}: {problems}");
    }
}
