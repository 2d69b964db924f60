//! Small multiples: the measures of an experiment side by side, with the same series, which are named once.
//!
//! ```text
//!   Title
//!   - fcfs   - sptf
//!   mean response, ms          requests/s
//!     |      ..---             |  ..---
//!     |__.--'                  |--
//! ```
//!
//! Along numbers a line has a band that shows the spread of repeats; over names bars have a stroke.

use plotters::style::RGBColor;

use super::axis::{Axis, Scale};
use super::canvas::{Canvas, GRID, INK, Look, Side, width_of};
use super::inks::colours;
use super::legend::{self, Entry};
use super::units::Unit;
use super::{Across, Chart, MARGIN, Spread, WIDTH};

/// What all charts of a panel share.
pub(super) struct Shared<'a> {
    pub title: &'a str,
    pub x_label: &'a str,
    pub across: &'a Across,
    pub series: &'a [String],
}

/// A place on the page.
#[derive(Clone, Copy)]
struct Frame {
    left: f64,
    right: f64,
    upper: f64,
    lower: f64,
}

/// The height of the panel.
pub(super) fn height(shared: &Shared<'_>, charts: usize) -> f64 {
    let rows = charts.div_ceil(columns(charts)) as f64;
    TITLE + legend::height(&entries(shared.series), MARGIN, WIDTH - MARGIN) + rows * CHART
}

fn columns(charts: usize) -> usize {
    charts.clamp(1, 2)
}

/// Draws the panel from `top` downwards.
pub(super) fn draw(canvas: &Canvas<'_>, top: f64, shared: &Shared<'_>, charts: &[Chart]) {
    canvas.text(MARGIN, top + 10.0, shared.title, Look::title());
    let entries = entries(shared.series);
    let (left, right) = (MARGIN, WIDTH - MARGIN);
    legend::draw(canvas, &entries, top + TITLE - 8.0, left, right);
    let inks: Vec<RGBColor> = entries.iter().map(|entry| entry.colour).collect();
    let top = top + TITLE + legend::height(&entries, left, right);
    let columns = columns(charts.len());
    let width = (right - left + BETWEEN) / columns as f64;
    for (number, chart) in charts.iter().enumerate() {
        let (row, column) = (number / columns, number % columns);
        let left = left + width * column as f64;
        let upper = top + CHART * row as f64;
        let frame = Frame {
            left: left + TICKS,
            right: left + width - BETWEEN,
            upper: upper + 30.0,
            lower: upper + CHART - 56.0,
        };
        canvas.text(
            left,
            upper + 12.0,
            &chart.y_label,
            Look::small(Side::Right).coloured(INK).bold(),
        );
        draw_chart(canvas, frame, shared, chart, &inks);
    }
}

fn entries(series: &[String]) -> Vec<Entry> {
    let inks = colours(series.iter().map(String::as_str));
    let each = series.iter().zip(inks).map(|(name, colour)| Entry {
        colour,
        name: name.clone(),
        figure: String::new(),
    });
    each.collect()
}

fn draw_chart(
    canvas: &Canvas<'_>,
    frame: Frame,
    shared: &Shared<'_>,
    chart: &Chart,
    inks: &[RGBColor],
) {
    let figures = chart.rows.iter().flatten().flatten();
    let ends =
        figures.flat_map(|figure| [figure.mean - figure.around, figure.mean + figure.around]);
    let (low, high) = ends
        .filter(|end| end.is_finite())
        .fold((0.0_f64, 0.0_f64), |(low, high), end| {
            (low.min(end), high.max(end))
        });
    let up = Axis::rounded(Scale::Linear, low, high, frame.lower, frame.upper);
    let unit = Unit::of(&chart.y_label, up.high());
    for (tick, text) in up.ticks() {
        let y = up.place(tick);
        canvas.line((frame.left, y), (frame.right, y), GRID, 0.75);
        canvas.text(
            frame.left - 8.0,
            y,
            &unit.written(tick, text),
            Look::small(Side::Left),
        );
    }
    match shared.across {
        Across::Numbers(numbers) => {
            let across = axis_over(numbers, frame);
            for (tick, text) in &across.1 {
                let x = across.0.place(*tick);
                canvas.line((x, frame.upper), (x, frame.lower), GRID, 0.75);
                canvas.text(x, frame.lower + 14.0, text, Look::small(Side::Centre));
            }
            for (row, ink) in chart.rows.iter().zip(inks) {
                let places = numbers.iter().map(|number| across.0.place(*number));
                draw_line(canvas, &up, places, row, *ink);
            }
        }
        Across::Names(names) => draw_bars(canvas, frame, &up, names, chart, inks),
    }
    let zero = up.place(0.0);
    canvas.line((frame.left, zero), (frame.right, zero), INK, 1.0);
    let middle = (frame.left + frame.right) / 2.0;
    canvas.text(
        middle,
        frame.lower + 42.0,
        shared.x_label,
        Look::small(Side::Centre),
    );
}

/// The axis over the numbers of a sweep, and its ticks. Few numbers are ticks themselves. Numbers that grow by
/// factors have equal distances.
fn axis_over(numbers: &[f64], frame: Frame) -> (Axis, Vec<(f64, String)>) {
    let finite = || numbers.iter().copied().filter(|number| number.is_finite());
    let (low, high) = finite().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), number| {
        (low.min(number), high.max(number))
    });
    let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
    let grows = low > 0.0 && high >= FACTORS * low && numbers.len() > 2;
    let scale = if grows { Scale::Log } else { Scale::Linear };
    let axis = Axis::new(scale, low, high, frame.left + 6.0, frame.right - 6.0);
    let mut places: Vec<f64> = finite().map(|number| axis.place(number)).collect();
    places.sort_by(f64::total_cmp);
    let are_apart = places
        .windows(2)
        .all(|two| two[1] - two[0] >= NUMBERS_APART);
    let ticks = match are_apart {
        true => finite()
            .map(|number| (number, format!("{number}")))
            .collect(),
        false => axis.ticks(),
    };
    (axis, ticks)
}

fn draw_line(
    canvas: &Canvas<'_>,
    up: &Axis,
    places: impl Iterator<Item = f64>,
    row: &[Option<Spread>],
    ink: RGBColor,
) {
    let figures = places
        .zip(row)
        .filter_map(|(x, figure)| Some((x, (*figure)?)));
    let mut figures: Vec<(f64, Spread)> = figures
        .filter(|(_, figure)| figure.mean.is_finite())
        .collect();
    figures.sort_by(|a, b| a.0.total_cmp(&b.0));
    let upper = figures
        .iter()
        .map(|(x, figure)| (*x, up.place(figure.mean + figure.around)));
    let lower = figures
        .iter()
        .rev()
        .map(|(x, figure)| (*x, up.place(figure.mean - figure.around)));
    let around: Vec<(f64, f64)> = upper.chain(lower).collect();
    let points: Vec<(f64, f64)> = figures
        .iter()
        .map(|(x, figure)| (*x, up.place(figure.mean)))
        .collect();
    if points.len() > 1 {
        canvas.veil(&around, ink);
        canvas.path(&points, ink, 2.0);
    }
    for (x, y) in points {
        canvas.rectangle((x - 2.5, y - 2.5), (x + 2.5, y + 2.5), ink);
    }
}

fn draw_bars(
    canvas: &Canvas<'_>,
    frame: Frame,
    up: &Axis,
    names: &[String],
    chart: &Chart,
    inks: &[RGBColor],
) {
    let group = (frame.right - frame.left) / names.len().max(1) as f64;
    let bar = (group * FILLED / inks.len().max(1) as f64).min(WIDEST);
    let zero = up.place(0.0);
    // Long names stand on two lines in turn.
    let is_tight = names.iter().any(|name| width_of(name, 11.0) > group);
    for (place, name) in names.iter().enumerate() {
        let middle = frame.left + group * (place as f64 + 0.5);
        let is_lower = is_tight && place % 2 == 1;
        let below = if is_lower { 26.0 } else { 13.0 };
        canvas.text(
            middle,
            frame.lower + below,
            name,
            Look {
                size: 11.0,
                ..Look::small(Side::Centre)
            },
        );
        let from = middle - bar * inks.len() as f64 / 2.0;
        for (number, (row, ink)) in chart.rows.iter().zip(inks).enumerate() {
            let figure = row.get(place).copied().flatten();
            let Some(figure) = figure.filter(|figure| figure.mean.is_finite()) else {
                continue;
            };
            let left = from + bar * number as f64;
            let end = up.place(figure.mean);
            canvas.rectangle(
                (left, end.min(zero)),
                (left + bar - 1.0, end.max(zero)),
                *ink,
            );
            if figure.around > 0.0 {
                let x = left + (bar - 1.0) / 2.0;
                let [low, high] =
                    [-1.0, 1.0].map(|side| up.place(figure.mean + side * figure.around));
                canvas.line((x, low), (x, high), INK, 1.0);
            }
        }
    }
}

/// Height of the title.
const TITLE: f64 = 34.0;
/// Height of a chart with its labels.
const CHART: f64 = 300.0;
/// Room for the ticks at the left.
const TICKS: f64 = 44.0;
/// Distance of two charts.
const BETWEEN: f64 = 28.0;
/// From this ratio of the ends on, the axis of a sweep is logarithmic. A choice: 1, 2, 4, 8 are equally far apart.
const FACTORS: f64 = 8.0;
/// Numbers nearer than this have no ticks of their own.
const NUMBERS_APART: f64 = 26.0;
/// The share of a group that its bars fill.
const FILLED: f64 = 0.8;
/// The widest bar.
const WIDEST: f64 = 36.0;
