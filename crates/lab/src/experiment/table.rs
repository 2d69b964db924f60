//! Runs as a table: a row for each run, with its settings and measures.

use super::measure::{MEASURES, RunMeasures};
use super::plan::{ExperimentPlan, ExperimentRun, stated};
use super::{Kind, SETTINGS, Value};
use crate::Label;
use crate::comparison::figures::PolicyRun;
use crate::comparison::{ComparisonSettings, ComparisonSetup};
use crate::table::{Column, ColumnTable};

/// A run.
#[derive(Clone, Debug)]
pub struct RunRow {
    /// The name of its experiment.
    experiment: Option<String>,
    /// The relation between belief and truth.
    mode: Label,
    /// The values in the order of [`SETTINGS`].
    settings: Vec<Option<Value>>,
    /// The measures.
    measures: RunMeasures,
}

impl RunRow {
    /// The row of a policy's run with these flags of `headtime simulate`.
    pub fn simulated(
        settings: &ComparisonSettings,
        setup: &ComparisonSetup,
        run: &PolicyRun,
    ) -> Self {
        let value = |name: &str| match name {
            "policy" => Some(Value::Text(run.name.clone())),
            "seed" => Some(Value::Whole(settings.load.seed_of(&setup.source))),
            "requests" => setup.requests.map(Value::Whole),
            name => stated(settings, name),
        };
        RunRow {
            experiment: None,
            mode: setup.truth.mode(),
            settings: SETTINGS.iter().map(|setting| value(setting.name)).collect(),
            measures: RunMeasures::new(run),
        }
    }

    /// The row of a run of an experiment.
    pub(super) fn swept(
        plan: &ExperimentPlan,
        run: &ExperimentRun,
        measures: &RunMeasures,
    ) -> Self {
        let experiment = &plan.experiment;
        let point = &plan.points[run.point];
        let value = |name: &str| match name {
            "seed" => Some(Value::Whole(run.seed)),
            name => {
                let mut values = experiment.values(point);
                let found = values.find(|(setting, _)| setting.name == name);
                found.map(|(_, value)| value.clone())
            }
        };
        RunRow {
            experiment: Some(experiment.name.clone()),
            mode: plan.modes[run.point],
            settings: SETTINGS.iter().map(|setting| value(setting.name)).collect(),
            measures: measures.clone(),
        }
    }
}

/// The table of runs. A column of a setting has the setting's path in an experiment file.
pub fn runs(rows: &[RunRow]) -> ColumnTable {
    let experiment = rows.iter().map(|row| row.experiment.clone());
    let mode = rows.iter().map(|row| Some(row.mode.name()));
    let mut columns = vec![
        Column::text("experiment", "the experiment's name", experiment),
        Column::text("mode", "the relation between belief and truth", mode),
    ];
    for (place, setting) in SETTINGS.iter().enumerate() {
        let values = rows.iter().map(|row| row.settings[place].as_ref());
        let (name, what) = (setting.path(), setting.what);
        columns.push(match setting.kind {
            Kind::Whole(..) => Column::count(
                name,
                what,
                values.map(|value| match value {
                    Some(Value::Whole(whole)) => Some(*whole),
                    _ => None,
                }),
            ),
            Kind::Number => Column::number(name, what, values.map(|value| value?.number())),
            Kind::NumberOr(_) | Kind::Text => {
                Column::text(name, what, values.map(|value| Some(value?.to_string())))
            }
        });
    }
    for (place, measure) in MEASURES.iter().enumerate() {
        let figures = rows.iter().map(|row| row.measures.figure(place));
        columns.push(Column::number(measure.name, measure.title, figures));
    }
    ColumnTable {
        name: "runs",
        version: 1,
        columns,
    }
}
