//! Axes: from values to positions on the page, with ticks at round numbers.

/// A range of values over a range of the page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    scale: Scale,
}

/// The spacing of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    Linear,
    Log,
}

impl Axis {
    /// Maps the values `low..=high` to `from..=to` of the page. An empty range becomes one.
    pub(super) fn new(scale: Scale, low: f64, high: f64, from: f64, to: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Axis {
            low,
            high,
            from,
            to,
            scale,
        }
    }

    /// An axis that is widened to the next ticks.
    pub(super) fn rounded(scale: Scale, low: f64, high: f64, from: f64, to: f64) -> Self {
        let axis = Axis::new(scale, low, high, from, to);
        if scale == Scale::Log {
            return axis;
        }
        let step = step(axis.high - axis.low);
        let low = (axis.low / step).floor() * step;
        let high = (axis.high / step).ceil() * step;
        Axis { low, high, ..axis }
    }

    /// The position of a value; the nearer end for values outside.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// The highest value.
    pub(super) fn high(&self) -> f64 {
        self.high
    }

    /// The ticks, with their texts.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let inside = |tick: &f64| *tick >= self.low * 0.999_999 && *tick <= self.high * 1.000_001;
        match self.scale {
            Scale::Linear => {
                let step = step(self.high - self.low);
                let first = (self.low / step).ceil() as i64;
                let last = (self.high / step + 1e-9).floor() as i64;
                let digits = (-step.log10().floor()).max(0.0) as usize;
                (first..=last)
                    .map(|i| i as f64 * step)
                    .map(|tick| (tick, format!("{tick:.digits$}")))
                    .collect()
            }
            Scale::Log => (-6..9)
                .flat_map(|power| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(power)))
                .filter(inside)
                .map(|tick| (tick, format!("{}", (tick * 1e6).round() / 1e6)))
                .collect(),
        }
    }
}

/// A round step that divides the range into four to eight parts.
fn step(range: f64) -> f64 {
    let rough = range / 8.0;
    let power = 10f64.powf(rough.log10().floor());
    for multiple in [1.0, 2.0, 5.0] {
        if multiple * power >= rough {
            return multiple * power;
        }
    }
    10.0 * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round_and_span_the_axis() {
        let axis = Axis::rounded(Scale::Linear, 0.0, 37.0, 0.0, 100.0);
        assert_eq!(
            written(&axis),
            ["0", "5", "10", "15", "20", "25", "30", "35", "40"]
        );
        assert_eq!(axis.place(20.0), 50.0);
        let small = Axis::rounded(Scale::Linear, 0.0, 0.31, 0.0, 1.0);
        assert_eq!(small.ticks()[1].1, "0.05");
        let log = Axis::new(Scale::Log, 0.5, 20.0, 0.0, 1.0);
        assert_eq!(written(&log), ["0.5", "1", "2", "5", "10", "20"]);
        assert!((log.place(10f64.sqrt()) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn an_empty_range_and_values_outside_stay_on_the_page() {
        let axis = Axis::rounded(Scale::Linear, 3.0, 3.0, 10.0, 20.0);
        for value in [-1e9, 3.0, 1e9] {
            assert!((10.0..=20.0).contains(&axis.place(value)));
        }
    }
}
