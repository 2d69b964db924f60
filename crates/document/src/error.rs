//! The one error of all files.

/// The first mistake in a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{file}{}: {}{problem}",
    line.map_or_else(String::new, |line| format!(":{line}")),
    if key.is_empty() { String::new() } else { format!("{key}: ") }
)]
pub struct DocumentError {
    /// The file, as it was named to the parser; or another origin of the value, such as "command line".
    pub file: String,
    /// The line, counted from 1, if the value stands in a file.
    pub line: Option<usize>,
    /// The key with those of the tables around it, such as `drive[0].volume[1].size`; empty if the text is not
    /// TOML.
    pub key: String,
    /// The value, and what was expected. One line.
    pub problem: String,
}

impl DocumentError {
    /// An error at a place. Line ends and other control characters of the key and the problem become spaces.
    pub fn new(file: &str, line: Option<usize>, key: &str, problem: &str) -> Self {
        let one_line = |text: &str| text.replace(|letter: char| letter.is_control(), " ");
        DocumentError {
            file: file.to_owned(),
            line,
            key: one_line(key),
            problem: one_line(problem),
        }
    }
}
