//! A document and its tables.

use toml::Spanned;
use toml::de::DeTable;

use crate::error::DocumentError;
use crate::field::Field;
use crate::location::{self, Node};
use crate::similar::most_similar;

/// A TOML text and the name of its file.
#[derive(Clone, Debug)]
pub struct Document<'t> {
    file: &'t str,
    text: &'t str,
    root: Spanned<DeTable<'t>>,
}

impl<'t> Document<'t> {
    /// Splits a text into its tables; `file` is its name in errors.
    ///
    /// # Errors
    /// If the text is not TOML.
    pub fn parse(file: &'t str, text: &'t str) -> Result<Self, DocumentError> {
        let root = DeTable::parse(text).map_err(|error| {
            let line = location::line(text, error.span().map_or(0, |span| span.start));
            let words: Vec<&str> = error.message().split_whitespace().collect();
            let problem = format!("not TOML: {}", words.join(" "));
            DocumentError::new(file, Some(line), "", &problem)
        })?;
        Ok(Document { file, text, root })
    }

    /// The table of everything.
    pub fn root(&self) -> Section<'_> {
        Section {
            document: self,
            table: self.root.get_ref(),
            start: 0,
        }
    }

    pub(crate) fn file(&self) -> &str {
        self.file
    }

    pub(crate) fn text(&self) -> &str {
        self.text
    }

    pub(crate) fn path(&self, node: Node<'_>) -> String {
        location::path(self.root.get_ref(), node)
    }

    pub(crate) fn error(&self, offset: usize, key: &str, problem: &str) -> DocumentError {
        let line = location::line(self.text, offset);
        DocumentError::new(self.file, Some(line), key, problem)
    }
}

/// One table of a document.
#[derive(Clone, Copy, Debug)]
pub struct Section<'d> {
    pub(crate) document: &'d Document<'d>,
    pub(crate) table: &'d DeTable<'d>,
    /// The offset of its header or its opening brace.
    pub(crate) start: usize,
}

impl<'d> Section<'d> {
    /// Refuses keys that are not in the list, and suggests the similar one.
    ///
    /// # Errors
    /// The first unknown key of the file.
    pub fn only(&self, known: &[&str]) -> Result<(), DocumentError> {
        let keys = self.table.keys();
        let unknown = keys.filter(|key| !known.contains(&&**key.get_ref()));
        let Some(key) = unknown.min_by_key(|key| key.span().start) else {
            return Ok(());
        };
        let name: &str = key.get_ref();
        let problem = match most_similar(name, known.iter().copied()) {
            Some(similar) => format!("unknown key: did you mean `{similar}`?"),
            None => format!("unknown key: expected one of {}", known.join(", ")),
        };
        let path = location::join(&self.path(), name);
        Err(self.document.error(key.span().start, &path, &problem))
    }

    /// Whether the key is there.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// The value of a key, if it is there.
    pub fn get(&self, key: &str) -> Option<Field<'d>> {
        let value = self.table.get(key)?;
        Some(Field::new(self.document, value))
    }

    /// The value of a key that must be there.
    ///
    /// # Errors
    /// If it is missing.
    pub fn need(&self, key: &str, expected: &str) -> Result<Field<'d>, DocumentError> {
        self.get(key)
            .ok_or_else(|| self.missing(key, &format!("missing key: expected {expected}")))
    }

    /// The text of a key that must be there. It may be empty.
    ///
    /// # Errors
    /// If it is missing, or no text.
    pub fn text(&self, key: &str, expected: &str) -> Result<&'d str, DocumentError> {
        let field = self.need(key, expected)?;
        field.as_text().ok_or_else(|| field.mismatch(expected))
    }

    /// The finite number of a key that must be there.
    ///
    /// # Errors
    /// If it is missing, or no finite number.
    pub fn number(&self, key: &str, expected: &str) -> Result<f64, DocumentError> {
        self.need(key, expected)?
            .number(f64::MIN..=f64::MAX, expected)
    }

    /// The whole number, not negative, of a key that must be there.
    ///
    /// # Errors
    /// If it is missing, or anything else.
    pub fn whole(&self, key: &str, expected: &str) -> Result<u64, DocumentError> {
        self.need(key, expected)?.whole(0..=u64::MAX, expected)
    }

    /// The table under a key, with no keys but the known ones, if it is there.
    ///
    /// # Errors
    /// If the value is not a table, or has an unknown key.
    pub fn section(&self, key: &str, known: &[&str]) -> Result<Option<Section<'d>>, DocumentError> {
        self.get(key).map(|field| field.section(known)).transpose()
    }

    /// The table under a key that must be there, with no keys but the known ones.
    ///
    /// # Errors
    /// If it is missing, not a table, or has an unknown key.
    pub fn need_section(&self, key: &str, known: &[&str]) -> Result<Section<'d>, DocumentError> {
        self.need(key, &format!("a table [{key}]"))?.section(known)
    }

    /// The tables `[[key]]`; none if the key is not there.
    ///
    /// # Errors
    /// If the value is not a list of tables.
    pub fn sections(&self, key: &str) -> Result<Vec<Section<'d>>, DocumentError> {
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(field) => field.sections(&format!("tables [[{key}]]")),
        }
    }

    /// An error about the table as a whole.
    pub fn error(&self, problem: impl AsRef<str>) -> DocumentError {
        let path = self.path();
        self.document.error(self.start, &path, problem.as_ref())
    }

    /// An error about a key that is not there.
    pub fn missing(&self, key: &str, problem: &str) -> DocumentError {
        let path = location::join(&self.path(), key);
        self.document.error(self.start, &path, problem)
    }

    fn path(&self) -> String {
        self.document.path(Node::Table(self.table))
    }
}
