//! Text files are clean at their edges, and no file is too large to be in a repository.

use super::{Check, Violation};
use crate::repository::Repository;

/// The check.
pub const CHECK: Check = Check {
    rule: "text",
    about: "no blanks at line ends, a newline at the end of the file, no file above 2 MiB",
    run,
};

/// What a clone should not have to carry; the largest source is a hundredth of it. A choice.
const FILE_BYTES: usize = 2 << 20;

/// What people write. Samples of trace formats may end their lines as their programs did.
const WRITTEN: &[&str] = &[
    "", "css", "html", "js", "json", "lock", "md", "py", "rs", "sh", "toml", "txt", "yaml", "yml",
];

fn run(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in &repository.files {
        if file.bytes.len() > FILE_BYTES {
            let message = format!(
                "{} bytes, more than {FILE_BYTES} (use a command that makes it)",
                file.bytes.len()
            );
            found.push(Violation::at(&file.path, 1, message));
        }
        let Some(text) = file.text() else {
            continue;
        };
        if !WRITTEN.contains(&file.extension()) {
            continue;
        }
        for (index, line) in text.split('\n').enumerate() {
            if line.ends_with([' ', '\t', '\r']) {
                let message = "blanks at the end of the line (use none, and `\\n` alone)";
                found.push(Violation::at(&file.path, index + 1, message));
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            let message = "no newline at the end of the file (use one)";
            found.push(Violation::at(&file.path, text.lines().count(), message));
        }
        if text.ends_with("\n\n") {
            let message = "empty lines at the end of the file (use one newline)";
            found.push(Violation::at(&file.path, text.lines().count(), message));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{CHECK, FILE_BYTES};
    use crate::tidy::tests::places;

    #[test]
    fn ragged_edges_are_reported() {
        for (text, line) in [
            ("a \nb\n", 1),
            ("a\nb\t\n", 2),
            ("a\r\nb\n", 1),
            ("a\nb", 2),
            ("a\n\n", 2),
        ] {
            assert_eq!(
                places(&CHECK, &[("a.md", text)]),
                [format!("a.md:{line}")],
                "{text:?}"
            );
        }
    }

    #[test]
    fn clean_text_and_samples_of_formats_are_fine() {
        let files = [
            ("a.md", "a\n\nb\n"),
            ("empty.toml", ""),
            ("a.trace", "1 2 \r\n3"),
        ];
        assert_eq!(places(&CHECK, &files), [""; 0]);
    }

    #[test]
    fn a_large_file_is_reported() {
        let large = "x".repeat(FILE_BYTES + 1);
        assert_eq!(places(&CHECK, &[("a.svg", &large)]), ["a.svg:1"]);
        assert_eq!(places(&CHECK, &[("a.svg", &large[1..])]), [""; 0]);
    }
}
