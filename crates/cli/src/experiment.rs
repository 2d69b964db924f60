//! `headtime experiment`: runs a sweep from a file, on all cores.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use lab::experiment::{Experiment, ExperimentPlan, Grid, MEASURES, Mean, Results, SETTINGS};
use lab::{plot, text_file};

use crate::bar::Bar;
use crate::output::{Exit, NewFile, NewTable, json, print};
use crate::simulate::short;

/// The arguments of `headtime experiment`.
#[derive(Debug, Args)]
#[command(after_help = examples())]
pub struct ExperimentArgs {
    /// The experiment file. The folder experiments/ has examples
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
    /// Write a row for each run to this file: .parquet or .arrow; docs/reference/file-formats.md has the columns
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Draw the figures, one plot for each measure
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Number of runs in parallel [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// The text below the help, made from the tables.
fn examples() -> String {
    let mut text = String::from(
        "Examples:
  headtime experiment experiments/queue-depth.toml
  headtime experiment experiments/modern-depth.toml --svg out/modern-depth.svg --json
  headtime experiment experiments/queue-depth.toml --out runs.parquet

Settings of a file: one value in their table, or a list of several in [sweep]:\n",
    );
    for setting in SETTINGS {
        let _ = writeln!(text, "  {:27} {}", setting.path(), setting.what);
    }
    text.push_str("\nMeasures for [figure] y:\n");
    for measure in MEASURES {
        let _ = writeln!(text, "  {:27} {}", measure.name, measure.title);
    }
    text.push_str("\nNames of files in an experiment are relative to the current directory.");
    text
}

/// Runs the command.
///
/// # Errors
/// If the file or a file that it names is invalid, or the output cannot be written.
pub fn run(arguments: &ExperimentArgs) -> Result<(), Exit> {
    let name = arguments.file.display().to_string();
    let experiment = Experiment::parse(&name, &text_file::read(&arguments.file)?);
    let plan = ExperimentPlan::new(experiment.map_err(Exit::input)?)?;
    if arguments.svg.is_some() {
        plan.check_drawable()?;
    }
    let svg = arguments.svg.as_deref();
    if svg.is_some_and(|path| same_file(path, &arguments.file)) {
        let problem = format!("--svg {name}: the experiment itself: expected a file of its own");
        return Err(Exit::input(problem));
    }
    let svg = svg.map(NewFile::begin).transpose()?;
    let out = NewTable::begin(arguments.out.as_deref())?;
    let bar = Bar::new("{prefix} {bar:40} {percent:>3} %  {eta} left");
    let bar = bar.with_prefix(format!("{} runs", plan.runs.len()));
    let results = plan.measure(arguments.threads, &bar)?;
    bar.finish();
    if let Some(file) = svg {
        file.write(&plot::page(&results.panels()))?;
    }
    if let Some(file) = out {
        file.write(&results.table())?;
    }
    match arguments.json {
        true => print(&json(&results)?),
        false => print(&table(&results)),
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().ok();
    whole(one).is_some_and(|one| whole(other) == Some(one))
}

/// The results as tables.
fn table(results: &Results) -> String {
    let experiment = results.experiment();
    let mut text = format!("{}: {}\n", experiment.name, experiment.summary);
    for (setting, value) in &experiment.fixed {
        let _ = writeln!(text, "  {:22}{value}", setting.path());
    }
    if experiment.repeat > 1 {
        let seeds = experiment.repeat;
        let _ = writeln!(text, "  {:22}{seeds}: means ± standard deviation", "seeds");
    }
    let _ = writeln!(text, "  {:22}{}", "mode", results.label());
    for grid in results.grids() {
        let _ = write!(text, "\n  {}\n", grid.title);
        text.push_str(&rows(&grid));
    }
    text
}

fn rows(grid: &Grid) -> String {
    let cell = |mean: &Option<Mean>| match *mean {
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
    let mut lines = vec![vec![grid.axis.to_owned()]];
    lines[0].extend(grid.columns.iter().cloned());
    for (value, means) in &grid.rows {
        let mut line = vec![value.to_string()];
        line.extend(means.iter().map(cell));
        lines.push(line);
    }
    let length = |text: &String| text.chars().count();
    let widths: Vec<usize> = (0..lines[0].len())
        .map(|at| {
            lines
                .iter()
                .map(|line| length(&line[at]))
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for line in lines {
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
