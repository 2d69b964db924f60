//! Experiment files: one load on one drive in many runs, with some settings varied.
//!
//! A setting has one value in its table, or several under its name in `[sweep]`. All combinations
//! run. [`SETTINGS`] lists the settings, which correspond to flags of the command line.
//!
//! ```toml
//! # What this shows: throughput grows with the queue, and faster under SPTF.
//! name = "example"
//! summary = "throughput over queue depth"
//! drive = "quantum-atlas-10k"
//! workload = "oltp"             # or: trace = "FILE"
//! requests = 10_000             # or: seconds = 60
//! repeat = 3                    # so many seeds, one after the other; means are printed
//! [load]
//! think_ms = 0
//! [truth]
//! write_cache = "off"
//! [scan]
//! blocks = "all"                # a scan in the background, and its measures
//! [sweep]
//! policy = ["sstf", "sptf"]
//! tasks = [1, 4, 16]
//! [figure]
//! x = "tasks"                   # the other swept settings tell the lines apart
//! y = ["requests_per_second", "mean_ms"]
//! ```

mod measure;
mod parse;
mod plan;
mod results;
mod settings;
mod shard;
mod sweep;
mod table;

use std::fmt;

use document::{DocumentError, Lines};
use serde::Serialize;

pub use measure::{MEASURES, Mean, Measure, Point};
pub use plan::ExperimentPlan;
pub use results::{Grid, Results};
pub use settings::{ExperimentSetting, Kind, SETTINGS};
pub use shard::{Shard, ShardResults, merged};
pub use table::{RunRow, runs};

/// An experiment from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// The name.
    pub name: String,
    /// The subject, in a sentence.
    pub summary: String,
    /// The number of seeds of each combination.
    pub repeat: u32,
    /// The settings with one value.
    pub fixed: Vec<(&'static ExperimentSetting, Value)>,
    /// The settings with several values.
    pub axes: Vec<Axis>,
    /// The printed and drawn measures.
    pub figure: ExperimentFigure,
    lines: Lines,
}

/// A setting with several values.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The setting.
    pub setting: &'static ExperimentSetting,
    /// The values, all different.
    pub values: Vec<Value>,
}

/// The printed and drawn measures.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentFigure {
    /// The index of the axis whose values are the rows.
    pub x: usize,
    /// The names of the measures, at least one, in the order of their tables.
    pub y: Vec<String>,
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A count.
    Whole(u64),
    /// A number.
    Number(f64),
    /// A word.
    Text(String),
}

impl Value {
    /// The value as a number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Whole(whole) => Some(*whole as f64),
            Value::Number(number) => Some(*number),
            Value::Text(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Whole(whole) => whole.fmt(f),
            Value::Number(number) => number.fmt(f),
            Value::Text(text) => text.fmt(f),
        }
    }
}

impl Experiment {
    /// All combinations of the axes' values. The last axis varies fastest.
    pub fn points(&self) -> Vec<Vec<Value>> {
        let mut points = vec![Vec::new()];
        for axis in &self.axes {
            let longer = points.iter().flat_map(|point| {
                axis.values.iter().map(|value| {
                    let mut point: Vec<Value> = point.clone();
                    point.push(value.clone());
                    point
                })
            });
            points = longer.collect();
        }
        points
    }

    /// All settings of one combination.
    pub fn values<'a>(
        &'a self,
        point: &'a [Value],
    ) -> impl Iterator<Item = (&'static ExperimentSetting, &'a Value)> {
        let fixed = self.fixed.iter().map(|(setting, value)| (*setting, value));
        let varied = self.axes.iter().map(|axis| axis.setting).zip(point);
        fixed.chain(varied)
    }

    /// Whether the file has this setting.
    pub fn sets(&self, name: &str) -> bool {
        let fixed = self.fixed.iter().map(|(setting, _)| *setting);
        let mut all = fixed.chain(self.axes.iter().map(|axis| axis.setting));
        all.any(|setting| setting.name == name)
    }

    /// An error at the line of a setting or another key.
    pub fn complain(&self, name: &str, problem: impl AsRef<str>) -> DocumentError {
        let swept = self.axes.iter().any(|axis| axis.setting.name == name);
        let path = match SETTINGS.iter().find(|setting| setting.name == name) {
            Some(_) if swept => format!("sweep.{name}"),
            Some(setting) => setting.path(),
            None => name.to_owned(),
        };
        self.lines.error(&path, problem.as_ref())
    }
}

/// Limit of runs in one experiment: three hours at a second each. A choice.
pub const MOST_RUNS: u64 = 10_000;

#[cfg(test)]
mod tests;
