//! Names say what a thing does. Those that say nothing are banned, each with its replacement.

use super::{Check, Violation};
use crate::repository::Repository;

/// The check.
pub const CHECK: Check = Check {
    rule: "names",
    about: "no file, module or type is called utils, helper, manager, handler, info, data, ...",
    run,
};

/// Words that no file, module or type has in its name (DESIGN, "Not used").
const EVERYWHERE: &[(&str, &str)] = &[
    (
        "manager",
        "the noun that it keeps: `Queue`, `Pool`, `Table`",
    ),
    ("handler", "what happens there: `serve`, `Connection`"),
    ("helper", "what it does, or move it beside its only caller"),
    (
        "helpers",
        "what they do, or move each beside its only caller",
    ),
    ("util", "what it does, or move it beside its only caller"),
    ("utils", "what they do, or move each beside its only caller"),
    ("misc", "one file for each subject"),
    ("data", "what it is: `Contents`, `Buffer`, `Sample`"),
    ("info", "what is known: `Identity`, `Profile`, `Status`"),
];

/// Words that no file and no module has in its name either (STYLE, habit 10).
const FILES: &[(&str, &str)] = &[
    ("common", "the subject that the users have in common"),
    (
        "types",
        "a file for each thing, called after it: `address.rs`",
    ),
];

/// Folders that hold sources.
const SOURCES: &[&str] = &["crates/", "bindings/", "xtask/", "fuzz/"];

fn run(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in &repository.files {
        if SOURCES.iter().any(|folder| file.path.starts_with(folder)) {
            file_name(&file.path, &mut found);
        }
    }
    for (path, source) in repository.rust() {
        for name in &source.names {
            for (word, instead) in EVERYWHERE {
                if words(&name.name).any(|part| part == *word) {
                    let message =
                        format!("`{}`: \"{word}\" says nothing (use {instead})", name.name);
                    found.push(Violation::at(path, name.line, message));
                }
            }
        }
    }
    found
}

/// Reports a banned word in any part of the path.
fn file_name(path: &str, found: &mut Vec<Violation>) {
    if path.ends_with("/mod.rs") {
        let message = "`mod.rs` (use `name.rs` beside the folder `name/`)";
        found.push(Violation::at(path, 1, message));
    }
    for part in path.split('/') {
        let stem = part.split('.').next().unwrap_or(part);
        for (word, instead) in EVERYWHERE.iter().chain(FILES) {
            if words(stem).any(|part| part == *word) {
                let message = format!("`{part}`: \"{word}\" says nothing (use {instead})");
                found.push(Violation::at(path, 1, message));
            }
        }
    }
}

/// The words of `CamelCase`, `snake_case` and `kebab-case`, in small letters.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut spaced = String::new();
    for letter in name.chars() {
        if letter == '_' || letter == '-' || letter.is_uppercase() {
            spaced.push(' ');
        }
        if letter != '_' && letter != '-' {
            spaced.extend(letter.to_lowercase());
        }
    }
    spaced
        .split_whitespace()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::tidy::tests::{places, reported};

    #[test]
    fn banned_files_and_folders_are_reported_with_a_replacement() {
        for path in [
            "crates/drive/src/utils.rs",
            "crates/drive/src/trace_helpers.rs",
            "crates/drive/src/common/seek.rs",
            "crates/drive/src/policy/mod.rs",
            "crates/drive/src/types.rs",
        ] {
            let found = reported(&CHECK, &[(path, "//! A.\n")]);
            assert_eq!(found.len(), 1, "{path}: {found:?}");
            assert!(found[0].1.contains("(use "), "{found:?}");
        }
    }

    #[test]
    fn banned_types_and_modules_are_reported() {
        let text = "//! A.\nstruct QueueManager;\nenum DriveInfo {}\ntrait Handler {}\nmod util {}\ntype TrackData = u8;\n";
        let lines = [2, 3, 4, 5, 6].map(|line| format!("crates/drive/src/a.rs:{line}"));
        assert_eq!(places(&CHECK, &[("crates/drive/src/a.rs", text)]), lines);
    }

    #[test]
    fn names_that_say_something_are_fine() {
        let text = "//! A.\nstruct Database;\nstruct Informed;\nmod commonly {}\nstruct Types;\n";
        let files = [
            ("crates/drive/src/policy.rs", text),
            ("docs/data/common.md", ""),
        ];
        assert_eq!(places(&CHECK, &files), [""; 0]);
    }
}
