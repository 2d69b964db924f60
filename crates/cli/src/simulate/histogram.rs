//! Histograms of response times as text.

use std::fmt::Write;

use lab::comparison::figures::PolicyRun;

use crate::output::short;

/// Histograms of response times, all runs over one axis, beside a column of names.
pub fn histograms(runs: &[PolicyRun], names: usize, width: usize) -> String {
    let end = runs
        .iter()
        .map(|run| run.quantile(SHOWN_SHARE).as_millis_f64())
        .fold(0.0, f64::max);
    let end = rounded_up(end);
    let wide = cells_within(width.saturating_sub(names + 2));
    let mut text = String::from("  response times\n");
    let rows = if runs.len() == 1 { 6 } else { 3 };
    for run in runs {
        let (cells, beyond) = cells(run, end, wide);
        let highest = cells.iter().copied().max().unwrap_or(0).max(1);
        for row in (0..rows).rev() {
            let name = match row {
                0 => run.policy.name(),
                _ => String::new(),
            };
            let _ = write!(text, "  {name:names$}");
            text.extend(cells.iter().map(|&count| glyph(count, highest, row, rows)));
            if row == 0 && beyond > 0 {
                let share = beyond as f64 / run.report.all.requests as f64;
                let _ = write!(text, "  {:.2} % beyond", share * 100.0);
            }
            let trimmed = text.trim_end_matches(' ').len();
            text.truncate(trimmed);
            text.push('\n');
        }
    }
    let _ = write!(text, "  {:names$}", "");
    let quarter = wide / 4;
    for mark in 0..4 {
        let value = short(end * f64::from(mark) / 4.0);
        let _ = write!(text, "{:quarter$}", format!("╵{value}"));
    }
    let _ = writeln!(text, "╵{} ms", short(end));
    text
}

/// Requests in each cell of the axis, and requests beyond its end.
fn cells(run: &PolicyRun, end: f64, wide: usize) -> (Vec<u64>, u64) {
    let mut cells = vec![0; wide];
    let mut beyond = 0;
    for &(within, count) in &run.distribution {
        let place = within.as_millis_f64() / end * wide as f64;
        match cells.get_mut(place as usize) {
            Some(cell) => *cell += count,
            None => beyond += count,
        }
    }
    (cells, beyond)
}

/// The part of a column that lies in one row of `rows`, counted from below.
fn glyph(count: u64, highest: u64, row: u64, rows: u64) -> char {
    // Any request is at least an eighth of a row.
    let eighths = (count * rows * 8).div_ceil(highest);
    let here = eighths.saturating_sub(row * 8).min(8);
    [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][here as usize]
}

/// The cells of a histogram on a terminal of so many columns beside its names.
fn cells_within(columns: usize) -> usize {
    match columns {
        columns if columns > usize::from(u16::MAX) => USUAL_CELLS,
        columns => (columns.saturating_sub(BEYOND) / 4 * 4).clamp(CELLS.0, CELLS.1),
    }
}

/// The next of 1, 2, 4, 8 and 10 times a power of ten, whose quarters are round.
fn rounded_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    [1.0, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 6.0, 8.0, 10.0]
        .map(|multiple| multiple * power)
        .into_iter()
        .find(|&end| end >= value)
        .unwrap_or(10.0 * power)
}

/// A histogram's width where there is no terminal. Its quarters are whole cells.
const USUAL_CELLS: usize = 64;

/// The narrowest and the widest histogram. Choices: an axis of four numbers, and twice the usual.
const CELLS: (usize, usize) = (32, 128);

/// The columns right of a histogram for the requests beyond its axis and for the axis' last number.
const BEYOND: usize = 16;

/// Share of requests within the histogram's axis, so that a few stragglers do not squeeze the rest.
const SHOWN_SHARE: f64 = 0.995;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fill_from_below_and_nothing_is_nothing() {
        assert_eq!(glyph(0, 100, 0, 3), ' ');
        assert_eq!(glyph(1, 100, 0, 3), '▁');
        assert_eq!(glyph(100, 100, 2, 3), '█');
        assert_eq!(glyph(50, 100, 1, 3), '▄');
        assert_eq!(glyph(50, 100, 2, 3), ' ');
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, end) in [
            (0.0, 1.0),
            (0.3, 0.32),
            (37.0, 40.0),
            (101.0, 120.0),
            (99.0, 100.0),
        ] {
            assert!((rounded_up(value) - end).abs() < 1e-9, "{value}");
        }
    }

    #[test]
    fn a_histogram_is_as_wide_as_the_terminal_lets_it() {
        assert_eq!(cells_within(usize::MAX - 8), 64);
        assert_eq!(
            [30, 52, 71, 150, 1000].map(cells_within),
            [32, 36, 52, 128, 128]
        );
    }
}
