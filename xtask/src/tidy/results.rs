//! The claim tables of the book match the published findings.

use super::{Check, Violation};
use crate::repository::{Repository, SourceFile};
use crate::results;

/// The check.
pub const CHECK: Check = Check {
    rule: "results",
    about: "docs/results/claims shows the findings of docs/results/*.json beside claims/*.toml",
    run,
};

fn run(repository: &Repository) -> Vec<Violation> {
    let pages = results::expected_pages(repository);
    let violation = |page: &results::ExpectedPage| {
        let expected = match &page.text {
            Ok(text) => text,
            Err(problem) => return Some(Violation::at(&page.path, 1, problem)),
        };
        let found = repository
            .file(&page.path)
            .and_then(SourceFile::text)
            .unwrap_or_default();
        let difference = found
            .lines()
            .zip(expected.lines())
            .position(|(found, expected)| found != expected);
        let shorter = found.lines().count().min(expected.lines().count());
        let message = "not what the findings and claims give (use `cargo xtask results`)";
        (found != expected)
            .then(|| Violation::at(&page.path, difference.unwrap_or(shorter) + 1, message))
    };
    pages.iter().filter_map(violation).collect()
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::repository::{Repository, SourceFile};
    use crate::results;
    use crate::tidy::tests::places;

    const CLAIMS: &str = "title = \"T\"\nauthors = \"A\"\nvenue = \"V\"\n[[claim]]\nid = \"p.one\"\n\
        where = \"1\"\ntext = \"x\"\nfigures = [{ value = 3, unit = \"%\" }]\n";

    const PAGE: &str = "docs/results/claims/p.md";

    fn places_for(page: &str, findings: &[(&str, &str)]) -> Vec<String> {
        let files = [&[("claims/p.toml", CLAIMS), (PAGE, page)], findings].concat();
        places(&CHECK, &files)
    }

    fn expected(findings: &[(&str, &str)]) -> String {
        let files = [&[("claims/p.toml", CLAIMS)], findings].concat();
        let files = files.into_iter().map(|(path, text)| SourceFile {
            path: path.to_string(),
            bytes: text.as_bytes().to_vec(),
        });
        let repository = Repository::of(files.collect(), None);
        let page = results::expected_pages(&repository).remove(0);
        page.text.expect("a page")
    }

    #[test]
    fn a_page_that_matches_is_not_reported() {
        let findings = [("docs/results/p.json", FINDINGS)];
        assert_eq!(places_for(&expected(&[]), &[]), [""; 0]);
        assert_eq!(places_for(&expected(&findings), &findings), [""; 0]);
    }

    #[test]
    fn a_page_of_other_findings_is_reported() {
        let findings = [("docs/results/p.json", FINDINGS)];
        assert_eq!(places_for("", &[]), [format!("{PAGE}:1")]);
        assert_eq!(places_for(&expected(&[]), &findings).len(), 1);
        let changed = expected(&findings).replace("3.5", "3.6");
        assert_eq!(places_for(&changed, &findings).len(), 1);
        let broken = [("docs/results/p.json", "{}")];
        assert_eq!(places_for(&expected(&[]), &broken), [format!("{PAGE}:1")]);
    }

    const FINDINGS: &str = r#"{ "command": "c", "commit": "1234567", "date": "2026-11-22", "findings":
        [{ "id": "p.one", "mode": null, "ours": 3.5, "holds": false, "note": "one run" }] }"#;
}
