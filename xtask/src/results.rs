//! `cargo xtask results`: rewrites the claim tables of the book from the findings in `docs/results/*.json`.
//!
//! ```text
//!   headtime paper NAME --json --> DIR/NAME.json --.
//!                                                  | --from DIR: adds command, commit, date
//!                         docs/results/NAME.json <-'
//!   claims/NAME.toml ------------+----------> docs/results/claims/NAME.md
//!   docs/results/*.svg ----------'----------> docs/results/figures.md
//! ```
//!
//! `cargo xtask tidy` checks that the pages match the findings.

mod claims;
mod figures;
mod findings;
mod page;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::Failure;
use crate::repository::{self, Repository};

use claims::ClaimTable;
use figures::PublishedPaper;
use findings::Publication;

/// The folder of the claims: one file per claim table.
const CLAIMS: &str = "claims/";

/// The folder of the published findings.
const FINDINGS: &str = "docs/results/";

/// The folder of the generated pages.
const PAGES: &str = "docs/results/claims/";

/// The page of the papers' figures.
const FIGURES: &str = "docs/results/figures.md";

const USAGE: &str = "usage: cargo xtask results [--from DIR [--commit REV]]\n\n  \
    --from DIR    publish DIR/NAME.json, which `headtime paper NAME --json` has printed\n  \
    --commit REV  the commit from which the program was built; HEAD by default";

/// A page as it should be.
pub struct ExpectedPage {
    /// The path from the root of the repository.
    pub path: String,
    /// The text, or the reason why the sources give none.
    pub text: Result<String, String>,
}

/// `cargo xtask results [--from DIR [--commit REV]]`.
///
/// # Errors
/// If a file of findings is not what the command prints, or a page cannot be written.
pub fn run(words: &[String]) -> Result<(), Failure> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => {}
        ["--from", folder] => publish(Path::new(folder), "HEAD")?,
        ["--from", folder, "--commit", revision] => publish(Path::new(folder), revision)?,
        _ => return Err(Failure::Usage(String::from(USAGE))),
    }
    let root = repository::root();
    let repository = Repository::read(&root).map_err(Failure::Usage)?;
    for page in expected_pages(&repository) {
        let text = page.text.map_err(Failure::Found)?;
        write(&root.join(&page.path), &text)?;
    }
    println!("results: `git diff docs/results` shows the changed pages");
    Ok(())
}

/// One page for each file of claims, and the page of the papers' figures.
pub fn expected_pages(repository: &Repository) -> Vec<ExpectedPage> {
    let text_at = |path: &str| repository.file(path).and_then(repository::SourceFile::text);
    let names = repository.files.iter().filter_map(|file| {
        let name = file.path.strip_prefix(CLAIMS)?.strip_suffix(".toml")?;
        Some((name, file.text().unwrap_or_default()))
    });
    let read = |(name, claims)| {
        let table = ClaimTable::parse(name, claims)?;
        let path = format!("{FINDINGS}{name}.json");
        let publication = text_at(&path).map(|text| Publication::parse(text, &table));
        let publication = publication.transpose();
        let publication = publication.map_err(|problem| format!("{path}: {problem}"))?;
        Ok::<_, String>(PublishedPaper { table, publication })
    };
    let mut pages = Vec::new();
    let mut papers = Vec::new();
    for (name, claims) in names {
        let paper = read((name, claims));
        pages.push(ExpectedPage {
            path: format!("{PAGES}{name}.md"),
            text: paper
                .as_ref()
                .map(|paper| page::render(&paper.table, paper.publication.as_ref()))
                .map_err(String::clone),
        });
        papers.extend(paper.ok());
    }
    let drawings: Vec<&str> = repository
        .files
        .iter()
        .filter_map(|file| file.path.strip_prefix(FINDINGS))
        .filter(|name| name.ends_with(".svg"))
        .collect();
    if figures::are_of(&papers) {
        pages.push(ExpectedPage {
            path: String::from(FIGURES),
            text: Ok(figures::render(&papers, &drawings)),
        });
    }
    pages
}

/// Stores the findings that a folder holds, with their command, commit and date.
fn publish(folder: &Path, revision: &str) -> Result<(), Failure> {
    let root = repository::root();
    let repository = Repository::read(&root).map_err(Failure::Usage)?;
    let log = Command::new("git")
        .args(["log", "-1", "--abbrev=7", "--format=%h %cs", revision, "--"])
        .current_dir(&root)
        .output()
        .map_err(|error| Failure::Usage(format!("git log: {error}")))?;
    let log = String::from_utf8_lossy(&log.stdout).into_owned();
    let (commit, date) = log
        .trim()
        .split_once(' ')
        .ok_or_else(|| Failure::Usage(format!("--commit {revision}: expected a commit")))?;
    let mut published = 0;
    for file in &repository.files {
        let name = file.path.strip_prefix(CLAIMS);
        let Some(name) = name.and_then(|name| name.strip_suffix(".toml")) else {
            continue;
        };
        let printed = folder.join(format!("{name}.json"));
        let Ok(text) = std::fs::read_to_string(&printed) else {
            continue;
        };
        let problem = |problem| Failure::Found(format!("{}: {problem}", printed.display()));
        let findings: Value = serde_json::from_str(&text)
            .map_err(|error| problem(format!("expected JSON: {error}")))?;
        let publication = json!({
            "command": format!("headtime paper {name} --json"),
            "commit": commit,
            "date": date,
            "findings": findings,
        });
        let table = ClaimTable::parse(name, file.text().unwrap_or_default()).map_err(problem)?;
        let text = format!("{publication:#}\n");
        Publication::parse(&text, &table)
            .and_then(|publication| publication.check_complete(&table))
            .map_err(problem)?;
        write(&root.join(format!("{FINDINGS}{name}.json")), &text)?;
        published += 1;
    }
    match published {
        0 => {
            let message = format!("--from {}: expected NAME.json", folder.display());
            Err(Failure::Usage(message))
        }
        _ => Ok(()),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}
