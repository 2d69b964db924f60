//! Names of series with their colours, in rows above a plot, so that they cover nothing.

use plotters::style::RGBColor;

use super::canvas::{Canvas, INK, INK_SOFT, Look, Side, width_of};

/// A series of a plot.
pub(super) struct Entry {
    pub colour: RGBColor,
    pub name: String,
    /// A figure beside the name, such as the median; or nothing.
    pub figure: String,
}

/// The height of one row.
pub(super) const ROW: f64 = 20.0;

/// Length of the coloured stroke, and its distance from the name.
const STROKE: (f64, f64) = (18.0, 7.0);

/// Distance of two entries.
const GAP: f64 = 16.0;

/// The width of a name. Bold letters are wider, and a short name may have wide ones only.
fn name_width(name: &str) -> f64 {
    width_of(name, 12.0) * 1.12 + 6.0
}

impl Entry {
    fn width(&self) -> f64 {
        let figure = match self.figure.is_empty() {
            true => 0.0,
            false => width_of(&self.figure, 12.0) + 7.0,
        };
        STROKE.0 + STROKE.1 + name_width(&self.name) + figure + GAP
    }
}

/// The height of all rows between `left` and `right`.
pub(super) fn height(entries: &[Entry], left: f64, right: f64) -> f64 {
    let last = places(entries, left, right)
        .last()
        .map_or(0.0, |place| place.1 + ROW);
    last.max(0.0)
}

/// Draws the entries from `top` downwards.
pub(super) fn draw(canvas: &Canvas<'_>, entries: &[Entry], top: f64, left: f64, right: f64) {
    for (entry, (x, y)) in entries.iter().zip(places(entries, left, right)) {
        let middle = top + y + ROW / 2.0;
        canvas.line((x, middle), (x + STROKE.0, middle), entry.colour, 3.0);
        let at = x + STROKE.0 + STROKE.1;
        let name = Look::small(Side::Right).coloured(INK).bold();
        canvas.text(at, middle, &entry.name, name);
        let figure = Look::small(Side::Right).coloured(INK_SOFT);
        let behind = at + name_width(&entry.name) + 3.0;
        canvas.text(behind, middle, &entry.figure, figure);
    }
}

/// The begin of each entry, and its distance from the first row.
fn places(entries: &[Entry], left: f64, right: f64) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (left, 0.0);
    let each = entries.iter().map(|entry| {
        if x > left && x + entry.width() - GAP > right {
            (x, y) = (left, y + ROW);
        }
        let place = (x, y);
        x += entry.width();
        place
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_do_not_fit_go_to_the_next_row() {
        let entry = |name: &str| Entry {
            colour: RGBColor(0, 0, 0),
            name: name.to_owned(),
            figure: String::new(),
        };
        let entries = [entry("one"), entry("another one"), entry("a third one")];
        assert_eq!(height(&entries, 0.0, 2000.0), ROW);
        assert_eq!(height(&entries, 0.0, 10.0), 3.0 * ROW);
        assert_eq!(height(&[], 0.0, 10.0), 0.0);
        let places = places(&entries, 5.0, 260.0);
        assert_eq!(places[0], (5.0, 0.0));
        assert!(places[1].0 > 60.0, "{places:?}");
        assert_eq!(places[2], (5.0, ROW));
    }
}
