//! What is left over from writing: promises to oneself, ignored tests, sleeping tests, prints.

use super::{Check, Violation};
use crate::repository::{Repository, crate_of};
use crate::source::Place;

/// The check.
pub const CHECK: Check = Check {
    rule: "leftovers",
    about: "no reminders in comments, no ignored or sleeping tests, no prints outside the cli",
    run,
};

/// Reminders, written so that this file does not contain them.
const REMINDERS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Macros that write to the terminal.
const PRINTS: &[&str] = &["println!", "eprintln!", "print!", "eprint!", "dbg!"];

fn run(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in &repository.files {
        let Some(text) = file.text() else {
            continue;
        };
        for (index, line) in text.lines().enumerate() {
            if let Some(word) = reminder(line) {
                let message = format!("\"{word}\" (use an issue, or do it now)");
                found.push(Violation::at(&file.path, index + 1, message));
            }
        }
    }
    for (path, source) in repository.rust() {
        for mention in &source.mentions {
            let place = source.place(mention.line);
            if let Some(message) = left_over(path, &mention.path, place) {
                found.push(Violation::at(path, mention.line, message));
            }
        }
    }
    found
}

/// A reminder in the line, as a word of its own.
fn reminder(line: &str) -> Option<&'static str> {
    let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words.find_map(|word| REMINDERS.iter().copied().find(|reminder| *reminder == word))
}

/// What is wrong with mentioning `what` there.
fn left_over(path: &str, what: &str, place: Place) -> Option<String> {
    let last = what.rsplit("::").next().unwrap_or(what);
    if what == "#[ignore]" {
        return Some(String::from(
            "an ignored test (use a command for what takes long, or mend it)",
        ));
    }
    if place == Place::Tests && last == "sleep" {
        return Some(format!(
            "`{what}` in a test (use virtual time: pass the `now` that the test wants)"
        ));
    }
    let may_print = match crate_of(path) {
        Some("cli") | None => true,
        Some(_) => path.ends_with("/build.rs"),
    };
    if place == Place::Code && !may_print && PRINTS.contains(&last) {
        return Some(format!(
            "`{what}` outside the cli (use a return value; the cli prints)"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{CHECK, REMINDERS};
    use crate::tidy::tests::places;

    #[test]
    fn a_reminder_is_reported_in_any_text() {
        for word in REMINDERS {
            let text = format!("fine\n# {word}: later\n");
            assert_eq!(places(&CHECK, &[("Makefile", &text)]), ["Makefile:2"]);
            let longer = format!("{word}S and a{word} are other words\n");
            assert_eq!(places(&CHECK, &[("a.md", &longer)]), [""; 0]);
        }
    }

    #[test]
    fn ignored_and_sleeping_tests_are_reported() {
        let text =
            "//! A.\n#[test]\n#[ignore = \"slow\"]\nfn a() {\n    std::thread::sleep(b);\n}\n";
        assert_eq!(
            places(&CHECK, &[("crates/server/tests/a.rs", text)]),
            ["crates/server/tests/a.rs:3", "crates/server/tests/a.rs:5"]
        );
    }

    #[test]
    fn prints_are_for_the_cli_and_for_tests() {
        let text = "//! A.\nfn a() { println!(\"a\"); }\n";
        let files = [
            ("crates/cli/src/a.rs", text),
            ("crates/drive/src/a.rs", text),
            ("crates/drive/tests/a.rs", text),
            ("xtask/src/a.rs", text),
        ];
        assert_eq!(places(&CHECK, &files), ["crates/drive/src/a.rs:2"]);
    }
}
