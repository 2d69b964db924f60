//! Sizes: a number of bytes, or a text such as "64 GiB". Periods: a text such as "30 days".

use document::quantity::{self, Unit};
use document::{DocumentError, Field};

/// A size in bytes, a multiple of `multiple`, at most the longest file of Linux.
///
/// # Errors
/// If it is not.
pub fn bytes(field: &Field<'_>, multiple: u64) -> Result<u64, DocumentError> {
    counted(field, multiple, field.as_text().and_then(quantity::bytes))
}

/// A rate in bytes a second, which a text may say.
///
/// # Errors
/// If it is not.
pub(super) fn bytes_per_second(field: &Field<'_>) -> Result<u64, DocumentError> {
    let text = field.as_text();
    counted(field, 1, text.and_then(quantity::bytes_per_second))
}

/// What a text says, or else the whole number of bytes.
fn counted(field: &Field<'_>, multiple: u64, said: Option<u64>) -> Result<u64, DocumentError> {
    let whole = || field.as_integer().and_then(|bytes| bytes.try_into().ok());
    said.or_else(whole)
        .filter(|bytes| *bytes <= MOST_BYTES && bytes.is_multiple_of(multiple))
        .ok_or_else(|| {
            field.mismatch(format_args!(
                "bytes, or a text such as \"64 GiB\" or \"500 GB\", a multiple of {multiple} bytes"
            ))
        })
}

/// A period in seconds, from a minute to ten years.
pub(super) fn period(field: &Field<'_>) -> Result<u64, DocumentError> {
    // A number alone does not say whether it means minutes or days.
    let text = field
        .as_text()
        .filter(|text| text.trim().parse::<f64>().is_err());
    text.and_then(|text| Unit::Seconds.read_whole(text))
        .filter(|seconds| (60..=3_650 * 86_400).contains(seconds))
        .ok_or_else(|| field.mismatch(PERIOD))
}

/// The expectation of a period.
pub(super) const PERIOD: &str =
    "a text such as \"30 days\" or \"12 hours\", from a minute to ten years";

/// The longest file of Linux.
const MOST_BYTES: u64 = i64::MAX as u64;
