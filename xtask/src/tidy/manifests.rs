//! Manifests: every package takes the workspace's lints, and every dependency from outside says
//! in a comment, on its line or just above it, why it is there.

use toml_edit::Item;

use super::direction::{Dependency, dependencies, parse};
use super::{Check, Violation};
use crate::repository::{Repository, SourceFile};

/// The check.
pub const CHECK: Check = Check {
    rule: "manifests",
    about: "packages take the workspace's lints; each external dependency says why it is there",
    run,
};

fn run(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in repository.manifests() {
        lints(file, &mut found);
        reasons(file, &mut found);
    }
    // These two have no lints to inherit: one is the workspace, the other is outside it.
    for path in ["Cargo.toml", "fuzz/Cargo.toml"] {
        if let Some(file) = repository.file(path) {
            reasons(file, &mut found);
        }
    }
    found
}

/// `[lints] workspace = true`. A manifest that is not TOML is the direction check's to report.
fn lints(file: &SourceFile, found: &mut Vec<Violation>) {
    let Ok((_, document)) = parse(file) else {
        return;
    };
    let inherited = document
        .get("lints")
        .and_then(|lints| lints.get("workspace"));
    if inherited.and_then(Item::as_bool) != Some(true) {
        found.push(Violation::at(
            &file.path,
            1,
            "lints of its own (use `[lints]` with `workspace = true`)",
        ));
    }
}

/// A comment at each dependency from outside.
fn reasons(file: &SourceFile, found: &mut Vec<Violation>) {
    let Ok((text, document)) = parse(file) else {
        return;
    };
    let lines: Vec<&str> = text.lines().collect();
    for dependency in dependencies(&document, text) {
        let here = lines.get(dependency.line - 1).copied().unwrap_or_default();
        let above = match dependency.line {
            0 | 1 => "",
            line => lines[line - 2],
        };
        let explained = above.trim_start().starts_with('#') || here.contains(" # ");
        if is_external(&dependency) && !explained {
            let package = &dependency.package;
            found.push(Violation::at(
                &file.path,
                dependency.line,
                format!("`{package}` without a reason (use a comment on the line above that says why it is there)"),
            ));
        }
    }
}

/// Neither of this repository nor explained in the workspace's own manifest.
fn is_external(dependency: &Dependency) -> bool {
    dependency.item.get("path").is_none() && dependency.item.get("workspace").is_none()
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::tidy::tests::places;

    const PATH: &str = "crates/block/Cargo.toml";

    #[test]
    fn lints_of_its_own_are_reported() {
        assert_eq!(
            places(&CHECK, &[(PATH, "[lints.clippy]\nall = \"allow\"\n")]),
            ["crates/block/Cargo.toml:1"]
        );
        assert_eq!(
            places(&CHECK, &[(PATH, "[lints]\nworkspace = true\n")]),
            [""; 0]
        );
    }

    #[test]
    fn a_dependency_without_a_reason_is_reported() {
        let text = "[lints]\nworkspace = true\n[dependencies]\n# Errors.\nthiserror = \"2\"\nserde = \"1\"\n\
                    rand = \"1\" # Dice.\nblock.workspace = true\ndrive = { path = \"../drive\" }\n\
                    [dev-dependencies]\nproptest = \"1\"\n[dependencies.toml]\nversion = \"1\"\n";
        assert_eq!(
            places(&CHECK, &[(PATH, text)]),
            [
                "crates/block/Cargo.toml:6",
                "crates/block/Cargo.toml:11",
                "crates/block/Cargo.toml:12",
            ]
        );
    }

    #[test]
    fn the_workspace_and_the_fuzz_crate_give_reasons_too() {
        let files = [
            ("Cargo.toml", "[workspace.dependencies]\nserde = \"1\"\n"),
            (
                "fuzz/Cargo.toml",
                "[dependencies]\nlibfuzzer-sys = \"0.4\"\n",
            ),
        ];
        assert_eq!(
            places(&CHECK, &files),
            ["Cargo.toml:2", "fuzz/Cargo.toml:2"]
        );
    }
}
