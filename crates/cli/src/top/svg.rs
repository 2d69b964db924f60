//! A drawing of the terminal as SVG, with its colours.

use std::fmt::Write as _;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

/// The width and height of a cell, and the size of its letters, in pixels. A choice.
const CELL: (f64, f64) = (8.4, 18.0);
const LETTERS: u32 = 14;

/// The ground, and letters without a colour: those of the status page at night.
const GROUND: &str = "#171b22";
const TEXT: &str = "#e8ebf0";

/// Draws the cells. Runs of one style are one text.
pub(super) fn svg(buffer: &Buffer) -> String {
    let area = buffer.area;
    let (width, height) = (
        f64::from(area.width) * CELL.0,
        f64::from(area.height) * CELL.1,
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {:.0}\" font-family=\"monospace\" font-size=\"{LETTERS}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{GROUND}\"/>\n",
        width + 2.0 * CELL.0,
        height + CELL.1
    );
    for y in area.top()..area.bottom() {
        let mut x = area.left();
        while x < area.right() {
            let first = &buffer[(x, y)];
            let end = (x..area.right())
                .find(|&at| !is_alike(first, &buffer[(at, y)]))
                .unwrap_or(area.right());
            let text: String = (x..end).map(|at| buffer[(at, y)].symbol()).collect();
            draw_run(&mut svg, (x, y), first, &text);
            x = end;
        }
    }
    svg + "</svg>\n"
}

fn is_alike(one: &Cell, other: &Cell) -> bool {
    (one.fg, one.bg, one.modifier) == (other.fg, other.bg, other.modifier)
}

fn draw_run(svg: &mut String, (x, y): (u16, u16), style: &Cell, text: &str) {
    let (left, top) = ((f64::from(x) + 1.0) * CELL.0, (f64::from(y) + 0.5) * CELL.1);
    let width = text.chars().count() as f64 * CELL.0;
    let mut ink = colour(style.fg).unwrap_or(TEXT);
    let mut ground = colour(style.bg);
    if style.modifier.contains(Modifier::REVERSED) {
        (ink, ground) = (ground.unwrap_or(GROUND), Some(ink));
    }
    // Writing to a string cannot fail.
    if let Some(ground) = ground {
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{}\" fill=\"{ground}\"/>",
            CELL.1
        );
    }
    if text.trim().is_empty() {
        return;
    }
    let weight = match style.modifier.contains(Modifier::BOLD) {
        true => " font-weight=\"bold\"",
        false => "",
    };
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        svg,
        "<text x=\"{left:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\" xml:space=\"preserve\" fill=\"{ink}\"{weight}>{text}</text>",
        top + 0.75 * CELL.1
    );
}

/// The colour of a terminal: nothing for its own.
fn colour(colour: Color) -> Option<&'static str> {
    Some(match colour {
        Color::Red => "#f06060",
        Color::Green => "#34c284",
        Color::Yellow => "#e6b144",
        Color::Blue => "#5b93f5",
        Color::Magenta => "#ab7df0",
        Color::Cyan => "#4cc9de",
        Color::DarkGray => "#7c8796",
        _ => return None,
    })
}
