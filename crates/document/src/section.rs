//! A document, its tables, and their values with the checks of type and range.

use std::fmt::Display;
use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::DocumentError;
use crate::location::{self, Node};
use crate::quantity::Unit;
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
            Some(field) => field.sections(format!("tables [[{key}]]")),
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

/// One value of a document.
#[derive(Clone, Copy, Debug)]
pub struct Field<'d> {
    document: &'d Document<'d>,
    value: &'d Spanned<DeValue<'d>>,
}

/// Errors.
impl<'d> Field<'d> {
    pub(crate) fn new(document: &'d Document<'d>, value: &'d Spanned<DeValue<'d>>) -> Self {
        Field { document, value }
    }

    /// An error about this value.
    pub fn error(&self, problem: impl AsRef<str>) -> DocumentError {
        let path = self.document.path(Node::Value(self.value.get_ref()));
        let start = self.value.span().start;
        self.document.error(start, &path, problem.as_ref())
    }

    /// An error that repeats the value as it is written.
    pub fn mismatch(&self, expected: impl Display) -> DocumentError {
        self.error(format!("{}: expected {expected}", self.shown()))
    }

    /// The value as it is written, in one line; long ones are cut, and tables are only named.
    pub fn shown(&self) -> String {
        let text = self.document.text().get(self.value.span()).unwrap_or("");
        if text.is_empty() || text.starts_with('[') && self.value.get_ref().is_table() {
            return "a table".to_owned();
        }
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match text.char_indices().nth(SHOWN_CHARACTERS) {
            Some((cut, _)) => format!("{}...", &text[..cut]),
            None => text,
        }
    }
}

/// The value, if it has this type.
impl<'d> Field<'d> {
    /// A text, which may be empty.
    pub fn as_text(&self) -> Option<&'d str> {
        match self.value.get_ref() {
            DeValue::String(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number.
    pub fn as_integer(&self) -> Option<i64> {
        match self.value.get_ref() {
            DeValue::Integer(digits) => i64::from_str_radix(digits.as_str(), digits.radix()).ok(),
            _ => None,
        }
    }

    /// A number, whole or not.
    pub fn as_number(&self) -> Option<f64> {
        match self.value.get_ref() {
            DeValue::Float(digits) => digits.as_str().parse().ok(),
            DeValue::Integer(digits) if digits.radix() == 10 => digits.as_str().parse().ok(),
            _ => self.as_integer().map(|whole| whole as f64),
        }
    }

    /// The values of a list.
    pub fn as_list(&self) -> Option<impl ExactSizeIterator<Item = Field<'d>> + use<'d>> {
        let document = self.document;
        match self.value.get_ref() {
            DeValue::Array(values) => {
                Some(values.iter().map(move |value| Field::new(document, value)))
            }
            _ => None,
        }
    }
}

/// The value, checked.
impl<'d> Field<'d> {
    /// A text with at least one visible character, and without NUL.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn text(&self, expected: impl Display) -> Result<&'d str, DocumentError> {
        self.as_text()
            .filter(|text| !text.trim().is_empty() && !text.contains('\0'))
            .ok_or_else(|| self.mismatch(expected))
    }

    /// True or false.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn boolean(&self) -> Result<bool, DocumentError> {
        let value = self.value.get_ref().as_bool();
        value.ok_or_else(|| self.mismatch("true or false"))
    }

    /// A whole number in a range, which `expected` names.
    ///
    /// # Errors
    /// If it is not a whole number, or outside of the range.
    pub fn whole(
        &self,
        range: RangeInclusive<u64>,
        expected: impl Display,
    ) -> Result<u64, DocumentError> {
        self.as_integer()
            .and_then(|number| u64::try_from(number).ok())
            .filter(|number| range.contains(number))
            .ok_or_else(|| self.mismatch(expected))
    }

    /// A whole number in a range; the error names its bounds.
    ///
    /// # Errors
    /// If it is not a whole number, or outside of the range.
    pub fn integer(&self, range: RangeInclusive<i64>) -> Result<i64, DocumentError> {
        self.as_integer()
            .filter(|number| range.contains(number))
            .ok_or_else(|| {
                let (least, most) = (range.start(), range.end());
                self.mismatch(format_args!("a whole number from {least} to {most}"))
            })
    }

    /// A whole number from `least` up to the largest of 32 bits.
    ///
    /// # Errors
    /// If it is not a whole number, or outside of the range.
    pub fn u32(&self, least: u32) -> Result<u32, DocumentError> {
        let number = self.integer(i64::from(least)..=i64::from(u32::MAX))?;
        Ok(number as u32)
    }

    /// A whole number that is not negative.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn u64(&self) -> Result<u64, DocumentError> {
        Ok(self.integer(0..=i64::MAX)? as u64)
    }

    /// A finite number in a range, which `expected` names.
    ///
    /// # Errors
    /// If it is not a number, or outside of the range.
    pub fn number(
        &self,
        range: RangeInclusive<f64>,
        expected: impl Display,
    ) -> Result<f64, DocumentError> {
        self.as_number()
            .filter(|number| number.is_finite() && range.contains(number))
            .ok_or_else(|| self.mismatch(expected))
    }

    /// A finite number in a range, which `expected` names: in this unit, or a text with a unit of its own.
    ///
    /// # Errors
    /// If it is no such quantity, or outside of the range.
    pub fn quantity(
        &self,
        unit: Unit,
        range: RangeInclusive<f64>,
        expected: impl Display,
    ) -> Result<f64, DocumentError> {
        self.as_number()
            .or_else(|| self.as_text().and_then(|text| unit.read(text)))
            .filter(|number| number.is_finite() && range.contains(number))
            .ok_or_else(|| self.mismatch(expected))
    }

    /// A whole number in a range, which `expected` names: of this unit, or a text with a unit of its own.
    ///
    /// # Errors
    /// If it is no such quantity, no whole number of them, or outside of the range.
    pub fn whole_quantity(
        &self,
        unit: Unit,
        range: RangeInclusive<u64>,
        expected: impl Display,
    ) -> Result<u64, DocumentError> {
        match self.as_text().and_then(|text| unit.read_whole(text)) {
            Some(number) if range.contains(&number) => Ok(number),
            _ => self.whole(range, expected),
        }
    }

    /// A finite number in a range; the error names its bounds.
    ///
    /// # Errors
    /// If it is not a number, or outside of the range.
    pub fn number_within(&self, range: RangeInclusive<f64>) -> Result<f64, DocumentError> {
        let (least, most) = (*range.start(), *range.end());
        self.number(range, format_args!("a number from {least} to {most}"))
    }

    /// One of a few words; the error suggests a similar one.
    ///
    /// # Errors
    /// If it is none of them.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, DocumentError> {
        let names = || choices.iter().map(|(name, _)| *name);
        let text = self.as_text();
        if let Some(&(_, found)) = choices.iter().find(|(name, _)| Some(*name) == text) {
            return Ok(found);
        }
        let quoted: Vec<String> = names().map(|name| format!("\"{name}\"")).collect();
        let expected = format!("one of {}", quoted.join(", "));
        Err(match text.and_then(|text| most_similar(text, names())) {
            Some(similar) => self.mismatch(format_args!("{expected}; did you mean \"{similar}\"?")),
            None => self.mismatch(expected),
        })
    }
}

/// Lists and tables.
impl<'d> Field<'d> {
    /// The values of a list.
    ///
    /// # Errors
    /// If it is not a list.
    pub fn list(&self, expected: impl Display) -> Result<Vec<Field<'d>>, DocumentError> {
        let values = self.as_list().ok_or_else(|| self.mismatch(expected))?;
        Ok(values.collect())
    }

    /// What `read` makes of every value of a list.
    ///
    /// # Errors
    /// If it is not a list, or `read` fails.
    pub fn list_of<T>(
        &self,
        read: impl FnMut(Field<'d>) -> Result<T, DocumentError>,
    ) -> Result<Vec<T>, DocumentError> {
        let values = self.as_list().ok_or_else(|| self.mismatch("an array"))?;
        values.map(read).collect()
    }

    /// A value of a list, if it has so many.
    pub fn at(&self, index: usize) -> Option<Field<'d>> {
        self.as_list()?.nth(index)
    }

    /// The values of a list of exactly `N`, which `expected` names.
    ///
    /// # Errors
    /// If it is not a list, or has another length.
    pub fn array<const N: usize>(
        &self,
        expected: impl Display,
    ) -> Result<[Field<'d>; N], DocumentError> {
        let wrong = || self.mismatch(expected);
        match self.value.get_ref() {
            DeValue::Array(values) if values.len() == N => Ok(std::array::from_fn(|index| {
                Field::new(self.document, &values[index])
            })),
            _ => Err(wrong()),
        }
    }

    /// A table with any keys.
    ///
    /// # Errors
    /// If it is not a table.
    pub fn table(&self, expected: impl Display) -> Result<Section<'d>, DocumentError> {
        match self.value.get_ref() {
            DeValue::Table(table) => Ok(Section {
                document: self.document,
                table,
                start: self.value.span().start,
            }),
            _ => Err(self.mismatch(expected)),
        }
    }

    /// A table with no keys but the known ones.
    ///
    /// # Errors
    /// If it is not a table, or has an unknown key.
    pub fn section(&self, known: &[&str]) -> Result<Section<'d>, DocumentError> {
        let section = self.table("a table")?;
        section.only(known)?;
        Ok(section)
    }

    /// The tables of a list.
    ///
    /// # Errors
    /// If it is not a list, or a value of it is not a table.
    pub fn sections(&self, expected: impl Display) -> Result<Vec<Section<'d>>, DocumentError> {
        let values = self.as_list().ok_or_else(|| self.mismatch(&expected))?;
        values.map(|value| value.table(&expected)).collect()
    }
}

/// The longest value that an error repeats: enough to find it, and the error stays one line.
const SHOWN_CHARACTERS: usize = 60;
