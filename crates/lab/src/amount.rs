//! Amounts of bytes on the command line: `1M`, `564k`, `64KiB`.

use document::quantity::bytes;

/// Parses an amount.
///
/// # Errors
/// The expected form.
pub fn amount(text: &str) -> Result<u64, String> {
    bytes(text).ok_or_else(|| "expected bytes such as 564k, 1M, 2.5MB or 64KiB".to_owned())
}
