//! Text that fits the terminal: long lines continue on the next one, and wide tables below.
//!
//! ```text
//!   not a terminal, or wide          narrow
//!                mean   p50   p99                 mean   p50
//!   all   fcfs    3.1   2.9   8.0    all   fcfs    3.1   2.9
//!                                                  p99
//!                                    all   fcfs    8.0
//! ```

use std::io::stdout;

use rustix::termios::{isatty, tcgetwinsize};

/// The columns of the terminal of standard output; no limit if it is none, so that redirected output is the same
/// everywhere.
pub fn of_terminal() -> usize {
    let out = stdout();
    match isatty(&out).then(|| tcgetwinsize(&out)) {
        Some(Ok(size)) if size.ws_col > 0 => usize::from(size.ws_col).max(NARROWEST),
        _ => usize::MAX,
    }
}

/// Columns below which nothing is made narrower: labels of rows and one figure beside them. A choice.
const NARROWEST: usize = 40;

/// A table whose columns are as wide as their cells: all cells of a column have the same width, blanks included.
#[derive(Clone, Debug, Default)]
pub struct FittedTable(Vec<(String, Vec<String>)>);

impl FittedTable {
    /// Appends a row. Its label is repeated where the table continues.
    pub fn push(&mut self, label: String, cells: Vec<String>) {
        self.0.push((label, cells));
    }

    /// The table in lines of at most so many columns. Columns that do not fit follow below.
    pub fn text(&self, width: usize) -> String {
        let label = self.0.iter().map(|(label, _)| length(label)).max();
        let widths = self.widths();
        let mut text = String::new();
        let mut begin = 0;
        while begin == 0 || begin < widths.len() {
            let mut used = label.unwrap_or(0);
            let mut end = begin;
            while end < widths.len() && (end == begin || used + widths[end] <= width) {
                used += widths[end];
                end += 1;
            }
            for (label, cells) in &self.0 {
                let cells = cells.iter().take(end).skip(begin);
                let line = cells.fold(label.clone(), |line, cell| line + cell);
                text.push_str(line.trim_end());
                text.push('\n');
            }
            begin = end.max(1);
        }
        text
    }

    /// The width of each column.
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = Vec::new();
        for (_, cells) in &self.0 {
            widths.resize(widths.len().max(cells.len()), 0);
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = length(cell).max(*width);
            }
        }
        widths
    }
}

/// The text in lines of at most so many columns. A line that is longer continues in the next one, further to the
/// right; a word that is longer stays whole.
pub fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        wrap(line, width, &mut out);
        out.push_str(end);
    }
    out
}

/// Appends a line.
fn wrap(line: &str, width: usize, out: &mut String) {
    if length(line) <= width {
        return out.push_str(line);
    }
    let indent = line.len() - line.trim_start().len();
    let further = " ".repeat((indent + FURTHER).min(width / 2));
    let mut rest = line;
    let mut before = String::new();
    while length(&before) + length(rest) > width {
        let room = width.saturating_sub(length(&before));
        let start = rest.len() - rest.trim_start().len();
        let fits = rest.char_indices().take(room + 1);
        let cut = fits
            .filter(|&(at, letter)| letter == ' ' && at > start)
            .last();
        // A word that does not fit stays whole.
        let cut = cut.map(|(at, _)| at).or_else(|| {
            let next = rest[start..].find(' ')?;
            Some(start + next)
        });
        let Some(cut) = cut else { break };
        out.push_str(&before);
        out.push_str(rest[..cut].trim_end());
        out.push('\n');
        rest = rest[cut..].trim_start();
        before.clone_from(&further);
    }
    out.push_str(&before);
    out.push_str(rest);
}

/// Columns by which the rest of a line is further to the right. A choice.
const FURTHER: usize = 4;

fn length(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_blanks_and_lose_no_word() {
        let text = "  name  a few words, and more of them\nshort\n  a-word-that-is-longer-than-the-terminal fits nowhere";
        for width in [10, 16, 20, 30, 200] {
            let wrapped = wrapped(text, width);
            let words = |text: &str| {
                text.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            assert_eq!(words(&wrapped), words(text), "{width}");
            for line in wrapped.lines() {
                let is_one_word = line.split_whitespace().count() == 1;
                assert!(length(line) <= width || is_one_word, "{width}: {line:?}");
            }
        }
        assert_eq!(wrapped(text, 200), text);
        assert_eq!(wrapped("  ab cd ef gh", 9), "  ab cd\n    ef gh");
    }

    #[test]
    fn columns_that_do_not_fit_follow_below() {
        let mut table = FittedTable::default();
        table.push(
            " ".repeat(5),
            ["  one", "  two", " three"].map(str::to_owned).to_vec(),
        );
        table.push(
            "row  ".into(),
            ["    1", "    2", "     3"].map(str::to_owned).to_vec(),
        );
        table.push("none ".into(), vec!["    0".into()]);
        let whole = "       one  two three\nrow      1    2     3\nnone     0\n";
        assert_eq!(table.text(usize::MAX), whole);
        assert_eq!(table.text(21), whole);
        let parts =
            "       one  two\nrow      1    2\nnone     0\n      three\nrow       3\nnone\n";
        assert_eq!(table.text(20), parts);
        assert_eq!(table.text(1).lines().count(), 9, "at least one column each");
        assert_eq!(FittedTable::default().text(80), "");
    }
}
