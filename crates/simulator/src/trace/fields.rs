//! Parses the fields of a line as integers, from bytes, without allocations and floating point.

use super::error::{Fault, Reason, quoted};
use super::record::{ByteRange, RangeError};
use super::{BLOCK_BYTES, MAX_REQUEST_BYTES};
use block::{Direction, Instant};

/// A column of a format.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    /// The name in the format.
    pub name: &'static str,
    /// The expected content.
    expected: &'static str,
}

/// The unit of a decimal time, by the power of ten that makes it nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// 10^9.
    Seconds,
    /// 10^6.
    Milliseconds,
    /// 10^3.
    Microseconds,
    /// 10^2, the unit of Windows file times.
    FileTimes,
    /// 1.
    Nanoseconds,
}

/// The text of a column that counts bytes or blocks.
#[derive(Clone, Copy)]
pub(super) struct Cell<'a> {
    field: Field,
    text: &'a [u8],
    /// Bytes per unit.
    unit_bytes: u64,
}

/// The time of the first request, from which a trace with the times of a clock begins.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FirstTime(Option<u64>);

impl FirstTime {
    /// The time since the first request, which this one is if none was noted. `unit` is that of the clock.
    pub(super) fn since(
        self,
        field: Field,
        text: &[u8],
        time: u64,
        unit: &str,
    ) -> Result<u64, Fault> {
        let first = self.0.unwrap_or(time);
        time.checked_sub(first).ok_or_else(|| Fault {
            expected: format!("at least {first}{unit}, that of the first request"),
            ..field.fault(Reason::Backwards, text)
        })
    }

    /// Notes the time of a good request. The first one stays.
    pub(super) fn note(&mut self, time: u64) {
        self.0.get_or_insert(time);
    }
}

impl Field {
    pub(super) const fn new(name: &'static str, expected: &'static str) -> Self {
        Field { name, expected }
    }

    /// The error of unexpected content in the column.
    #[cold]
    pub(super) fn fault(self, reason: Reason, found: &[u8]) -> Fault {
        Fault {
            reason,
            field: self.name,
            found: quoted(found),
            expected: self.expected.into(),
        }
    }

    /// A whole number in decimal digits.
    pub(super) fn number(self, text: &[u8]) -> Result<u64, Fault> {
        match whole(text) {
            Ok(number) => Ok(number),
            Err(reason) => Err(self.fault(reason, text)),
        }
    }

    /// A whole number of 32 bits in decimal digits.
    pub(super) fn small_number(self, text: &[u8]) -> Result<u32, Fault> {
        u32::try_from(self.number(text)?).map_err(|_| self.fault(Reason::Overflow, text))
    }

    /// A time with or without decimals, in nanoseconds: exact to nine, six or three decimals, and
    /// rounded to the nearest nanosecond (halves upwards) if there are more.
    pub(super) fn nanos(self, text: &[u8], unit: Unit) -> Result<u64, Fault> {
        match decimal(text, unit) {
            Ok(nanos) => Ok(nanos),
            Err(reason) => Err(self.fault(reason, text)),
        }
    }

    /// A time of the trace; see [`Field::nanos`].
    pub(super) fn instant(self, text: &[u8], unit: Unit) -> Result<Instant, Fault> {
        self.nanos(text, unit).map(Instant::from_nanos)
    }

    /// A count of bytes.
    pub(super) fn bytes(self, text: &[u8]) -> Cell<'_> {
        Cell {
            field: self,
            text,
            unit_bytes: 1,
        }
    }

    /// A count of units of `unit_bytes` bytes.
    pub(super) fn units(self, text: &[u8], unit_bytes: u64) -> Cell<'_> {
        Cell {
            field: self,
            text,
            unit_bytes,
        }
    }

    /// A count of blocks.
    pub(super) fn blocks(self, text: &[u8]) -> Cell<'_> {
        Cell {
            field: self,
            text,
            unit_bytes: BLOCK_BYTES,
        }
    }

    /// A direction by its spellings.
    pub(super) fn direction(
        self,
        text: &[u8],
        reads: &[&[u8]],
        writes: &[&[u8]],
    ) -> Result<Direction, Fault> {
        if reads.contains(&text) {
            Ok(Direction::Read)
        } else if writes.contains(&text) {
            Ok(Direction::Write)
        } else {
            Err(self.fault(Reason::Malformed, text))
        }
    }

    /// The error of a time, or sum of times, that exceeds 64 bits of nanoseconds.
    pub(super) fn too_late(self, found: &[u8]) -> Fault {
        Fault {
            expected: "a time within 584 years of the start".into(),
            ..self.fault(Reason::Overflow, found)
        }
    }
}

/// The byte range of an offset cell and a length cell.
pub(super) fn byte_range(offset: Cell<'_>, length: Cell<'_>) -> Result<ByteRange, Fault> {
    let start = offset.bytes()?;
    let count = length.bytes()?;
    ByteRange::new(start, count).map_err(|wrong| {
        let (cell, reason, expected) = match wrong {
            RangeError::Empty => (length, Reason::ZeroLength, "at least 1".into()),
            RangeError::TooLong => {
                let most = MAX_REQUEST_BYTES / length.unit_bytes;
                (length, Reason::TooLong, format!("at most {most}"))
            }
            RangeError::PastEnd => (
                offset,
                Reason::Overflow,
                "a request that ends before the last 64-bit address".into(),
            ),
        };
        Fault {
            expected,
            ..cell.field.fault(reason, cell.text)
        }
    })
}

impl Cell<'_> {
    fn bytes(self) -> Result<u64, Fault> {
        self.field
            .number(self.text)?
            .checked_mul(self.unit_bytes)
            .ok_or_else(|| self.field.fault(Reason::Overflow, self.text))
    }
}

/// Exactly the `N` fields between commas.
pub(super) fn at_commas<'a, const N: usize>(
    line: &'a [u8],
    columns: &[Field; N],
) -> Result<[&'a [u8]; N], Fault> {
    exactly(line, line.split(|&byte| byte == b','), columns)
}

/// Exactly the `N` fields between blanks.
pub(super) fn at_blanks<'a, const N: usize>(
    line: &'a [u8],
    columns: &[Field; N],
) -> Result<[&'a [u8]; N], Fault> {
    exactly(line, blank_separated(line), columns)
}

/// The fields between blanks, however many.
pub(super) fn blank_separated(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b' ' || byte == b'\t')
        .filter(|field| !field.is_empty())
}

fn exactly<'a, const N: usize>(
    line: &[u8],
    mut fields: impl Iterator<Item = &'a [u8]>,
    columns: &[Field; N],
) -> Result<[&'a [u8]; N], Fault> {
    let mut found = [&b""[..]; N];
    for (place, column) in columns.iter().enumerate() {
        match fields.next() {
            Some(field) => found[place] = field,
            None => return Err(missing(*column, line)),
        }
    }
    match fields.next() {
        None => Ok(found),
        Some(further) => Err(one_too_many(further)),
    }
}

/// The error of a line that ends before this column.
#[cold]
pub(super) fn missing(column: Field, line: &[u8]) -> Fault {
    let mut fault = column.fault(Reason::FieldCount, line);
    fault.found = match line {
        [] => "an empty line".into(),
        _ => format!("the end of the line {}", fault.found),
    };
    fault
}

/// The error of a line that continues after its last column.
#[cold]
pub(super) fn one_too_many(further: &[u8]) -> Fault {
    Fault {
        reason: Reason::FieldCount,
        field: "line",
        found: format!("a further field {}", quoted(further)),
        expected: "the end of the line".into(),
    }
}

fn whole(text: &[u8]) -> Result<u64, Reason> {
    if text.is_empty() {
        return Err(Reason::Malformed);
    }
    let mut number: u64 = 0;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(Reason::Malformed);
        }
        number = number
            .checked_mul(10)
            .and_then(|tens| tens.checked_add(u64::from(digit)))
            .ok_or(Reason::Overflow)?;
    }
    Ok(number)
}

fn decimal(text: &[u8], unit: Unit) -> Result<u64, Reason> {
    let places = match unit {
        Unit::Seconds => 9,
        Unit::Milliseconds => 6,
        Unit::Microseconds => 3,
        Unit::FileTimes => 2,
        Unit::Nanoseconds => 0,
    };
    let point = text.iter().position(|&byte| byte == b'.');
    let (units, decimals) = match point {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, &b"0"[..]),
    };
    let units = whole(units)?;
    let (exact, further) = decimals.split_at(decimals.len().min(places));
    if further.is_empty() && exact.is_empty() {
        return Err(Reason::Malformed);
    }
    let mut nanos = match exact {
        [] => 0,
        exact => whole(exact)?,
    };
    for _ in exact.len()..places {
        nanos *= 10;
    }
    if !further.iter().all(u8::is_ascii_digit) {
        return Err(Reason::Malformed);
    }
    let round_up = u64::from(further.first().is_some_and(|&digit| digit >= b'5'));
    units
        .checked_mul(10_u64.pow(places as u32))
        .and_then(|whole| whole.checked_add(nanos + round_up))
        .ok_or(Reason::Overflow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TIME: Field = Field::new("time", "a time");

    #[test]
    fn times_are_exact_to_the_nanosecond() {
        for (text, unit, nanos) in [
            ("0", Unit::Seconds, 0),
            ("0.000000001", Unit::Seconds, 1),
            ("0.1", Unit::Seconds, 100_000_000),
            ("43177.515625", Unit::Seconds, 43_177_515_625_000),
            ("18446744073.709551615", Unit::Seconds, u64::MAX),
            ("0.0000000015", Unit::Seconds, 2),
            ("0.00000000149", Unit::Seconds, 1),
            ("0.9999999999", Unit::Seconds, 1_000_000_000),
            ("20935.440364", Unit::Microseconds, 20_935_440),
            ("14095.370", Unit::Microseconds, 14_095_370),
            ("1.5", Unit::Milliseconds, 1_500_000),
            ("3.25", Unit::FileTimes, 325),
            ("1577808144360767", Unit::Nanoseconds, 1_577_808_144_360_767),
            ("2.5", Unit::Nanoseconds, 3),
        ] {
            assert_eq!(TIME.nanos(text.as_bytes(), unit), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for (text, reason) in [
            ("", Reason::Malformed),
            (".5", Reason::Malformed),
            ("5.", Reason::Malformed),
            ("-1", Reason::Malformed),
            ("+1", Reason::Malformed),
            ("1e3", Reason::Malformed),
            ("NaN", Reason::Malformed),
            ("inf", Reason::Malformed),
            ("1.2.3", Reason::Malformed),
            ("0.123456789x", Reason::Malformed),
            ("18446744073.709551616", Reason::Overflow),
            ("18446744073.7095516155", Reason::Overflow),
            ("99999999999999999999999", Reason::Overflow),
        ] {
            let fault = TIME
                .nanos(text.as_bytes(), Unit::Seconds)
                .expect_err("no time");
            assert_eq!(fault.reason, reason, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_printed_number_comes_back(number: u64) {
            prop_assert_eq!(TIME.number(number.to_string().as_bytes()), Ok(number));
        }

        #[test]
        fn a_printed_time_comes_back(nanos: u64) {
            let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
            prop_assert_eq!(TIME.nanos(text.as_bytes(), Unit::Seconds), Ok(nanos));
        }
    }
}
