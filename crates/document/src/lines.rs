//! The lines of a document's keys, for checks that come when the text is gone.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use crate::error::DocumentError;
use crate::location;
use crate::section::Section;

/// The lines of the keys of one table. An empty one, the default, knows no line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    file: String,
    start: Option<usize>,
    keys: BTreeMap<String, usize>,
}

impl Section<'_> {
    /// The lines of all keys of this table and of those below it. Paths begin in this table.
    pub fn lines(&self) -> Lines {
        let mut lines = Lines {
            file: self.document.file().to_owned(),
            start: (self.start > 0).then(|| location::line(self.document.text(), self.start)),
            keys: BTreeMap::new(),
        };
        lines.add(self.document.text(), self.table, "");
        lines
    }
}

impl Lines {
    /// An error about the value of a key such as `size.kib`, at its line or at that of the table around it.
    pub fn error(&self, key: &str, problem: &str) -> DocumentError {
        DocumentError::new(&self.file, self.line(key), key, problem)
    }

    fn line(&self, key: &str) -> Option<usize> {
        let mut key = key;
        loop {
            if let Some(&line) = self.keys.get(key) {
                return Some(line);
            }
            match key.rsplit_once('.') {
                Some((around, _)) => key = around,
                None => return self.start,
            }
        }
    }

    fn add(&mut self, text: &str, table: &DeTable<'_>, path: &str) {
        for (key, value) in table {
            let path = location::join(path, key.get_ref());
            let line = location::line(text, key.span().start);
            if let DeValue::Table(table) = value.get_ref() {
                self.add(text, table, &path);
            }
            self.keys.insert(path, line);
        }
    }
}
