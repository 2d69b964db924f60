//! Quantities as people write them: `64 KiB`, `10 ms`, `5 MB/s`, `5 %`. The command line and all files read them here.
//!
//! A number without a unit has the unit of its option or key:
//!
//! ```text
//!   --think-ms 10      10 ms
//!   --think-ms "2 s"   2000 ms
//!   think_ms = 10      10 ms
//!   think_ms = "2 s"   2000 ms
//! ```

use std::fmt;

/// The unit of a number that is written without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Minutes.
    Minutes,
    /// Hours.
    Hours,
    /// Kibibytes.
    Kibibytes,
    /// Megabytes.
    Megabytes,
    /// Mebibytes.
    Mebibytes,
    /// Megabytes a second.
    MegabytesPerSecond,
    /// Hundredths.
    Percent,
}

impl Unit {
    /// The number in this unit, if the text is a number, or a number and a unit of the same quantity. A number
    /// without a unit may be negative or infinite: its range is checked elsewhere.
    pub fn read(self, text: &str) -> Option<f64> {
        let text = text.trim();
        if let Ok(number) = text.parse() {
            return Some(number);
        }
        let (units, own) = self.table();
        let (number, factor) = numbered(text, units)?;
        Some(number * factor / own)
    }

    /// The whole number in this unit, if the text is one, or a number and a unit that make one.
    pub fn read_whole(self, text: &str) -> Option<u64> {
        if let Ok(whole) = text.trim().parse() {
            return Some(whole);
        }
        let number = self.read(text)?;
        let is_whole = number.fract() == 0.0 && (0.0..MOST_WHOLE).contains(&number);
        is_whole.then_some(number as u64)
    }

    /// The units of the quantity with their factors, and the factor of this one.
    fn table(self) -> (&'static [(&'static str, f64)], f64) {
        match self {
            Unit::Microseconds => (&TIMES, 1e3),
            Unit::Milliseconds => (&TIMES, 1e6),
            Unit::Seconds => (&TIMES, 1e9),
            Unit::Minutes => (&TIMES, 60e9),
            Unit::Hours => (&TIMES, 3600e9),
            Unit::Kibibytes => (&SIZES, 1024.0),
            Unit::Megabytes => (&SIZES, 1e6),
            Unit::Mebibytes => (&SIZES, 1_048_576.0),
            Unit::MegabytesPerSecond => (&RATES, 1e6),
            Unit::Percent => (&SHARES, 1.0),
        }
    }
}

/// What is expected, with an example: `milliseconds such as 10, or "10 ms"`.
impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Microseconds => "microseconds such as 50, or a time such as \"50 us\"",
            Unit::Milliseconds => "milliseconds such as 10, or a time such as \"10 ms\"",
            Unit::Seconds => "seconds such as 30, or a time such as \"10 minutes\"",
            Unit::Minutes => "minutes such as 30, or a time such as \"2 hours\"",
            Unit::Hours => "hours such as 24, or a time such as \"2 days\"",
            Unit::Kibibytes => "KiB such as 64, or a size such as \"1 MiB\"",
            Unit::Megabytes => "MB such as 4, or a size such as \"500 kB\"",
            Unit::Mebibytes => "MiB such as 64, or a size such as \"1 GiB\"",
            Unit::MegabytesPerSecond => "MB/s such as 80, or a rate such as \"500 kB/s\"",
            Unit::Percent => "per cent such as 5, or a share such as \"5 %\"",
        })
    }
}

/// Whole numbers with a unit are below it: a float holds every integer up to 2^53.
const MOST_WHOLE: f64 = (1_u64 << 53) as f64;

/// A number and the factor of the unit behind it.
fn numbered(text: &str, units: &[(&str, f64)]) -> Option<(f64, f64)> {
    units.iter().find_map(|(unit, factor)| {
        let number = text.strip_suffix(unit)?.trim_end();
        let number: f64 = number.parse().ok()?;
        number.is_finite().then_some((number, *factor))
    })
}

/// Bytes: a number, or a number and a unit, such as `4096`, `64KiB` or `2.5 GB`.
pub fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Ok(bytes) = text.parse() {
        return Some(bytes);
    }
    SIZES.iter().find_map(|(unit, factor)| {
        let number = text.strip_suffix(unit)?.trim_end();
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(*factor as u64);
        }
        let bytes = number.parse::<f64>().ok()? * factor;
        let is_exact = (0.0..MOST_WHOLE).contains(&bytes);
        is_exact.then(|| bytes.round() as u64)
    })
}

/// Bytes a second: as [`bytes`], with `/s` or without.
pub fn bytes_per_second(text: &str) -> Option<u64> {
    let text = text.trim();
    bytes(text.strip_suffix("/s").unwrap_or(text))
}

/// Times in nanoseconds. `m` are minutes, as in `10m` of sleep(1).
const TIMES: [(&str, f64); 23] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("\u{b5}s", 1e3),
    ("\u{3bc}s", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("sec", 1e9),
    ("second", 1e9),
    ("seconds", 1e9),
    ("m", 60e9),
    ("min", 60e9),
    ("minute", 60e9),
    ("minutes", 60e9),
    ("h", 3600e9),
    ("hour", 3600e9),
    ("hours", 3600e9),
    ("d", 86_400e9),
    ("day", 86_400e9),
    ("days", 86_400e9),
    ("week", 604_800e9),
    ("weeks", 604_800e9),
    ("year", 31_536_000e9),
    ("years", 31_536_000e9),
];

/// Sizes in bytes: decimal, and binary with an i.
const SIZES: [(&str, f64); 19] = [
    ("k", 1e3),
    ("kB", 1e3),
    ("KB", 1e3),
    ("M", 1e6),
    ("MB", 1e6),
    ("G", 1e9),
    ("GB", 1e9),
    ("T", 1e12),
    ("TB", 1e12),
    ("Ki", 1024.0),
    ("KiB", 1024.0),
    ("Mi", 1_048_576.0),
    ("MiB", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("GiB", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("TiB", 1_099_511_627_776.0),
    // Behind all units that end with it.
    ("bytes", 1.0),
    ("B", 1.0),
];

/// Rates in bytes a second.
const RATES: [(&str, f64); 8] = [
    ("kB/s", 1e3),
    ("KB/s", 1e3),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
    ("KiB/s", 1024.0),
    ("MiB/s", 1_048_576.0),
    ("GiB/s", 1_073_741_824.0),
    ("B/s", 1.0),
];

/// Shares in hundredths.
const SHARES: [(&str, f64); 3] = [("%", 1.0), ("percent", 1.0), ("per cent", 1.0)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_unit_of_its_key_or_the_one_behind_it() {
        for (unit, text, number) in [
            (Unit::Milliseconds, "10", 10.0),
            (Unit::Milliseconds, "10 ms", 10.0),
            (Unit::Milliseconds, "2s", 2000.0),
            (Unit::Milliseconds, " 0.5 ms ", 0.5),
            (Unit::Milliseconds, "1e3 us", 1.0),
            (Unit::Microseconds, "1 ms", 1000.0),
            (Unit::Microseconds, "3\u{b5}s", 3.0),
            (Unit::Seconds, "10m", 600.0),
            (Unit::Seconds, "2 hours", 7200.0),
            (Unit::Minutes, "1 week", 10_080.0),
            (Unit::Hours, "2 days", 48.0),
            (Unit::Megabytes, "500 kB", 0.5),
            (Unit::Mebibytes, "1 GiB", 1024.0),
            (Unit::Kibibytes, "1 MiB", 1024.0),
            (Unit::Kibibytes, "512 B", 0.5),
            (Unit::MegabytesPerSecond, "500 kB/s", 0.5),
            (Unit::Percent, "5 %", 5.0),
            (Unit::Percent, "0.5%", 0.5),
            (Unit::Percent, "-1", -1.0),
        ] {
            assert_eq!(unit.read(text), Some(number), "{text}");
        }
        for (unit, text) in [
            (Unit::Milliseconds, ""),
            (Unit::Milliseconds, "ms"),
            (Unit::Milliseconds, "10 MB"),
            (Unit::Milliseconds, "nan ms"),
            (Unit::Milliseconds, "1 2 ms"),
            (Unit::Milliseconds, "10 Ms"),
            (Unit::Percent, "5 ms"),
            (Unit::MegabytesPerSecond, "5 Mb/s"),
        ] {
            assert_eq!(unit.read(text), None, "{text}");
        }
    }

    #[test]
    fn whole_numbers_have_no_rest() {
        for (unit, text, whole) in [
            (Unit::Seconds, "30", Some(30)),
            (Unit::Seconds, "1.5 minutes", Some(90)),
            (Unit::Seconds, "18446744073709551615", Some(u64::MAX)),
            (Unit::Seconds, "61.5 s", None),
            (Unit::Seconds, "1e30 s", None),
            (Unit::Seconds, "-1 s", None),
            (Unit::Percent, "5 ms", None),
        ] {
            assert_eq!(unit.read_whole(text), whole, "{text}");
        }
    }

    #[test]
    fn sizes_are_decimal_unless_they_have_an_i() {
        for (text, expected) in [
            ("0", 0),
            ("4096", 4096),
            ("4096 B", 4096),
            ("1 bytes", 1),
            ("564k", 564_000),
            ("1M", 1_000_000),
            ("2.5MB", 2_500_000),
            ("64KiB", 65_536),
            ("1.5 Mi", 1_572_864),
            ("1TiB", 1 << 40),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(bytes(text), Some(expected), "{text}");
            assert_eq!(bytes_per_second(&format!("{text}/s")), Some(expected));
        }
        for text in [
            "",
            "k",
            "-1",
            "-1 k",
            "1e9",
            "1.2.3",
            "99999999999999 G",
            "1m",
            "0.5",
            "nan k",
        ] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }

    /// A unit that ends with another one would be taken for it if its number could be read with the rest.
    #[test]
    fn each_unit_is_read_as_itself() {
        for (name, factor) in TIMES {
            let read = Unit::Seconds.read(&format!("3 {name}"));
            assert_eq!(read, Some(3.0 * factor / 1e9), "{name}");
        }
        for (name, factor) in SIZES {
            assert_eq!(
                bytes(&format!("3{name}")),
                Some(3 * factor as u64),
                "{name}"
            );
        }
        for (name, factor) in RATES {
            let read = Unit::MegabytesPerSecond.read(&format!("3{name}"));
            assert_eq!(read, Some(3.0 * factor / 1e6), "{name}");
        }
    }
}
