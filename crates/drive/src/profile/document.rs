//! A TOML document whose every value knows its key path and its line, for errors that name both.

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Why a text is not a profile. There is one: the first that was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ProfileError {
    /// The file, as it was named to the loader.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The key and those of the tables that it is in; empty if the text is not TOML.
    pub key: String,
    /// What is wrong and what was expected.
    pub message: String,
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// A text and where it came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// Splits the text into its tables.
    pub fn parse(&self) -> Result<Spanned<DeTable<'_>>, ProfileError> {
        DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            self.error(at, String::new(), error.message().to_owned())
        })
    }

    fn error(&self, at: usize, key: String, message: String) -> ProfileError {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        ProfileError {
            file: self.file.to_owned(),
            line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
            key,
            message,
        }
    }
}

/// The way to a value: the last step, and the way to what it is in.
#[derive(Clone, Copy, Debug)]
struct Path<'a> {
    up: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(up) = self.up {
            write!(f, "{up}")?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => match self.up.map(|up| up.step) {
                None | Some(Step::Root) => f.write_str(key),
                Some(_) => write!(f, ".{key}"),
            },
        }
    }
}

/// A table, and the way to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section<'a> {
    source: Source<'a>,
    path: Path<'a>,
    table: &'a DeTable<'a>,
    at: usize,
}

impl<'a> Section<'a> {
    /// The document itself.
    pub fn root(source: Source<'a>, document: &'a Spanned<DeTable<'a>>) -> Self {
        Section {
            source,
            path: Path {
                up: None,
                step: Step::Root,
            },
            table: document.get_ref(),
            at: 0,
        }
    }

    /// Refuses keys that are not in the list, and names the one that was probably meant.
    pub fn only(&self, known: &[&str]) -> Result<(), ProfileError> {
        let mut unknown: Vec<_> = self
            .table
            .iter()
            .filter(|(key, _)| !known.contains(&&**key.get_ref()))
            .map(|(key, _)| key)
            .collect();
        unknown.sort_by_key(|key| key.span().start);
        let Some(key) = unknown.first() else {
            return Ok(());
        };
        let path = Path {
            up: Some(&self.path),
            step: Step::Key(key.get_ref()),
        };
        let message = match nearest(key.get_ref(), known.iter().copied()) {
            Some(near) => format!("unknown key: did you mean `{near}`?"),
            None => format!("unknown key: expected one of {}", known.join(", ")),
        };
        Err(self
            .source
            .error(key.span().start, path.to_string(), message))
    }

    /// The value of a key, if it is there.
    pub fn get<'s>(&'s self, key: &'s str) -> Option<Field<'s>> {
        let value = self.table.get(key)?;
        Some(Field {
            source: self.source,
            path: Path {
                up: Some(&self.path),
                step: Step::Key(key),
            },
            value: value.get_ref(),
            span: value.span(),
        })
    }

    /// The value of a key that has to be there.
    pub fn need<'s>(&'s self, key: &'s str) -> Result<Field<'s>, ProfileError> {
        self.get(key).ok_or_else(|| {
            let path = Path {
                up: Some(&self.path),
                step: Step::Key(key),
            };
            self.source
                .error(self.at, path.to_string(), "missing key".to_owned())
        })
    }

    /// An error about the table as a whole.
    pub fn error(&self, message: String) -> ProfileError {
        self.source.error(self.at, self.path.to_string(), message)
    }
}

/// A value, and the way to it.
#[derive(Clone, Debug)]
pub(super) struct Field<'a> {
    source: Source<'a>,
    path: Path<'a>,
    value: &'a DeValue<'a>,
    span: Range<usize>,
}

impl<'a> Field<'a> {
    /// An error about this value.
    pub fn error(&self, message: String) -> ProfileError {
        self.source
            .error(self.span.start, self.path.to_string(), message)
    }

    fn mismatch(&self, expected: &str) -> ProfileError {
        self.error(format!(
            "{} {}: expected {expected}",
            self.value.type_str(),
            self.excerpt()
        ))
    }

    /// The value as it is written, if it is short.
    fn excerpt(&self) -> &str {
        let text = self.source.text.get(self.span.clone()).unwrap_or("");
        match text.len() {
            0..=40 if !text.contains('\n') => text,
            _ => "...",
        }
    }

    /// A string.
    pub fn text(&self) -> Result<&'a str, ProfileError> {
        match self.value {
            DeValue::String(text) if !text.trim().is_empty() => Ok(text),
            _ => Err(self.mismatch("a string that is not empty")),
        }
    }

    /// True or false.
    pub fn boolean(&self) -> Result<bool, ProfileError> {
        self.value
            .as_bool()
            .ok_or_else(|| self.mismatch("true or false"))
    }

    /// A whole number in a range.
    pub fn integer(&self, range: std::ops::RangeInclusive<i64>) -> Result<i64, ProfileError> {
        let number = match self.value {
            DeValue::Integer(digits) => i64::from_str_radix(digits.as_str(), digits.radix()).ok(),
            _ => None,
        };
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| {
                self.mismatch(&format!(
                    "a whole number from {} to {}",
                    range.start(),
                    range.end()
                ))
            })
    }

    /// A whole number from 0 (or `least`) up to what 32 bits hold.
    pub fn u32(&self, least: u32) -> Result<u32, ProfileError> {
        let number = self.integer(i64::from(least)..=i64::from(u32::MAX))?;
        Ok(number as u32)
    }

    /// A whole number, not negative.
    pub fn u64(&self) -> Result<u64, ProfileError> {
        Ok(self.integer(0..=i64::MAX)? as u64)
    }

    /// A finite number in a range.
    pub fn number(&self, range: std::ops::RangeInclusive<f64>) -> Result<f64, ProfileError> {
        let number = match self.value {
            DeValue::Integer(digits) if digits.radix() == 10 => digits.as_str().parse().ok(),
            DeValue::Float(digits) => digits.as_str().parse().ok(),
            _ => None,
        };
        number
            .filter(|number: &f64| number.is_finite() && range.contains(number))
            .ok_or_else(|| {
                self.mismatch(&format!(
                    "a number from {} to {}",
                    range.start(),
                    range.end()
                ))
            })
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, ProfileError> {
        let names = || {
            let names: Vec<String> = choices
                .iter()
                .map(|(name, _)| format!("\"{name}\""))
                .collect();
            names.join(", ")
        };
        let text = match self.value {
            DeValue::String(text) => text,
            _ => return Err(self.mismatch(&format!("one of {}", names()))),
        };
        choices
            .iter()
            .find(|(name, _)| name == text)
            .map(|&(_, value)| value)
            .ok_or_else(|| self.error(format!("\"{text}\": expected one of {}", names())))
    }

    /// How many values an array has.
    pub fn len(&self) -> Result<usize, ProfileError> {
        match self.value {
            DeValue::Array(values) => Ok(values.len()),
            _ => Err(self.mismatch("an array")),
        }
    }

    /// A value of an array that has it.
    pub fn at<'s>(&'s self, index: usize) -> Result<Field<'s>, ProfileError> {
        match self.value {
            DeValue::Array(values) if index < values.len() => Ok(Field {
                source: self.source,
                path: Path {
                    up: Some(&self.path),
                    step: Step::Index(index),
                },
                value: values[index].get_ref(),
                span: values[index].span(),
            }),
            DeValue::Array(values) => Err(self.error(format!(
                "{} values: expected at least {}",
                values.len(),
                index + 1
            ))),
            _ => Err(self.mismatch("an array")),
        }
    }

    /// Refuses arrays of any other length.
    pub fn exactly(&self, length: usize, meaning: &str) -> Result<(), ProfileError> {
        match self.value {
            DeValue::Array(values) if values.len() == length => Ok(()),
            _ => Err(self.mismatch(meaning)),
        }
    }

    /// Every value of an array.
    pub fn list<T>(
        &self,
        mut read: impl FnMut(Field<'_>) -> Result<T, ProfileError>,
    ) -> Result<Vec<T>, ProfileError> {
        (0..self.len()?)
            .map(|index| read(self.at(index)?))
            .collect()
    }

    /// A table, whatever its keys.
    pub fn table<'s>(&'s self) -> Result<Section<'s>, ProfileError> {
        match self.value {
            DeValue::Table(table) => Ok(Section {
                source: self.source,
                path: self.path,
                table,
                at: self.span.start,
            }),
            _ => Err(self.mismatch("a table")),
        }
    }

    /// A table with no keys but the known ones.
    pub fn section<'s>(&'s self, known: &[&str]) -> Result<Section<'s>, ProfileError> {
        let section = self.table()?;
        section.only(known)?;
        Ok(section)
    }
}

/// The known name that is most like a mistyped one, if it is like it at all: at most a third of
/// the letters differ.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|candidate| (distance(name, candidate), candidate))
        .min()
        .filter(|(distance, candidate)| distance * 3 <= candidate.len().max(3))
        .map(|(_, candidate)| candidate)
}

/// How many letters have to be inserted, removed or replaced (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
