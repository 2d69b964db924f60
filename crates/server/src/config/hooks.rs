//! Hooks in the configuration file: programs that are run when a task has ended.
//!
//! ```text
//!   [hooks]   on_done = ["PROGRAM", "ARGUMENT", ...], on_error = ["PROGRAM", ...]
//! ```

use document::{DocumentError, Section};

/// The programs that are run when a task has ended, with their arguments. None are run for an empty list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// After a task that has done all that it was asked to.
    pub on_done: Vec<String>,
    /// After a task that has not, or that has found damage.
    pub on_error: Vec<String>,
}

/// The programs; without the table there are none.
pub(super) fn hooks(root: &Section<'_>) -> Result<Hooks, DocumentError> {
    let Some(table) = root.section("hooks", &["on_done", "on_error"])? else {
        return Ok(Hooks::default());
    };
    let words = |key: &str| {
        let Some(value) = table.get(key) else {
            return Ok(Vec::new());
        };
        let words: Vec<String> = value
            .list(EXPECTED)?
            .into_iter()
            .map(|word| word.text(EXPECTED).map(str::to_owned))
            .collect::<Result<_, _>>()?;
        match words.first() {
            Some(program) if program.starts_with('/') => Ok(words),
            _ => Err(value.mismatch(EXPECTED)),
        }
    };
    Ok(Hooks {
        on_done: words("on_done")?,
        on_error: words("on_error")?,
    })
}

/// The service may run elsewhere, and under another search path, than the shell in which a program was tried.
const EXPECTED: &str =
    "a program by its absolute path and its arguments, such as [\"/usr/local/bin/tell\", \"root\"]";

#[cfg(test)]
mod tests {
    use document::Document;

    use super::*;

    fn read(text: &str) -> Result<Hooks, String> {
        let document = Document::parse("c.toml", text).expect("TOML");
        hooks(&document.root()).map_err(|error| error.to_string())
    }

    #[test]
    fn programs_are_lists_that_begin_with_an_absolute_path() {
        assert_eq!(read(""), Ok(Hooks::default()));
        let both =
            read("[hooks]\non_done = [\"/bin/a\"]\non_error = [\"/bin/b\", \"-x\"]").expect("two");
        assert_eq!(both.on_done, ["/bin/a"]);
        assert_eq!(both.on_error, ["/bin/b", "-x"]);
        for wrong in ["\"/bin/a\"", "[]", "[\"a\"]", "[1]"] {
            let refused = read(&format!("[hooks]\non_done = {wrong}")).expect_err("no program");
            assert!(
                refused.contains("c.toml:2") && refused.contains("expected"),
                "{refused}"
            );
        }
        let unknown = read("[hooks]\non_begin = []").expect_err("no such key");
        assert!(unknown.contains("on_begin"), "{unknown}");
    }
}
