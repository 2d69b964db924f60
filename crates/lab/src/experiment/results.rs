//! The results of an experiment: a grid for each measure, with a row for each value along the axis,
//! and a column for each combination of the other settings. Results of different labels never share
//! a column.

use std::collections::BTreeMap;

use super::Value;
use crate::plot::{Across, Chart, Panel, Spread};
use serde::{Serialize, Serializer};

use super::measure::{MEASURES, Mean, Point, RunMeasures};
use super::plan::ExperimentPlan;
use super::table::{self, RunRow};
use super::{Axis, Experiment, ExperimentSetting};
use crate::Label;
use crate::table::ColumnTable;

/// A finished experiment.
pub struct Results {
    plan: ExperimentPlan,
    /// The measures of each run, in the order of the plan.
    runs: Vec<RunMeasures>,
    /// The measures of each combination.
    points: Vec<Point>,
}

/// One measure of all combinations.
#[derive(Clone, Debug, Serialize)]
pub struct Grid {
    /// The title of the measure, with the unit.
    pub title: &'static str,
    /// The setting along the axis.
    pub axis: &'static str,
    /// The combinations of the other settings.
    pub columns: Vec<String>,
    /// For each value along the axis the figure in each column, if that combination exists.
    pub rows: Vec<(Value, Vec<Option<Mean>>)>,
}

impl Results {
    /// The measures of all runs of a plan, in its order.
    pub(super) fn new(plan: ExperimentPlan, runs: Vec<RunMeasures>) -> Self {
        let repeat = plan.experiment.repeat as usize;
        let points = runs.chunks(repeat).map(Point::new).collect();
        Results { plan, runs, points }
    }

    /// The runs as a table.
    pub fn table(&self) -> ColumnTable {
        let runs = self.plan.runs.iter().zip(&self.runs);
        let rows: Vec<RunRow> = runs
            .map(|(run, measures)| RunRow::swept(&self.plan, run, measures))
            .collect();
        table::runs(&rows)
    }

    /// The plan.
    pub fn plan(&self) -> &ExperimentPlan {
        &self.plan
    }

    /// The experiment.
    pub fn experiment(&self) -> &Experiment {
        &self.plan.experiment
    }

    /// The labels of all results, in words.
    pub fn label(&self) -> String {
        let runs = &self.plan.runs;
        let label = runs[0].setup.truth.label();
        match common_label(&self.plan) {
            Some(_) if runs.iter().all(|run| run.setup.truth.label() == label) => label,
            Some(common) => format!("{}, by differences that vary", common.name()),
            None => "in-firmware and noisy, as the columns say".to_owned(),
        }
    }

    /// A grid for each shown measure.
    pub fn grids(&self) -> Vec<Grid> {
        let axis = axis_of(&self.plan.experiment);
        let columns = columns(&self.plan);
        let grid = |&measure: &usize| Grid {
            title: MEASURES[measure].title,
            axis: axis.setting.name,
            columns: columns.iter().map(|column| column.name.clone()).collect(),
            rows: {
                let rows = axis.values.iter().enumerate();
                let figure = |place: usize| self.points[place].figures[measure];
                let rows = rows.map(|(row, value)| {
                    let cells = columns
                        .iter()
                        .map(|column| column.points[row].and_then(figure));
                    (value.clone(), cells.collect())
                });
                rows.collect()
            },
        };
        self.plan.shown.iter().map(grid).collect()
    }

    /// The plot: a chart for each measure.
    pub fn panels(&self) -> Vec<Panel> {
        let (plan, points) = (&self.plan, &self.points);
        let axis = axis_of(&plan.experiment);
        let columns = columns(plan);
        let numbers: Option<Vec<f64>> = axis.values.iter().map(Value::number).collect();
        let across = match numbers {
            Some(numbers) => Across::Numbers(numbers),
            None => Across::Names(axis.values.iter().map(ToString::to_string).collect()),
        };
        let figure = |measure: usize, place: Option<usize>| {
            let mean = points[place?].figures[measure]?;
            Some(Spread {
                mean: mean.mean,
                around: mean.deviation.unwrap_or(0.0),
            })
        };
        let chart = |&measure: &usize| Chart {
            y_label: MEASURES[measure].title.to_owned(),
            rows: {
                let rows = columns.iter().map(|column| {
                    let row = column.points.iter().map(|&place| figure(measure, place));
                    row.collect()
                });
                rows.collect()
            },
        };
        vec![Panel::Measures {
            title: plan.experiment.summary.clone(),
            x_label: match common_label(plan) {
                Some(mode) => format!("{}; {}", axis.setting.name, mode.name()),
                None => axis.setting.name.to_owned(),
            },
            across,
            series: columns.iter().map(|column| column.name.clone()).collect(),
            charts: plan.shown.iter().map(chart).collect(),
        }]
    }
}

fn axis_of(experiment: &Experiment) -> &Axis {
    &experiment.axes[experiment.figure.x]
}

/// The label, if it is the same for all combinations.
fn common_label(plan: &ExperimentPlan) -> Option<Label> {
    let first = *plan.modes.first()?;
    plan.modes
        .iter()
        .all(|mode| *mode == first)
        .then_some(first)
}

/// A line of the plot: its name, and the index of the combination for each value along the axis.
struct Column {
    name: String,
    points: Vec<Option<usize>>,
}

fn columns(plan: &ExperimentPlan) -> Vec<Column> {
    let experiment = &plan.experiment;
    let x = experiment.figure.x;
    let axis = &experiment.axes[x];
    let mixed = common_label(plan).is_none();
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
            true => fixed_name(plan, place),
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

/// The name of a column if nothing but the axis was swept: the policy, or the load if the axis is the policy.
fn fixed_name(plan: &ExperimentPlan, point: usize) -> String {
    let setup = &plan.runs[point * plan.experiment.repeat as usize].setup;
    match (axis_of(&plan.experiment).setting.name, &setup.policies[..]) {
        ("policy", _) | (_, []) => setup.source.name(),
        (_, [policy, ..]) => policy.name(),
    }
}

/// The JSON: all measures of all combinations. The same seeds give the same bytes.
#[derive(Serialize)]
struct Document<'a> {
    experiment: &'a str,
    summary: &'a str,
    fixed: BTreeMap<&'static str, &'a Value>,
    x: &'static str,
    y: &'a [String],
    points: Vec<PointDocument<'a>>,
}

#[derive(Serialize)]
struct PointDocument<'a> {
    settings: BTreeMap<&'static str, &'a Value>,
    mode: Label,
    seeds: Vec<u64>,
    measures: BTreeMap<&'static str, Option<Mean>>,
}

impl Serialize for Results {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Results { plan, points, .. } = self;
        let experiment = &plan.experiment;
        let names = experiment.axes.iter().map(|axis| axis.setting.name);
        let point = |place: usize| PointDocument {
            settings: names.clone().zip(&plan.points[place]).collect(),
            mode: plan.modes[place],
            seeds: {
                let runs = plan.runs.iter().filter(|run| run.point == place);
                runs.map(|run| run.seed).collect()
            },
            measures: MEASURES
                .iter()
                .zip(&points[place].figures)
                .map(|(measure, figure)| (measure.name, *figure))
                .collect(),
        };
        let name = |setting: &'static ExperimentSetting| setting.name;
        let fixed = experiment.fixed.iter();
        let document = Document {
            experiment: &experiment.name,
            summary: &experiment.summary,
            fixed: fixed
                .map(|(setting, value)| (name(setting), value))
                .collect(),
            x: axis_of(experiment).setting.name,
            y: &experiment.figure.y,
            points: (0..plan.points.len()).map(point).collect(),
        };
        document.serialize(serializer)
    }
}
