//! Every parser has a fuzz target: each trace format and the drive profiles. And the list of
//! targets in `fuzz/Cargo.toml` is the list of files beside it.

use std::collections::BTreeMap;

use toml_edit::Item;

use super::direction::parse;
use super::{Check, Violation, line_of};
use crate::repository::Repository;

/// The check.
pub const CHECK: Check = Check {
    rule: "fuzz-targets",
    about: "every trace format has a fuzz target, and fuzz/Cargo.toml lists them all",
    run,
};

const MANIFEST: &str = "fuzz/Cargo.toml";
const TARGETS: &str = "fuzz/fuzz_targets/";
const FORMATS: &str = "crates/simulator/src/trace/";

fn run(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    let listed = listed(repository, &mut found);
    for (target, line) in &listed {
        if repository.file(&format!("{TARGETS}{target}.rs")).is_none() {
            let message = format!("target `{target}` has no file (use {TARGETS}{target}.rs)");
            found.push(Violation::at(MANIFEST, *line, message));
        }
    }
    for file in &repository.files {
        let target = file.path.strip_prefix(TARGETS);
        if let Some(target) = target.and_then(|name| name.strip_suffix(".rs"))
            && !listed.contains_key(target)
        {
            let message = format!("never built (use a `[[bin]]` called `{target}` in {MANIFEST})");
            found.push(Violation::at(&file.path, 1, message));
        }
    }
    for (path, _) in repository.rust() {
        if !path.starts_with(FORMATS) {
            continue;
        }
        let text = repository.file(path).and_then(|file| file.text());
        for (name, line) in formats(text.unwrap_or_default()) {
            let target = format!("trace_{}", name.replace('-', "_"));
            if !listed.contains_key(&target) {
                let message =
                    format!("format `{name}` without a fuzz target (use {TARGETS}{target}.rs)");
                found.push(Violation::at(path, line, message));
            }
        }
    }
    found
}

/// The names of the formats that a source declares, and the lines in which they stand.
fn formats(text: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        if !line.contains(": Format = Format {") {
            continue;
        }
        let mut fields = lines.by_ref().map(|(index, line)| (index, line.trim()));
        let name = fields.find_map(|(index, field)| Some((index, field.strip_prefix("name: ")?)));
        if let Some((index, name)) = name {
            found.push((name.trim_matches(['"', ',']), index + 1));
        }
    }
    found
}

/// The targets in the fuzz crate's manifest with their lines.
fn listed(repository: &Repository, found: &mut Vec<Violation>) -> BTreeMap<String, usize> {
    let mut targets = BTreeMap::new();
    let Some(file) = repository.file(MANIFEST) else {
        return targets;
    };
    match parse(file) {
        Ok((text, document)) => {
            let bins = document.get("bin").and_then(Item::as_array_of_tables);
            for bin in bins.into_iter().flatten() {
                if let Some(name) = bin.get("name").and_then(Item::as_str) {
                    let line = bin.span().map_or(1, |span| line_of(text, span.start));
                    targets.insert(name.to_string(), line);
                }
            }
        }
        Err(violation) => found.push(violation),
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::tidy::tests::places;

    const MANIFEST: (&str, &str) = ("fuzz/Cargo.toml", "[[bin]]\nname = \"trace_spc_1\"\n");
    const TARGET: (&str, &str) = ("fuzz/fuzz_targets/trace_spc_1.rs", "//! A.\n");
    const FORMAT: (&str, &str) = (
        "crates/simulator/src/trace/spc.rs",
        "//! A.\npub const FORMAT: Format = Format {\n    name: \"spc-1\",\n};\n",
    );

    #[test]
    fn format_target_and_list_belong_together() {
        assert_eq!(places(&CHECK, &[MANIFEST, TARGET, FORMAT]), [""; 0]);
        assert_eq!(places(&CHECK, &[]), [""; 0]);
    }

    #[test]
    fn whichever_is_missing_is_reported() {
        assert_eq!(
            places(&CHECK, &[FORMAT]),
            ["crates/simulator/src/trace/spc.rs:3"]
        );
        assert_eq!(places(&CHECK, &[MANIFEST]), ["fuzz/Cargo.toml:1"]);
        assert_eq!(
            places(&CHECK, &[TARGET]),
            ["fuzz/fuzz_targets/trace_spc_1.rs:1"]
        );
    }

    #[test]
    fn a_file_beside_the_formats_without_one_is_fine() {
        let file = ("crates/simulator/src/trace/record.rs", "//! A.\n");
        assert_eq!(places(&CHECK, &[file]), [""; 0]);
    }
}
