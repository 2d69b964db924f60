//! Names point downwards only: a crate depends on what stands below it in the drawing of
//! ARCHITECTURE.md, and on nothing else of the workspace, not even in its tests.
//!
//! ```text
//!                  cli     bindings/python
//!                    \       /
//!                     lab --'
//!                    /   \
//!              server     simulator
//!             /    \      /
//!          nbd      engine ----------.
//!           |  /     |     \          \
//!           | cache  stream  scheduler  profiler
//!           |   \    |     /    \      /
//!           |    \   |    /      drive
//!           `---- `- block -------'
//! ```

use std::collections::BTreeMap;

use toml_edit::{Document, Item, Table};

use super::{Check, Violation, line_of};
use crate::repository::{Repository, SourceFile};

/// The check.
pub const CHECK: Check = Check {
    rule: "direction",
    about: "dependencies between crates point downwards in the drawing",
    run,
};

/// What stands below each package. `headtime` is the package in `crates/cli`.
const DRAWING: &[(&str, &[&str])] = &[
    ("block", &[]),
    // Beside the drawing: the reader of all TOML files.
    ("document", &[]),
    ("drive", &["document", "block"]),
    ("profiler", &["drive", "document", "block"]),
    ("scheduler", &["drive", "block"]),
    ("cache", &["block"]),
    ("stream", &["block"]),
    ("engine", ENGINE),
    ("nbd", &["block"]),
    // Beside the drawing: what clients and the service say to each other.
    ("headtime-client", &["block"]),
    ("headtime-client-c", &["headtime-client", "block"]),
    ("server", BELOW_THE_SERVER),
    ("simulator", BELOW_THE_WORLDS),
    ("lab", BELOW_LAB),
    ("headtime", BELOW_CLI),
    ("headtime-python", BELOW_PYTHON),
    // Beside the drawing: a kernel to test in.
    ("guest", &[]),
    // Beside the drawing: the importer checks the profiles that it writes.
    ("xtask", &["drive", "block"]),
];

const ENGINE: &[&str] = &["cache", "stream", "scheduler", "profiler", "drive", "block"];
const BELOW_THE_WORLDS: &[&str] = &[
    "engine",
    "cache",
    "stream",
    "scheduler",
    "profiler",
    "drive",
    "document",
    "block",
];
const BELOW_THE_SERVER: &[&str] = &[
    "nbd",
    "engine",
    "cache",
    "stream",
    "scheduler",
    "profiler",
    "drive",
    "document",
    "block",
    "guest",
    "headtime-client",
];
const BELOW_LAB: &[&str] = &[
    "nbd",
    "headtime-client",
    "server",
    "simulator",
    "engine",
    "cache",
    "stream",
    "scheduler",
    "profiler",
    "drive",
    "document",
    "block",
];
const BELOW_PYTHON: &[&str] = &[
    "headtime-client",
    "lab",
    "simulator",
    "engine",
    "cache",
    "stream",
    "scheduler",
    "profiler",
    "drive",
    "document",
    "block",
];
const BELOW_CLI: &[&str] = &[
    "nbd",
    "guest",
    "headtime-client",
    "headtime-client-c",
    "lab",
    "server",
    "simulator",
    "engine",
    "cache",
    "stream",
    "scheduler",
    "profiler",
    "drive",
    "document",
    "block",
];

/// One line of a manifest that names another package.
pub struct Dependency<'a> {
    /// The package's own name, whatever it is called here.
    pub package: String,
    /// What follows the name.
    pub item: &'a Item,
    /// Where.
    pub line: usize,
}

fn run(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut packages = BTreeMap::new();
    for file in repository.manifests() {
        match parse(file) {
            Ok((text, document)) => {
                let name = document.get("package").and_then(|table| table.get("name"));
                if let Some(name) = name.and_then(Item::as_str) {
                    packages.insert(name.to_string(), (file, text, document));
                }
            }
            Err(violation) => found.push(violation),
        }
    }
    for (name, (file, text, document)) in &packages {
        let Some((_, below)) = DRAWING.iter().find(|(package, _)| package == name) else {
            found.push(Violation::at(
                &file.path,
                1,
                format!("package `{name}` is not in the drawing (add it to ARCHITECTURE.md and to DRAWING in xtask/src/tidy/direction.rs)"),
            ));
            continue;
        };
        for dependency in dependencies(document, text) {
            let other = dependency.package.as_str();
            if packages.contains_key(other) && !below.contains(&other) {
                found.push(Violation::at(
                    &file.path,
                    dependency.line,
                    format!("`{name}` depends on `{other}`, which does not stand below it (use one of [{}], or let a crate above both pass what is needed)", below.join(", ")),
                ));
            }
        }
    }
    found
}

/// The manifest in the file.
pub fn parse(file: &SourceFile) -> Result<(&str, Document<String>), Violation> {
    let text = file
        .text()
        .ok_or_else(|| Violation::at(&file.path, 1, "not text (write TOML)"))?;
    match Document::parse(text.to_string()) {
        Ok(document) => Ok((text, document)),
        Err(error) => {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            Err(Violation::at(&file.path, line, error.message()))
        }
    }
}

/// Every dependency of a manifest: of the code, the tests, the build, a target, the workspace.
pub fn dependencies<'a>(document: &'a Document<String>, text: &str) -> Vec<Dependency<'a>> {
    let mut tables: Vec<&Table> = Vec::new();
    collect(document.as_table(), &mut tables);
    let mut found = Vec::new();
    for table in tables {
        for (key, item) in table.iter() {
            let place = table.key(key).and_then(|key| key.span());
            let package = item.get("package").and_then(Item::as_str).unwrap_or(key);
            found.push(Dependency {
                package: package.to_string(),
                item,
                line: place.map_or(1, |span| line_of(text, span.start)),
            });
        }
    }
    found.sort_by_key(|dependency| dependency.line);
    found
}

/// The tables of dependencies in `table`, and in the tables inside it.
fn collect<'a>(table: &'a Table, found: &mut Vec<&'a Table>) {
    const KINDS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];
    for (key, item) in table.iter() {
        let Some(inner) = item.as_table() else {
            continue;
        };
        if KINDS.contains(&key) {
            found.push(inner);
        } else {
            collect(inner, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::tidy::tests::{places, reported};

    fn manifest(name: &str, rest: &str) -> String {
        format!("[package]\nname = \"{name}\"\n{rest}")
    }

    #[test]
    fn an_upward_dependency_is_reported_in_every_kind_of_table() {
        for table in [
            "dependencies",
            "dev-dependencies",
            "build-dependencies",
            "target.'cfg(unix)'.dependencies",
        ] {
            for line in [
                "drive.workspace = true",
                "drive = { path = \"../drive\" }",
                "other = { package = \"drive\", path = \"../drive\" }",
            ] {
                let block = manifest("block", &format!("[{table}]\n{line}\n"));
                let drive = manifest("drive", "");
                let files = [
                    ("crates/block/Cargo.toml", block.as_str()),
                    ("crates/drive/Cargo.toml", drive.as_str()),
                ];
                assert_eq!(places(&CHECK, &files), ["crates/block/Cargo.toml:4"]);
            }
        }
    }

    #[test]
    fn neighbours_do_not_know_each_other() {
        let cache = manifest("cache", "[dependencies.stream]\nworkspace = true\n");
        let stream = manifest("stream", "");
        let files = [
            ("crates/cache/Cargo.toml", cache.as_str()),
            ("crates/stream/Cargo.toml", stream.as_str()),
        ];
        assert_eq!(places(&CHECK, &files), ["crates/cache/Cargo.toml:3"]);
    }

    #[test]
    fn downward_and_external_dependencies_are_fine() {
        let drive = manifest(
            "drive",
            "[dependencies]\nblock.workspace = true\nserde = \"1\"\n",
        );
        let block = manifest("block", "[dependencies]\nthiserror = \"2\"\n");
        let files = [
            ("crates/block/Cargo.toml", block.as_str()),
            ("crates/drive/Cargo.toml", drive.as_str()),
        ];
        assert_eq!(places(&CHECK, &files), [""; 0]);
    }

    #[test]
    fn an_unknown_package_and_a_broken_manifest_are_reported() {
        let found = reported(&CHECK, &[("crates/new/Cargo.toml", &manifest("new", ""))]);
        assert!(found[0].1.contains("not in the drawing"), "{found:?}");
        let broken = [("crates/block/Cargo.toml", "[package]\nname = \n")];
        assert_eq!(places(&CHECK, &broken), ["crates/block/Cargo.toml:2"]);
    }
}
