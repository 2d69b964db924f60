//! Stacked bars, one under the other, the parts named above them and in them. Idle time is written, not drawn.

use super::axis::{Axis, Scale};
use super::canvas::{Canvas, GRID, INK, INK_SOFT, Look, PAPER, Side, width_of};
use super::inks::{fill, is_dark};
use super::{Bar, BarPart, Ink, MARGIN, WIDTH};

/// The height of a panel with this many bars.
pub(super) fn height(bars: usize) -> f64 {
    HEAD + ROW * bars as f64 + FOOT
}

/// Draws the panel from `top` downwards.
pub(super) fn draw(canvas: &Canvas<'_>, top: f64, title: &str, x_label: &str, bars: &[Bar]) {
    canvas.text(MARGIN, top + 10.0, title, Look::title());
    let names = bars.iter().map(|bar| width_of(&bar.name, 12.0));
    let left = MARGIN + names.fold(20.0, f64::max) + 12.0;
    let rests = bars.iter().map(|bar| width_of(&rest(bar), 12.0));
    let right = WIDTH - MARGIN - 52.0 - rests.fold(0.0, f64::max);
    let (upper, lower) = (top + HEAD, top + HEAD + ROW * bars.len() as f64);
    let longest = bars.iter().map(total).fold(0.0, f64::max);
    let across = Axis::new(Scale::Linear, 0.0, longest, left, right);
    if let Some(bar) = bars.first() {
        legend(canvas, left, top + 38.0, drawn(bar));
    }
    for (tick, text) in across.ticks() {
        let x = across.place(tick);
        canvas.line((x, upper - 4.0), (x, lower + 2.0), GRID, 0.75);
        canvas.text(x, lower + 14.0, &text, Look::small(Side::Centre));
    }
    canvas.text(
        (left + right) / 2.0,
        lower + 34.0,
        x_label,
        Look::small(Side::Centre),
    );
    for (row, bar) in bars.iter().enumerate() {
        let y = upper + ROW * row as f64;
        stacked(canvas, &across, y, bar);
        let middle = y + BAR / 2.0;
        let name = Look::small(Side::Left).coloured(INK).bold();
        canvas.text(left - 10.0, middle, &bar.name, name);
        let text = written(total(bar), across.high()) + &rest(bar);
        let end = across.place(total(bar));
        canvas.text(
            end + 8.0,
            middle,
            &text,
            Look::small(Side::Right).coloured(INK),
        );
    }
}

fn stacked(canvas: &Canvas<'_>, across: &Axis, y: f64, bar: &Bar) {
    let mut so_far = 0.0;
    for part in drawn(bar) {
        let (from, to) = (across.place(so_far), across.place(so_far + part.value));
        so_far += part.value;
        if to - from < 0.25 {
            continue;
        }
        let fill = fill(part.ink);
        canvas.rectangle((from, y), (to, y + BAR), fill);
        canvas.line((to, y), (to, y + BAR), PAPER, 1.0);
        let text = written(part.value, across.high());
        if width_of(&text, 11.0) + 8.0 < to - from {
            let ink = if is_dark(fill) { PAPER } else { INK };
            let look = Look::small(Side::Centre).coloured(ink);
            let look = Look { size: 11.0, ..look };
            canvas.text((from + to) / 2.0, y + BAR / 2.0, &text, look);
        }
    }
}

fn legend<'a>(canvas: &Canvas<'_>, left: f64, y: f64, parts: impl Iterator<Item = &'a BarPart>) {
    let mut x = left;
    for part in parts {
        canvas.rectangle((x, y - 5.0), (x + 10.0, y + 5.0), fill(part.ink));
        let look = Look::small(Side::Right).coloured(INK_SOFT);
        canvas.text(x + 15.0, y, part.name, look);
        x += 15.0 + width_of(part.name, look.size) + 18.0;
    }
}

/// The parts that are drawn. Pale ones are not: they would squeeze the others, and are written behind them.
fn drawn(bar: &Bar) -> impl Iterator<Item = &BarPart> {
    bar.parts.iter().filter(|part| part.ink != Ink::Pale)
}

fn total(bar: &Bar) -> f64 {
    drawn(bar).map(|part| part.value).sum()
}

/// What is behind the total: the pale parts with their shares.
fn rest(bar: &Bar) -> String {
    let whole: f64 = bar.parts.iter().map(|part| part.value).sum();
    let pale = bar.parts.iter().filter(|part| part.ink == Ink::Pale);
    let texts = pale
        .filter(|part| part.value > 0.0)
        .map(|part| format!("  + {} {:.0} %", part.name, 100.0 * part.value / whole));
    texts.collect()
}

/// A value with the digits that the scale shows.
fn written(value: f64, scale: f64) -> String {
    let digits = match scale {
        s if s >= 200.0 => 0,
        s if s >= 20.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

/// Height of title and legend.
const HEAD: f64 = 58.0;
/// Distance of two bars.
const ROW: f64 = 34.0;
/// Height of a bar.
const BAR: f64 = 22.0;
/// Height of the ticks and the axis label.
const FOOT: f64 = 56.0;
