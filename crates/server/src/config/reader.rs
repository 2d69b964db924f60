//! Reads a configuration key by key, so that every complaint names the line, the key, and what was
//! expected there.

use std::fmt;
use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong with a configuration: the first thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The key and those of the tables that it is in; empty if the text is not TOML.
    pub key: String,
    /// What it is, and what was expected.
    pub problem: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.problem)
    }
}

/// A text and where it came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl<'a> Source<'a> {
    /// Splits the text into its tables.
    pub(super) fn parse(&self) -> Result<Spanned<DeTable<'a>>, ConfigError> {
        DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let problem: Vec<&str> = error.message().split_whitespace().collect();
            self.error(
                at,
                String::new(),
                format!("not TOML: {}", problem.join(" ")),
            )
        })
    }

    fn error(&self, at: usize, key: String, problem: String) -> ConfigError {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        ConfigError {
            file: self.file.to_owned(),
            line: 1 + before.iter().filter(|&&byte| byte == b'\n').count(),
            key: one_line(&key),
            problem: one_line(&problem),
        }
    }
}

/// A table, and the way to it.
#[derive(Clone, Debug)]
pub(super) struct Table<'a> {
    source: Source<'a>,
    path: String,
    table: &'a DeTable<'a>,
    at: usize,
}

/// A value, and the way to it.
#[derive(Clone, Debug)]
pub(super) struct Value<'a> {
    source: Source<'a>,
    path: String,
    value: &'a DeValue<'a>,
    span: Range<usize>,
}

impl<'a> Table<'a> {
    /// The document itself.
    pub(super) fn root(source: Source<'a>, document: &'a Spanned<DeTable<'a>>) -> Self {
        Table {
            source,
            path: String::new(),
            table: document.get_ref(),
            at: 0,
        }
    }

    /// Refuses keys that are not in the list, and names the one that was probably meant.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), ConfigError> {
        let unknown = self
            .table
            .keys()
            .filter(|key| !known.contains(&&**key.get_ref()));
        let Some(key) = unknown.min_by_key(|key| key.span().start) else {
            return Ok(());
        };
        let name: &str = key.get_ref();
        let problem = match nearest(name, known.iter().copied()) {
            Some(near) => format!("unknown key: did you mean {near}?"),
            None => format!("unknown key: expected one of {}", known.join(", ")),
        };
        let path = self.path_of(name);
        Err(self.source.error(key.span().start, path, problem))
    }

    /// The value of a key, if it is there.
    pub(super) fn get(&self, key: &str) -> Option<Value<'a>> {
        let value = self.table.get(key)?;
        Some(Value {
            source: self.source,
            path: self.path_of(key),
            value: value.get_ref(),
            span: value.span(),
        })
    }

    /// The value of a key that has to be there.
    pub(super) fn need(&self, key: &str, expected: &str) -> Result<Value<'a>, ConfigError> {
        self.get(key).ok_or_else(|| {
            let problem = format!("missing key: expected {expected}");
            self.source.error(self.at, self.path_of(key), problem)
        })
    }

    /// The tables `[[key]]`; none if the key is not there.
    pub(super) fn tables(&self, key: &str) -> Result<Vec<Table<'a>>, ConfigError> {
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(value) => value.tables(),
        }
    }

    /// The table `[key]`, with no keys but the known ones.
    pub(super) fn table(
        &self,
        key: &str,
        known: &[&str],
    ) -> Result<Option<Table<'a>>, ConfigError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let table = value.table("a table")?;
        table.only(known)?;
        Ok(Some(table))
    }

    /// A complaint about the table as a whole.
    pub(super) fn error(&self, problem: String) -> ConfigError {
        self.source.error(self.at, self.path.clone(), problem)
    }

    /// A complaint about a key that is missing.
    pub(super) fn missing(&self, key: &str, problem: String) -> ConfigError {
        self.source.error(self.at, self.path_of(key), problem)
    }

    fn path_of(&self, key: &str) -> String {
        match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }
}

impl<'a> Value<'a> {
    /// A complaint about this value.
    pub(super) fn error(&self, problem: String) -> ConfigError {
        self.source
            .error(self.span.start, self.path.clone(), problem)
    }

    /// A complaint that repeats the value as it is written.
    pub(super) fn mismatch(&self, expected: &str) -> ConfigError {
        let text = self.source.text.get(self.span.clone()).unwrap_or("");
        let shown = match text.len() {
            1..=SHOWN_BYTES if !text.contains('\n') => text,
            _ => self.value.type_str(),
        };
        self.error(format!("{shown}: expected {expected}"))
    }

    /// A text that is not empty.
    pub(super) fn text(&self, expected: &str) -> Result<&'a str, ConfigError> {
        match self.value {
            DeValue::String(text) if !text.trim().is_empty() && !text.contains('\0') => Ok(text),
            _ => Err(self.mismatch(expected)),
        }
    }

    /// True or false.
    pub(super) fn boolean(&self) -> Result<bool, ConfigError> {
        self.value
            .as_bool()
            .ok_or_else(|| self.mismatch("true or false"))
    }

    /// A whole number in a range, which `expected` names.
    pub(super) fn whole(
        &self,
        range: RangeInclusive<u64>,
        expected: &str,
    ) -> Result<u64, ConfigError> {
        self.integer()
            .filter(|whole| range.contains(whole))
            .ok_or_else(|| self.mismatch(expected))
    }

    /// A finite number in a range, which `expected` names.
    pub(super) fn number(
        &self,
        range: RangeInclusive<f64>,
        expected: &str,
    ) -> Result<f64, ConfigError> {
        let number = match self.value {
            DeValue::Integer(digits) if digits.radix() == 10 => digits.as_str().parse().ok(),
            DeValue::Float(digits) => digits.as_str().parse().ok(),
            _ => None,
        };
        number
            .filter(|number: &f64| range.contains(number))
            .ok_or_else(|| self.mismatch(expected))
    }

    /// One of a few words; a similar one is suggested.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, ConfigError> {
        let names: Vec<String> = choices
            .iter()
            .map(|(name, _)| format!("\"{name}\""))
            .collect();
        let expected = format!("one of {}", names.join(", "));
        let text = self.text(&expected)?;
        if let Some(&(_, found)) = choices.iter().find(|(name, _)| *name == text) {
            return Ok(found);
        }
        match nearest(text, choices.iter().map(|(name, _)| *name)) {
            Some(near) => Err(self.mismatch(&format!("{expected}; did you mean \"{near}\"?"))),
            None => Err(self.mismatch(&expected)),
        }
    }

    /// Bytes: a whole number, or a text such as "64 GiB". At most what a file can have.
    pub(super) fn bytes(&self, multiple: u64) -> Result<u64, ConfigError> {
        let bytes = match self.value {
            DeValue::String(text) => bytes_of(text),
            _ => self.integer(),
        };
        bytes
            .filter(|bytes| *bytes <= MOST_BYTES && bytes.is_multiple_of(multiple))
            .ok_or_else(|| {
                self.mismatch(&format!(
                    "bytes, or a text such as \"64 GiB\" or \"500 GB\", a multiple of {multiple} bytes"
                ))
            })
    }

    /// The tables of a list.
    pub(super) fn tables(&self) -> Result<Vec<Table<'a>>, ConfigError> {
        let key = self.path.rsplit('.').next().unwrap_or_default();
        let expected = format!("tables [[{key}]]");
        let each = self.elements(&expected)?;
        each.iter().map(|value| value.table(&expected)).collect()
    }

    /// The values of a list.
    pub(super) fn elements(&self, expected: &str) -> Result<Vec<Value<'a>>, ConfigError> {
        let DeValue::Array(values) = self.value else {
            return Err(self.mismatch(expected));
        };
        let element = |(index, value): (usize, &'a Spanned<DeValue<'a>>)| Value {
            source: self.source,
            path: format!("{}[{index}]", self.path),
            value: value.get_ref(),
            span: value.span(),
        };
        Ok(values.iter().enumerate().map(element).collect())
    }

    fn table(&self, expected: &str) -> Result<Table<'a>, ConfigError> {
        match self.value {
            DeValue::Table(table) => Ok(Table {
                source: self.source,
                path: self.path.clone(),
                table,
                at: self.span.start,
            }),
            _ => Err(self.mismatch(expected)),
        }
    }

    fn integer(&self) -> Option<u64> {
        match self.value {
            DeValue::Integer(digits) => u64::from_str_radix(digits.as_str(), digits.radix()).ok(),
            _ => None,
        }
    }
}

/// A number and a unit.
fn bytes_of(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit = UNITS.iter().find(|(name, _)| *name == unit.trim_start())?;
    number.parse::<u64>().ok()?.checked_mul(unit.1)
}

/// Binary and decimal, as drives are sold.
const UNITS: [(&str, u64); 10] = [
    ("", 1),
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

/// The longest file that Linux has.
const MOST_BYTES: u64 = i64::MAX as u64;

/// How much of a wrong value a complaint repeats: enough to find it, and it stays one line.
const SHOWN_BYTES: usize = 60;

/// The known name that may be `name` mistyped.
pub(super) fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    known
        .map(|other| (strsim::normalized_damerau_levenshtein(name, other), other))
        .filter(|(likeness, _)| *likeness >= SIMILAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, other)| other)
}

/// How alike such names are, at least. A choice, as for loads: one wrong letter in three.
const SIMILAR: f64 = 0.6;

/// Keys and values may have line ends in them, complaints may not.
fn one_line(text: &str) -> String {
    text.replace(|letter: char| letter.is_control(), " ")
}
