//! Lines, each with its name at its end.

use super::axis::{Axis, Scale};
use super::canvas::{Canvas, GRID, INK, Look, Side, width_of};
use super::inks::colours;
use super::units::Unit;
use super::{Curve, MARGIN, WIDTH};

/// The texts around the plot.
pub(super) struct Labels<'a> {
    pub title: &'a str,
    pub x: &'a str,
    pub y: &'a str,
}

/// Draws the panel between `top` and `top + height`.
pub(super) fn draw(
    canvas: &Canvas<'_>,
    top: f64,
    height: f64,
    labels: &Labels<'_>,
    curves: &[Curve],
) {
    let names = curves.iter().map(|curve| width_of(&curve.name, 12.0));
    let name_width = names.fold(0.0, f64::max);
    let (left, right) = (MARGIN + 52.0, WIDTH - MARGIN - name_width - 12.0);
    let (upper, lower) = (top + 58.0, top + height - 56.0);
    canvas.text(MARGIN, top + 10.0, labels.title, Look::title());
    canvas.text(MARGIN, top + 36.0, labels.y, Look::small(Side::Right));
    let (low_x, high_x) = range(curves.iter().flat_map(|c| &c.points).map(|p| p.0));
    let (low_y, high_y) = range(curves.iter().flat_map(|c| &c.points).map(|p| p.1));
    let across = Axis::new(Scale::Linear, low_x, high_x, left, right);
    let up = Axis::rounded(Scale::Linear, low_y.min(0.0), high_y, lower, upper);
    let unit = Unit::of(labels.x, across.high());
    for (tick, text) in across.ticks() {
        let x = across.place(tick);
        canvas.line((x, upper), (x, lower), GRID, 0.75);
        let text = unit.written(tick, text);
        canvas.text(x, lower + 14.0, &text, Look::small(Side::Centre));
    }
    let unit = Unit::of(labels.y, up.high());
    for (tick, text) in up.ticks() {
        let y = up.place(tick);
        canvas.line((left, y), (right, y), GRID, 0.75);
        let text = unit.written(tick, text);
        canvas.text(left - 8.0, y, &text, Look::small(Side::Left));
    }
    canvas.line((left, lower), (right, lower), INK, 1.0);
    let middle = (left + right) / 2.0;
    canvas.text(middle, lower + 34.0, labels.x, Look::small(Side::Centre));
    let inks = colours(curves.iter().map(|curve| curve.name.as_str()));
    let mut ends = Vec::new();
    for (number, curve) in curves.iter().enumerate() {
        let points: Vec<(f64, f64)> = curve
            .points
            .iter()
            .map(|&(x, y)| (across.place(x), up.place(y)))
            .collect();
        if let Some(&(_, y)) = points.last() {
            canvas.path(&points, inks[number], 2.0);
            ends.push((y, number));
        }
    }
    for (y, number) in apart(ends, upper, lower) {
        let look = Look::small(Side::Right).coloured(inks[number]).bold();
        canvas.text(right + 8.0, y, &curves[number].name, look);
    }
}

/// Moves the names apart, so that none covers another.
fn apart(mut ends: Vec<(f64, usize)>, upper: f64, lower: f64) -> Vec<(f64, usize)> {
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut above = upper - NAME_HEIGHT;
    for end in &mut ends {
        end.0 = end.0.max(above + NAME_HEIGHT);
        above = end.0;
    }
    let mut below = lower + NAME_HEIGHT;
    for end in ends.iter_mut().rev() {
        end.0 = end.0.min(below - NAME_HEIGHT);
        below = end.0;
    }
    ends
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

/// Distance of two names: the height of a line of small text.
const NAME_HEIGHT: f64 = 16.0;
