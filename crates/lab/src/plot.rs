//! Plots as SVG text: distributions, lines, and stacked bars, alone or one under the other.
//!
//! ```text
//!   Title                                      Title
//!   - sptf median 14   - fcfs median 31         fcfs   [seek |rotation  |transfer] + idle 31 %
//!   100 % |        ___....----                  c-look [seek|rotation  |transfer] + idle 38 %
//!         |     .-'   __..--                    sptf   [seek|rot|transfer] + idle 52 %
//!     0 % |_.'__.-'___________                         0          5         10 ms
//!         0      response time, ms     100
//! ```
//!
//! The palette suits colour-blind readers (Okabe, Ito 2008), every curve is named in the plot, and a policy has one
//! colour in all of them. The same input gives the same bytes.

mod axis;
mod bars;
mod canvas;
mod cdf;
mod inks;
mod legend;
mod lines;
mod multiples;
mod units;

use canvas::Canvas;
use cdf::Shares;

/// Named values of one kind, such as the response times under one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The name.
    pub name: String,
    /// The values, in any order.
    pub values: Vec<f64>,
}

/// A named line through points.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The name.
    pub name: String,
    /// The points by ascending x.
    pub points: Vec<(f64, f64)>,
}

/// A named bar of parts set end to end.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// The name.
    pub name: String,
    /// The parts: the same ones in the same order for all bars of a plot.
    pub parts: Vec<BarPart>,
}

/// One part of a bar.
#[derive(Clone, Debug, PartialEq)]
pub struct BarPart {
    /// The name.
    pub name: &'static str,
    /// The length, at least zero.
    pub value: f64,
    /// The colour.
    pub ink: Ink,
}

/// The colour of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// A colour of the palette of series, by its index.
    Colour(usize),
    /// A colour of head time, by its index: seek, rotation, transfer, other.
    Head(usize),
    /// Of a part that is written behind the bar and not drawn, such as idle time.
    Pale,
}

/// One plot of a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Panel {
    /// Cumulative distributions: points are (value, share from 0 to 1).
    Cdf {
        /// The title above the plot.
        title: String,
        /// The label below the horizontal axis.
        x_label: String,
        /// The distributions.
        curves: Vec<Curve>,
    },
    /// Tails of distributions, both axes logarithmic: points are (value, share above it, from 1 to 0).
    Tail {
        /// The title above the plot.
        title: String,
        /// The label below the horizontal axis.
        x_label: String,
        /// The distributions.
        curves: Vec<Curve>,
    },
    /// Lines.
    Lines {
        /// The title above the plot.
        title: String,
        /// The label below the horizontal axis.
        x_label: String,
        /// The label above the vertical axis.
        y_label: String,
        /// The lines.
        curves: Vec<Curve>,
    },
    /// Small multiples: measures side by side, with the same series along the same axis.
    Measures {
        /// The title above all.
        title: String,
        /// The label below each horizontal axis.
        x_label: String,
        /// The values along the horizontal axes.
        across: Across,
        /// The names of the series.
        series: Vec<String>,
        /// The measures.
        charts: Vec<Chart>,
    },
    /// Stacked bars.
    Bars {
        /// The title above the plot.
        title: String,
        /// The label below the horizontal axis.
        x_label: String,
        /// The bars.
        bars: Vec<Bar>,
    },
}

/// The values along the axis of small multiples.
#[derive(Clone, Debug, PartialEq)]
pub enum Across {
    /// Numbers: each series is a line.
    Numbers(Vec<f64>),
    /// Names: each series is a bar over each of them.
    Names(Vec<String>),
}

/// One measure of small multiples.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The measure with its unit.
    pub y_label: String,
    /// For each series a figure at each value along the axis, or none.
    pub rows: Vec<Vec<Option<Spread>>>,
}

/// A figure of repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// What the figure may be less or more, such as a standard deviation; zero without repeats.
    pub around: f64,
}

/// Cumulative distributions of the series in one plot.
pub fn cdf(title: &str, x_label: &str, series: &[Series]) -> String {
    page(&[distributions(title, x_label, series)])
}

/// Cumulative distributions of the series as one plot of a page.
pub fn distributions(title: &str, x_label: &str, series: &[Series]) -> Panel {
    Panel::Cdf {
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        curves: series.iter().map(Series::distribution).collect(),
    }
}

/// Lines in one plot, each named at its end.
pub fn lines(title: &str, x_label: &str, y_label: &str, curves: &[Curve]) -> String {
    page(&[Panel::Lines {
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        y_label: y_label.to_owned(),
        curves: curves.to_vec(),
    }])
}

/// Stacked bars, one under the other.
pub fn bars(title: &str, x_label: &str, bars: &[Bar]) -> String {
    page(&[Panel::Bars {
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        bars: bars.to_vec(),
    }])
}

/// Plots one under the other.
pub fn page(panels: &[Panel]) -> String {
    let height: f64 = panels.iter().map(Panel::height).sum();
    canvas::drawn(WIDTH, height + 2.0 * MARGIN, |canvas| {
        let mut top = MARGIN;
        for panel in panels {
            panel.draw(canvas, top);
            top += panel.height();
        }
    })
}

impl Series {
    /// The cumulative distribution, thinned to visible points.
    pub fn distribution(&self) -> Curve {
        let mut sorted: Vec<f64> = self
            .values
            .iter()
            .copied()
            .filter(|v| v.is_finite())
            .collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let points = match n {
            0 => Vec::new(),
            _ => (0..=POINTS.min(n))
                .map(|i| {
                    let upto = i * n / POINTS.min(n);
                    (sorted[upto.saturating_sub(1)], upto as f64 / n as f64)
                })
                .collect(),
        };
        Curve {
            name: self.name.clone(),
            points,
        }
    }
}

impl Panel {
    /// The panel with further curves. Bars have none.
    pub fn with(mut self, further: Vec<Curve>) -> Panel {
        if let Panel::Cdf { curves, .. }
        | Panel::Tail { curves, .. }
        | Panel::Lines { curves, .. } = &mut self
        {
            curves.extend(further);
        }
        self
    }

    fn height(&self) -> f64 {
        match self {
            Panel::Cdf { .. } | Panel::Tail { .. } | Panel::Lines { .. } => 400.0,
            Panel::Measures { charts, .. } => {
                let shared = self.shared();
                shared.map_or(0.0, |shared| multiples::height(&shared, charts.len()))
            }
            Panel::Bars { bars, .. } => bars::height(bars.len()),
        }
    }

    /// What the charts of small multiples share.
    fn shared(&self) -> Option<multiples::Shared<'_>> {
        match self {
            Panel::Measures {
                title,
                x_label,
                across,
                series,
                ..
            } => Some(multiples::Shared {
                title,
                x_label,
                across,
                series,
            }),
            _ => None,
        }
    }

    fn draw(&self, canvas: &Canvas<'_>, top: f64) {
        match self {
            Panel::Cdf {
                title,
                x_label,
                curves,
            }
            | Panel::Tail {
                title,
                x_label,
                curves,
            } => {
                let shares = match self {
                    Panel::Tail { .. } => Shares::Above,
                    _ => Shares::Upto,
                };
                let place = (top, self.height());
                cdf::draw(canvas, place, (title, x_label), shares, curves);
            }
            Panel::Lines {
                title,
                x_label,
                y_label,
                curves,
            } => {
                let labels = lines::Labels {
                    title,
                    x: x_label,
                    y: y_label,
                };
                lines::draw(canvas, top, self.height(), &labels, curves);
            }
            Panel::Measures { charts, .. } => {
                if let Some(shared) = self.shared() {
                    multiples::draw(canvas, top, &shared, charts);
                }
            }
            Panel::Bars {
                title,
                x_label,
                bars,
            } => bars::draw(canvas, top, title, x_label, bars),
        }
    }
}

/// The width of all plots, in CSS pixels: the text column of a README.
const WIDTH: f64 = 860.0;

/// The margin around the page.
const MARGIN: f64 = 24.0;

/// Points of a distribution: more than a plot has pixels across.
const POINTS: usize = 1000;

#[cfg(test)]
mod tests;
