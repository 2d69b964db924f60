//! Errors of a trace, each in one line.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// An error of a trace, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TraceError {
    /// The file.
    pub file: Arc<str>,
    /// The line, from 1; `None` for an error of the whole trace.
    pub line: Option<u64>,
    /// The error.
    pub fault: Fault,
}

/// An error of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of error.
    pub reason: Reason,
    /// The field, by its name in the format.
    pub field: &'static str,
    /// The actual text; long text is cut.
    pub found: String,
    /// The expected text.
    pub expected: String,
}

/// The kinds of errors; skipped lines are counted by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The field has the wrong syntax.
    Malformed,
    /// Too few or too many fields.
    FieldCount,
    /// A request of no bytes.
    ZeroLength,
    /// A request longer than [`MAX_REQUEST_BYTES`](super::MAX_REQUEST_BYTES).
    TooLong,
    /// A number, time or address exceeds 64 bits.
    Overflow,
    /// The time is before that of the previous request.
    Backwards,
    /// The line is valid in another format.
    OtherFormat,
    /// More devices than [`MAX_DEVICES`](super::MAX_DEVICES).
    TooManyDevices,
    /// A line longer than [`MAX_LINE_BYTES`](super::MAX_LINE_BYTES).
    LineTooLong,
    /// The file ends inside a line or inside a compressed frame.
    Truncated,
    /// The trace has no request.
    Empty,
    /// The format of the file is unknown.
    Unrecognised,
    /// The file cannot be read.
    Unreadable,
}

impl Reason {
    /// Whether reading can continue after the error.
    pub fn is_skippable(self) -> bool {
        !matches!(
            self,
            Reason::Empty | Reason::Unrecognised | Reason::Unreadable
        )
    }

    /// The name in JSON.
    pub fn key(self) -> &'static str {
        match self {
            Reason::Malformed => "malformed",
            Reason::FieldCount => "field_count",
            Reason::ZeroLength => "zero_length",
            Reason::TooLong => "too_long",
            Reason::Overflow => "overflow",
            Reason::Backwards => "backwards",
            Reason::OtherFormat => "other_format",
            Reason::TooManyDevices => "too_many_devices",
            Reason::LineTooLong => "line_too_long",
            Reason::Truncated => "truncated",
            Reason::Empty => "empty",
            Reason::Unrecognised => "unrecognised",
            Reason::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Malformed => "bad field",
            Reason::FieldCount => "wrong number of fields",
            Reason::ZeroLength => "zero length",
            Reason::TooLong => "request too long",
            Reason::Overflow => "number too large",
            Reason::Backwards => "time goes backwards",
            Reason::OtherFormat => "mixed formats",
            Reason::TooManyDevices => "too many devices",
            Reason::LineTooLong => "line too long",
            Reason::Truncated => "truncated",
            Reason::Empty => "empty trace",
            Reason::Unrecognised => "unknown format",
            Reason::Unreadable => "unreadable",
        })
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.fault),
            None => write!(f, "{}: {}", self.file, self.fault),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault {
            reason,
            field,
            found,
            expected,
        } = self;
        match reason {
            // The file system's words say it all.
            Reason::Unreadable => write!(f, "{reason}: {found}"),
            _ => write!(f, "{reason}: {field}: found {found}, expected {expected}"),
        }
    }
}

/// The number of skipped bad lines, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedLines(BTreeMap<Reason, u64>);

impl SkippedLines {
    pub(super) fn count(&mut self, reason: Reason) {
        *self.0.entry(reason).or_default() += 1;
    }

    /// The total number.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The numbers by reason.
    pub fn by_reason(&self) -> impl Iterator<Item = (Reason, u64)> {
        self.0.iter().map(|(&reason, &count)| (reason, count))
    }
}

impl fmt::Display for SkippedLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = match self.total() {
            1 => "line",
            _ => "lines",
        };
        write!(f, "{} bad {lines} skipped", self.total())?;
        for (place, (reason, count)) in self.by_reason().enumerate() {
            let separator = if place == 0 { ": " } else { ", " };
            write!(f, "{separator}{count} {reason}")?;
        }
        Ok(())
    }
}

/// Bytes of a trace for a message: quoted, escaped and cut.
pub(super) fn quoted(bytes: &[u8]) -> String {
    /// Bytes shown of a field or line: enough to find it again, short enough for one line.
    const SHOWN: usize = 48;
    let cut = &bytes[..bytes.len().min(SHOWN)];
    let dots = if cut.len() < bytes.len() { "..." } else { "" };
    let text: String = String::from_utf8_lossy(cut)
        .chars()
        .flat_map(|c| match c {
            '\'' => vec![c],
            _ => c.escape_debug().collect(),
        })
        .collect();
    format!("\"{text}\"{dots}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_with_all_that_one_needs() {
        let error = TraceError {
            file: "a.csv".into(),
            line: Some(17),
            fault: Fault {
                reason: Reason::Malformed,
                field: "byte_length",
                found: quoted(b"-5\n"),
                expected: "a whole number of bytes".into(),
            },
        };
        assert_eq!(
            error.to_string(),
            r#"a.csv:17: bad field: byte_length: found "-5\n", expected a whole number of bytes"#
        );
    }

    #[test]
    fn skipped_lines_are_told_by_reason() {
        let mut skipped = SkippedLines::default();
        skipped.count(Reason::Backwards);
        assert_eq!(
            skipped.to_string(),
            "1 bad line skipped: 1 time goes backwards"
        );
        skipped.count(Reason::Malformed);
        skipped.count(Reason::Malformed);
        assert_eq!(
            skipped.to_string(),
            "3 bad lines skipped: 2 bad field, 1 time goes backwards"
        );
    }

    #[test]
    fn long_and_strange_text_is_cut_and_escaped() {
        assert_eq!(quoted(&[b'x'; 60]), format!("\"{}\"...", "x".repeat(48)));
        assert_eq!(quoted(b"a\"\x00\xff"), "\"a\\\"\\0\u{fffd}\"");
    }
}
