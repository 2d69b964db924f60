//! Amounts of bytes on the command line: `1M`, `564k`, `64KiB`.

/// The units: decimal, and binary with an i.
const UNITS: [(&str, u64); 13] = [
    ("", 1),
    ("B", 1),
    ("k", 1_000),
    ("kB", 1_000),
    ("M", 1_000_000),
    ("MB", 1_000_000),
    ("G", 1_000_000_000),
    ("GB", 1_000_000_000),
    ("Ki", 1 << 10),
    ("KiB", 1 << 10),
    ("Mi", 1 << 20),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// Parses an amount.
///
/// # Errors
/// The expected form.
pub fn amount(text: &str) -> Result<u64, String> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit = UNITS.iter().find(|(name, _)| *name == unit.trim());
    let number = number.parse::<f64>().ok();
    let product = number
        .zip(unit)
        .map(|(number, unit)| number * unit.1 as f64);
    // Above 2^53 a float does not hold every integer.
    let product = product.filter(|product| product.is_finite() && *product < (1u64 << 53) as f64);
    match product {
        Some(product) => Ok(product.round() as u64),
        None => Err(String::from(
            "expected bytes such as 564k, 1M, 2.5MB or 64KiB",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::amount;

    #[test]
    fn units_are_decimal_unless_they_have_an_i() {
        for (text, expected) in [
            ("0", 0),
            ("4096", 4096),
            ("564k", 564_000),
            ("1M", 1_000_000),
            ("2.5MB", 2_500_000),
            ("64KiB", 65_536),
            ("1.5 Mi", 1_572_864),
        ] {
            assert_eq!(amount(text), Ok(expected), "{text}");
        }
        for bad in ["", "k", "-1", "1e9", "1T", "1.2.3", "99999999999G", "1m"] {
            assert!(amount(bad).is_err(), "{bad}");
        }
    }
}
