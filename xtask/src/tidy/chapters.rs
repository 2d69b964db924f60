//! A file is a chapter: it opens by saying what it is, and can be read in one sitting.

use super::{Check, Violation};
use crate::repository::Repository;

/// The check.
pub const CHECK: Check = Check {
    rule: "chapters",
    about: "a source opens with `//!`, has at most 500 lines without tests, functions at most 70",
    run,
};

/// Lines of a file without the modules for tests (STYLE, habit 10).
const FILE_LINES: usize = 500;

/// Lines of a function, from its signature to its closing brace (STYLE, habit 10).
const FUNCTION_LINES: usize = 70;

fn run(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, source) in &repository.sources {
        let source = match source {
            Ok(source) => source,
            Err((line, reason)) => {
                let message = format!("not Rust: {reason}");
                found.push(Violation::at(path, *line, message));
                continue;
            }
        };
        let text = repository.file(path).and_then(|file| file.text());
        if !text.is_some_and(|text| text.starts_with("//!")) {
            let message = "the file does not say what it is (use `//!` on its first line)";
            found.push(Violation::at(path, 1, message));
        }
        let lines = source.lines_without_tests();
        if lines > FILE_LINES {
            let message = format!(
                "{lines} lines without tests, more than {FILE_LINES} (use a file for each of its subjects)"
            );
            found.push(Violation::at(path, FILE_LINES, message));
        }
        for function in &source.functions {
            if function.lines > FUNCTION_LINES {
                let message = format!(
                    "`{}` has {} lines, more than {FUNCTION_LINES} (use a function for each of its steps)",
                    function.name, function.lines
                );
                found.push(Violation::at(path, function.line, message));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::tidy::tests::places;

    const PATH: &str = "crates/block/src/time.rs";

    fn places_in(text: &str) -> Vec<String> {
        places(&CHECK, &[(PATH, text)])
    }

    #[test]
    fn a_file_that_does_not_introduce_itself_is_reported() {
        assert_eq!(places_in("// Time.\n"), [format!("{PATH}:1")]);
        assert_eq!(places_in("//! Time.\n"), [""; 0]);
    }

    #[test]
    fn a_long_file_is_reported_and_its_tests_do_not_count() {
        let constants = |n| "const A: u8 = 1;\n".repeat(n);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", constants(900));
        let exactly = format!("//! Long.\n{}{tests}", constants(499));
        assert_eq!(places_in(&exactly), [""; 0]);
        let over = format!("//! Long.\n{}{tests}", constants(500));
        assert_eq!(places_in(&over), [format!("{PATH}:500")]);
    }

    #[test]
    fn a_long_function_is_reported_wherever_it_is() {
        let body = |n| "    step();\n".repeat(n);
        for (open, close) in [
            ("fn go() {\n", "}\n"),
            ("impl A { fn go() {\n", "} }\n"),
            ("trait A { fn go() {\n", "} }\n"),
        ] {
            let exactly = format!("//! A.\n{open}{}{close}", body(68));
            assert_eq!(places_in(&exactly), [""; 0]);
            let over = format!("//! A.\n{open}{}{close}", body(69));
            assert_eq!(places_in(&over), [format!("{PATH}:2")]);
        }
    }

    #[test]
    fn what_is_not_rust_is_reported() {
        assert_eq!(places_in("//! A.\nfn (\n"), [format!("{PATH}:2")]);
    }
}
