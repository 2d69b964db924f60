//! Distributions, with their names above them: cumulative ones, and tails on two logarithmic axes.

use super::axis::{Axis, Scale};
use super::canvas::{Canvas, GRID, INK, Look, Side};
use super::inks::colours;
use super::legend::{self, Entry};
use super::units::Unit;
use super::{Curve, MARGIN, WIDTH};

/// What the points of a curve tell at each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shares {
    /// The share up to the value: all of the distribution but its last thousandths.
    Upto,
    /// The share above the value: the tail, decade by decade.
    Above,
}

/// Draws the panel between `top` and `top + height`.
pub(super) fn draw(
    canvas: &Canvas<'_>,
    (top, height): (f64, f64),
    (title, x_label): (&str, &str),
    shares: Shares,
    curves: &[Curve],
) {
    let (left, right) = (MARGIN + 44.0, WIDTH - MARGIN - 8.0);
    let entries = shares.entries(curves);
    let legends = legend::height(&entries, left, right);
    let (upper, lower) = (top + 36.0 + legends, top + height - 56.0);
    canvas.text(MARGIN, top + 10.0, title, Look::title());
    legend::draw(canvas, &entries, top + 26.0, left, right);
    let across = match shares {
        Shares::Upto => across(curves, left, right),
        Shares::Above => across_all(curves, left, right),
    };
    let unit = Unit::of(x_label, across.high());
    for (tick, text) in across.ticks() {
        let x = across.place(tick);
        canvas.line((x, upper), (x, lower), GRID, 0.75);
        let text = unit.written(tick, text);
        canvas.text(x, lower + 14.0, &text, Look::small(Side::Centre));
    }
    let (up, ticks) = shares.up(curves, lower, upper);
    for percent in ticks {
        let y = up.place(percent / 100.0);
        canvas.line((left, y), (right, y), GRID, 0.75);
        let text = format!("{percent} %");
        canvas.text(left - 8.0, y, &text, Look::small(Side::Left));
    }
    canvas.line((left, lower), (right, lower), INK, 1.0);
    let middle = (left + right) / 2.0;
    canvas.text(middle, lower + 34.0, x_label, Look::small(Side::Centre));
    let inks = colours(curves.iter().map(|curve| curve.name.as_str()));
    for (curve, ink) in curves.iter().zip(inks) {
        let drawn = curve.points.iter().filter(|point| shares.has(point.1));
        let points: Vec<(f64, f64)> = drawn
            .map(|&(x, y)| (across.place(x), up.place(y)))
            .collect();
        if !points.is_empty() {
            canvas.path(&points, ink, 2.0);
        }
    }
}

impl Shares {
    /// Whether a share can be drawn: none at all has no place on a logarithmic axis.
    fn has(self, share: f64) -> bool {
        self == Shares::Upto || share > 0.0
    }

    /// The vertical axis, and its ticks in percent.
    fn up(self, curves: &[Curve], lower: f64, upper: f64) -> (Axis, Vec<f64>) {
        if self == Shares::Upto {
            let axis = Axis::new(Scale::Linear, 0.0, 1.0, lower, upper);
            return (axis, vec![0.0, 25.0, 50.0, 75.0, 100.0]);
        }
        let shares = curves.iter().flat_map(|curve| &curve.points).map(|p| p.1);
        let least = shares
            .filter(|&share| share > 0.0)
            .fold(1.0, f64::min)
            .max(RAREST);
        let decades = (-least.log10()).ceil().max(1.0) as i32;
        let low = 10f64.powi(-decades);
        let ticks = (0..=decades).map(|decade| 100.0 / 10f64.powi(decade));
        (
            Axis::new(Scale::Log, low, 1.0, lower, upper),
            ticks.collect(),
        )
    }

    /// The legend: the names with their medians or greatest values, in ascending order.
    fn entries(self, curves: &[Curve]) -> Vec<Entry> {
        let inks = colours(curves.iter().map(|curve| curve.name.as_str()));
        let mut entries: Vec<(f64, Entry)> = curves
            .iter()
            .zip(inks)
            .map(|(curve, colour)| {
                let (word, value) = match self {
                    Shares::Upto => ("median", quantile(curve, 0.5)),
                    Shares::Above => ("most", curve.points.last().map(|point| point.0)),
                };
                let value = value.unwrap_or(0.0);
                let entry = Entry {
                    colour,
                    name: curve.name.clone(),
                    figure: format!("{word} {}", figure(value)),
                };
                (value, entry)
            })
            .collect();
        entries.sort_by(|a, b| a.0.total_cmp(&b.0));
        entries.into_iter().map(|(_, entry)| entry).collect()
    }
}

/// The rarest share that has a place. A choice: no run here has more than a billion requests.
const RAREST: f64 = 1e-9;

/// The horizontal axis of tails: logarithmic, from the least value to the greatest.
fn across_all(curves: &[Curve], left: f64, right: f64) -> Axis {
    let values = || curves.iter().flat_map(|curve| &curve.points).map(|p| p.0);
    let high = values().fold(0.0, f64::max);
    let least = values().filter(|&value| value > 0.0);
    let low = least.fold(f64::INFINITY, f64::min).max(high / 1e5);
    match low < high {
        true => Axis::new(Scale::Log, low, high, left, right),
        false => Axis::rounded(Scale::Linear, 0.0, high, left, right),
    }
}

/// The horizontal axis, up to the largest of the 99.8th percentiles. It is logarithmic if the
/// distributions are decades apart.
fn across(curves: &[Curve], left: f64, right: f64) -> Axis {
    let largest = |share| {
        let at = curves.iter().filter_map(|curve| quantile(curve, share));
        at.fold(0.0, f64::max)
    };
    let least_median = curves
        .iter()
        .filter_map(|curve| quantile(curve, 0.5))
        .fold(f64::INFINITY, f64::min);
    let high = largest(0.998);
    if least_median > 0.0 && high > DECADES_APART * least_median && least_median.is_finite() {
        let low = curves
            .iter()
            .filter_map(|curve| quantile(curve, 0.01))
            .fold(f64::INFINITY, f64::min);
        return Axis::new(Scale::Log, low.max(high / 1e5), high, left, right);
    }
    Axis::rounded(Scale::Linear, 0.0, high, left, right)
}

/// The value at this share.
fn quantile(curve: &Curve, share: f64) -> Option<f64> {
    let at = curve.points.partition_point(|&(_, upto)| upto < share);
    curve.points.get(at).or(curve.points.last()).map(|p| p.0)
}

/// A figure of three digits.
fn figure(value: f64) -> String {
    let digits = match value {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

/// Ratio from which the axis is logarithmic: a linear one would squeeze the fastest curve to a
/// stroke.
const DECADES_APART: f64 = 30.0;
