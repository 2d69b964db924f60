//! Our figures, and the results of checks of shapes.

/// One figure of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredFigure {
    /// The name; the only figure of a claim has none.
    pub name: Option<String>,
    /// The value.
    pub value: f64,
}

/// The result of a shape's check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapeVerdict {
    /// The shape holds.
    Holds,
    /// The shape does not hold.
    Fails,
}

impl ShapeVerdict {
    /// Holds if all checks do.
    pub fn of(checks: &[bool]) -> ShapeVerdict {
        match checks.iter().all(|&good| good) {
            true => ShapeVerdict::Holds,
            false => ShapeVerdict::Fails,
        }
    }
}

/// Rounds to four digits, more than any published figure has. Rounded values are both shown and
/// judged.
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let step = 10f64.powf(3.0 - value.abs().log10().floor());
    (value * step).round() / step
}
