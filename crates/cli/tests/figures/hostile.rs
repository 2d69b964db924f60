//! What a confused or hostile user can give: each is refused with one line on standard error that
//! names the place and what was expected, exit code 2, and nothing on standard output.

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use tempfile::TempDir;

mod cases;

use cases::{CONVERSIONS, Case, FILES, GOOD, ON, OTHERS, PROFILES, RUNS, TRACES};

struct Scene {
    directory: TempDir,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let scene = Scene { directory };
        let packed = zstd::encode_all(GOOD.as_bytes(), 0).expect("in memory");
        for (name, bytes) in FILES {
            scene.write(name, bytes);
        }
        scene.write("cut.csv.zst", &packed[..packed.len() / 2]);
        scene.write("magic.csv.zst", &packed[..4]);
        scene.write("junk.csv.zst", &[&packed[..], b"junkjunk"].concat());
        std::fs::create_dir(scene.directory.path().join("folder.csv")).expect("a folder");
        scene
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.directory.path().join(name), bytes).expect("written");
    }

    fn run(&self, arguments: &str) -> Output {
        Command::new(assert_cmd::cargo::cargo_bin!("headtime"))
            .current_dir(self.directory.path())
            .args(arguments.split_whitespace())
            .output()
            .expect("it ran")
    }

    fn refuses(&self, arguments: &str, begin: &str, part: &str) {
        let output = self.run(arguments);
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(output.stdout.is_empty(), "{arguments}: {:?}", output.stdout);
        assert_eq!(said.lines().count(), 1, "{arguments}: {said}");
        let begin = format!("error: {begin}");
        assert!(said.starts_with(&begin), "{arguments}: {said}");
        assert!(said.contains(part), "{arguments}: {part} is not in: {said}");
    }

    fn refuses_all(&self, command: &str, cases: &[Case]) {
        for (arguments, begin, part) in cases {
            self.refuses(&format!("{command} {arguments}"), begin, part);
        }
        assert_eq!(self.files(), Scene::new().files(), "nothing is left behind");
    }

    /// The files, and what is in them.
    fn files(&self) -> Vec<(String, Option<Vec<u8>>)> {
        let entries = self.directory.path().read_dir().expect("a directory");
        let mut files: Vec<_> = entries
            .map(|entry| entry.expect("an entry"))
            .map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                (name, std::fs::read(entry.path()).ok())
            })
            .collect();
        files.sort();
        files
    }
}

#[test]
fn traces() {
    Scene::new().refuses_all("trace stat", TRACES);
}

#[test]
fn conversions() {
    Scene::new().refuses_all("trace convert", CONVERSIONS);
}

#[test]
fn runs() {
    Scene::new().refuses_all(ON, RUNS);
}

#[test]
fn others() {
    Scene::new().refuses_all("", OTHERS);
}

#[test]
fn profiles() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drives/seagate-cheetah-18lp.toml");
    let good = std::fs::read_to_string(path).expect("it is shipped");
    let scene = Scene::new();
    for (key, line, part) in PROFILES {
        let place = good.lines().position(|line| line.starts_with(key));
        let place = place.unwrap_or_else(|| panic!("{key} is in the profile"));
        let lines = good.lines().enumerate();
        let bad: Vec<&str> = lines
            .map(|(number, old)| if number == place { *line } else { old })
            .collect();
        scene.write("bad.toml", bad.join("\n").as_bytes());
        scene.refuses(
            "simulate --drive bad.toml --workload oltp",
            "bad.toml:",
            part,
        );
        scene.refuses("drives show ./bad.toml", "./bad.toml:", part);
    }
}

#[test]
fn a_last_line_without_a_newline_is_remarked_upon() {
    let scene = Scene::new();
    scene.write("unended.csv", GOOD.trim_end().as_bytes());
    for command in ["trace stat", "simulate --drive seagate-cheetah-9lp --trace"] {
        let output = scene.run(&format!("{command} unended.csv"));
        let said = String::from_utf8(output.stdout).expect("text");
        assert!(
            output.status.success() && said.contains("no newline"),
            "{said}"
        );
        let output = scene.run(&format!("{command} good.csv"));
        let said = String::from_utf8(output.stdout).expect("text");
        assert!(
            output.status.success() && !said.contains("no newline"),
            "{said}"
        );
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_written_to_or_refused_and_never_replaced() {
    let scene = Scene::new();
    let link = scene.directory.path().join("link.csv");
    std::os::unix::fs::symlink("two.csv", &link).expect("a link");
    assert!(
        scene
            .run("trace convert --force good.csv link.csv")
            .status
            .success()
    );
    assert!(link.is_symlink());
    let two = scene.directory.path().join("two.csv");
    assert_eq!(std::fs::read(two).expect("there").len(), 66);
    let begin = "/dev/null: neither a file";
    scene.refuses(
        "trace convert --force --to canonical good.csv /dev/null",
        begin,
        "",
    );
    let written = scene.run(&format!("{ON} --trace good.csv --requests-out /dev/stdout"));
    let text = String::from_utf8(written.stdout).expect("text");
    assert!(text.starts_with("request,direction,"), "{text}");
    let full = scene.run(&format!("{ON} --trace good.csv --requests-out /dev/full"));
    let said = String::from_utf8(full.stderr).expect("text");
    assert_eq!(full.status.code(), Some(1), "{said}");
    assert!(said.starts_with("error: /dev/full: "), "{said}");
}

#[test]
fn every_help_has_an_example() {
    let scene = Scene::new();
    for command in [
        "simulate",
        "demo",
        "scan",
        "ctl",
        "bench",
        "bench simulate",
        "bench streams",
        "trace",
        "trace stat",
        "trace convert",
        "fit",
        "validate",
    ] {
        let output = scene.run(&format!("{command} --help"));
        let said = String::from_utf8(output.stdout).expect("text");
        assert!(
            output.status.success() && said.contains("\n  headtime "),
            "{command}: {said}"
        );
    }
}
