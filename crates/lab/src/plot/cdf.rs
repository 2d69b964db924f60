//! Cumulative distributions, with their names above them.

use super::axis::{Axis, Scale};
use super::canvas::{Canvas, GRID, INK, Look, Side};
use super::inks::colours;
use super::legend::{self, Entry};
use super::units::Unit;
use super::{Curve, MARGIN, WIDTH};

/// Draws the panel between `top` and `top + height`.
pub(super) fn draw(
    canvas: &Canvas<'_>,
    top: f64,
    height: f64,
    title: &str,
    x_label: &str,
    curves: &[Curve],
) {
    let (left, right) = (MARGIN + 44.0, WIDTH - MARGIN - 8.0);
    let entries = entries(curves);
    let legends = legend::height(&entries, left, right);
    let (upper, lower) = (top + 36.0 + legends, top + height - 56.0);
    canvas.text(MARGIN, top + 10.0, title, Look::title());
    legend::draw(canvas, &entries, top + 26.0, left, right);
    let across = across(curves, left, right);
    let unit = Unit::of(x_label, across.high());
    let up = Axis::new(Scale::Linear, 0.0, 1.0, lower, upper);
    for (tick, text) in across.ticks() {
        let x = across.place(tick);
        canvas.line((x, upper), (x, lower), GRID, 0.75);
        let text = unit.written(tick, text);
        canvas.text(x, lower + 14.0, &text, Look::small(Side::Centre));
    }
    for percent in [0, 25, 50, 75, 100] {
        let y = up.place(f64::from(percent) / 100.0);
        canvas.line((left, y), (right, y), GRID, 0.75);
        let text = format!("{percent} %");
        canvas.text(left - 8.0, y, &text, Look::small(Side::Left));
    }
    canvas.line((left, lower), (right, lower), INK, 1.0);
    let middle = (left + right) / 2.0;
    canvas.text(middle, lower + 34.0, x_label, Look::small(Side::Centre));
    let inks = colours(curves.iter().map(|curve| curve.name.as_str()));
    for (curve, ink) in curves.iter().zip(inks) {
        let points: Vec<(f64, f64)> = curve
            .points
            .iter()
            .map(|&(x, y)| (across.place(x), up.place(y)))
            .collect();
        if !points.is_empty() {
            canvas.path(&points, ink, 2.0);
        }
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

/// The names by ascending medians.
fn entries(curves: &[Curve]) -> Vec<Entry> {
    let inks = colours(curves.iter().map(|curve| curve.name.as_str()));
    let medians = curves
        .iter()
        .map(|curve| quantile(curve, 0.5).unwrap_or(0.0));
    let mut entries: Vec<(f64, Entry)> = curves
        .iter()
        .zip(inks)
        .zip(medians)
        .map(|((curve, colour), median)| {
            let entry = Entry {
                colour,
                name: curve.name.clone(),
                figure: format!("median {}", figure(median)),
            };
            (median, entry)
        })
        .collect();
    entries.sort_by(|a, b| a.0.total_cmp(&b.0));
    entries.into_iter().map(|(_, entry)| entry).collect()
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
