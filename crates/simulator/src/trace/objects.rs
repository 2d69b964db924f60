//! Traces of caches: a number of an object in each line or record, as libCacheSim reads them.
//!
//! | Format | A record |
//! |---|---|
//! | `oracle-general` | 24 bytes, little endian: time 4, object 8, size 4, next demand 8 |
//! | `csv` | fields of a line; [`ObjectColumns`] says which is the object |
//!
//! Source: libCacheSim, `oracleGeneral` and `csv`. Sizes are not used: each object is one block. A
//! compressed file (zstd) is decompressed transparently.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;

use super::lines::{Lines, NextLine};
use super::reader::{columns, decompressed};

/// A format of these traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectFormat {
    /// libCacheSim's binary format.
    OracleGeneral,
    /// Lines of fields.
    Csv(ObjectColumns),
}

/// The fields of a line, in the words of libCacheSim's `-t`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectColumns {
    /// The field of the object, from 1.
    pub object: usize,
    /// What separates fields.
    pub delimiter: u8,
    /// Whether the first line has names.
    pub first_line: FirstLine,
}

/// The first line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstLine {
    /// A demand, as all others.
    #[default]
    Demand,
    /// The names of the fields.
    Names,
}

/// The error of a trace of objects.
#[derive(Debug, thiserror::Error)]
pub enum ObjectTraceError {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// The error.
        source: io::Error,
    },
    /// A line or a record is bad.
    #[error("{file}:{place}: {found}: expected {expected}")]
    Bad {
        /// The file.
        file: String,
        /// The number of the line or the record, from 1.
        place: u64,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// The trace has no demand.
    #[error("{file}: no demand: expected at least one")]
    Empty {
        /// The file.
        file: String,
    },
}

/// Bytes of a record of `oracleGeneral`.
const RECORD: usize = 24;

impl ObjectColumns {
    /// Parses libCacheSim's words: `obj-id-col=5, delimiter=;, has-header=true`. Columns of times and sizes are
    /// accepted and not used.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut columns = ObjectColumns {
            object: 0,
            delimiter: b',',
            first_line: FirstLine::default(),
        };
        for word in text
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
        {
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| format!("\"{word}\": expected KEY=VALUE"))?;
            match key.trim() {
                "obj-id-col" => columns.object = column(key, value)?,
                "time-col" | "obj-size-col" | "op-col" | "tenant-col" => drop(column(key, value)?),
                "obj-id-is-num" => drop(truth(key, value)?),
                "has-header" => {
                    columns.first_line = match truth(key, value)? {
                        true => FirstLine::Names,
                        false => FirstLine::Demand,
                    }
                }
                "delimiter" => columns.delimiter = delimiter(value)?,
                _ => {
                    return Err(format!(
                        "\"{key}\": expected obj-id-col, delimiter, has-header, time-col, obj-size-col, op-col, \
                         tenant-col or obj-id-is-num"
                    ));
                }
            }
        }
        match columns.object {
            0 => {
                Err("no obj-id-col: expected the number of the object's column, from 1".to_owned())
            }
            _ => Ok(columns),
        }
    }
}

fn column(key: &str, value: &str) -> Result<usize, String> {
    match value.trim().parse() {
        Ok(number @ 1..=1_000) => Ok(number),
        _ => Err(format!("{key}={value}: expected a column, 1 to 1000")),
    }
}

fn truth(key: &str, value: &str) -> Result<bool, String> {
    match value.trim() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("{key}={value}: expected true or false")),
    }
}

fn delimiter(value: &str) -> Result<u8, String> {
    match value.as_bytes() {
        // A comma separates the words themselves, so that the value is empty there.
        [] => Ok(b','),
        b"\\t" | b"tab" => Ok(b'\t'),
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err(format!("delimiter={value}: expected one character, or tab")),
    }
}

/// What a reader gives objects to. It ends the reading with `Break`.
pub type Each<'a> = &'a mut dyn FnMut(&[u64]) -> ControlFlow<()>;

/// Objects that a reader gives at a time, at most. A choice: a piece of a file fits the processor's second cache.
const PIECE: usize = 1 << 12;

/// Reads all demands of the trace in `path`: the numbers of the demanded objects, some at a time.
///
/// # Errors
/// If the file cannot be read, a record is bad, or there is none.
pub fn read(path: &Path, format: &ObjectFormat, each: Each<'_>) -> Result<(), ObjectTraceError> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|source| unreadable(&name, source))?;
    read_from(&name, file, format, each)
}

/// Reads all demands of `input`, with `name` for messages.
///
/// # Errors
/// As [`read`].
pub fn read_from(
    name: &str,
    input: impl Read + Send + 'static,
    format: &ObjectFormat,
    each: Each<'_>,
) -> Result<(), ObjectTraceError> {
    let plain = decompressed(input).map_err(|source| unreadable(name, source))?;
    let demands = match format {
        ObjectFormat::OracleGeneral => records(name, plain, each)?,
        ObjectFormat::Csv(columns) => lines(name, plain, columns, each)?,
    };
    match demands {
        0 => Err(ObjectTraceError::Empty {
            file: name.to_owned(),
        }),
        _ => Ok(()),
    }
}

fn unreadable(file: &str, source: io::Error) -> ObjectTraceError {
    ObjectTraceError::Unreadable {
        file: file.to_owned(),
        source,
    }
}

/// Refuses a Parquet or Arrow file.
fn refuse_columns(name: &str, head: &[u8], expected: &str) -> Result<(), ObjectTraceError> {
    match columns(head) {
        None => Ok(()),
        Some(found) => Err(ObjectTraceError::Bad {
            file: name.to_owned(),
            place: 1,
            found: found.to_owned(),
            expected: expected.to_owned(),
        }),
    }
}

/// The demands of `oracleGeneral`. Returns their number.
fn records(
    name: &str,
    mut input: Box<dyn Read + Send>,
    each: Each<'_>,
) -> Result<u64, ObjectTraceError> {
    let mut bytes = vec![0; PIECE * RECORD];
    let mut objects = Vec::with_capacity(PIECE);
    let mut count = 0;
    loop {
        let held = fill(&mut *input, &mut bytes).map_err(|error| unreadable(name, error))?;
        if count == 0 {
            refuse_columns(name, &bytes[..held], "records of oracleGeneral")?;
        }
        let (records, rest) = bytes[..held].as_chunks::<RECORD>();
        objects.clear();
        objects.extend(records.iter().map(|record| {
            let mut object = [0; 8];
            object.copy_from_slice(&record[4..12]);
            u64::from_le_bytes(object)
        }));
        count += objects.len() as u64;
        if !objects.is_empty() && each(&objects).is_break() {
            return Ok(count);
        }
        if !rest.is_empty() {
            return Err(ObjectTraceError::Bad {
                file: name.to_owned(),
                place: count + 1,
                found: format!("a record of {} bytes", rest.len()),
                expected: format!("{RECORD}, as oracleGeneral has"),
            });
        }
        if held < bytes.len() {
            return Ok(count);
        }
    }
}

/// Reads until the end or until all bytes are there. Returns their number.
fn fill(input: &mut dyn Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut held = 0;
    while held < bytes.len() {
        match input.read(&mut bytes[held..]) {
            Ok(0) => break,
            Ok(more) => held += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(held)
}

/// The demands of lines. Objects whose names are no numbers are numbered from the upper end. Returns the number of
/// demands.
fn lines(
    name: &str,
    input: Box<dyn Read + Send>,
    columns: &ObjectColumns,
    each: Each<'_>,
) -> Result<u64, ObjectTraceError> {
    let mut lines = Lines::new(input);
    refuse_columns(name, lines.head(), "lines of fields")?;
    let mut names: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    let mut objects = Vec::with_capacity(PIECE);
    let (mut count, mut place) = (0, 0);
    loop {
        place += 1;
        let bad = |found: String, expected: String| ObjectTraceError::Bad {
            file: name.to_owned(),
            place,
            found,
            expected,
        };
        let line = match lines.next().map_err(|error| unreadable(name, error))? {
            NextLine::Line(line) | NextLine::Unended(line) => line,
            NextLine::End => {
                if !objects.is_empty() {
                    // Nothing is left to read.
                    let _ = each(&objects);
                }
                return Ok(count);
            }
            NextLine::TooLong => {
                let expected = format!("at most {} bytes", super::MAX_LINE_BYTES);
                return Err(bad("a longer line".to_owned(), expected));
            }
        };
        if line.is_empty() || (place == 1 && columns.first_line == FirstLine::Names) {
            continue;
        }
        let mut fields = line.split(|&byte| byte == columns.delimiter);
        let Some(object) = fields.nth(columns.object - 1).map(<[u8]>::trim_ascii) else {
            let found = format!(
                "{} fields",
                line.split(|&byte| byte == columns.delimiter).count()
            );
            return Err(bad(
                found,
                format!("the object in field {}", columns.object),
            ));
        };
        if object.is_empty() {
            let expected = format!("the object in field {}", columns.object);
            return Err(bad("an empty field".to_owned(), expected));
        }
        let number = std::str::from_utf8(object)
            .ok()
            .and_then(|text| text.parse().ok());
        let number = number.unwrap_or_else(|| {
            let next = u64::MAX - names.len() as u64;
            *names.entry(object.to_vec()).or_insert(next)
        });
        objects.push(number);
        count += 1;
        if objects.len() == PIECE {
            if each(&objects).is_break() {
                return Ok(count);
            }
            objects.clear();
        }
    }
}

/// Writes demands as `oracleGeneral`: one a second, objects of 4 KiB, each with its next demand.
///
/// # Errors
/// If the output refuses.
pub fn write_oracle_general(demands: &[u64], output: &mut dyn Write) -> io::Result<()> {
    let mut later: BTreeMap<u64, i64> = BTreeMap::new();
    let mut next = vec![-1i64; demands.len()];
    for (at, object) in demands.iter().enumerate().rev() {
        next[at] = later.insert(*object, at as i64 + 1).unwrap_or(-1);
    }
    let mut output = io::BufWriter::new(output);
    for (second, (object, next)) in (0u32..).zip(demands.iter().zip(next)) {
        output.write_all(&second.to_le_bytes())?;
        output.write_all(&object.to_le_bytes())?;
        output.write_all(&4096u32.to_le_bytes())?;
        output.write_all(&next.to_le_bytes())?;
    }
    output.flush()
}

/// Reads any bytes in both formats. The property test and the fuzz target call it.
///
/// # Panics
/// If a reader panics, or its error is not one line.
pub fn check(bytes: &[u8]) {
    let columns = ObjectColumns::parse("obj-id-col=2").expect("good columns");
    for format in [ObjectFormat::OracleGeneral, ObjectFormat::Csv(columns)] {
        let input = io::Cursor::new(bytes.to_vec());
        if let Err(error) = read_from("memory", input, &format, &mut |_| ControlFlow::Continue(()))
        {
            assert!(!error.to_string().contains('\n'), "an error is one line");
        }
    }
    let _ = ObjectColumns::parse(&String::from_utf8_lossy(bytes));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn demands(bytes: &[u8], format: &ObjectFormat) -> Result<Vec<u64>, String> {
        let mut demands = Vec::new();
        let input = io::Cursor::new(bytes.to_vec());
        let read = read_from("memory", input, format, &mut |objects| {
            demands.extend_from_slice(objects);
            ControlFlow::Continue(())
        });
        read.map(|()| demands).map_err(|error| error.to_string())
    }

    fn record(object: u64) -> Vec<u8> {
        let mut bytes = 7u32.to_le_bytes().to_vec();
        bytes.extend(object.to_le_bytes());
        bytes.extend(4096u32.to_le_bytes());
        bytes.extend((-1i64).to_le_bytes());
        bytes
    }

    #[test]
    fn records_of_oracle_general_are_their_objects() {
        let bytes: Vec<u8> = [5, u64::MAX, 5].into_iter().flat_map(record).collect();
        let format = ObjectFormat::OracleGeneral;
        assert_eq!(demands(&bytes, &format), Ok(vec![5, u64::MAX, 5]));
        let packed = zstd::encode_all(&bytes[..], 1).expect("memory");
        assert_eq!(demands(&packed, &format), Ok(vec![5, u64::MAX, 5]));
        let cut = demands(&bytes[..30], &format);
        assert_eq!(
            cut,
            Err("memory:2: a record of 6 bytes: expected 24, as oracleGeneral has".to_owned())
        );
        assert_eq!(
            demands(b"", &format),
            Err("memory: no demand: expected at least one".to_owned())
        );
    }

    #[test]
    fn lines_are_read_by_their_columns() {
        let columns =
            ObjectColumns::parse("time-col=1, obj-id-col=2, obj-size-col=3, has-header=true");
        let format = ObjectFormat::Csv(columns.expect("good columns"));
        let text = b"time,object,size\n1,17,4096\n2,abc,1\n\n3,17,2\r\n4,abc,9";
        let found = demands(text, &format);
        assert_eq!(found, Ok(vec![17, u64::MAX, 17, u64::MAX]));
        let short = demands(b"a,b,c\n1\n", &format);
        assert_eq!(
            short,
            Err("memory:2: 1 fields: expected the object in field 2".to_owned())
        );
        let columns = ObjectColumns::parse("obj-id-col=1,delimiter=;").expect("good columns");
        assert_eq!(
            demands(b"8;1\n9;1\n", &ObjectFormat::Csv(columns)),
            Ok(vec![8, 9])
        );
    }

    #[test]
    fn bad_columns_say_what_was_expected() {
        for (text, problem) in [
            ("", "no obj-id-col"),
            ("time-col=1", "no obj-id-col"),
            ("obj-id-col=0", "1 to 1000"),
            ("obj-id-col=x", "1 to 1000"),
            ("obj-id-col", "KEY=VALUE"),
            ("obj-id-col=1,has-header=maybe", "true or false"),
            ("obj-id-col=1,delimiter=ab", "one character"),
            ("obj-id-col=1,colour=red", "expected obj-id-col"),
        ] {
            let error = ObjectColumns::parse(text).expect_err(text);
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(objects in prop::collection::vec(0u64..50, 1..9_000)) {
            let mut bytes = Vec::new();
            write_oracle_general(&objects, &mut bytes).expect("memory");
            for (at, record) in bytes.chunks(RECORD).enumerate() {
                let next = i64::from_le_bytes(record[16..].try_into().expect("eight bytes"));
                let later = objects[at + 1..].iter().position(|other| *other == objects[at]);
                let expected = later.map_or(-1, |later| (at + 2 + later) as i64);
                prop_assert_eq!(next, expected, "record {}", at);
            }
            prop_assert_eq!(demands(&bytes, &ObjectFormat::OracleGeneral), Ok(objects));
        }

        #[test]
        fn any_bytes_are_demands_or_a_problem_in_one_line(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            check(&bytes);
        }
    }
}
