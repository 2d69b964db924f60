//! Times on the command line: 90s, 10m, 3h.

use block::Duration;
use document::quantity::Unit;

/// Longest budget: a week. A choice; the 20 TB drive's map takes hours.
const LONGEST_SECONDS: f64 = 7.0 * 86_400.0;

/// Parses `10m`; a number without a unit is in seconds.
pub fn parse(text: &str) -> Result<Duration, String> {
    match Unit::Seconds.read(text) {
        Some(seconds) if seconds > 0.0 && seconds <= LONGEST_SECONDS => {
            Ok(Duration::from_nanos((seconds * 1e9) as u64))
        }
        _ => Err("expected a time up to a week, such as 90s, 10m or 3h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn times_have_units() {
        for (text, seconds) in [("90s", 90), ("10m", 600), ("3h", 10_800), ("7", 7)] {
            assert_eq!(
                parse(text).map(|time| time.as_nanos()),
                Ok(seconds * 1_000_000_000)
            );
        }
        assert_eq!(
            parse("1.5m").map(|time| time.as_nanos()),
            Ok(90_000_000_000)
        );
        for wrong in ["", "m", "0s", "-1m", "10d", "nanm", "infh", "200h", "1 M"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
