//! From the text of an experiment file to an experiment.

use toml_edit::Value as Toml;

use super::{Axis, Experiment, Figure, Kind, MOST_RUNS, SETTINGS, Setting, Value};
use simulator::workload::SpecError;
use simulator::workload::section::{Origin, Section, parse, shown};

impl Experiment {
    /// The experiment that `text` describes; `file` is its name in complaints.
    ///
    /// # Errors
    /// If it is not TOML, a key is missing, unknown, or has a value that makes no sense.
    pub fn parse(file: &str, text: &str) -> Result<Experiment, SpecError> {
        let mut origin = Origin::new(file);
        let document = parse(&origin, text)?;
        let mut root = Section::root(text, document.as_table());
        let name = root.text(&mut origin, "name", None, "the name of the experiment")?;
        let summary = root.text(&mut origin, "summary", None, "what it shows")?;
        let times = format!("a whole number from 1 to {MOST_RUNS}");
        let repeat = root.whole(&mut origin, "repeat", Some(1), &times)?;
        let mut fixed = read_fixed(&mut origin, &mut root, "")?;
        for table in tables() {
            if let Some(mut section) = root.optional_section(&mut origin, table)? {
                fixed.extend(read_fixed(&mut origin, &mut section, table)?);
                section.finish(&origin)?;
            }
        }
        let sweep = root.section(&mut origin, "sweep")?;
        let axes = read_sweep(&mut origin, sweep)?;
        let figure = root.section(&mut origin, "figure")?;
        let figure = read_figure(&mut origin, figure, &axes)?;
        root.finish(&origin)?;
        let experiment = Experiment {
            name,
            summary,
            repeat: match repeat {
                1..=MOST_RUNS => repeat as u32,
                _ => {
                    let problem = format!("{repeat}: expected {times}");
                    return Err(origin.complain("repeat", problem));
                }
            },
            fixed,
            axes,
            figure,
            origin,
        };
        experiment.check()?;
        Ok(experiment)
    }

    fn check(&self) -> Result<(), SpecError> {
        let twice = |axis: &&Axis| self.fixed.iter().any(|(other, _)| *other == axis.setting);
        if let Some(axis) = self.axes.iter().find(twice) {
            let path = axis.setting.path();
            let problem = format!("has a value in {path}, too: expected one of the two");
            return Err(self.complain(axis.setting.name, problem));
        }
        for needed in ["drive", "policy"] {
            if !self.sets(needed) {
                let problem = "missing: expected a value, or a list in [sweep]";
                return Err(self.complain(needed, problem));
            }
        }
        match (self.sets("workload"), self.sets("trace")) {
            (true, false) | (false, true) => {}
            (_, both) => {
                let word = if both { "and trace" } else { "missing" };
                let problem = format!("{word}: expected a workload or a trace");
                return Err(self.complain("workload", problem));
            }
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

/// The tables in which settings stand.
fn tables() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    // Those of one table stand one after the other.
    SETTINGS.iter().filter_map(move |setting| {
        let is_next = setting.table != last;
        last = setting.table;
        is_next.then_some(setting.table)
    })
}

fn read_fixed(
    origin: &mut Origin,
    from: &mut Section<'_>,
    table: &str,
) -> Result<Vec<(&'static Setting, Value)>, SpecError> {
    let mut fixed = Vec::new();
    for setting in SETTINGS.iter().filter(|setting| setting.table == table) {
        let Some(item) = from.item(origin, setting.name) else {
            continue;
        };
        let value = item.as_value().and_then(|value| read(setting.kind, value));
        let value = value.ok_or_else(|| {
            let expected = setting.kind.expected();
            let list = match item.is_array() {
                true => "; lists stand in [sweep]",
                false => "",
            };
            let problem = format!("{}: expected {expected}{list}", shown(item));
            origin.complain(&setting.path(), problem)
        })?;
        fixed.push((setting, value));
    }
    Ok(fixed)
}

fn read_sweep(origin: &mut Origin, mut from: Section<'_>) -> Result<Vec<Axis>, SpecError> {
    let mut axes = Vec::new();
    for setting in SETTINGS {
        let Some(item) = from.item(origin, setting.name) else {
            continue;
        };
        let path = format!("sweep.{}", setting.name);
        let one = setting.kind.expected();
        let list = item.as_array().filter(|list| !list.is_empty());
        let list = list.ok_or_else(|| {
            let problem = format!("{}: expected a list, each {one}", shown(item));
            origin.complain(&path, problem)
        })?;
        let mut values = Vec::new();
        for element in list {
            let found = element.to_string();
            let found = found.trim();
            let value = read(setting.kind, element)
                .ok_or_else(|| origin.complain(&path, format!("{found}: expected {one}")))?;
            if values.contains(&value) {
                let problem = format!("{found} is there twice: expected each once");
                return Err(origin.complain(&path, problem));
            }
            values.push(value);
        }
        axes.push(Axis { setting, values });
    }
    from.finish(origin)?;
    if axes.is_empty() || axes.len() > MOST_AXES {
        let problem = format!(
            "{} settings: expected 1 to {MOST_AXES}, such as tasks = [1, 2, 4]",
            axes.len()
        );
        return Err(origin.complain("sweep", problem));
    }
    Ok(axes)
}

fn read_figure(
    origin: &mut Origin,
    mut from: Section<'_>,
    axes: &[Axis],
) -> Result<Figure, SpecError> {
    let x = from.text(origin, "x", None, "the name of a swept setting")?;
    let names: Vec<&str> = axes.iter().map(|axis| axis.setting.name).collect();
    let x = names.iter().position(|&name| name == x).ok_or_else(|| {
        let all = names.join(", ");
        origin.complain(
            "figure.x",
            format!("\"{x}\": expected one of [sweep]: {all}"),
        )
    })?;
    let expected = "a list of measures, such as [\"requests_per_second\"]";
    let item = from.item(origin, "y");
    let list = item.and_then(|item| item.as_array());
    let words = list.map(|list| list.iter().map(|word| word.as_str().map(str::to_owned)));
    let y: Option<Vec<String>> = words.and_then(Iterator::collect);
    let y = y.filter(|y| !y.is_empty()).ok_or_else(|| {
        let found = item.map_or("missing".to_owned(), shown);
        origin.complain("figure.y", format!("{found}: expected {expected}"))
    })?;
    from.finish(origin)?;
    Ok(Figure { x, y })
}

fn read(kind: Kind, value: &Toml) -> Option<Value> {
    match kind {
        Kind::Whole(low, high) => {
            let whole = u64::try_from(value.as_integer()?).ok()?;
            (low..=high).contains(&whole).then_some(Value::Whole(whole))
        }
        Kind::Number => number(value),
        Kind::NumberOr(word) if value.as_str() == Some(word) => Some(Value::Text(word.to_owned())),
        Kind::NumberOr(_) => number(value),
        Kind::Text => value.as_str().map(|text| Value::Text(text.to_owned())),
    }
}

fn number(value: &Toml) -> Option<Value> {
    let whole = || value.as_integer().map(|whole| whole as f64);
    let number = value.as_float().or_else(whole)?;
    number.is_finite().then_some(Value::Number(number))
}

/// At most so many settings vary: a table has rows and columns, and a name of a column can say two
/// things. A choice.
const MOST_AXES: usize = 3;
