//! Links in the documentation lead somewhere, and the book is whole.
//!
//! A relative link names a file of the repository, and its anchor names a heading of that file. The
//! pages of `docs/` are a book: they are rendered without the rest of the repository, so that their
//! links stay in `docs/`, and `docs/SUMMARY.md` lists each of them. Pages name
//! files of the code: each of these exists, but in pages of history. A table row of a walk in
//! `docs/explanation` with a file names types and functions of that file only.

use std::collections::BTreeSet;

use super::{Check, Violation};
use crate::markdown;
use crate::repository::{Repository, SourceFile};

/// The check.
pub const CHECK: Check = Check {
    rule: "links",
    about: "links, anchors, named sources and the names in docs/explanation exist; SUMMARY.md lists all pages",
    run,
};

/// The folder of the book.
const BOOK: &str = "docs/";

/// The table of contents of the book.
const SUMMARY: &str = "docs/SUMMARY.md";

fn run(repository: &Repository) -> Vec<Violation> {
    let pages = || {
        repository
            .files
            .iter()
            .filter(|file| file.extension() == "md")
    };
    let mut found = Vec::new();
    let mut listed = BTreeSet::new();
    for page in pages() {
        for (line, target) in links(page) {
            match problem(repository, page, &target) {
                Some(message) => found.push(Violation::at(&page.path, line, message)),
                None if page.path == SUMMARY => {
                    listed.extend(resolve(&page.path, target.split('#').next().unwrap_or("")));
                }
                None => {}
            }
        }
    }
    for page in pages().filter(|page| !is_history(page)) {
        for (line, source) in named_sources(page) {
            if repository.file(source).is_none() {
                let message = format!("there is no `{source}` (use the file that took its place)");
                found.push(Violation::at(&page.path, line, message));
            }
        }
    }
    for page in pages().filter(|page| page.path.starts_with(WALKS)) {
        found.extend(undeclared_names(repository, page));
    }
    if repository.file(SUMMARY).is_none() {
        return found;
    }
    for page in pages().filter(|page| page.path.starts_with(BOOK) && page.path != SUMMARY) {
        if !listed.contains(&page.path) {
            let message = format!("not in the book (use a line in {SUMMARY})");
            found.push(Violation::at(&page.path, 1, message));
        }
    }
    found
}

/// The folder whose pages lead through the code.
const WALKS: &str = "docs/explanation/";

/// Whether a page is about what was: its sources may be gone.
fn is_history(page: &SourceFile) -> bool {
    page.path == "CHANGELOG.md" || page.path.starts_with("docs/decisions/")
}

/// The source files that the inline code of a page names, with their lines.
fn named_sources(page: &SourceFile) -> Vec<(usize, &str)> {
    let text = page.text().unwrap_or_default();
    let lines = markdown::lines(text);
    lines
        .flat_map(|(line, words)| {
            let spans = words.split('`').skip(1).step_by(2);
            spans.map(move |span| (line, span))
        })
        .filter(|(_, span)| span.starts_with("crates/") && span.ends_with(".rs"))
        .collect()
}

/// The names in table rows of a walk that the row's source file does not declare.
fn undeclared_names(repository: &Repository, page: &SourceFile) -> Vec<Violation> {
    let text = page.text().unwrap_or_default();
    let mut found = Vec::new();
    for (line, row) in markdown::lines(text).filter(|(_, words)| words.starts_with('|')) {
        let spans: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let is_source = |span: &&&str| span.starts_with("crates/") && span.ends_with(".rs");
        let Some(path) = spans.iter().find(is_source) else {
            continue;
        };
        let Some(Ok(source)) = repository.sources.get(*path) else {
            continue;
        };
        let is_identifier = |span: &&&str| span.chars().all(|c| c.is_alphanumeric() || c == '_');
        for name in spans.iter().filter(is_identifier) {
            let mut functions = source.functions.iter().map(|function| &function.name);
            let mut types = source.names.iter().map(|declared| &declared.name);
            let is_declared =
                functions.any(|known| known == name) || types.any(|known| known == name);
            if !is_declared {
                let message = format!(
                    "`{path}` declares no `{name}` (use the name that it has now, or the file that declares it)"
                );
                found.push(Violation::at(&page.path, line, message));
            }
        }
    }
    found
}

/// The relative links of a page, with their lines.
fn links(page: &SourceFile) -> Vec<(usize, String)> {
    let text = page.text().unwrap_or_default();
    markdown::lines(text)
        .flat_map(|(line, words)| {
            let targets = markdown::link_targets(&markdown::without_code(words, ""));
            targets.into_iter().map(move |target| (line, target))
        })
        .filter(|(_, target)| !target.contains("://") && !target.starts_with("mailto:"))
        .collect()
}

/// What is wrong with a link of this page.
fn problem(repository: &Repository, page: &SourceFile, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let resolved = if path.is_empty() {
        Some(page.path.clone())
    } else {
        resolve(&page.path, path)
    };
    let Some(resolved) = resolved else {
        return Some(format!(
            "`{target}` leaves the repository (use a path inside of it)"
        ));
    };
    if page.path.starts_with(BOOK) && !resolved.starts_with(BOOK) {
        return Some(format!(
            "`{target}` leaves the book (use the path as code, or a page of {BOOK})"
        ));
    }
    let folder = format!("{}/", resolved.trim_end_matches('/'));
    let Some(file) = repository.file(&resolved) else {
        let is_folder = repository
            .files
            .iter()
            .any(|file| file.path.starts_with(&folder));
        return (!is_folder || page.path.starts_with(BOOK))
            .then(|| format!("there is no `{target}` (use the path of a file)"));
    };
    let text = file.text().unwrap_or_default();
    let is_missing = !anchor.is_empty()
        && file.extension() == "md"
        && !markdown::anchors(text).iter().any(|known| known == anchor);
    is_missing.then(|| format!("`{resolved}` has no heading `#{anchor}` (use one that it has)"))
}

/// The path from the root of a relative link in the file at `from`; nothing above the root.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::tidy::tests::places;

    const SUMMARY: (&str, &str) = ("docs/SUMMARY.md", "- [A](a.md)\n- [B](folder/b.md)\n");
    const B: (&str, &str) = ("docs/folder/b.md", "# B\n");

    fn places_in(page: &str) -> Vec<String> {
        let files = [
            SUMMARY,
            B,
            ("docs/a.md", page),
            ("README.md", "# One\n[docs](docs) [a](docs/a.md)\n"),
        ];
        places(&CHECK, &files)
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        for link in [
            "[b](folder/b.md)",
            "[b](folder/b.md#b)",
            "[here](#a-title)",
            "[web](https://example.org/gone.md)",
            "`[code](gone.md)`",
        ] {
            assert_eq!(
                places_in(&format!("# A title\n{link}\n")),
                [""; 0],
                "{link}"
            );
        }
    }

    #[test]
    fn links_that_lead_nowhere_are_reported() {
        for link in [
            "[gone](gone.md)",
            "![gone](gone.svg)",
            "[b](folder/b.md#c)",
            "[here](#gone)",
            "[outside](../README.md)",
            "[above](../../README.md)",
        ] {
            let page = format!("# A title\n{link}\n");
            assert_eq!(places_in(&page), ["docs/a.md:2"], "{link}");
        }
    }

    #[test]
    fn a_page_names_files_that_exist() {
        let page = "`crates/a/src/lib.rs`\n`crates/a/src/gone.rs` and `crates/a`\n";
        let files = [
            ("docs/SUMMARY.md", "- [W](explanation/w.md)\n"),
            ("docs/explanation/w.md", page),
            ("CHANGELOG.md", page),
            ("CONTRIBUTING.md", page),
            ("crates/a/src/lib.rs", "//! A.\n"),
        ];
        let expected = ["CONTRIBUTING.md:2", "docs/explanation/w.md:2"];
        assert_eq!(places(&CHECK, &files), expected);
    }

    #[test]
    fn a_row_of_a_walk_names_what_its_file_declares() {
        let page = "| 1 | `crates/a/src/lib.rs` | `Disk` and `start` of `a disk` |\n\
                    | 2 | `crates/a/src/lib.rs` | `stop` |\n\
                    | 3 | `Gone` |\n\n\
                    `crates/a/src/lib.rs` has no `stop`.\n";
        let files = [
            ("docs/SUMMARY.md", "- [W](explanation/w.md)\n"),
            ("docs/explanation/w.md", page),
            (
                "crates/a/src/lib.rs",
                "//! A.\nstruct Disk;\nimpl Disk {\n    fn start() {}\n}\n",
            ),
        ];
        assert_eq!(places(&CHECK, &files), ["docs/explanation/w.md:2"]);
    }

    #[test]
    fn a_page_that_the_summary_leaves_out_is_reported() {
        let files = [SUMMARY, B, ("docs/a.md", ""), ("docs/c.md", "# C\n")];
        assert_eq!(places(&CHECK, &files), ["docs/c.md:1"]);
    }
}
