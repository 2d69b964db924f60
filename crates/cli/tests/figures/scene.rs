//! A folder with files in it, and the binary run in it.
#![allow(dead_code, reason = "each test file uses what it needs")]

use std::path::{Path, PathBuf};
use std::process::Output;
use std::rc::Rc;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A folder of its own, without lent files and not in CI unless it is told otherwise.
#[derive(Clone)]
pub struct Scene {
    directory: Rc<TempDir>,
    lent: Option<PathBuf>,
    ci: Option<&'static str>,
}

impl Scene {
    /// A folder with these files.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            std::fs::write(directory.path().join(name), text).expect("written");
        }
        Scene {
            directory: Rc::new(directory),
            lent: None,
            ci: None,
        }
    }

    /// The same with the lent files.
    pub fn lent(&self, shared: &Path) -> Self {
        Scene {
            lent: Some(shared.to_path_buf()),
            ..self.clone()
        }
    }

    /// The same, with lent files in a folder of the scene.
    pub fn borrowed(&self, folder: &str) -> Self {
        self.lent(&self.path(folder))
    }

    /// The same in CI.
    pub fn ci(&self) -> Self {
        Scene {
            ci: Some("true"),
            ..self.clone()
        }
    }

    /// Runs the binary.
    pub fn run(&self, arguments: &str) -> Output {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("headtime"));
        command
            .current_dir(self.directory.path())
            .env_remove("HEADTIME_SHARED")
            .env_remove("CI")
            .args(arguments.split_whitespace());
        if let Some(lent) = &self.lent {
            command.env("HEADTIME_SHARED", lent);
        }
        if let Some(ci) = self.ci {
            command.env("CI", ci);
        }
        command.output().expect("it ran")
    }

    /// What it prints on standard output when it succeeds.
    pub fn prints(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments}: {output:?}");
        let said = String::from_utf8(output.stdout).expect("text");
        crate::judged::judge_command(arguments.split_whitespace(), &said);
        said
    }

    /// The same with `--json`.
    pub fn json(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.prints(&format!("{arguments} --json"))).expect("JSON")
    }

    /// The one line that it says on standard error when it refuses, with exit code 2.
    pub fn refuses(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(output.stdout.is_empty(), "nothing on standard output");
        assert_eq!(said.lines().count(), 1, "one line: {said}");
        let said = said.trim_end().strip_prefix("error: ").expect("an error");
        said.into()
    }

    /// A file's text.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a text")
    }

    /// A file's path.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// The keys of an object.
pub fn keys(object: &Value) -> Vec<&str> {
    let object = object.as_object().expect("an object");
    object.keys().map(String::as_str).collect()
}

/// The lent files, or nothing if they are not there: then the test is skipped, except in CI.
#[allow(clippy::print_stdout)] // Whoever reads the test's output should know that it was skipped.
pub fn shared(what: &str) -> Option<PathBuf> {
    let folder = match std::env::var_os("HEADTIME_SHARED") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
    };
    if folder.join("drives").is_dir() {
        return Some(folder);
    }
    let in_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(!in_ci, "no shared data at {}", folder.display());
    println!("skipped: {what} (no shared data)");
    None
}
