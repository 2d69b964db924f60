//! The parser of experiment files.

use document::quantity::Unit;
use document::{Document, DocumentError, Field, Section};

use super::{
    Axis, Experiment, ExperimentFigure, ExperimentSetting, Kind, MOST_RUNS, SETTINGS, Value,
};

impl Experiment {
    /// Parses an experiment; `file` is the name in errors.
    ///
    /// # Errors
    /// If the text is not TOML, or a key is missing, unknown or invalid.
    pub fn parse(file: &str, text: &str) -> Result<Experiment, DocumentError> {
        let document = Document::parse(file, text)?;
        let root = document.root();
        let others = ["name", "summary", "repeat", "sweep", "figure"];
        let known: Vec<&str> = others.into_iter().chain(tables()).collect();
        root.only(&[&known[..], &names("")].concat())?;
        let times = format!("a whole number from 1 to {MOST_RUNS}");
        let repeat = root.get("repeat");
        let repeat = repeat.map(|repeat| repeat.whole(1..=MOST_RUNS, &times));
        let mut fixed = read_fixed(&root, "")?;
        for table in tables() {
            if let Some(section) = root.section(table, &names(table))? {
                fixed.extend(read_fixed(&section, table)?);
            }
        }
        let axes = read_sweep(&root)?;
        let experiment = Experiment {
            name: root.text("name", "the name of the experiment")?.to_owned(),
            summary: root.text("summary", "what it shows")?.to_owned(),
            repeat: repeat.transpose()?.unwrap_or(1) as u32,
            figure: read_figure(&root, &axes)?,
            fixed,
            axes,
            lines: root.lines(),
        };
        experiment.check()?;
        Ok(experiment)
    }

    fn check(&self) -> Result<(), DocumentError> {
        let twice = |axis: &&Axis| self.fixed.iter().any(|(other, _)| *other == axis.setting);
        if let Some(axis) = self.axes.iter().find(twice) {
            let path = axis.setting.path();
            let problem = format!("has a value in {path}, too: expected one of the two");
            return Err(self.complain(axis.setting.name, problem));
        }
        match self.sets("system") {
            true => self.check_system()?,
            false => self.check_drive()?,
        }
        let values = self.axes.iter().map(|axis| axis.values.len() as u64);
        let runs = values.fold(u64::from(self.repeat), u64::saturating_mul);
        if runs > MOST_RUNS {
            let problem = format!("{runs} runs: expected at most {MOST_RUNS}");
            return Err(self.complain("sweep", problem));
        }
        Ok(())
    }
}

/// The settings beside a description of a system, which has the others.
const BESIDE_SYSTEM: [&str; 6] = ["system", "policy", "depth", "requests", "seconds", "seed"];

impl Experiment {
    fn check_system(&self) -> Result<(), DocumentError> {
        let mut others = SETTINGS
            .iter()
            .filter(|setting| !BESIDE_SYSTEM.contains(&setting.name));
        match others.find(|setting| self.sets(setting.name)) {
            None => Ok(()),
            Some(setting) => {
                let known = BESIDE_SYSTEM.join(", ");
                let problem = format!("beside a system, which says it: expected none but {known}");
                Err(self.complain(setting.name, problem))
            }
        }
    }

    fn check_drive(&self) -> Result<(), DocumentError> {
        for needed in ["drive", "policy"] {
            if !self.sets(needed) {
                let problem = "missing: expected a value, or a list in [sweep]";
                return Err(self.complain(needed, problem));
            }
        }
        match (self.sets("workload"), self.sets("trace")) {
            (true, false) | (false, true) => Ok(()),
            (_, both) => {
                let word = if both { "and trace" } else { "missing" };
                let problem = format!("{word}: expected a workload or a trace");
                Err(self.complain("workload", problem))
            }
        }
    }
}

/// The tables of the settings.
fn tables() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    // Settings of one table are adjacent.
    SETTINGS.iter().filter_map(move |setting| {
        let is_next = setting.table != last;
        last = setting.table;
        is_next.then_some(setting.table)
    })
}

/// The keys of a table.
fn names(table: &str) -> Vec<&'static str> {
    let settings = SETTINGS.iter().filter(|setting| setting.table == table);
    settings.map(|setting| setting.name).collect()
}

fn read_fixed(
    from: &Section<'_>,
    table: &str,
) -> Result<Vec<(&'static ExperimentSetting, Value)>, DocumentError> {
    let mut fixed = Vec::new();
    for setting in SETTINGS.iter().filter(|setting| setting.table == table) {
        let Some(field) = from.get(setting.name) else {
            continue;
        };
        let value = read(setting, &field).ok_or_else(|| {
            let list = match field.as_list() {
                Some(_) => "; lists stand in [sweep]",
                None => "",
            };
            field.mismatch(setting.kind.expected() + list)
        })?;
        fixed.push((setting, value));
    }
    Ok(fixed)
}

fn read_sweep(root: &Section<'_>) -> Result<Vec<Axis>, DocumentError> {
    let known: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
    let from = root.need_section("sweep", &known)?;
    let mut axes = Vec::new();
    for setting in SETTINGS {
        let Some(field) = from.get(setting.name) else {
            continue;
        };
        let one = setting.kind.expected();
        let list = field.as_list().filter(|list| list.len() > 0);
        let list = list.ok_or_else(|| field.mismatch(format_args!("a list, each {one}")))?;
        let mut values = Vec::new();
        for element in list {
            let value = read(setting, &element).ok_or_else(|| element.mismatch(&one))?;
            if values.contains(&value) {
                let found = element.shown();
                let problem = format!("{found} is there twice: expected each once");
                return Err(element.error(problem));
            }
            values.push(value);
        }
        axes.push(Axis { setting, values });
    }
    match axes.len() {
        1..=MOST_AXES => Ok(axes),
        count => Err(from.error(format!(
            "{count} settings: expected 1 to {MOST_AXES}, such as tasks = [1, 2, 4]"
        ))),
    }
}

fn read_figure(root: &Section<'_>, axes: &[Axis]) -> Result<ExperimentFigure, DocumentError> {
    let from = root.need_section("figure", &["x", "y"])?;
    let field = from.need("x", "the name of a swept setting")?;
    let names: Vec<&str> = axes.iter().map(|axis| axis.setting.name).collect();
    let x = names.iter().position(|&name| Some(name) == field.as_text());
    let x =
        x.ok_or_else(|| field.mismatch(format_args!("one of [sweep]: {}", names.join(", "))))?;
    let expected = "a list of measures, such as [\"requests_per_second\"]";
    let field = from.need("y", expected)?;
    let words = field.as_list().and_then(|list| {
        list.map(|word| word.as_text().map(str::to_owned))
            .collect::<Option<Vec<String>>>()
    });
    let y = words.filter(|words| !words.is_empty());
    Ok(ExperimentFigure {
        x,
        y: y.ok_or_else(|| field.mismatch(expected))?,
    })
}

fn read(setting: &ExperimentSetting, field: &Field<'_>) -> Option<Value> {
    let text = |text: &str| Value::Text(text.to_owned());
    let said = || unit(setting.name)?.read(field.as_text()?);
    let number = || {
        let number = field.as_number().or_else(said);
        number.filter(|number| number.is_finite())
    };
    match setting.kind {
        Kind::Whole(low, high) => {
            let whole = u64::try_from(field.as_integer()?).ok()?;
            (low..=high).contains(&whole).then_some(Value::Whole(whole))
        }
        Kind::NumberOr(word) if field.as_text() == Some(word) => Some(text(word)),
        Kind::Number | Kind::NumberOr(_) => number().map(Value::Number),
        Kind::Text => field.as_text().map(text),
    }
}

/// The unit of a setting, if it has one: a text may name another one of the same quantity.
fn unit(name: &str) -> Option<Unit> {
    let units = [
        ("_us", Unit::Microseconds),
        ("_ms", Unit::Milliseconds),
        ("guard", Unit::Milliseconds),
        ("seconds", Unit::Seconds),
        ("_kib", Unit::Kibibytes),
        ("_mb_s", Unit::MegabytesPerSecond),
        ("_percent", Unit::Percent),
    ];
    let unit = units.into_iter().find(|(end, _)| name.ends_with(end));
    unit.map(|(_, unit)| unit)
}

/// Limit of varied settings: a table has rows and columns, and a column's name can hold two values.
/// A choice.
const MOST_AXES: usize = 3;
