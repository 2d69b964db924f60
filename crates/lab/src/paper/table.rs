//! Tables beside the findings: titles, columns, rows.

use serde::Serialize;

/// A table beside the findings of a paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// The names of its columns.
    pub columns: Vec<&'static str>,
    /// How many of the first columns have words; the others have numbers.
    pub words: usize,
    /// Its rows, a cell for each column.
    pub rows: Vec<Vec<String>>,
    /// What follows from the rows.
    pub summary: Option<String>,
}

impl Table {
    /// A table without rows, whose first column has words.
    pub(super) fn new(title: impl Into<String>, columns: &[&'static str]) -> Table {
        Table {
            title: title.into(),
            columns: columns.to_vec(),
            words: 1,
            rows: Vec::new(),
            summary: None,
        }
    }
}
