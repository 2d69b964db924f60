//! Every number of a drive has an origin: each table of a profile in `drives/` says whose its
//! numbers are. The elements of an array may share the origin of the table that they stand in.

use toml_edit::{Item, Table};

use super::direction::parse;
use super::{Check, Violation, line_of};
use crate::repository::Repository;

/// The check.
pub const CHECK: Check = Check {
    rule: "origins",
    about: "every table of a drive's profile has an `origin`",
    run,
};

/// What the table that we look at may rely on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shared {
    /// It is an element of an array, and the table around it has an origin.
    FromAround,
    /// It stands alone.
    Nothing,
}

fn run(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in &repository.files {
        if !file.path.starts_with("drives/") || file.extension() != "toml" {
            continue;
        }
        match parse(file) {
            Ok((text, document)) => {
                let mut missing = Vec::new();
                without_origin(
                    document.as_table(),
                    "the file",
                    Shared::Nothing,
                    &mut missing,
                );
                for (name, offset) in missing {
                    let message = format!(
                        "{name} has no `origin` (use one that names the paper, data sheet, measurement or choice)"
                    );
                    found.push(Violation::at(&file.path, line_of(text, offset), message));
                }
            }
            Err(violation) => found.push(violation),
        }
    }
    found
}

/// The names and places of `table` and those inside it that do not say where they come from.
fn without_origin(table: &Table, name: &str, shared: Shared, found: &mut Vec<(String, usize)>) {
    let origin = table.get("origin").and_then(Item::as_str).unwrap_or("");
    let has_origin = !origin.trim().is_empty();
    let has_values = table.iter().any(|(_, item)| item.is_value());
    if has_values && !has_origin && shared == Shared::Nothing {
        let start = table.span().map_or(0, |span| span.start);
        found.push((name.to_string(), start));
    }
    for (key, item) in table.iter() {
        if let Some(inner) = item.as_table() {
            without_origin(inner, &format!("[{key}]"), Shared::Nothing, found);
        }
        for inner in item.as_array_of_tables().into_iter().flatten() {
            let shared = if has_origin || shared == Shared::FromAround {
                Shared::FromAround
            } else {
                Shared::Nothing
            };
            without_origin(inner, &format!("[[{key}]]"), shared, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::tidy::tests::places;

    const PATH: &str = "drives/a.toml";

    #[test]
    fn a_table_without_an_origin_is_reported() {
        let text = "name = \"a\"\norigin = \"data sheet\"\n\n[seek]\nmean = 1\n\n[bus]\norigin = \" \"\nrate = 2\n";
        assert_eq!(
            places(&CHECK, &[(PATH, text)]),
            ["drives/a.toml:4", "drives/a.toml:7"]
        );
    }

    #[test]
    fn the_file_itself_is_a_table() {
        assert_eq!(
            places(&CHECK, &[(PATH, "name = \"a\"\n")]),
            ["drives/a.toml:1"]
        );
    }

    #[test]
    fn elements_share_the_origin_around_them() {
        let text = "[layout]\norigin = \"measured\"\n[[layout.zone]]\nfirst = 1\n[[layout.zone]]\nfirst = 2\n";
        assert_eq!(places(&CHECK, &[(PATH, text)]), [""; 0]);
        let alone = "[[zone]]\nfirst = 1\n";
        assert_eq!(places(&CHECK, &[(PATH, alone)]), ["drives/a.toml:1"]);
        assert_eq!(places(&CHECK, &[("experiments/a.toml", alone)]), [""; 0]);
    }
}
