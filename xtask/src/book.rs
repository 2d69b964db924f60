//! `cargo xtask book`: rewrites the generated pages of the book from the program's own tables.
//!
//! The generators are golden tests, so that `make test` finds a page that is out of date. A run with
//! `HEADTIME_BLESS=1` writes the pages.

use std::process::Command;

use crate::Failure;
use crate::repository;

/// The tests that generate pages: package, test, filter.
const GENERATORS: &[(&str, &str, &str)] = &[
    ("headtime", "figures", "book::golden"),
    ("server", "control", "documentation"),
];

/// `cargo xtask book`.
///
/// # Errors
/// If a generator failed.
pub fn run(words: &[String]) -> Result<(), Failure> {
    if !words.is_empty() {
        return Err(Failure::Usage(String::from("usage: cargo xtask book")));
    }
    for (package, test, filter) in GENERATORS {
        let status = Command::new(repository::cargo())
            .args([
                "test",
                "--locked",
                "--package",
                package,
                "--test",
                test,
                filter,
            ])
            .env("HEADTIME_BLESS", "1")
            .current_dir(repository::root())
            .status()
            .map_err(|error| Failure::Usage(format!("cargo test: {error}")))?;
        if !status.success() {
            return Err(Failure::Found(format!(
                "book: the pages of {package} failed"
            )));
        }
    }
    println!("book: `git diff docs/reference` shows the changed pages");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::GENERATORS;
    use crate::repository;

    #[test]
    fn every_generator_is_there() {
        for (package, test, _) in GENERATORS {
            let folder = if *package == "headtime" {
                "cli"
            } else {
                package
            };
            let tests = repository::root().join("crates").join(folder).join("tests");
            let whole = std::fs::read_to_string(tests.join(format!("{test}.rs")));
            let parts = std::fs::read_dir(tests.join(test)).into_iter().flatten();
            let found = parts
                .filter_map(|part| std::fs::read_to_string(part.ok()?.path()).ok())
                .chain(whole)
                .any(|text| text.contains("HEADTIME_BLESS"));
            assert!(found, "{package}: {test}");
        }
    }
}
