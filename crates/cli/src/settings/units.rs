//! Options with a unit: a number in the option's unit, or a quantity with a unit of its own.

use std::ops::RangeInclusive;

use document::quantity::{self, Unit};

/// Ten years, as for periods of a configuration. A choice: a task with a longer deadline has none.
pub const MOST_SECONDS: u64 = 315_360_000;

/// A number in this unit: `10`, or `10 ms`.
pub fn in_unit(unit: Unit) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| unit.read(text).ok_or_else(|| format!("expected {unit}"))
}

/// A number in this unit and range.
pub fn within(
    unit: Unit,
    range: RangeInclusive<f64>,
) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| {
        let number = unit.read(text).filter(|number| range.contains(number));
        number.ok_or_else(|| expected(unit, range.start(), range.end()))
    }
}

/// A whole number of this unit in a range.
pub fn whole_in<N: TryFrom<u64>>(
    unit: Unit,
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<N, String> + Clone {
    move |text| {
        let whole = unit.read_whole(text).filter(|whole| range.contains(whole));
        whole
            .and_then(|whole| N::try_from(whole).ok())
            .ok_or_else(|| expected(unit, range.start(), range.end()))
    }
}

/// A part of one: `0.66`, or `66 %`.
pub fn part(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let percent = || Unit::Percent.read(text).map(|percent| percent / 100.0);
    number
        .or_else(percent)
        .ok_or_else(|| "expected a part of one such as 0.66, or \"66 %\"".to_owned())
}

/// Bytes a second.
pub fn bytes_per_second(text: &str) -> Result<u64, String> {
    quantity::bytes_per_second(text)
        .ok_or_else(|| "expected bytes a second such as 564k, \"2.5 MB/s\" or 64KiB".to_owned())
}

fn expected<N: std::fmt::Display>(unit: Unit, least: N, most: N) -> String {
    format!("expected {unit}; from {least} to {most} in the option's own unit")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_of_a_unit_are_in_their_range() {
        let seconds = whole_in::<u32>(Unit::Seconds, 1..=3600);
        for (text, number) in [("30", 30), ("2 minutes", 120), ("1h", 3600)] {
            assert_eq!(seconds(text), Ok(number), "{text}");
        }
        for text in ["0", "2 h", "1500 ms", "30 MB", "-1", "", "1e99 s"] {
            assert!(seconds(text).is_err(), "{text}");
        }
        let byte = whole_in::<u8>(Unit::Seconds, 0..=1000);
        assert!(byte("300").is_err(), "it does not fit");
    }

    #[test]
    fn a_part_of_one_may_be_said_in_per_cent() {
        assert_eq!(part("0.66"), Ok(0.66));
        assert_eq!(part("66 %"), Ok(0.66));
        assert!(part("66 s").is_err());
    }
}
