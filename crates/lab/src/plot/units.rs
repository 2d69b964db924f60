//! Units of axes: milliseconds of many seconds are written as seconds, with the unit at each tick.

/// How the ticks of an axis are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// As numbers in the unit of the label.
    OfLabel,
    /// Milliseconds as seconds.
    Seconds,
}

/// From so many milliseconds on an axis is in seconds. A choice: three zeros at every tick tell nothing.
const IN_SECONDS: f64 = 5000.0;

impl Unit {
    /// For an axis with this label, whose highest value is `high`.
    pub(super) fn of(label: &str, high: f64) -> Unit {
        let quantity = label.split(';').next().unwrap_or_default();
        match quantity.trim_end().ends_with("ms") && high >= IN_SECONDS {
            true => Unit::Seconds,
            false => Unit::OfLabel,
        }
    }

    /// The text of a tick, whose number in the unit of the label is `plain`.
    pub(super) fn written(self, tick: f64, plain: String) -> String {
        match self {
            Unit::OfLabel => plain,
            Unit::Seconds => format!("{} s", (tick * 1000.0).round() / 1e6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_milliseconds_are_seconds_and_other_units_stay() {
        let long = Unit::of("response time, ms; in-firmware", 60_000.0);
        assert_eq!(long.written(50_000.0, "50000".to_owned()), "50 s");
        assert_eq!(long.written(2500.0, "2500".to_owned()), "2.5 s");
        let short = Unit::of("response time, ms", 400.0);
        assert_eq!(short.written(50.0, "50".to_owned()), "50");
        assert_eq!(Unit::of("requests/s", 60_000.0), Unit::OfLabel);
    }
}
