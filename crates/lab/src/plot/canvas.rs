//! A page for plots: lines, boxes and text in CSS pixels, over the SVG backend of plotters.

use plotters::coord::Shift;
use plotters::prelude::{
    Color, DrawingArea, IntoDrawingArea, IntoFont, PathElement, Polygon, RGBColor, Rectangle,
    SVGBackend,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, TextStyle};

/// A page of a plot.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// The style of a text, and its side of the point.
#[derive(Clone, Copy)]
pub(super) struct Look {
    pub size: f64,
    pub colour: RGBColor,
    pub side: Side,
    pub weight: FontStyle,
}

/// The side of its point on which a text stands; its middle has the point's height.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Left,
    Centre,
    Right,
}

/// Draws a page of this size, and returns the SVG.
pub(super) fn drawn(width: f64, height: f64, draw: impl FnOnce(&Canvas<'_>)) -> String {
    let mut svg = String::new();
    {
        let size = (fine(width) as u32, fine(height) as u32);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        area.fill(&PAPER).expect(STRING);
        draw(&Canvas { area });
    }
    // The backend's page is enlarged: the text has its real size.
    let size = |w: f64, h: f64| format!("width=\"{w}\" height=\"{h}\"");
    svg.replacen(&size(fine(width), fine(height)), &size(width, height), 1)
}

impl Canvas<'_> {
    pub(super) fn text(&self, x: f64, y: f64, text: &str, look: Look) {
        let side = match look.side {
            Side::Left => HPos::Right,
            Side::Centre => HPos::Center,
            Side::Right => HPos::Left,
        };
        // The backend divides by this factor to convert line heights to font sizes.
        let size = look.size * FINE * 1.24;
        let style = TextStyle::from((FONTS, size).into_font().style(look.weight))
            .color(&look.colour)
            .pos(Pos::new(side, VPos::Center));
        self.area.draw_text(text, &style, at(x, y)).expect(STRING);
    }

    pub(super) fn line(&self, from: (f64, f64), to: (f64, f64), colour: RGBColor, width: f64) {
        self.path(&[from, to], colour, width);
    }

    pub(super) fn path(&self, points: &[(f64, f64)], colour: RGBColor, width: f64) {
        let mut pixels: Vec<(i32, i32)> = points.iter().map(|&(x, y)| at(x, y)).collect();
        pixels.dedup();
        let style = colour.stroke_width(fine(width) as u32);
        self.area
            .draw(&PathElement::new(pixels, style))
            .expect(STRING);
    }

    /// A surface between points, through which what is below can be seen.
    pub(super) fn veil(&self, points: &[(f64, f64)], colour: RGBColor) {
        let pixels: Vec<(i32, i32)> = points.iter().map(|&(x, y)| at(x, y)).collect();
        self.area
            .draw(&Polygon::new(pixels, colour.mix(VEIL)))
            .expect(STRING);
    }

    pub(super) fn rectangle(&self, from: (f64, f64), to: (f64, f64), colour: RGBColor) {
        let corners = [at(from.0, from.1), at(to.0, to.1)];
        self.area
            .draw(&Rectangle::new(corners, colour.filled()))
            .expect(STRING);
    }
}

impl Look {
    /// The text of axes and legends.
    pub(super) const fn small(side: Side) -> Self {
        Look {
            size: 12.0,
            colour: INK_SOFT,
            side,
            weight: FontStyle::Normal,
        }
    }

    /// A title.
    pub(super) const fn title() -> Self {
        Look {
            size: 16.0,
            colour: INK,
            side: Side::Right,
            weight: FontStyle::Bold,
        }
    }

    pub(super) const fn coloured(self, colour: RGBColor) -> Self {
        Look { colour, ..self }
    }

    pub(super) const fn bold(self) -> Self {
        Look {
            weight: FontStyle::Bold,
            ..self
        }
    }
}

/// The approximate width of a text, for the layout.
pub(super) fn width_of(text: &str, size: f64) -> f64 {
    // Helvetica's mean advance is 0.52 em; DejaVu Sans, which stands in for it, is wider.
    text.chars().count() as f64 * size * 0.58
}

fn at(x: f64, y: f64) -> (i32, i32) {
    (fine(x) as i32, fine(y) as i32)
}

fn fine(length: f64) -> f64 {
    (length * FINE).round()
}

/// Enlargement of the drawn page. The backend draws at whole pixels, which would make steps of
/// curves.
const FINE: f64 = 8.0;

/// The opacity of a surface that shows a spread. A choice: lines below it stay visible.
const VEIL: f64 = 0.18;

/// Writing to a `String` cannot fail.
const STRING: &str = "a string takes everything";

/// Font families in order of preference. Drawing needs no font.
const FONTS: &str = "Inter, Helvetica Neue, Helvetica, Arial, DejaVu Sans, sans-serif";

pub(super) const PAPER: RGBColor = RGBColor(255, 255, 255);
pub(super) const INK: RGBColor = RGBColor(34, 34, 34);
pub(super) const INK_SOFT: RGBColor = RGBColor(95, 95, 95);
pub(super) const GRID: RGBColor = RGBColor(228, 228, 228);
