//! Nothing of `../shared` is tracked. It is lent to read and to compare with, not ours to give
//! away: drive extractions, traces, DiskSim's results. Numbers may be carried over, files not.

use std::path::Path;

use super::{Check, Violation};
use crate::repository::{Repository, SourceFile};

/// The check.
pub const CHECK: Check = Check {
    rule: "lent",
    about: "no tracked file is one of ../shared, by contents or by the name of its traces and tables",
    run,
};

/// Folders of lent files whose names alone tell.
const NAMED: &[&str] = &["drives", "traces"];

/// What those files end with.
const TABLES: &[&str] = &["csv", "zst", "trace", "xz"];

/// One lent file.
struct Lent {
    /// Its path.
    place: std::path::PathBuf,
    /// Its name.
    name: String,
    /// Its size in bytes.
    size: u64,
    /// Whether its name alone tells.
    named: Named,
}

/// How a tracked copy is recognised.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    /// By its name, whatever was done to the contents.
    Telling,
    /// By its contents only: `README.md`.
    Ordinary,
}

fn run(repository: &Repository) -> Vec<Violation> {
    let Some(shared) = &repository.shared else {
        return match std::env::var("CI").as_deref() {
            Ok("true") => vec![Violation::at(
                "Cargo.toml",
                1,
                "CI without the lent files to compare with (use HEADTIME_SHARED=path)",
            )],
            _ => Vec::new(),
        };
    };
    let mut lent = Vec::new();
    if let Err(error) = walk(shared, shared, &mut lent) {
        let message = format!("{}: {error}", shared.display());
        return vec![Violation::at("Cargo.toml", 1, message)];
    }
    let copies = repository
        .files
        .iter()
        .filter_map(|file| Some((file, original(file, &lent)?)));
    copies
        .map(|(file, original)| {
            let message = format!(
                "a copy of {} (use the original where it is, or carry over the numbers with their origin)",
                original.place.display()
            );
            Violation::at(&file.path, 1, message)
        })
        .collect()
}

/// The lent file that this one copies.
fn original<'a>(file: &SourceFile, lent: &'a [Lent]) -> Option<&'a Lent> {
    lent.iter().find(|lent| {
        let same_name = lent.named == Named::Telling && lent.name == file.name();
        let same_size = !file.bytes.is_empty() && lent.size == file.bytes.len() as u64;
        same_name
            || (same_size && std::fs::read(&lent.place).is_ok_and(|bytes| bytes == file.bytes))
    })
}

/// Notes every file below `folder`.
fn walk(shared: &Path, folder: &Path, lent: &mut Vec<Lent>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let place = entry?.path();
        if place.is_dir() {
            walk(shared, &place, lent)?;
            continue;
        }
        let inside = place.strip_prefix(shared).unwrap_or(&place);
        let telling = NAMED.iter().any(|folder| inside.starts_with(folder))
            && place
                .extension()
                .is_some_and(|end| TABLES.iter().any(|table| end == *table));
        lent.push(Lent {
            name: place
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            size: place.metadata()?.len(),
            named: if telling {
                Named::Telling
            } else {
                Named::Ordinary
            },
            place,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths reported in a repository of these files, beside a lent folder with two files.
    fn reported(name: &str, files: &[(&str, &str)]) -> Vec<String> {
        let shared = std::env::temp_dir().join(format!("tidy-lent-{}-{name}", std::process::id()));
        let drive = shared.join("drives/quantum");
        std::fs::create_dir_all(&drive).expect("a folder for the test");
        std::fs::write(drive.join("golden.csv"), "1,2\n").expect("a lent table");
        std::fs::write(shared.join("README.md"), "lent\n").expect("a lent text");
        let files = files.iter().map(|(path, text)| SourceFile {
            path: (*path).to_string(),
            bytes: text.as_bytes().to_vec(),
        });
        let found = run(&Repository::of(files.collect(), Some(shared.clone())));
        std::fs::remove_dir_all(shared).expect("the test's own folder");
        found.into_iter().map(|violation| violation.path).collect()
    }

    #[test]
    fn a_copy_is_reported_by_contents_and_by_a_telling_name() {
        let files = [
            ("tests/renamed.txt", "1,2\n"),
            ("tests/golden.csv", "changed\n"),
            ("docs/borrowed.md", "lent\n"),
        ];
        let paths = ["docs/borrowed.md", "tests/golden.csv", "tests/renamed.txt"];
        assert_eq!(reported("copies", &files), paths);
    }

    #[test]
    fn our_own_files_are_fine() {
        let files = [
            ("README.md", "ours\n"),
            ("tests/other.csv", "1,3\n"),
            ("empty", ""),
        ];
        assert_eq!(reported("own", &files), [""; 0]);
    }
}
