//! Reads one table of a load or experiment file key by key, so that every complaint names the line and the key,
//! and what was expected there.

use std::collections::BTreeMap;

use toml_edit::{Document, Item, Table, TableLike};

/// What is wrong with a load, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {key}: {problem}")]
pub struct SpecError {
    /// `FILE:LINE`, or the command line.
    pub place: String,
    /// The key or flag.
    pub key: String,
    /// What it is, and what was expected.
    pub problem: String,
}

/// Where the values of a load came from: a file's lines, and flags that replaced some of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    file: String,
    lines: BTreeMap<String, usize>,
    flags: BTreeMap<&'static str, &'static str>,
}

impl Origin {
    /// Of a file, of which no key has been read yet.
    pub fn new(file: &str) -> Self {
        Origin {
            file: file.to_owned(),
            ..Origin::default()
        }
    }

    /// From now on complaints about `section` (or one key of it) name this flag.
    pub fn replaced_by_flag(&mut self, section: &'static str, flag: &'static str) {
        self.flags.insert(section, flag);
    }

    /// A complaint about a key such as `size.kib`.
    pub fn complain(&self, key: &str, problem: impl Into<String>) -> SpecError {
        let section = key.split('.').next().unwrap_or(key);
        let flag = self.flags.get(key).or_else(|| self.flags.get(section));
        let (place, key) = match flag {
            Some(flag) => ("command line".to_owned(), (*flag).to_owned()),
            None => (self.at(self.line_of(key)), key.to_owned()),
        };
        SpecError {
            place,
            key,
            problem: problem.into(),
        }
    }

    /// The line of a key, or of the innermost table around it whose line is known.
    fn line_of(&self, key: &str) -> Option<usize> {
        let mut key = key;
        loop {
            if let Some(&line) = self.lines.get(key) {
                return Some(line);
            }
            match key.rsplit_once('.') {
                Some((around, _)) => key = around,
                None => return self.lines.get(WHOLE).copied(),
            }
        }
    }

    /// The file, with the line if that is known.
    pub fn at(&self, line: Option<usize>) -> String {
        match line {
            Some(line) => format!("{}:{line}", self.file),
            None => self.file.clone(),
        }
    }
}

/// The text as TOML.
pub fn parse<'t>(origin: &Origin, text: &'t str) -> Result<Document<&'t str>, SpecError> {
    Document::parse(text).map_err(|error| SpecError {
        place: origin.at(error.span().map(|span| line_of(text, span.start))),
        key: "not TOML".to_owned(),
        problem: error
            .message()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
    })
}

/// One table; `finish` complains about keys that nobody asked for.
pub struct Section<'a> {
    text: &'a str,
    path: String,
    table: &'a dyn TableLike,
    /// Where it begins, if it is one of a list.
    line: Option<usize>,
    asked: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// The whole document.
    pub fn root(text: &'a str, table: &'a dyn TableLike) -> Self {
        Section {
            text,
            path: String::new(),
            table,
            line: None,
            asked: Vec::new(),
        }
    }

    /// The table under `key`, which has to be there.
    pub fn section(
        &mut self,
        origin: &mut Origin,
        key: &'static str,
    ) -> Result<Section<'a>, SpecError> {
        let item = self.item(origin, key);
        let item = item.ok_or_else(|| {
            self.absent(origin, key, &format!("missing: expected a table [{key}]"))
        })?;
        let table = item.as_table_like().ok_or_else(|| {
            let problem = format!("{}: expected a table [{key}]", shown(item));
            origin.complain(&self.path_of(key), problem)
        })?;
        Ok(Section {
            text: self.text,
            path: self.path_of(key),
            table,
            line: None,
            asked: Vec::new(),
        })
    }

    /// The table under `key`, if it is there.
    pub fn optional_section(
        &mut self,
        origin: &mut Origin,
        key: &'static str,
    ) -> Result<Option<Section<'a>>, SpecError> {
        match self.table.contains_key(key) {
            true => self.section(origin, key).map(Some),
            false => {
                self.asked.push(key);
                Ok(None)
            }
        }
    }

    /// The inline tables of the list under `key`.
    pub fn list(
        &mut self,
        origin: &mut Origin,
        key: &'static str,
        expected: &str,
    ) -> Result<Vec<Section<'a>>, SpecError> {
        let path = self.path_of(key);
        let item = self.item(origin, key);
        let wrong = |origin: &Origin, found: &str| {
            origin.complain(&path, format!("{found}: expected {expected}"))
        };
        let array = match item {
            None => {
                let problem = format!("missing: expected {expected}");
                return Err(self.absent(origin, key, &problem));
            }
            Some(item) => item.as_array().ok_or_else(|| wrong(origin, &shown(item)))?,
        };
        let mut sections = Vec::new();
        for value in array {
            let table = value
                .as_inline_table()
                .ok_or_else(|| wrong(origin, value.to_string().trim()))?;
            sections.push(Section {
                text: self.text,
                path: path.clone(),
                table,
                line: value.span().map(|span| line_of(self.text, span.start)),
                asked: Vec::new(),
            });
        }
        Ok(sections)
    }

    /// The tables `[[key]]`, of which there is at least one.
    pub fn tables(
        &mut self,
        origin: &mut Origin,
        key: &'static str,
    ) -> Result<Vec<Section<'a>>, SpecError> {
        let path = self.path_of(key);
        let expected = format!("expected tables [[{key}]]");
        let Some(item) = self.item(origin, key) else {
            return Err(self.absent(origin, key, &format!("missing: {expected}")));
        };
        let tables = item
            .as_array_of_tables()
            .ok_or_else(|| origin.complain(&path, format!("{}: {expected}", shown(item))))?;
        let section = |table: &'a Table| Section {
            text: self.text,
            path: path.clone(),
            table,
            line: table.span().map(|span| line_of(self.text, span.start)),
            asked: Vec::new(),
        };
        Ok(tables.iter().map(section).collect())
    }

    /// From now on complaints are about this table, not about those of its list before it.
    pub fn begin(&self, origin: &mut Origin) {
        let inside = format!("{}.", self.path);
        origin.lines.retain(|key, _| !key.starts_with(&inside));
        if let Some(line) = self.line {
            origin.lines.insert(self.path.clone(), line);
        }
    }

    /// The table as if it were the whole file: complaints name its keys alone, and their lines.
    pub fn alone(self, origin: &mut Origin) -> Self {
        if let Some(line) = self.line {
            origin.lines.insert(WHOLE.to_owned(), line);
        }
        Section {
            path: String::new(),
            ..self
        }
    }

    /// Whether there is such a key.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// A number, whole or not; `default` if the key is not there, a complaint if there is none.
    pub fn number(
        &mut self,
        origin: &mut Origin,
        key: &'static str,
        default: Option<f64>,
        expected: &str,
    ) -> Result<f64, SpecError> {
        self.value(origin, key, default, expected, |item| {
            item.as_float()
                .or_else(|| item.as_integer().map(|whole| whole as f64))
        })
    }

    /// A whole number that is not negative.
    pub fn whole(
        &mut self,
        origin: &mut Origin,
        key: &'static str,
        default: Option<u64>,
        expected: &str,
    ) -> Result<u64, SpecError> {
        self.value(origin, key, default, expected, |item| {
            item.as_integer()
                .and_then(|whole| u64::try_from(whole).ok())
        })
    }

    /// A text.
    pub fn text(
        &mut self,
        origin: &mut Origin,
        key: &'static str,
        default: Option<String>,
        expected: &str,
    ) -> Result<String, SpecError> {
        self.value(origin, key, default, expected, |item| {
            item.as_str().map(str::to_owned)
        })
    }

    /// Complains about the first key that nobody asked for.
    pub fn finish(self, origin: &Origin) -> Result<(), SpecError> {
        for (key, _) in self.table.iter() {
            if !self.asked.contains(&key) {
                let line = self.table.key(key).and_then(|k| k.span());
                let all = self.asked.join(", ");
                let near = nearest(key, self.asked.iter().copied())
                    .map_or_else(String::new, |near| format!("; did you mean {near}?"));
                return Err(SpecError {
                    place: origin.at(line.map(|span| line_of(self.text, span.start))),
                    key: self.path_of(key),
                    problem: format!("unknown key: expected one of {all}{near}"),
                });
            }
        }
        Ok(())
    }

    fn value<T>(
        &mut self,
        origin: &mut Origin,
        key: &'static str,
        default: Option<T>,
        expected: &str,
        read: impl Fn(&Item) -> Option<T>,
    ) -> Result<T, SpecError> {
        let found = self.item(origin, key);
        let path = self.path_of(key);
        match (found, default) {
            (Some(item), _) => read(item).ok_or_else(|| {
                origin.complain(&path, format!("{}: expected {expected}", shown(item)))
            }),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(self.absent(origin, key, &format!("missing: expected {expected}"))),
        }
    }

    /// A complaint about a key that is not there, or about one that may be the same one mistyped.
    fn absent(&self, origin: &Origin, key: &'static str, problem: &str) -> SpecError {
        let unasked = self.table.iter().map(|(found, _)| found);
        let unasked = unasked.filter(|found| !self.asked.contains(found));
        let Some(mistyped) = nearest(key, unasked) else {
            return origin.complain(&self.path_of(key), problem);
        };
        let span = self.table.key(mistyped).and_then(|found| found.span());
        SpecError {
            place: origin.at(span.map(|span| line_of(self.text, span.start))),
            key: self.path_of(mistyped),
            problem: format!("unknown key; did you mean {key}?"),
        }
    }

    /// What stands under `key`, if anything does.
    pub fn item(&mut self, origin: &mut Origin, key: &'static str) -> Option<&'a Item> {
        self.asked.push(key);
        let (name, item) = self.table.get_key_value(key)?;
        if let Some(span) = name.span() {
            let line = line_of(self.text, span.start);
            origin.lines.insert(self.path_of(key), line);
        }
        Some(item)
    }

    fn path_of(&self, key: &str) -> String {
        match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }
}

/// The number of the line in which the byte at `offset` stands, from 1.
pub fn line_of(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset.min(text.len())];
    1 + before.iter().filter(|&&byte| byte == b'\n').count()
}

/// The one of the keys that may be `key` mistyped.
fn nearest<'k>(key: &str, keys: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    keys.map(|other| (strsim::normalized_damerau_levenshtein(key, other), other))
        .filter(|(likeness, _)| *likeness >= SIMILAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, other)| other)
}

/// The name of what stands around all keys.
const WHOLE: &str = "";

/// How alike such keys are, at least. A choice: one wrong letter in three is still a typing error,
/// and no key that has to be there is as much like another one of its section.
const SIMILAR: f64 = 0.6;

/// A value as it stands in the file, in one line and not too long.
pub fn shown(item: &Item) -> String {
    if item.is_table() || item.is_array_of_tables() {
        return "a table".to_owned();
    }
    let text = item.to_string();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(SHOWN_CHARACTERS) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text,
    }
}

/// How much of a wrong value a complaint repeats: enough to find it, and it stays one line.
const SHOWN_CHARACTERS: usize = 40;
