//! Tables below the findings.

use serde::Serialize;

/// A table below the findings of a paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// The title.
    pub title: String,
    /// The names of its columns.
    pub columns: Vec<&'static str>,
    /// The number of leading columns with words. The others have numbers.
    pub words: usize,
    /// The rows: a cell for each column.
    pub rows: Vec<Vec<String>>,
    /// A conclusion from the rows.
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
