//! Sizes: a number of bytes, or a text such as "64 GiB". Periods: a text such as "30 days".

use document::{DocumentError, Field};

/// A size in bytes, a multiple of `multiple`, at most the longest file of Linux.
///
/// # Errors
/// If it is not.
pub fn bytes(field: &Field<'_>, multiple: u64) -> Result<u64, DocumentError> {
    let bytes = match field.as_text() {
        Some(text) => bytes_of(text),
        None => field.as_integer().and_then(|bytes| bytes.try_into().ok()),
    };
    bytes
        .filter(|bytes| *bytes <= MOST_BYTES && bytes.is_multiple_of(multiple))
        .ok_or_else(|| {
            field.mismatch(format_args!(
                "bytes, or a text such as \"64 GiB\" or \"500 GB\", a multiple of {multiple} bytes"
            ))
        })
}

/// A period in seconds, from a minute to ten years.
pub(super) fn period(field: &Field<'_>) -> Result<u64, DocumentError> {
    let text = field.as_text();
    let seconds = text.and_then(|text| number_of(text, &PERIODS));
    seconds
        .filter(|seconds| (60..=3_650 * 86_400).contains(seconds))
        .ok_or_else(|| field.mismatch(PERIOD))
}

/// The expectation of a period.
pub(super) const PERIOD: &str =
    "a text such as \"30 days\" or \"12 hours\", from a minute to ten years";

const PERIODS: [(&str, u64); 8] = [
    ("minute", 60),
    ("minutes", 60),
    ("hour", 3600),
    ("hours", 3600),
    ("day", 86_400),
    ("days", 86_400),
    ("week", 604_800),
    ("weeks", 604_800),
];

fn bytes_of(text: &str) -> Option<u64> {
    number_of(text, &UNITS)
}

/// A number and a unit.
fn number_of(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit = units.iter().find(|(name, _)| *name == unit.trim_start())?;
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

/// The longest file of Linux.
const MOST_BYTES: u64 = i64::MAX as u64;
