//! The pages of promises keep them: every row names tests that exist.

use std::collections::BTreeSet;

use super::{Check, Violation};
use crate::repository::{Repository, SourceFile};

/// The check.
pub const CHECK: Check = Check {
    rule: "promises",
    about: "every row of docs/reference/promises names a test that exists",
    run,
};

/// The folder of the pages, one per crate.
const PAGES: &str = "docs/reference/promises/";

fn run(repository: &Repository) -> Vec<Violation> {
    let pages = repository
        .files
        .iter()
        .filter(|file| file.path.starts_with(PAGES) && file.extension() == "md");
    let tests = tests(repository);
    let mut rows = 0;
    let mut found = Vec::new();
    for page in pages {
        rows += check_page(page, &tests, &mut found);
    }
    if rows == 0 {
        let message = "no promises (use a page per crate, a table of promises and their tests)";
        found.push(Violation::at(PAGES, 1, message));
    }
    found
}

/// The longest promise, in characters: three lines of a screen. A choice. Names of tests do not
/// count.
const LONGEST: usize = 200;

/// Checks each row of a page and returns the number of rows.
fn check_page(page: &SourceFile, tests: &BTreeSet<String>, found: &mut Vec<Violation>) -> usize {
    let mut rows = 0;
    for (index, line) in page.text().unwrap_or_default().lines().enumerate() {
        let Some(cell) = last_cell(line) else {
            continue;
        };
        rows += 1;
        let promise = line.trim().rsplit('|').nth(2).unwrap_or_default().trim();
        if promise.chars().count() > LONGEST {
            let message = format!("a promise of more than {LONGEST} characters (use two rows)");
            found.push(Violation::at(&page.path, index + 1, message));
        }
        // Between backticks: every second piece.
        let named: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        if named.is_empty() {
            let message = "a promise without a test (use `crate::module::test` or `path/to/file.rs::test` in the last column)";
            found.push(Violation::at(&page.path, index + 1, message));
        }
        for name in named {
            if !tests.contains(name) {
                let message = format!(
                    "there is no test `{name}` (use the name of one that shows it, or write it)"
                );
                found.push(Violation::at(&page.path, index + 1, message));
            }
        }
    }
    rows
}

/// The last cell of a row; nothing for other lines, for the ruler, and for the head above it.
fn last_cell(line: &str) -> Option<&str> {
    let row = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let cell = row.rsplit('|').next()?.trim();
    let is_ruler = row.chars().all(|letter| "-:| ".contains(letter));
    (!is_ruler && cell != "Test").then_some(cell)
}

/// Every test under each of its names: with and without the modules called `tests`, by crate for
/// what lies in `src/`, by file for all.
fn tests(repository: &Repository) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (path, source) in repository.rust() {
        for test in &source.tests {
            let short = test.rsplit("::").next().unwrap_or(test);
            names.insert(format!("{path}::{short}"));
            if let Some(module) = module_of(path) {
                let whole = format!("{module}::{test}");
                let parts: Vec<&str> = whole.split("::").filter(|part| *part != "tests").collect();
                names.insert(parts.join("::"));
                names.insert(whole);
            }
        }
    }
    names
}

/// The path of the module in a file below a crate's `src/`: `drive::angle`. The folder's name
/// stands for the crate.
fn module_of(path: &str) -> Option<String> {
    let (folder, file) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let mut parts = vec![folder];
    parts.extend(file.strip_suffix(".rs")?.split('/'));
    if matches!(parts.last(), Some(&("lib" | "main"))) {
        parts.pop();
    }
    Some(parts.join("::"))
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::tidy::tests::places;

    const SOURCE: &str = "//! A.\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn holds() {}\n    fn no_test() {}\n}\n";

    fn places_for(rows: &str) -> Vec<String> {
        let promises = format!("# Promises\n\n| Promise | Test |\n|---|---|\n{rows}");
        places(
            &CHECK,
            &[
                ("docs/reference/promises/drive.md", &promises),
                ("crates/drive/src/angle/wrap.rs", SOURCE),
            ],
        )
    }

    #[test]
    fn every_way_to_name_a_test_is_understood() {
        for name in [
            "drive::angle::wrap::holds",
            "drive::angle::wrap::tests::holds",
            "crates/drive/src/angle/wrap.rs::holds",
        ] {
            assert_eq!(places_for(&format!("| It holds. | `{name}` |\n")), [""; 0]);
        }
    }

    #[test]
    fn a_long_promise_or_one_without_its_test_is_reported() {
        for row in [
            "| It holds. | |",
            "| It holds. | drive::angle::wrap::holds |",
            "| It holds. | `drive::angle::wrap::no_test` |",
            "| It holds. | `drive::angle::wrap::holds`, `drive::angle::gone` |",
            &format!("| {} | `drive::angle::wrap::holds` |", "x".repeat(201)),
        ] {
            assert_eq!(
                places_for(&format!("{row}\n")),
                ["docs/reference/promises/drive.md:5"],
                "{row}"
            );
        }
    }

    #[test]
    fn a_missing_table_is_reported() {
        assert_eq!(places(&CHECK, &[]), ["docs/reference/promises/:1"]);
    }
}
