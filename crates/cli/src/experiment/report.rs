//! What an experiment prints and draws: a table for each measure, with a row for each value along
//! the axis and a column for each combination of the others. Results in firmware and noisy ones
//! never share a column.

use std::collections::BTreeMap;
use std::fmt::Write;

use lab::experiment::Value;
use lab::plot::{Curve, Panel};
use serde::Serialize;

use super::measure::{MEASURES, Mean, Point};
use super::plan::Plan;
use crate::output::Failure;
use crate::simulate::short;
use crate::simulate::truth::Mode;

/// The tables.
pub fn table(plan: &Plan, points: &[Point]) -> String {
    let experiment = &plan.experiment;
    let mut text = format!("{}: {}\n", experiment.name, experiment.summary);
    for (setting, value) in &experiment.fixed {
        let _ = writeln!(text, "  {:22}{value}", setting.path());
    }
    if experiment.repeat > 1 {
        let seeds = experiment.repeat;
        let _ = writeln!(text, "  {:22}{seeds}: means ± standard deviation", "seeds");
    }
    let _ = writeln!(text, "  {:22}{}", "mode", mode(plan));
    let columns = columns(plan);
    for &measure in &plan.shown {
        let _ = write!(text, "\n  {}\n", MEASURES[measure].title);
        text.push_str(&rows(plan, &columns, |place| {
            points[place].figures[measure]
        }));
    }
    text
}

fn mode(plan: &Plan) -> String {
    let label = plan.runs[0].setup.truth.label();
    match common_mode(plan) {
        Some(_) if plan.runs.iter().all(|run| run.setup.truth.label() == label) => label,
        Some(mode) => format!("{}, by differences that vary", mode.name()),
        None => "in-firmware and noisy, as the columns say".to_owned(),
    }
}

/// The mode, if it is the same everywhere.
fn common_mode(plan: &Plan) -> Option<Mode> {
    let first = *plan.modes.first()?;
    plan.modes
        .iter()
        .all(|mode| *mode == first)
        .then_some(first)
}

/// A line of the plot: its name, and for each value along the axis the place of the combination.
struct Column {
    name: String,
    points: Vec<Option<usize>>,
}

fn columns(plan: &Plan) -> Vec<Column> {
    let experiment = &plan.experiment;
    let x = experiment.figure.x;
    let axis = &experiment.axes[x];
    let mixed = common_mode(plan).is_none();
    let mut columns: Vec<Column> = Vec::new();
    for (place, point) in plan.points.iter().enumerate() {
        let others = point.iter().zip(&experiment.axes).enumerate();
        let others = others.filter(|(number, _)| *number != x);
        let words = others.map(|(_, (value, axis))| match value {
            Value::Text(text) => text.clone(),
            number => format!("{} {number}", axis.setting.name),
        });
        let mut words: Vec<String> = words.collect();
        if mixed {
            words.push(plan.modes[place].name().to_owned());
        }
        let name = match words.is_empty() {
            true => experiment.name.clone(),
            false => words.join(", "),
        };
        let row = axis.values.iter().position(|value| *value == point[x]);
        let number = columns.iter().position(|column| column.name == name);
        let number = number.unwrap_or_else(|| {
            columns.push(Column {
                name,
                points: vec![None; axis.values.len()],
            });
            columns.len() - 1
        });
        if let Some(row) = row {
            columns[number].points[row] = Some(place);
        }
    }
    columns
}

fn rows(plan: &Plan, columns: &[Column], of: impl Fn(usize) -> Option<Mean>) -> String {
    let axis = &plan.experiment.axes[plan.experiment.figure.x];
    let cell = |place: &Option<usize>| match place.and_then(&of) {
        None => "–".to_owned(),
        Some(Mean {
            mean,
            deviation: None,
        }) => short(mean),
        Some(Mean {
            mean,
            deviation: Some(deviation),
        }) => format!("{} ±{}", short(mean), short(deviation)),
    };
    let mut grid = vec![vec![axis.setting.name.to_owned()]];
    grid[0].extend(columns.iter().map(|column| column.name.clone()));
    for (row, value) in axis.values.iter().enumerate() {
        let mut line = vec![value.to_string()];
        line.extend(columns.iter().map(|column| cell(&column.points[row])));
        grid.push(line);
    }
    let length = |text: &String| text.chars().count();
    let widths: Vec<usize> = (0..grid[0].len())
        .map(|at| grid.iter().map(|line| length(&line[at])).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for line in grid {
        for (at, (word, width)) in line.iter().zip(&widths).enumerate() {
            let _ = match at {
                0 => write!(text, "  {word:width$}"),
                _ => write!(text, "   {word:>width$}"),
            };
        }
        text.push('\n');
    }
    text
}

/// A plot for each measure.
pub fn panels(plan: &Plan, points: &[Point]) -> Vec<Panel> {
    let experiment = &plan.experiment;
    let axis = &experiment.axes[experiment.figure.x];
    let columns = columns(plan);
    let label = match common_mode(plan) {
        Some(mode) => format!("{}; {}", axis.setting.name, mode.name()),
        None => axis.setting.name.to_owned(),
    };
    let shown = plan.shown.iter().map(|&measure| {
        let curves = columns.iter().map(|column| {
            let places = axis.values.iter().zip(&column.points);
            let mut line: Vec<(f64, f64)> = places
                .filter_map(|(x, place)| {
                    let mean = points[(*place)?].figures[measure]?;
                    Some((x.number()?, mean.mean))
                })
                .collect();
            line.sort_by(|a, b| a.0.total_cmp(&b.0));
            Curve {
                name: column.name.clone(),
                points: line,
            }
        });
        Panel::Lines {
            title: experiment.summary.clone(),
            x_label: label.clone(),
            y_label: MEASURES[measure].title.to_owned(),
            curves: curves.collect(),
        }
    });
    shown.collect()
}

/// What `--json` prints.
#[derive(Serialize)]
struct Results<'a> {
    experiment: &'a str,
    summary: &'a str,
    fixed: BTreeMap<&'static str, &'a Value>,
    x: &'static str,
    y: &'a [String],
    points: Vec<Result<'a>>,
}

#[derive(Serialize)]
struct Result<'a> {
    settings: BTreeMap<&'static str, &'a Value>,
    mode: Mode,
    seeds: Vec<u64>,
    measures: BTreeMap<&'static str, Option<Figure>>,
}

#[derive(Serialize)]
struct Figure {
    mean: f64,
    deviation: Option<f64>,
}

/// The results as JSON, all measures of them: the same seeds give the same bytes.
pub fn json(plan: &Plan, points: &[Point]) -> std::result::Result<String, Failure> {
    let experiment = &plan.experiment;
    let fixed = experiment.fixed.iter();
    let names = experiment.axes.iter().map(|axis| axis.setting.name);
    let result = |place: usize| Result {
        settings: names.clone().zip(&plan.points[place]).collect(),
        mode: plan.modes[place],
        seeds: {
            let runs = plan.runs.iter().filter(|run| run.point == place);
            runs.map(|run| run.seed).collect()
        },
        measures: MEASURES
            .iter()
            .zip(&points[place].figures)
            .map(|(measure, figure)| (measure.name, figure.map(Figure::from)))
            .collect(),
    };
    let results = Results {
        experiment: &experiment.name,
        summary: &experiment.summary,
        fixed: fixed
            .map(|(setting, value)| (setting.name, value))
            .collect(),
        x: experiment.axes[experiment.figure.x].setting.name,
        y: &experiment.figure.y,
        points: (0..plan.points.len()).map(result).collect(),
    };
    let mut text = serde_json::to_string_pretty(&results).map_err(Failure::failed)?;
    text.push('\n');
    Ok(text)
}

impl From<Mean> for Figure {
    fn from(mean: Mean) -> Self {
        Figure {
            mean: mean.mean,
            deviation: mean.deviation,
        }
    }
}
